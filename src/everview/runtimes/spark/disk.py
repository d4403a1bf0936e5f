"""Errors of the disk in the middle of an epoch, for the user: nothing has been applied by then."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from everview.errors import StoreError

# Trying again at once does not mend these; of other failures, such as EIO, Spark may run the task again.
LASTING: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT}
)
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def refused(error: OSError, where: str) -> StoreError:
    """The error for a failed operation on the state directory.

    >>> print(refused(OSError(errno.ENOSPC, "No space left on device", "/state/x"), "a task"))
    a task cannot write to the state: [Errno 28] No space left on device: '/state/x'
      hint: make room and go on: nothing was applied, and the state is as it was
    """
    if error.errno in FULL:
        what, hint = "cannot write to the state", "make room and go on"
    elif error.errno == errno.ENOENT:
        what, hint = (
            "misses a file of the state",
            "put the state directory back, where every machine sees it, and go on",
        )
    else:
        what, hint = "cannot work on the state", "remove the cause and go on"
    return StoreError(f"{where} {what}: {error}", hint=f"{hint}: nothing was applied, and the state is as it was")


@contextmanager
def disk_told(where: str) -> Generator[None]:
    """Turn errors of the disk inside a block into errors for the user."""
    try:
        yield
    except OSError as error:
        if error.errno is None or isinstance(error, ConnectionError):
            raise  # not of a disk
        raise refused(error, where) from error
