"""Folders that sinks of files write to, on a disk of this machine or wherever Spark can write.

A folder offers only what sinks need of a filesystem: listing files, and reading and writing small ones.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from everview.spark.jvm import own_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PATTERN: Final = re.compile(r"[{}\[\]*?\\]")


def local_path(path: str) -> Path | None:
    """The directory that a path or a ``file:`` URL names, or None if it is elsewhere.

    >>> local_path("file:///out/a%20b"), local_path("/out"), local_path("s3://bank/out")
    (PosixPath('/out/a b'), PosixPath('/out'), None)
    """
    if not SCHEME.match(path):
        return Path(path).absolute()
    parts = urlsplit(path)
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(unquote(parts.path))


def is_pattern(path: str) -> bool:
    """Whether Spark's readers take a path for a pattern."""
    return _PATTERN.search(path) is not None


def literal(path: str) -> str:
    """A path as Spark's readers take it, with no character of it part of a pattern.

    >>> print(literal("/in/[a]*.json"))
    /in/\\[a\\]\\*.json
    """
    # Spark has an option by which paths are no patterns; with it, files beside one named [a] are read twice.
    return _PATTERN.sub(r"\\\g<0>", path)


class Folder(Protocol):
    """A folder that may not exist yet."""

    @property
    def inside(self) -> str:
        """The path of this folder inside a state, with a slash, if it is in one."""
        ...

    def names(self) -> list[str]:
        """The names of files and folders in this folder."""
        ...

    def files(self, under: str = "") -> Iterator[str]:
        """Every file in this folder or in a folder inside it, by its path relative to this folder."""
        ...

    def read(self, name: str) -> bytes | None:
        """The contents of a small file; None if there is none."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Write a small file, whole or not at all; the folder is made if need be."""
        ...

    def note(self, name: str, data: bytes) -> None:
        """Write a small file that a power failure may undo, into a folder that must be there."""
        ...


def folder(spark: SparkSession, path: str) -> Folder:
    """The folder that a sink's path names."""
    local = local_path(path)
    return Remote(spark, path) if local is None else Local(local)


@dataclass(frozen=True, slots=True)
class Local:
    """A folder on a filesystem of this machine."""

    root: Path
    inside: str = ""

    def names(self) -> list[str]:
        return os.listdir(self.root) if self.root.is_dir() else []

    def files(self, under: str = "") -> Iterator[str]:
        for directory, _, names in os.walk(self.root / under):
            for name in names:
                yield (Path(directory) / name).relative_to(self.root).as_posix()

    def read(self, name: str) -> bytes | None:
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        written = self.root / f"{name}.writing"
        with written.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        written.replace(self.root / name)

    def note(self, name: str, data: bytes) -> None:
        written = self.root / f"{name}.writing"
        written.write_bytes(data)
        written.replace(self.root / name)


class Remote:
    """A folder that Spark's JVM reaches by one of Hadoop's filesystems."""

    inside = ""

    def __init__(self, spark: SparkSession, url: str) -> None:
        java = own_java(spark, "a sink in an object store")
        self._jvm: Any = java.jvm
        self._root: Any = self._jvm.org.apache.hadoop.fs.Path(url)
        self._files: Any = self._root.getFileSystem(java.hadoop)
        self._base = unquote(urlsplit(str(self._files.makeQualified(self._root).toString())).path)

    def names(self) -> list[str]:
        if not self._files.exists(self._root):
            return []
        return [str(status.getPath().getName()) for status in self._files.listStatus(self._root)]

    def files(self, under: str = "") -> Iterator[str]:
        path = self._at(under) if under else self._root
        if not self._files.exists(path):
            return
        listed = self._files.listFiles(path, True)
        while listed.hasNext():
            full = str(listed.next().getPath().toUri().getPath())
            yield full.removeprefix(self._base).lstrip("/")

    def read(self, name: str) -> bytes | None:
        path = self._at(name)
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write(self, name: str, data: bytes) -> None:
        stream = self._files.create(self._at(name), True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()

    note = write

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)
