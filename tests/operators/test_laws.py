"""Each operator's step against its meaning, and against its law, on random Z-sets, empty ones included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.kernels.sort import arrange
from everview.operators import where
from everview.operators.aggregate import Aggregate, AggregateIncremental, Call, Weigh, slots
from everview.operators.arrange import Arrange, Consolidate
from everview.operators.distinct import Distinct, DistinctIncremental
from everview.operators.exchange import Exchange
from everview.operators.functions import Function
from everview.operators.index import Direction, Index
from everview.operators.join import JoinIncremental, JoinStream, JoinTrace
from everview.operators.linear import (
    Filter,
    FlatMap,
    Inspect,
    Map,
    Matching,
    Minus,
    Negate,
    NotNull,
    Plus,
    Project,
    Recode,
)
from everview.operators.operator import ByKey, Layout, Single
from everview.operators.pad import Pad
from everview.operators.present import Present
from everview.operators.semijoin import Semijoin, SemijoinIncremental
from everview.operators.top import Top, TopIncremental
from everview.types import BIGINT, Field, Schema
from everview.zset import ZSet
from operators.words import Words, indexed, key_of
from strategies import changes, schemas

Draw = Callable[[st.SearchStrategy[Any]], Any]
Entries = list[tuple[tuple[Any, ...], int]]

KNOWN = Function("known", lambda *columns: pc.is_valid(columns[0]))
ONE = Function("one", lambda *row: 1, "rows")
TWICE = Function("twice", lambda *row: [(1,), (2,)] if row[0] is not None else [], "flat")
SEEN: list[ZSet] = []
SEE = Function("see", SEEN.append, "rows")


def words() -> Words:
    return Words(KNOWN, ONE, TWICE, SEE)


def nullable(schema: Schema) -> Schema:
    return Schema(Field(f.name, f.type) for f in schema.fields)


def permuted(schema: Schema) -> tuple[int, ...]:
    return tuple(reversed(range(len(schema))))


def known_words(schema: Schema) -> tuple[where.Test, ...]:
    how = "is_not_null"
    return tuple(where.Test(at, how) for at, field in enumerate(schema.fields) if where.testable(field, how))


# A linear operator of one input over rows of a schema.
LINEAR: dict[str, Callable[[Schema], Any]] = {
    "map": lambda s: Map(Layout(s), "one", Schema.parse("one BIGINT NOT NULL")),
    "extend": lambda s: Map(Layout(s), "one", s + Schema.parse("one BIGINT"), keep=tuple(range(len(s)))),
    "map of some": lambda s: Map(Layout(s), "one", Schema.parse("one BIGINT"), arguments=(0,)),
    "filter": lambda s: Filter(Layout(s), "known"),
    "filter of some": lambda s: Filter(Layout(s), "known", arguments=(len(s) - 1,)),
    "flat map": lambda s: FlatMap(Layout(s), "twice", Schema.parse("one BIGINT")),
    "project": lambda s: Project(Layout(s), (0,), Schema(s.fields[:1])),
    "permute": lambda s: Project(Layout(s), permuted(s), Schema(s.fields[f] for f in permuted(s))),
    "project to nothing": lambda s: Project(Layout(s), (), Schema()),
    "recode": lambda s: Recode(Layout(s), nullable(s)),
    "not null": lambda s: NotNull(Layout(s), 0),
    "pad": lambda s: Pad(Layout(s), (None, 0), Schema((Field("pad", BIGINT), s.fields[0]))),
    "present": lambda s: Present(Layout(s), (0,)),
    "matching": lambda s: Matching(Layout(s), ((0, 0),), ()),
    "where": lambda s: where.Where(Layout(s), known_words(s)),
    "negate": lambda s: Negate(Layout(s)),
    "inspect": lambda s: Inspect(Layout(s), "see"),
    "index": lambda s: Index(Layout(s), permuted(s), 1),
    "index by nothing": lambda s: Index(Layout(s), permuted(s), 0),
    "index of some": lambda s: Index(Layout(s), (0,), 1),
    "exchange": lambda s: Exchange(Layout(s), ByKey((0,))),
}


@pytest.mark.parametrize("name", LINEAR)
@settings(max_examples=15)
@given(data=st.data())
def test_linear_operators(name: str, data: st.DataObject) -> None:
    """``f(a + b) = f(a) + f(b)``, and f is what it means."""
    schema = data.draw(schemas())
    a, b = data.draw(changes(schema)), data.draw(changes(schema))
    operator, w = LINEAR[name](schema), words()

    def step(entries: Entries) -> ZSet:
        return w.zset(operator.output.schema, operator.step([w.delta(schema, entries)], [], w.context).out)

    assert step(a + b) == step(a) + step(b)
    assert step([]) == ZSet()
    assert step(a) == w.meant(operator, ZSet.of(a))


@given(data=st.data())
def test_an_index_is_a_batch_in_its_order(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    directions = data.draw(st.tuples(*[st.sampled_from(Direction)] * len(schema)))
    key = data.draw(st.integers(0, len(schema)))
    order = tuple((at, d) for at, d in enumerate(directions) if at >= key)
    operator, w = Index(Layout(schema), tuple(range(len(schema))), key, order), words()
    entries = data.draw(changes(schema))
    found = operator.step([w.delta(schema, entries)], [], w.context).out
    assert np.array_equal(found, w.batch(operator.output, entries, order))
    split = [operator.step([w.delta(schema, [entry])], [], w.context).out for entry in entries]
    merged = w.context.view(operator.output, *(b for b in split if b.shape[0])).consolidated()
    assert np.array_equal(found, merged)


def test_inspect_shows_what_passes() -> None:
    schema, w = Schema.parse("a BIGINT, s STRING"), words()
    delta = w.delta(schema, [((1, "x"), 1), ((1, "x"), 1), ((2, None), -1)])
    SEEN.clear()
    Inspect(Layout(schema), "see").step([delta], [], w.context)
    assert [ZSet({(1, "x"): 2, (2, None): -1})] == SEEN


@given(data=st.data())
def test_plus_and_minus(data: st.DataObject) -> None:
    schema, w = data.draw(schemas()), words()
    inputs = [data.draw(changes(schema)) for _ in range(3)]
    deltas = [w.delta(schema, entries) for entries in inputs]
    plus, minus = Plus(Layout(schema), 3), Minus(Layout(schema))
    a, b, c = map(ZSet.of, inputs)
    assert w.zset(schema, plus.step(deltas, [], w.context).out) == w.meant(plus, a, b, c) == a + b + c
    assert w.zset(schema, minus.step(deltas[:2], [], w.context).out) == w.meant(minus, a, b) == a - b


@given(data=st.data(), shards=st.integers(1, 7))
def test_an_exchange_loses_nothing_and_keeps_keys_together(data: st.DataObject, shards: int) -> None:
    schema, w = data.draw(schemas()), words()
    delta = w.delta(schema, data.draw(changes(schema)))
    fields = data.draw(st.sets(st.integers(0, len(schema) - 1), min_size=1))
    exchange = Exchange(Layout(schema), ByKey(tuple(fields)))
    parts = exchange.split(delta, shards)
    assert len(parts) == shards
    assert sorted(map(tuple, np.concatenate(parts).tolist())) == sorted(map(tuple, delta.tolist()))
    columns = [c for f in sorted(fields) for c in range(schema.words(f).start, schema.words(f).stop)]
    homes = [{tuple(key) for key in part[:, columns].tolist()} for part in parts]
    assert sum(map(len, homes)) == len(set().union(*homes))
    alone = Exchange(Layout(schema), Single()).split(delta, shards)
    assert [len(part) for part in alone] == [len(delta)] + [0] * (shards - 1)


# -- bilinear


@st.composite
def joins(draw: Draw) -> tuple[Any, Schema, Schema]:
    """Two schemas that agree on a key, and what of them makes a result."""
    key = draw(schemas(max_size=2))
    left = key + Schema(Field(f"l{i}", f.type, f.nullable) for i, f in enumerate(draw(schemas(max_size=2))))
    right = key + Schema(Field(f"r{i}", f.type, f.nullable) for i, f in enumerate(draw(schemas(max_size=2))))
    sides = [(0, f) for f in range(len(left))] + [(1, f) for f in range(len(right))]
    picks = tuple(draw(st.lists(st.sampled_from(sides), max_size=4)))
    schema = Schema(
        Field(f"c{i}", (left, right)[s].fields[f].type, (left, right)[s].fields[f].nullable)
        for i, (s, f) in enumerate(picks)
    )
    arguments = indexed(left, len(key)), indexed(right, len(key)), picks, schema
    return arguments, left, right


def parts(data: st.DataObject, schema: Schema) -> list[Entries]:
    """A trace's contents: a few batches, between which rows cancel."""
    return data.draw(st.lists(changes(schema, 6), max_size=3))


