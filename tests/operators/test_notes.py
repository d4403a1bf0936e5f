"""Every example of the notes on DBSP, §2.9, by its meaning on reference Z-sets and through kernels at the root.

Where the notes err, the corrected example stands here. A time of the root is a tick; an element is a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
import pytest

from everview.circuit import Circuit, Stream
from everview.runtimes.embedded import Embedded
from everview.zset import IndexedZSet, ReferenceTrace, TimedZSet, ZSet

Triples = list[tuple[Any, int, int]]  # element, time, weight


@dataclass(frozen=True)
class Example:
    """Inputs, what the reference makes of them, what a circuit makes of them, and what it should be."""

    schemas: tuple[str, ...]
    inputs: tuple[Triples, ...]
    reference: Callable[..., Any]
    circuit: Callable[..., Stream]
    expected: Triples


INTS = "x BIGINT NOT NULL"
PAIRS = "k STRING NOT NULL, v BIGINT NOT NULL"
TRACE = "k BIGINT NOT NULL, v BIGINT NOT NULL"


def counted(z: TimedZSet) -> ZSet:
    index = IndexedZSet.of(z.consolidate())
    return ZSet.of(((key, sum(w for _, w in index.values(key))), 1) for key in index.keys())  # noqa: SIM118


def joined(left: TimedZSet, right: TimedZSet) -> ZSet:
    a, b = IndexedZSet.of(left.consolidate()), IndexedZSet.of(right.consolidate())
    return a.join(b, lambda key, v, w: (key, (v, w)))


def distinct_incremental(changes: TimedZSet) -> ZSet:
    """Of the last moment, given all before it."""
    *_, last = changes.times()
    before, batch = changes.up_to(last.epoch - 1), changes.at(last)
    return ZSet.of((x, (before[x] + w > 0) - (before[x] > 0)) for x, w in batch)


def at_the_end(stream: Stream, other: Stream) -> Stream:
    """A stream joined with the trace of another, as it was before the tick."""
    return stream.join_trace(other.index("k").trace().delay(), "k", select=["left.k", "left.v", "right.v as w"])


DISTINCT_BATCH: Triples = [(0, 1, 2), (2, 1, 1), (3, 1, -1)]

NOTES: dict[str, Example] = {
    "2.9.1 aggregate": Example(
        ("k BIGINT NOT NULL, v STRING",),
        ([((1, "foo"), 0, 1), ((1, "bar"), 0, 1), ((2, "baz"), 0, 1)],),
        counted,
        lambda s: s.aggregate(["k"], n="count"),
        [((1, 2), 0, 1), ((2, 1), 0, 1)],
    ),
    "2.9.2 consolidate": Example(
        (TRACE,),
        (
            [
                *(((0, 0), 0, 1), ((0, 0), 0, -1), ((0, 1), 0, 1), ((0, 1), 0, 1), ((1, 2), 0, 2)),
                *(((1, 3), 0, 1), ((1, 3), 0, -1), ((1, 4), 0, -1), ((2, 2), 0, 1), ((2, 4), 0, 1)),
            ],
        ),
        lambda z: ReferenceTrace().insert_indexed(z).consolidate(),
        lambda s: s.index("k").trace().consolidate(),
        [((0, 1), 0, 2), ((1, 2), 0, 2), ((1, 4), 0, -1), ((2, 2), 0, 1), ((2, 4), 0, 1)],
    ),
    "2.9.3 distinct": Example(
        (INTS,),
        ([(0, 0, 1), (1, 0, 2), (2, 0, -1), (3, 0, 0)],),
        lambda z: z.lift(ZSet.distinct),
        lambda s: s.distinct(),
        [(0, 0, 1), (1, 0, 1)],
    ),
    "2.9.4 filter": Example(
        (INTS,),
        ([(0, 0, 1), (1, 0, 2), (2, 1, -3)],),
        lambda z: z.filter(lambda x: x >= 1),
        lambda s: s.filter(lambda x: pc.greater_equal(x, 1)),
        [(1, 0, 2), (2, 1, -3)],
    ),
    "2.9.5 index with": Example(
        ("src BIGINT NOT NULL, dst BIGINT NOT NULL, cost BIGINT NOT NULL",),
        ([((0, 1, 1), 0, 1), ((1, 2, 1), 1, 1), ((1, 3, 2), 1, -1)],),
        lambda z: z.index_with(lambda edge: edge[0]),
        lambda s: s.index_with(lambda src, dst, cost: src, "key BIGINT NOT NULL"),
        [((0, (0, 1, 1)), 0, 1), ((1, (1, 2, 1)), 1, 1), ((1, (1, 3, 2)), 1, -1)],
    ),
    "2.9.6 inspect": Example(
        (INTS,),
        ([(0, 1, 1), (1, 1, 1)],),
        lambda z: z,
        lambda s: s.inspect(seen.append),
        [(0, 1, 1), (1, 1, 1)],
    ),
    "2.9.7 map": Example(
        (INTS,),
        ([(1, 0, 1), (-1, 0, 2), (2, 0, 1), (-2, 0, -1), (-3, 1, 1)],),
        lambda z: z.map(abs),
        lambda s: s.map(pc.abs, INTS),
        [(1, 0, 3), (3, 1, 1)],
    ),
    "2.9.8 negate": Example(
        (INTS,),
        ([(0, 0, 1), (1, 0, -1), (2, 0, -2)],),
        lambda z: -z,
        lambda s: -s,
        [(0, 0, -1), (1, 0, 1), (2, 0, 2)],
    ),
    "2.9.9 z⁻¹ trace": Example(
        (INTS,),
        ([(0, 0, 1), (1, 1, 1), (0, 1, -1), (9, 2, 1)],),
        lambda z: TimedZSet.of((x, t + 1, w) for t in range(2) for x, w in z.up_to(t)),
        lambda s: s.trace().delay().consolidate(),
        [(0, 1, 1), (1, 2, 1)],
    ),
    "2.9.10 z⁻¹": Example(
        (INTS,),
        ([(0, 0, 1), (1, 1, 1), (0, 1, -1), (9, 2, 1)],),
        lambda z: TimedZSet.of((x, t.epoch + 1, w) for x, t, w in z if t.epoch < 2),
        lambda s: s.delay(),
        [(0, 1, 1), (1, 2, 1), (0, 2, -1)],
    ),
    "2.9.12 join stream": Example(
        (PAIRS, PAIRS),
        (
            [(("a", 1), 0, 1), (("b", 2), 0, 2), (("c", 2), 0, 1)],
            [(("a", 1), 0, 1), (("b", 3), 0, 1), (("b", 4), 0, -1)],
        ),
        joined,
        lambda a, b: a.join(b, "k"),
        [(("a", (1, 1)), 0, 1), (("b", (2, 3)), 0, 2), (("b", (2, 4)), 0, -2)],
    ),
    "2.9.13 join trace": Example(
        (PAIRS, PAIRS),
        (
            [(("a", 0), 1, 1), (("a", 0), 1, -1), (("a", 1), 1, 1), (("b", 2), 1, 2), (("c", 2), 1, 1)],
            [(("a", 1), 0, 1), (("b", -3), 0, -1), (("b", 3), 0, 1), (("b", 4), 0, -1), (("c", 4), 0, 1)],
        ),
        joined,
        at_the_end,
        [
            *((("a", (1, 1)), 1, 1), (("b", (2, -3)), 1, -2), (("b", (2, 3)), 1, 2)),
            *((("b", (2, 4)), 1, -2), (("c", (2, 4)), 1, 1)),
        ],
    ),
    "2.9.14 minus": Example(
        (INTS, INTS),
        ([(0, 0, 1), (1, 0, 1), (2, 0, 2), (3, 0, 1)], [(0, 0, 1), (1, 0, -1), (2, 0, 1)]),
        lambda a, b: a - b,
        lambda a, b: a - b,
        [(1, 0, 2), (2, 0, 1), (3, 0, 1)],
    ),
    "2.9.15 plus": Example(
        (INTS, INTS),
        ([(0, 0, 1), (1, 0, 1), (2, 0, 2), (3, 0, 1)], [(0, 0, 1), (1, 0, -1), (2, 0, 1)]),
        lambda a, b: a + b,
        lambda a, b: a + b,
        [(0, 0, 2), (2, 0, 3), (3, 0, 1)],
    ),
    "2.9.16 trace append": Example(
        (INTS,),
        ([(0, 0, 1), (1, 0, 1), (1, 1, -1), (2, 1, 1)],),
        lambda z: TimedZSet.of((x, t, w) for t in range(2) for x, w in z.up_to(t)),
        lambda s: s.trace().consolidate(),
        [(0, 0, 1), (1, 0, 1), (0, 1, 1), (2, 1, 1)],
    ),
    "2.9.18 distinct incremental, one": Example(
        (INTS,),
        ([(0, 0, 1), *DISTINCT_BATCH],),
        distinct_incremental,
        lambda s: s.distinct_incremental(s.trace().delay()),
        [(2, 1, 1)],
    ),
    "2.9.18 distinct incremental, two": Example(
        (INTS,),
        ([(2, 0, 1), (3, 0, 1), *DISTINCT_BATCH],),
        distinct_incremental,
        lambda s: s.distinct_incremental(s.trace().delay()),
        [(0, 1, 1), (3, 1, -1)],
    ),
    "2.9.18 distinct incremental, three": Example(
        (INTS,),
        ([(0, 0, -1), *DISTINCT_BATCH],),
        distinct_incremental,
        lambda s: s.distinct_incremental(s.trace().delay()),
        [(0, 1, 1), (2, 1, 1)],
    ),
}

seen: list[ZSet] = []


def row(element: Any) -> tuple[Any, ...]:
    """An element as a row: nested tuples are flat there."""
    if not isinstance(element, tuple):
        return (element,)
    return tuple(value for part in element for value in row(part))


def at_root(example: Example, shards: int) -> TimedZSet:
    """What a circuit puts out, tick by tick."""
    circuit = Circuit()
    streams = [circuit.source(f"s{i}", schema) for i, schema in enumerate(example.schemas)]
    example.circuit(*streams).sink("out", keep=False)
    run = Embedded(circuit, shards=shards, as_is=True)
    last = max(time for triples in example.inputs for _, time, _ in triples)
    found: Triples = []
    for now in range(last + 1):
        tick = {f"s{i}": [(row(e), w) for e, t, w in z if t == now] for i, z in enumerate(example.inputs)}
        found += [(r, now, w) for r, w in run.tick(tick)["out"]]
    return TimedZSet.of(found)


@pytest.mark.parametrize("name", NOTES)
def test_the_reference_does_what_the_notes_say(name: str) -> None:
    example = NOTES[name]
    found = example.reference(*(TimedZSet.of(triples) for triples in example.inputs))
    expected = TimedZSet.of(example.expected)
    assert found == (expected if isinstance(found, TimedZSet) else expected.consolidate())


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", NOTES)
def test_kernels_at_the_root_do_what_the_notes_say(name: str, shards: int) -> None:
    example = NOTES[name]
    last = max(time for triples in example.inputs for _, time, _ in triples)
    expected = TimedZSet.of((row(e), t, w) for e, t, w in example.expected)
    # A circuit says what it puts out in every tick; an example may speak of its last one only.
    found = at_root(example, shards)
    if name.startswith("2.9.18"):
        found = TimedZSet.of((e, t, w) for e, t, w in found if t.epoch == last)
    assert found == expected


def test_inspect_hands_over_every_change() -> None:
    seen.clear()
    at_root(NOTES["2.9.6 inspect"], 1)
    assert seen == [ZSet({(0,): 1, (1,): 1})]


def test_untimed_trace_append_forgets_when() -> None:
    """§2.9.17: a trace at the root sums over epochs, so what cancels is gone."""
    circuit = Circuit()
    trace = circuit.source("s", INTS).trace()
    trace.consolidate().sink("out", keep=False)
    run = Embedded(circuit, as_is=True)
    run.tick({"s": [((0,), 1), ((1,), 1)]})
    assert run.tick({"s": [((1,), -1)]})["out"].to_zset() == ZSet({(0,): 1})
    (spines,) = (shards for shards in run.state.traces.values())
    spines[0].past.compact()
    assert len(spines[0].past) == 1
