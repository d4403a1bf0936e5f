"""What a state asks of an object store: whole objects by name, and one act that only one of many can do.

`create` is that act: it makes an object unless there is one of that name, and says which. Everything else may be
repeated, arrive late or see an older listing. There is no rename, no lock, no append and no map.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from everview.errors import MissingRuntime, StoreError

T = TypeVar("T")

SCHEMES: Final = ("s3", "gs", "abfss", "hdfs")
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
CACHE: Final = "EVERVIEW_CACHE"  # the variable of the environment that says where local copies are
TRIES: Final = 6  # of an act whose outcome nobody told
PAUSE: Final = 0.05  # seconds before the second try; each later pause is twice as long
CHUNK: Final = 8 << 20  # bytes of an object that are held at once
AGAIN: Final = (0.1, 0.5, 2.0)  # seconds after which an object is read again
INSTALL: Final = {
    "s3": "'everview[s3]'",
    "gs": "google-cloud-storage",
    "abfss": "azure-storage-blob azure-identity",
    "hdfs": "'everview[hdfs]'",
}


def scratch() -> Path:
    """The folder on this machine for copies of what states hold; only this user can read it."""
    folder = Path(os.environ.get(CACHE) or os.path.join(tempfile.gettempdir(), f"everview-{os.getuid()}"))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


class Unanswered(OSError):
    """An act whose outcome is not known: the store may have done it, or may still do it."""


class Refusal(OSError):
    """An error that trying again does not mend, such as missing rights; the message says what to do."""


class Objects(Protocol):
    """The objects below one URL. Names are relative to it; failures are `OSError`."""

    @property
    def url(self) -> str:
        """The URL as errors show it: without passwords."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Make an object, or return False if there is one of that name; `Unanswered` if nobody knows."""
        ...

    def write(self, name: str, data: bytes | memoryview) -> None:
        """Put a whole object, in place of one that may be there."""
        ...

    def read(self, name: str) -> bytes | None:
        """A whole object; None if there is none."""
        ...

    def fetch(self, name: str, target: Path) -> bool:
        """Copy an object to a local file; False if there is none."""
        ...

    def size(self, name: str) -> int | None:
        """How many bytes an object has; None if there is none."""
        ...

    def names(self, under: str) -> list[str]:
        """The names of the objects ``under/…``, without what comes before the slash."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object; one that is not there is no mistake."""
        ...


def claimed(objects: Objects, name: str, data: bytes, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Write an object under a free name, with bytes like no other's; whether ours is the one that is there.

    An act without an answer is repeated, so that the answer may be about an earlier try: whose object is there, its
    bytes say. `Unanswered` if all tries had none.
    """
    unknown: OSError | None = None
    for again in range(TRIES):
        if again:
            sleep(PAUSE * 2 ** (again - 1))
        try:
            if objects.create(name, data):
                return True
            return objects.read(name) == data
        except Unanswered as error:
            unknown = error
        except OSError as error:
            if unknown is None:
                raise  # no try can have arrived
            unknown = error
    raise Unanswered(f"{objects.url} does not say whether {name} was written ({unknown})") from unknown


def read_again(reading: Callable[[], T]) -> T:
    """What is read; once more after a while if the answer breaks off, since an object never changes."""
    for seconds in AGAIN:
        try:
            return reading()
        except Refusal:
            raise
        except OSError:
            time.sleep(seconds)
    return reading()


def library(name: str, scheme: str) -> Any:
    """The module that speaks to a store; `MissingRuntime` says what to install."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingRuntime(
            f"a state at {scheme}:// needs {name}, on the driver and the executors: pip install {INSTALL[scheme]}."
        ) from None


def scheme_of(path: str | Path) -> str | None:
    """The scheme of a URL that names no local path; None for a path or a ``file:`` URL.

    >>> scheme_of("s3://bank/state"), scheme_of("/state"), scheme_of("file:///state")
    ('s3', None, None)
    """
    match = _URL.match(str(path)) if isinstance(path, str) else None
    scheme = match[1].lower() if match else None
    return None if scheme == "file" else scheme


def require_scheme(url: str) -> None:
    """Refuse a URL of a store whose objects cannot be created by one writer only.

    >>> require_scheme("ftp://host/state")
    Traceback (most recent call last):
    everview.errors.StoreError: a state cannot be at ftp://host/state: Everview knows no store ftp://
      hint: give a path, or a URL that begins with s3://, gs://, abfss:// or hdfs://
    """
    scheme = scheme_of(url)
    if scheme in SCHEMES:
        return
    known = f"{', '.join(f'{each}://' for each in SCHEMES[:-1])} or {SCHEMES[-1]}://"
    similar = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasbs": "abfss", "az": "abfss"}.get(str(scheme))
    hint = f"write {similar}:// instead" if similar else f"give a path, or a URL that begins with {known}"
    raise StoreError(f"a state cannot be at {url}: Everview knows no store {scheme}://", hint=hint)


def short_of(url: str) -> str:
    """A name for the local folder of what is cached of a URL.

    >>> short_of("s3://bank/state")
    'bank-state-788a7d2e86ff'
    """
    plain = re.sub(r"[^A-Za-z0-9]+", "-", url.partition("://")[2].partition("?")[0]).strip("-")[-40:]
    return f"{plain}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"