def whole(batches: Sequence[Entries]) -> ZSet:
    return ZSet.of(entry for batch in batches for entry in batch)


@given(data=st.data())
def test_joins(data: st.DataObject) -> None:
    """What they mean; bilinear; and the incremental one is the change of the other."""
    arguments, left, right = data.draw(joins())
    stream, traced, incremental = JoinStream(*arguments), JoinTrace(*arguments), JoinIncremental(*arguments)
    w = words()
    trace_left, trace_right = parts(data, left), parts(data, right)
    delta_left, delta_right = data.draw(changes(left, 6)), data.draw(changes(right, 6))
    a, b = w.batch(stream.left, delta_left), w.batch(stream.right, delta_right)
    da, db, ta, tb = ZSet.of(delta_left), ZSet.of(delta_right), whole(trace_left), whole(trace_right)
    out = stream.schema

    assert w.zset(out, stream.step([a, b], [], w.context).out) == w.meant(stream, da, db)
    before = w.view(stream.right, trace_right)
    assert w.zset(out, traced.step([a], [before], w.context).out) == w.meant(stream, da, tb)
    after = w.view(stream.left, trace_left).plus(a)
    found = w.zset(out, incremental.step([a, b], [after, before], w.context).out)
    assert found == w.meant(stream, da, tb) + w.meant(stream, ta + da, db)
    assert found == w.meant(stream, ta + da, tb + db) - w.meant(stream, ta, tb)
    assert found == w.meant(stream, da, db) + w.meant(stream, da, tb) + w.meant(stream, ta, db)


