"""Checking a whole state: every log, and every byte of every segment that a log refers to."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from os import close
from pathlib import Path

from everview.traces.store.layout import StatePaths
from everview.traces.store.lock import pin
from everview.traces.store.manifest import refs_of
from everview.traces.store.record import BLANK
from everview.traces.store.replay import records, undisturbed
from everview.traces.store.segment import check_segment
from everview.traces.store.slices import SliceRef, array_in, checked, damaged


@dataclass(frozen=True, slots=True)
class Verified:
    """The amounts that a verification has checked."""

    logs: int
    segments: int
    slices: int


def verify(layout: StatePaths) -> Verified:
    """Raise `CorruptState` at the first damage; logs are held so that a vacuum cannot look like damage."""
    with ExitStack() as pins:
        held: list[tuple[Path, int]] = []
        for path in layout.generations():
            descriptor = pin(path)
            if descriptor is not None:
                pins.callback(close, descriptor)
                held.append((path, descriptor))
        refs: set[SliceRef] = set()
        inline = 0
        for path, descriptor in held:
            check = partial(_check_log, path, newest=path == held[-1][0])
            log_refs = undisturbed(descriptor, check)
            inline += sum(ref.inline for ref in log_refs)
            refs.update(ref for ref in log_refs if not ref.inline)
        segments = _check_segments(layout, refs)
    return Verified(len(held), segments, inline + len(refs))


def _check_log(path: Path, data: bytes, *, newest: bool) -> list[SliceRef]:
    refs: list[SliceRef] = []
    end = 0
    for record in records(path, data):
        end = record.end
        refs.extend(refs_of(record))
    if data[end:].strip(BLANK) and not newest:
        raise damaged(path, f"it is cut short after byte {end}, though a later log follows")
    for ref in refs:
        if ref.inline:
            checked(path, ref, array_in(data, ref.offset, ref))
    return refs


def _check_segments(layout: StatePaths, refs: set[SliceRef]) -> int:
    names = sorted({ref.file for ref in refs})
    # A trace may have got another name since its slices were written.
    indexed = {name: {ref._replace(name="") for ref in check_segment(layout.segment(name))} for name in names}
    for ref in refs:
        if ref._replace(name="") not in indexed[ref.file]:
            what = f'it lacks the slice of "{ref.name}", shard {ref.shard}, at byte {ref.offset}'
            raise damaged(layout.segments / ref.file, what)
    return len(names)
