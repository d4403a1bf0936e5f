"""One example of every operator that fits any stream, so that they can be chained in every order."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from everview.circuit import Circuit, Stream
from everview.types import BIGINT, Decimal, Schema
from oracle.cases import Case, Step, apply
from strategies import ticks_of

SOURCES = {
    "t0": "c0 BIGINT, c1 STRING, c2 DOUBLE",
    "t1": "c0 BIGINT NOT NULL, c1 STRING, c2 DECIMAL(24,3)",
}
RIGHT = 1  # the number of the second source

Example = Callable[[int, list[Stream]], Step]


def _names(at: int, streams: list[Stream]) -> tuple[str, ...]:
    return streams[at].schema.names


def _flat_map(at: int, streams: list[Stream]) -> Step:
    types = [of.sql for of in streams[at].schema.types]
    if "STRING" in types:
        return ["flat_map", at, "letters", [types.index("STRING")]]
    return ["flat_map", at, "below", [types.index("BIGINT")]] if "BIGINT" in types else ["inspect", at]


def _aggregate(by: int) -> Example:
    def example(at: int, streams: list[Stream]) -> Step:
        names = _names(at, streams)
        summed = [f.name for f in streams[at].schema.fields if f.type.sql in ("BIGINT", "DOUBLE") or _decimal(f.type)]
        calls = [["count"], *(["min", n] for n in names[-1:]), *(["max", n] for n in names[:1])]
        calls += [["avg", name] for name in summed[:1]]
        return ["aggregate", at, list(names[:by]), calls]

    return example


def _decimal(of: Any) -> bool:
    return isinstance(of, Decimal) and of.precision < 30  # a wider one may overflow


def _top(by: int) -> Example:
    return lambda at, s: ["top", at, 2, 0, [[_names(at, s)[-1], "desc"]], list(_names(at, s)[:by])]


def _recode(at: int, streams: list[Stream]) -> Step:
    return ["recode", at, str(Schema(type(f)(f.name, f.type) for f in streams[at].schema.fields))]


def _binary(how: str, swapped: bool = False) -> Example:
    """With the second source, on the first columns of the same type; else with itself."""

    def example(at: int, streams: list[Stream]) -> Step:
        left, right = (RIGHT, at) if swapped else (at, RIGHT)
        on = _on(streams[left], streams[right])
        if not on:
            left, right, on = at, at, [[_names(at, streams)[0]] * 2]
        picks = [[0, name] for name in _names(left, streams)[:2]] + [[1, n] for n in _names(right, streams)[-2:]]
        return [how, left, right, on, *([picks] if how.endswith("_join") or how == "join" else [])]

    return example


def _asof(swapped: bool = False) -> Example:
    """With the second source, whose BIGINT is the time; else something linear."""

    def example(at: int, streams: list[Stream]) -> Step:
        left, right = (RIGHT, at) if swapped else (at, RIGHT)
        times = [f.name for f in streams[at].schema.fields if f.type == BIGINT]
        if not times:
            return ["inspect", at]
        when = ["c0", times[0]] if swapped else [times[0], "c0"]
        on = [pair for pair in _on_all(streams[left], streams[right]) if pair[0] != when[0] and pair[1] != when[1]][:1]
        picks = [[0, name] for name in _names(left, streams)[:2]] + [[1, n] for n in _names(right, streams)[-2:]]
        return ["asof_join", left, right, on, when, {"how": "left"}, picks]

    return example


def _on(left: Stream, right: Stream) -> list[list[str]]:
    return _on_all(left, right)[:1]


def _on_all(left: Stream, right: Stream) -> list[list[str]]:
    return [[f.name, g.name] for f in left.schema.fields for g in right.schema.fields if f.type == g.type]


EXAMPLES: dict[str, Example] = {
    "filter": lambda at, s: ["filter", at, "known", [len(_names(at, s)) - 1]],
    "map": lambda at, s: ["map", at, "one", []],
    "extend": lambda at, s: ["extend", at, "one", []],
    "flat_map": _flat_map,
    "select": lambda at, s: ["select", at, list(reversed(_names(at, s)))[:2]],
    "select none": lambda at, s: ["select", at, []],
    "not_null": lambda at, s: ["not_null", at, _names(at, s)[0]],
    "recode": _recode,
    "inspect": lambda at, s: ["inspect", at],
    "negate": lambda at, s: ["negate", at],
    "distinct": lambda at, s: ["distinct", at],
    "aggregate all": _aggregate(by=0),
    "aggregate by one": _aggregate(by=1),
    "aggregate by two": _aggregate(by=2),
    "top": _top(by=0),
    "top by one": _top(by=1),
    "plus": lambda at, s: ["plus", at, at],
    "minus": lambda at, s: ["minus", at, 0 if s[0].schema.types == s[at].schema.types else at],
    "semijoin": _binary("semijoin"),
    "antijoin": _binary("antijoin"),
    "semijoin of": _binary("semijoin", swapped=True),
    "join": _binary("join"),
    "join of": _binary("join", swapped=True),
    "left_join": _binary("left_join"),
    "right_join": _binary("right_join"),
    "full_join": _binary("full_join"),
    "asof_join": _asof(),
    "asof_join of": _asof(swapped=True),
}


def chain(*names: str) -> Case:
    """Each of these applied to what the one before gave, beginning with the first source."""
    circuit = Circuit()
    streams = [circuit.source(name, schema) for name, schema in SOURCES.items()]
    steps: list[Step] = []
    at = 0
    for name in names:
        if not _names(at, streams) and name not in NEEDS_NO_COLUMN:
            continue
        steps.append(EXAMPLES[name](at, streams))
        streams.append(apply(streams, steps[-1]))
        at = len(streams) - 1
    schemas = {name: Schema.parse(schema) for name, schema in SOURCES.items()}
    return Case(SOURCES, steps, ticks_of(random.Random(len(names[0])), schemas, ticks=3, size=40))


NEEDS_NO_COLUMN = ("map", "extend", "inspect", "negate", "distinct", "aggregate all", "plus", "minus")
