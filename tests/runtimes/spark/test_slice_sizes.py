"""Sizes of slices that are kept from one manifest to the next are those that counting anew gives."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from everview.runtimes.spark.slice_sizes import SliceSizes
from everview.traces.store.manifest import Edit, Fingerprints, Manifest, ManifestEntry, StateChange
from everview.traces.store.slices import NARROW, SliceRef

NAMES = ("a", "b", "c")
edits = st.tuples(st.sampled_from(NAMES), st.integers(0, 1), st.integers(0, 9), st.booleans())


def edited(manifest: Manifest, name: str, shard: int, rows: int, replaces: bool) -> Manifest:
    """A manifest after a commit that adds a slice, or puts one (without rows, none) in place of all there are."""
    old = manifest.slices.get((name, shard), ())
    ref = SliceRef(name, shard, "s", 0, rows, 2, "<i8" if rows % 2 else f"{NARROW}{rows}", 0)
    takes = tuple(entry.id for entry in old) if replaces else ()
    entry = ManifestEntry(manifest.next_id, ref) if rows or not takes else None
    return manifest.after([StateChange(manifest.epoch + 1, (Edit(name, shard, takes, entry),))])


@given(st.lists(st.lists(edits, max_size=3), max_size=8))
def test_kept_sizes_are_those_of_counting_anew(commits: list[list[Any]]) -> None:
    manifest, kept = Manifest(0, Fingerprints("plan")), SliceSizes()
    for commit in commits:
        for edit in commit:
            manifest = edited(manifest, *edit)
        sizes = kept.of(manifest.slices)
        assert sizes.bytes == sum(entry.ref.stored for entry in manifest.entries())
        for name in NAMES:
            for shard in (0, 1):
                stored = manifest.slices.get((name, shard), ())
                assert sizes.rows(name, shard) == sum(entry.ref.rows for entry in stored)
