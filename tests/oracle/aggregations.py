"""Queries with every kind of aggregate, drawn at random: over what other steps give, and under further steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

import strategies
from everview.circuit import Circuit, Stream
from everview.operators.aggregate.registry import COMPUTED
from everview.types import ANY, BOOLEAN, STRING, Array, Decimal, Field, Schema
from oracle.cases import Case, Step, apply
from strategies import LARGEST, NUMBERS, Draw, Made, schemas, tick_lists

OF_NUMBERS = [line.name for line in COMPUTED if "values" in line.sums and not line.pair]
OF_TRUTHS = [line.name for line in COMPUTED if "trues" in line.sums]
AT_FRACTIONS = [line.name for line in COMPUTED if line.fraction]
DIRECTIONS = ["", " desc", " nulls last", " desc nulls first"]
FRACTIONS = [0, 0.07, 0.25, 0.5, 0.9, 1]


def _order(draw: Draw, names: Sequence[str], min_size: int = 0) -> list[str]:
    chosen = draw(st.lists(st.sampled_from(names), unique=True, min_size=min_size, max_size=2))
    return [name + draw(st.sampled_from(DIRECTIONS)) for name in chosen]


def _distinct(draw: Draw) -> str:
    return draw(st.sampled_from(["", "", " distinct"]))


def _number(draw: Draw, schema: Schema, field: Field) -> list[Any]:
    return [draw(st.sampled_from(OF_NUMBERS)) + _distinct(draw), field.name]


def _percentile(draw: Draw, schema: Schema, field: Field) -> list[Any]:
    how, options = _distinct(draw), {"order": field.name + draw(st.sampled_from(DIRECTIONS))}
    if draw(st.booleans()):
        return ["mode" + how, field.name, options]
    if not _is_number(field):
        return [
            draw(st.sampled_from(["percentile discrete", "quantile"])) + how,
            field.name,
            draw(st.sampled_from(FRACTIONS)),
            options,
        ]
    if draw(st.booleans()):
        return ["median" + how, field.name]
    name = draw(st.sampled_from(AT_FRACTIONS))
    return [name + how, field.name, draw(st.sampled_from(FRACTIONS)), options]


def _end(draw: Draw, schema: Schema, field: Field) -> list[Any]:
    if draw(st.booleans()):
        return [draw(st.sampled_from(["min", "max", "min distinct"])), field.name]
    options = {"order": _order(draw, schema.names, 1), "nulls": draw(st.sampled_from(["keep", "skip"]))}
    return [draw(st.sampled_from(["first", "last"])), field.name, options]


def _list(draw: Draw, schema: Schema, field: Field) -> list[Any]:
    distinct = _distinct(draw)
    order = _order(draw, [field.name] if distinct else schema.names)
    if field.type == STRING and draw(st.booleans()):
        return ["string" + distinct, field.name, {"order": order, "separator": draw(st.sampled_from(["", ", "]))}]
    return ["array" + distinct, field.name, {"order": order, "nulls": draw(st.sampled_from(["keep", "skip"]))}]


def _own(draw: Draw, schema: Schema, field: Field) -> list[Any]:
    names = [field.name, *draw(st.lists(st.sampled_from(_told(schema)), max_size=1))]
    distinct = draw(st.booleans())
    options = {
        "order": _order(draw, names if distinct else schema.names),
        "nulls": draw(st.sampled_from(["keep", "skip"])),
        "distinct": distinct,
    }
    name, of = draw(st.sampled_from([("told", "STRING NOT NULL"), ("lengths", "INTEGER"), ("nulls", "BIGINT")]))
    by_group = {"by_group": True} if name == "told" else {}
    return [name, names, {**options, **by_group, "type": of}]


def _count(draw: Draw, schema: Schema, field: Field) -> list[Any]:
    names = [field.name, *draw(st.lists(st.sampled_from(schema.names), max_size=1))]
    return draw(st.sampled_from([["count"], ["count", field.name], ["count distinct", names]]))


def _told(schema: Schema) -> list[str]:
    """The columns whose values have one text."""
    return [f.name for f in schema.fields if f.type != ANY and not isinstance(f.type, Array)]


def _is_number(field: Field) -> bool:
    return field.type in NUMBERS or isinstance(field.type, Decimal)


def _adds_up(field: Field) -> bool:
    """Wider decimals may overflow."""
    return _is_number(field) and not (isinstance(field.type, Decimal) and field.type.precision > 30)


def call(draw: Draw, schema: Schema) -> list[Any]:
    """Some aggregate of some column."""
    field = draw(st.sampled_from(schema.fields))
    kinds = [_count, _end, _list, _percentile]
    if field.name in _told(schema):
        kinds.append(_own)
    if _adds_up(field):
        kinds += [_number, _number, _number]
    if field.type == BOOLEAN:
        kinds += [lambda d, s, f: [d(st.sampled_from(OF_TRUTHS)) + _distinct(d), f.name]] * 2
    return draw(st.sampled_from(kinds))(draw, schema, field)


def _aggregation(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    at = strategies._pick(draw, streams)
    schema = streams[at].schema
    by = draw(st.lists(st.sampled_from(schema.names), unique=True, max_size=2))
    calls = [call(draw, schema) for _ in range(draw(st.integers(1, 4)))]
    return ["aggregate", at, by, calls], sizes[at]


# What applies to lists of anything, too.
AFTERWARDS = [
    *(_aggregation, _aggregation, strategies._alone, strategies._addition, strategies._selection),
    *(strategies._existence, strategies._joining, strategies._ranking, strategies._not_null),
]


@st.composite
def aggregated_cases(draw: Draw, max_ticks: int = 5) -> Case:
    """Up to two steps of any kind, then an aggregate, then up to three more."""
    sources = {f"t{i}": draw(schemas(max_size=4)) for i in range(draw(st.integers(1, 2)))}
    circuit = Circuit()
    streams = [circuit.source(name, schema) for name, schema in sources.items()]
    sizes, steps = [20] * len(streams), list[Step]()
    makers = [strategies.MAKERS] * draw(st.integers(0, 2)) + [[_aggregation]] + [AFTERWARDS] * draw(st.integers(0, 3))
    for choice in makers:
        step, size = draw(st.sampled_from(choice))(draw, streams, sizes)
        if step is None or size > LARGEST:
            continue
        steps.append(step)
        streams.append(apply(streams, step))
        sizes.append(size)
    texts = {name: str(schema) for name, schema in sources.items()}
    return Case(texts, steps, draw(tick_lists(sources, max_ticks, max_size=60)))