# -- by state: the change of f is f after less f before


@given(data=st.data())
def test_distinct(data: st.DataObject) -> None:
    schema, w = data.draw(schemas()), words()
    layout = indexed(schema, len(schema))
    trace, delta = parts(data, schema), data.draw(changes(schema))
    before, batch = w.view(layout, trace), w.batch(layout, delta)
    t, d = whole(trace), ZSet.of(delta)
    plain, incremental = Distinct(layout), DistinctIncremental(layout)
    assert w.zset(schema, plain.step([batch], [], w.context).out) == w.meant(plain, d) == d.distinct()
    found = w.zset(schema, incremental.step([batch], [before], w.context).out)
    assert found == (t + d).distinct() - t.distinct()


@given(data=st.data())
def test_semijoin(data: st.DataObject) -> None:
    schema, w = data.draw(schemas()), words()
    key = data.draw(st.integers(1, len(schema)))
    left = indexed(schema, key)
    keys = key_of(left)
    left_trace, key_trace = parts(data, schema), parts(data, keys.schema)
    delta_left, delta_keys = data.draw(changes(schema)), data.draw(changes(keys.schema))
    deltas = [w.batch(left, delta_left), w.batch(keys, delta_keys)]
    befores = [w.view(left, left_trace), w.view(keys, key_trace)]
    plain, incremental = Semijoin(left, keys), SemijoinIncremental(left, keys)
    dl, dk, tl, tk = ZSet.of(delta_left), ZSet.of(delta_keys), whole(left_trace), whole(key_trace)
    assert w.zset(schema, plain.step(deltas, [], w.context).out) == w.meant(plain, dl, dk)
    found = w.zset(schema, incremental.step(deltas, befores, w.context).out)
    assert found == w.meant(plain, tl + dl, tk + dk) - w.meant(plain, tl, tk)


