"""A state's objects in HDFS, by a client that speaks to it without Java.

A file of HDFS is seen while it is written, and stays as far as it was written when the writer dies. So every object is
written below ``.writing`` first, synced to the disks of its data nodes, and renamed when it is whole: a name that is
there has all its bytes. Renaming is one act of the name node, which refuses it if the new name is taken: that is
`create`. What writers that died have left below ``.writing`` is removed after a day.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

from everview.errors import StoreError
from everview.traces.store.objects import CHUNK, Refusal, Unanswered, library, read_again

WRITING: Final = ".writing"
DAY: Final = 24 * 3600 * 1000  # in the milliseconds of HDFS
# Of one name node, which no other can stand in for: about six seconds, four times. A name service has Hadoop's own.
PATIENCE: Final = {"dfs.client.failover.max.attempts": "3"}
HINT: Final = (
    "give hdfs://host:port/path; or hdfs://service/path with HADOOP_CONF_DIR, whose hdfs-site.xml says where that is"
)
LET_IN: Final = "set HADOOP_USER_NAME to a user who may write there, or run kinit if the cluster uses Kerberos"
_REFUSALS: Final = re.compile("AccessControlException|AuthorizationException|InvalidToken|SASL|GSSAPI")

_clients: WeakSet[Any] = WeakSet()


def _keep_in_child() -> None:
    """Keep the parent's clients for ever in a forked child: a client that is freed waits for threads of the parent."""
    for client in _clients:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))


os.register_at_fork(after_in_child=_keep_in_child)


class HdfsObjects:
    """The objects below a path of HDFS."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._url, self._root = url, unquote(parts.path).rstrip("/")
        self._address = f"{parts.scheme}://{parts.netloc}"
        self._settings = PATIENCE if parts.port else {}
        self._native = library("hdfs_native", "hdfs")
        self._folders: set[str] = set()  # that are known to be there
        self._tidy = False  # whether what is left of writers that died was looked for
        self._connect()

    @property
    def url(self) -> str:
        return self._url

    def create(self, name: str, data: bytes) -> bool:
        written = read_again(lambda: self._put_aside(name, data))
        try:
            with self._told():
                self._remove_old(written)
                self._client.rename(written, self._at(name))
        except FileExistsError:
            self._discard(written)
            return False
        except Refusal:
            raise
        except OSError as error:
            self._folders.clear()  # perhaps that of the name is gone
            self._discard(written)
            raise Unanswered(str(error)) from error
        return True

    def write(self, name: str, data: bytes | memoryview) -> None:
        written = read_again(lambda: self._put_aside(name, data))
        try:
            with self._told():
                self._client.rename(written, self._at(name), overwrite=True)
        except OSError:
            self._folders.clear()  # perhaps that of the name is gone
            self._discard(written)
            raise

    def read(self, name: str) -> bytes | None:
        def read() -> bytes | None:
            with self._told(), suppress(FileNotFoundError):
                return self._client.read(self._at(name)).read()
            return None

        return read_again(read)

    def fetch(self, name: str, target: Path) -> bool:
        def fetch() -> bool:
            with self._told(), suppress(FileNotFoundError):
                source = self._client.read(self._at(name))
                with target.open("wb") as file:
                    while part := source.read(CHUNK):
                        file.write(part)
                return True
            return False

        return read_again(fetch)

    def size(self, name: str) -> int | None:
        with self._told(), suppress(FileNotFoundError):
            info = self._client.get_file_info(self._at(name))
            return None if info.isdir else int(info.length)
        return None

    def names(self, under: str) -> list[str]:
        with self._told(), suppress(FileNotFoundError):
            return [_name(file) for file in self._client.list_status(self._at(under)) if not file.isdir]
        return []

    def delete(self, name: str) -> None:
        with self._told():
            self._client.delete(self._at(name))

    def _put_aside(self, name: str, data: bytes | memoryview) -> str:
        """Write an object under a name of no meaning; returns the path."""
        written = self._at(f"{WRITING}/{secrets.token_hex(8)}")
        with self._told():
            for path in (written, self._at(name)):
                self._make_folder(path.rpartition("/")[0])
            self._write(written, memoryview(data))
        return written

    def _write(self, path: str, data: memoryview) -> None:
        with self._client.create(path) as file:
            for start in range(0, len(data), CHUNK):
                file.write(data[start : start + CHUNK])
            file.hsync()

    def _make_folder(self, folder: str) -> None:
        if folder not in self._folders:
            self._client.mkdirs(folder, create_parent=True)
            self._folders.add(folder)

    def _remove_old(self, written: str) -> None:
        """Remove what was put aside a day before the file that was now, by the clock of the name node; once."""
        if self._tidy:
            return
        self._tidy = True
        now = self._client.get_file_info(written).modification_time
        for file in self._client.list_status(self._at(WRITING)):
            if file.modification_time < now - DAY:
                self._discard(self._at(f"{WRITING}/{_name(file)}"))

    def _discard(self, path: str) -> None:
        with suppress(OSError, RuntimeError):
            self._client.delete(path)

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _connect(self) -> None:
        try:
            self._held, self._process = self._native.Client(self._address, self._settings), os.getpid()
        except (OSError, RuntimeError, ValueError) as error:
            raise StoreError(f"{self._url} cannot be opened: {said(error)}", hint=HINT) from error
        _clients.add(self._held)

    @property
    def _client(self) -> Any:
        if self._process != os.getpid():
            self._connect()
        return self._held

    @contextmanager
    def _told(self) -> Generator[None]:
        """Errors of the client's as those of the operating system; what no one can mend by waiting, as a refusal."""
        try:
            yield
        except (FileNotFoundError, FileExistsError, Refusal):
            raise
        except (OSError, RuntimeError) as error:
            if _REFUSALS.search(_without_trace(error)):
                raise Refusal(f"the store does not let us in at {self._url}: {said(error)}; {LET_IN}") from error
            raise OSError(f"{self._url}: {said(error)}") from error


def hdfs_at(url: str) -> HdfsObjects:
    """The objects below a URL of HDFS.

    >>> hdfs_at("hdfs://ada@host:8020/state")
    Traceback (most recent call last):
    everview.errors.StoreError: a URL of HDFS has no user
      hint: set HADOOP_USER_NAME
    """
    parts = urlsplit(url)
    if parts.username:
        raise StoreError("a URL of HDFS has no user", hint="set HADOOP_USER_NAME")
    if parts.query:
        raise StoreError("a URL of HDFS has no options", hint="set them in hdfs-site.xml of HADOOP_CONF_DIR")
    return HdfsObjects(url)


def _name(file: Any) -> str:
    return str(file.path).rpartition("/")[2]


def said(error: Exception) -> str:
    """What the client, or the name node, says; without the places in its code.

    >>> said(RuntimeError(r'RPCError("org.apache.hadoop.E", "Permission denied: user=ada\\n\\tat org.apache.X")'))
    'Permission denied: user=ada'
    """
    text = _without_trace(error)
    answer = re.search(r'RPCError\("[^"]*", "(.*)', text)
    return answer[1].rstrip('")') if answer else text


def _without_trace(error: Exception) -> str:
    """An error's first line; in an answer of the name node's, whose text is quoted, the end of a line is escaped."""
    return str(error).partition("\n")[0].partition("\\n")[0]
