"""Epochs as folders of local files: each appears whole, or takes the place of an earlier attempt.

``path/epoch=0000000007/`` has the rows of an epoch. Names that start with ``_`` are attempts under way, which readers
ignore. What others have put beside our files stays.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EPOCH: Final = "epoch"
_FILE = "part-0.parquet"
# What a sink writes into the folder of an epoch: by this process, and by Spark, with what Hadoop puts beside it.
OURS = re.compile(r"part-\d+\.parquet|part-\d{5}-[0-9a-f-]{36}\S*|_SUCCESS|\..+\.crc")


def epoch_name(epoch: int) -> str:
    """The name of an epoch's folder, padded so that names sort as epochs do; Spark still reads a number."""
    return f"{EPOCH}={epoch:010d}"


def _attempt(root: Path, epoch: int) -> Path:
    """The folder where an epoch is written before it counts; without ``=``, which would look like a partition."""
    return root / f"_{EPOCH}-{epoch:010d}.writing"


def epochs(root: Path) -> list[Path]:
    """The folders of finished epochs, which readers see."""
    folders = root.glob(f"{EPOCH}=*")
    return sorted(each for each in folders if any(OURS.fullmatch(file.name) for file in each.glob("*.parquet")))


def put_epoch(root: Path, epoch: int, rows: pa.Table | DataFrame, options: Mapping[str, str]) -> None:
    """Write an epoch; one without rows has no directory, even if an attempt that was never committed left one."""
    if not isinstance(rows, pa.Table):
        _write_epoch_of_frame(root, epoch, rows, options)
    elif rows.num_rows:
        _write_epoch(root, epoch, rows, _compression(options))
    elif root.exists():
        _remove(_attempt(root, epoch))
        _clear(root / epoch_name(epoch), keep=())


def replace_snapshot(root: Path, epoch: int, rows: pa.Table | DataFrame, options: Mapping[str, str]) -> None:
    """Replace the rows of all earlier epochs by those of this one."""
    if isinstance(rows, pa.Table):
        _write_epoch(root, epoch, rows, _compression(options))
    else:
        _write_epoch_of_frame(root, epoch, rows, options)
    for old in epochs(root):
        if old.name != epoch_name(epoch):
            _clear(old, keep=())
    _sync(root)


def _compression(options: Mapping[str, str]) -> str:
    asked = options.get("compression", "snappy").lower()
    return "none" if asked == "uncompressed" else asked


def _write_epoch(root: Path, epoch: int, table: pa.Table, compression: Any) -> None:
    """Write an epoch as one file, which appears whole or replaces an earlier attempt at once."""
    root.mkdir(parents=True, exist_ok=True)
    target, attempt = root / epoch_name(epoch), _attempt(root, epoch)
    _remove(attempt)
    pq.write_table(table, attempt, compression=compression)
    _sync(attempt)
    target.mkdir(exist_ok=True)
    os.replace(attempt, target / _FILE)
    _clear(target, keep=(_FILE,))
    _sync(target)
    _sync(root)


def _write_epoch_of_frame(root: Path, epoch: int, frame: DataFrame, options: Mapping[str, str]) -> None:
    """Write an epoch as a file for each of Spark's partitions; the previous epoch stays until all are in place."""
    root.mkdir(parents=True, exist_ok=True)
    target, attempt = root / epoch_name(epoch), _attempt(root, epoch)
    frame.write.mode("overwrite").options(**options).parquet(attempt.as_uri())
    names = _renamed(attempt)
    if not target.exists():
        os.replace(attempt, target)
        _sync(root)
        return
    for name in names:
        os.replace(attempt / name, target / name)
    _clear(target, keep=names)
    _remove(attempt)
    _sync(target)
    _sync(root)


def _renamed(attempt: Path) -> list[str]:
    """Rename Spark's files to ``part-0.parquet`` and so on, flush each to disk, and return the names."""
    names: list[str] = []
    for part in sorted(attempt.iterdir()):
        if not part.name.startswith("part-"):
            part.unlink()  # a mark of success, checksums
            continue
        _sync(part)
        names.append(f"part-{len(names)}.parquet")
        part.rename(attempt / names[-1])
    return names


def _clear(directory: Path, keep: Sequence[str]) -> None:
    """Remove our files of an epoch, and the directory if nothing else is in it: files of others stay."""
    if not directory.is_dir():
        return
    for file in directory.iterdir():
        if OURS.fullmatch(file.name) and file.name not in keep:
            file.unlink()
    if not any(directory.iterdir()):
        directory.rmdir()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