@given(data=st.data())
def test_top_changes_by_what_it_was_and_is(data: st.DataObject) -> None:
    schema, w = data.draw(schemas()), words()
    key = data.draw(st.integers(0, len(schema) - 1))
    order = tuple((at, data.draw(st.sampled_from(Direction))) for at in range(key, len(schema)))
    layout = Index(Layout(schema), tuple(range(len(schema))), key, order).output
    limits = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 3))
    plain, incremental = Top(layout, *limits, order), TopIncremental(layout, *limits, order)
    trace, delta = parts(data, schema), data.draw(changes(schema))

    def first(batches: Sequence[Entries]) -> ZSet:
        rows = w.batch(layout, [entry for batch in batches for entry in batch], order)
        return w.zset(schema, plain.step([rows], [], w.context).out)

    batch, before = w.batch(layout, delta, order), w.view(layout, trace, order)
    found = w.zset(schema, incremental.step([batch], [before], w.context).out)
    assert found == first([*trace, delta]) - first(trace)


@given(data=st.data())
def test_aggregates_change_by_what_they_were_and_are(data: st.DataObject) -> None:
    schema, w = data.draw(schemas()), words()
    group = tuple(data.draw(st.sets(st.integers(0, len(schema) - 1), max_size=1)))
    numbers = [f for f, of in enumerate(schema.types) if of.sql in ("BIGINT", "INTEGER", "DOUBLE") or "DEC" in of.sql]
    calls = [Call("count"), *(Call("count", (f,)) for f in range(len(schema)))]
    calls += [Call(function, (f,)) for f in numbers for function in ("sum", "avg")]
    calls = tuple(data.draw(st.lists(st.sampled_from(calls), min_size=1, max_size=4)))
    weigh = Weigh(Layout(schema), group, slots(schema, calls))
    out = Schema([*(schema.fields[g] for g in group), *(c.result(schema, f"a{i}") for i, c in enumerate(calls))])
    arguments = weigh.output, schema, calls, weigh.slots, (), out
    trace, delta = parts(data, schema), data.draw(changes(schema))

    def entries(batches: Sequence[Entries]) -> Any:
        rows = w.delta(schema, [entry for batch in batches for entry in batch])
        return weigh.step([rows], [], w.context).out

    def aggregated(batches: Sequence[Entries]) -> ZSet:
        return w.zset(out, Aggregate(*arguments).step([entries(batches)], [], w.context).out)

    before = w.context.view(weigh.output, *(entries([batch]) for batch in trace))
    found = w.zset(out, AggregateIncremental(*arguments).step([entries([delta])], [before], w.context).out)
    assert found == aggregated([*trace, delta]) - aggregated(trace)
    joined = np.concatenate([entries([batch]) for batch in (*trace, delta)])
    columns = np.arange(weigh.output.width)
    assert np.array_equal(arrange(joined, columns), entries([*trace, delta])), "weighing is linear"


# -- traces


@given(data=st.data())
def test_arrange_appends_what_it_passes_on_and_consolidate_reads_it(data: st.DataObject) -> None:
    schema, w = data.draw(schemas()), words()
    layout = indexed(schema, 1)
    trace, delta = parts(data, schema), data.draw(changes(schema))
    batch, before = w.batch(layout, delta), w.view(layout, trace)
    step = Arrange(layout).step([batch], [], w.context)
    assert step.out is batch
    assert step.append is batch
    found = Consolidate(layout).step([], [before.plus(batch)], w.context).out
    assert w.zset(schema, found) == whole(trace) + ZSet.of(delta)
