"""Opening files, compressed or not: the end of the name says how, as in ``prices.csv.gz`` and ``prices.csv.zst``."""

from __future__ import annotations

import io
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

COMPRESSED: Final[dict[str, Any]] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}


def is_compressed(path: Path) -> bool:
    """Whether a file is compressed, by its name."""
    return path.suffix.lower() in COMPRESSED


def suffix_of(path: Path) -> str:
    """The ending of a name that says what is in a file.

    >>> suffix_of(Path("prices.CSV.gz")), suffix_of(Path("prices.parquet"))
    ('.csv', '.parquet')
    """
    return Path(path.stem if is_compressed(path) else path.name).suffix.lower()


@contextmanager
def opened(path: Path) -> Generator[Any]:
    """The bytes of a file, decompressed."""
    with pa.OSFile(str(path), "rb") as file:
        if not is_compressed(path):
            yield file
            return
        with pa.CompressedInputStream(file, COMPRESSED[path.suffix.lower()]) as plain:
            yield plain


@contextmanager
def text_of(path: Path, encoding: str = "utf-8") -> Generator[io.TextIOBase]:
    """The text of a file, decompressed, with its line ends as they are."""
    with opened(path) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        yield text


def written_paths(paths: Sequence[Path]) -> list[Path]:
    """Paths with each pattern, as ``in/*.csv``, replaced by the files that are there, in the order of their names."""
    found: list[Path] = []
    for path in paths:
        pattern = has_magic(str(path)) and not path.exists()
        found += map(Path, sorted(glob(str(path), recursive=True))) if pattern else [path]
    return found
