"""The dictionary: codes and back, collisions, undoing, moving and sweeping."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codes.strategies import blobs, texts
from everview.codes import Dictionary, Entries
from everview.codes.buffers import NO_OCTETS, Bytes, bytes_of
from everview.errors import CodeCollision, CorruptState
from everview.kernels.xxh64 import hash_bytes
from everview.types import BIGINT, BINARY, ID, KINDS, NULL_WORD, STRING, SYMBOL

STR = KINDS["STRING"]


def weak(offsets, data, seed):
    """Three bits, spread over the range, one of them the word of NULL."""
    return ((hash_bytes(offsets, data, seed) & 7) << 61).astype(np.int64)


def wide(offsets, data, seed):
    """Four bits: collisions for most, exceptions for all."""
    return hash_bytes(offsets, data, seed) & 15


HASHES = [hash_bytes, weak, wide]
few = st.lists(st.none() | blobs, max_size=7, unique=True)


@pytest.mark.parametrize("hash", HASHES)
@given(batches=st.lists(few, max_size=1).flatmap(lambda b: st.just(b * 3)))
def test_values_come_back(hash, batches):
    d = Dictionary(hash)
    for batch in batches:
        column = pa.array(batch, pa.binary())
        codes = d.intern(BINARY, column)
        assert d.lookup(BINARY, codes).equals(column)
        assert len(set(codes.tolist())) == len(batch)
        assert [c == NULL_WORD for c in codes] == [v is None for v in batch]
    if batches:
        assert len(d) == len([v for v in batches[0] if v is not None])


@given(st.lists(texts, max_size=30))
def test_many_values_under_a_weak_hash(found):
    d = Dictionary(lambda o, x, seed: hash_bytes(o, x, seed) & 0xFFFF if seed > 50 else wide(o, x, seed))
    column = pa.array(found, pa.string())
    codes = d.intern(STRING, column)
    assert d.lookup(STRING, codes).equals(column)
    assert np.array_equal(d.intern(STRING, column.take(pa.array(range(len(found))[::-1], pa.int64()))), codes[::-1])
    assert len(set(codes.tolist())) == len(set(found))


@pytest.mark.parametrize("hash", HASHES)
@given(found=st.lists(texts, max_size=7), room=st.integers(0, 100))
def test_hashes_that_are_known_and_room_that_is_made(hash, found, room):
    d, other = Dictionary(hash), Dictionary(hash)
    column = bytes_of(pa.array(found, pa.string()))
    d.reserve(room, 7 * room)
    codes = d.intern_bytes(STR, column, NO_OCTETS, d.hashes(column))
    d.reserve(room, 0)
    assert codes.tolist() == other.intern_bytes(STR, column, NO_OCTETS).tolist()
    assert d.lookup(STRING, codes).to_pylist() == found
    assert d.export().codes.tolist() == other.export().codes.tolist()


def test_kinds_do_not_meet():
    d = Dictionary()
    one = pa.array(["a"])
    assert d.intern(STRING, one) == d.intern(SYMBOL, one) == d.intern(ID, one.cast(pa.binary()))
    assert len(d) == 3
    assert d.lookup(SYMBOL, d.intern(SYMBOL, one)).to_pylist() == ["a"]


def test_codes_never_change():
    d = Dictionary()
    assert d.intern(STRING, pa.array(["", "abc"])).tolist() == [-7444071767201028348, 1423657621850124518]


def test_it_grows():
    d = Dictionary()
    found = [f"value {i}" * (i % 7) for i in range(20_000)]
    codes = d.intern(STRING, pa.array(found))
    assert d.lookup(STRING, codes).to_pylist() == found
    assert len(d) == len(set(found))
    assert d.nbytes > sum(map(len, set(found)))


@pytest.mark.parametrize("hash", HASHES)
@given(before=few, after=few, again=few)
def test_rollback_leaves_no_entry(hash, before, after, again):
    before, after = before[:3], after[:3]
    d, other = Dictionary(hash), Dictionary(hash)
    first = d.intern(BINARY, pa.array(before, pa.binary()))
    other.intern(BINARY, pa.array(before, pa.binary()))
    mark = d.mark()
    d.intern(BINARY, pa.array(after, pa.binary()))
    d.rollback(mark)
    assert len(d) == len(other)
    assert d.lookup(BINARY, first).to_pylist() == before
    column = pa.array(again[:3], pa.binary())
    assert np.array_equal(d.intern(BINARY, column), other.intern(BINARY, column))


def test_rollback_over_growth():
    d = Dictionary()
    kept = d.intern(STRING, pa.array(["kept"]))
    mark = d.mark()
    d.intern(STRING, pa.array([f"v{i}" for i in range(1000)]))
    d.rollback(mark)
    assert len(d) == 1
    assert d.lookup(STRING, kept).to_pylist() == ["kept"]


@pytest.mark.parametrize("hash", HASHES)
@given(first=few, second=few)
def test_entries_move(hash, first, second):
    d, other = Dictionary(hash), Dictionary(hash)
    d.intern(BINARY, pa.array(first[:3], pa.binary()))
    other.load(d.export())
    mark = d.mark()
    column = pa.array(second[:3], pa.binary())
    codes = d.intern(BINARY, column)
    d.intern(SYMBOL, pa.array(["s"]))
    new = d.export(mark)
    other.load(new)
    other.load(new)
    assert len(other) == len(d)
    assert other.lookup(BINARY, codes).equals(column)
    assert np.array_equal(other.intern(BINARY, column), codes)
    assert new.codes.dtype == new.kinds.dtype == new.offsets.dtype == np.int64
    assert new.data.dtype == new.exceptions.dtype == np.uint8


def test_exceptions_are_all_that_another_encoder_needs():
    d, other = Dictionary(wide), Dictionary(wide)
    values = [bytes([i]) for i in range(8)]
    codes = d.intern_values(STR, values)
    told = d.exceptions()
    assert told.exceptions.sum() == d.export().exceptions.sum() > 0
    other.load(told)
    # The plain ones go first, and would take the place of an exception that is not known.
    for value, code in sorted(zip(values, codes, strict=True), reverse=True):
        assert other.intern_values(STR, [value]) == [code]


def test_two_dictionaries_that_met_a_collision_apart():
    values = [bytes([i]) for i in range(20)]
    zero = [
        v for v in values if Dictionary(wide).intern_values(STR, [v]) == Dictionary(wide).intern_values(STR, values[:1])
    ]
    a, b = Dictionary(wide), Dictionary(wide)
    a.intern_values(STR, zero[:1])
    b.intern_values(STR, [b"x", *zero[1:2]])
    before = len(a)
    with pytest.raises(CodeCollision, match="have the code") as raised:
        a.load(b.export())
    assert "encode again" in raised.value.hint
    assert len(a) == before


def test_an_exception_needs_what_stood_in_its_way():
    d = Dictionary(wide)
    d.intern_values(STR, [bytes([i]) for i in range(7)])
    mark = d.mark()
    d.intern_values(STR, [bytes([i]) for i in range(7, 12)])
    assert d.export(mark).exceptions.any()
    other = Dictionary(wide)
    with pytest.raises(CorruptState, match="stood in its way") as raised:
        other.load(d.export(mark))
    assert "exported before" in raised.value.hint
    assert len(other) == 0
    other.load(d.export())
    assert len(other) == 12


def test_entries_that_do_not_fit_together():
    entries = Dictionary().export()
    wrong = Entries(np.zeros(2, np.int64), entries.kinds, entries.offsets, entries.data, entries.exceptions)
    with pytest.raises(CorruptState, match="do not fit together"):
        Dictionary().load(wrong)


@pytest.mark.parametrize("hash", HASHES)
@given(found=st.lists(blobs, max_size=7, unique=True), data=st.data())
def test_sweeping_drops_what_nothing_refers_to(hash, found, data):
    d = Dictionary(hash)
    codes = np.array(d.intern_values(STR, found), np.int64)
    symbols = d.intern_values(KINDS["SYMBOL"], [b"s"])
    live = data.draw(st.lists(st.booleans(), min_size=len(found), max_size=len(found)))
    mask = np.array(live, bool)
    held = d.export().exceptions.any()
    dropped = d.sweep({STR: codes[mask], KINDS["SYMBOL"]: np.array([NULL_WORD])})
    assert len(d) == len(found) + 1 - dropped
    assert dropped <= 1 + int((~mask).sum())
    if not held:
        assert dropped == 1 + int((~mask).sum())
    kept = [v for v, keep in zip(found, live, strict=True) if keep]
    assert d.lookup_values(STR, codes[mask].tolist()) == kept
    # The invariant that sweeping could break: whoever is still here is found under its own code.
    assert d.intern_values(STR, kept) == codes[mask].tolist()
    assert d.intern_values(KINDS["SYMBOL"], [b"s"]) == symbols


def test_sweeping_by_entry_and_old_marks():
    d = Dictionary()
    d.intern_values(STR, [b"a", b"b", b"c"])
    mark = d.mark()
    assert d.sweep(np.array([0, 1, 0], np.uint8)) == 2
    assert d.export().data.tobytes() == b"b"
    with pytest.raises(AssertionError, match="from before a sweep"):
        d.rollback(mark)


@given(st.lists(st.none() | texts, min_size=2, max_size=6))
def test_comparing_is_by_value(found):
    d = Dictionary()
    codes = d.intern(STRING, pa.array(found, pa.string())).tolist()
    key = [(v is not None, (v or "").encode()) for v in found]
    for a, x in zip(codes, key, strict=True):
        for b, y in zip(codes, key, strict=True):
            assert d.compare(STRING, a, b) == (x > y) - (x < y)
    assert d.compare(BIGINT, 1, 2) == -1


def test_an_unknown_code_is_our_mistake():
    with pytest.raises(AssertionError, match="not in the dictionary"):
        Dictionary().lookup_bytes(STR, np.array([7]))
    with pytest.raises(AssertionError, match="not in the dictionary"):
        Dictionary().compare(STRING, 7, 8)


def test_rows_may_be_slices_of_larger_arrays():
    d = Dictionary()
    column = Bytes(np.array([2, 3, 5]), np.frombuffer(b"abcde", np.uint8))
    codes = d.intern_bytes(STR, column, np.empty(0, np.uint8))
    assert d.lookup_values(STR, codes.tolist()) == [b"c", b"de"]
