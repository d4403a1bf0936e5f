"""Hypothesis strategies for schemas, query circuits and streams of changes; values come from small domains.

Small domains make rows meet: keys match, groups fill and empty, weights cancel, deletes find nothing. A circuit is
drawn as a `Case`, step by step, each applicable to the streams there are.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Sequence
from decimal import Decimal as Number
from typing import Any

from hypothesis import strategies as st

from everview.circuit import Circuit, Stream
from everview.operators.where import COMPARISONS, testable
from everview.types import (
    ANY,
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    SYMBOL,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Schema,
    Symbol,
    Type,
)
from oracle.cases import EXPANSIONS, MAPPINGS, PREDICATES, Case, Step, Tick, apply

Draw = Callable[[st.SearchStrategy[Any]], Any]

NARROW, WIDE, TEXTS = Decimal(9, 2), Decimal(24, 3), Array(STRING)

DOMAINS: dict[Type, list[Any]] = {
    BIGINT: [0, 1, 2, -3, 10**15],
    INTEGER: [0, 1, 2, -3],
    STRING: ["", "a", "ab", "b", "ä", "\U0001f600", "\uffff"],  # by bytes the last but one is the greatest
    NARROW: [Number("0.00"), Number("1.50"), Number("-2.25"), Number("0.01")],
    WIDE: [Number("0.000"), Number("1.500"), Number("-123456789012345678.125"), Number("99999999999999999999.999")],
    DOUBLE: [0.0, -0.0, 0.1, 1e300, -2.5, 5e-324, math.nan, math.inf, -math.inf],
    DATE: [dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2026, 1, 31)],
    TIMESTAMP: [dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 31, 12, 30, 0, 1, dt.UTC)],
    BOOLEAN: [False, True],
    FLOAT: [0.5, -0.0, math.nan],
    BINARY: [b"", b"\x00", b"\xff", b"a"],
    SYMBOL: [Symbol("a"), Symbol("b"), Symbol("")],
    TEXTS: [[], ["a"], ["a", None], [None], ["b"]],
    ANY: [True, 1, 1.0, "a", "b", 2, -2.5],
}

# Types that meet often enough to join on, then the others.
field_types: st.SearchStrategy[Type] = st.sampled_from([*[BIGINT, STRING] * 4, *DOMAINS])
WEIGHTS = [1, 1, 1, 2, 3, -1, -1, -2]
seeds = st.integers(0, 2**32 - 1)
LARGEST = 400  # rows that a stream may hold, roughly; joins multiply
WIDEST = 5  # columns


def changes(schema: Schema, max_size: int = 10) -> st.SearchStrategy[list[tuple[tuple[Any, ...], int]]]:
    """Weighted rows: inserts, deletes of what may not be there, duplicates, pairs that cancel.

    Left to itself, Hypothesis is slow here. So it draws how many there are, which it can shrink, and they are the
    first of a sequence that a seed determines.
    """
    return st.builds(lambda size, seed: _changes(schema, size, seed), st.integers(0, max_size), seeds)


def _changes(schema: Schema, size: int, seed: int) -> list[tuple[tuple[Any, ...], int]]:
    chance = random.Random(seed)
    pool = _pool(chance, schema)
    return [(chance.choice(pool), chance.choice(WEIGHTS)) for _ in range(size)]


def _pool(chance: random.Random, schema: Schema) -> list[tuple[Any, ...]]:
    """Some rows of few values each, so that they meet."""
    domains = [chance.sample([*DOMAINS[f.type], *[None] * f.nullable], k=2 + f.nullable) for f in schema.fields]
    return [tuple(map(chance.choice, domains)) for _ in range(chance.randint(2, 14))]


@st.composite
def schemas(draw: Draw, min_size: int = 1, max_size: int = 3) -> Schema:
    """Columns c0, c1, …"""
    one = st.tuples(field_types, st.booleans())
    drawn = draw(st.lists(one, min_size=min_size, max_size=max_size))
    return Schema(Field(f"c{i}", of, nullable) for i, (of, nullable) in enumerate(drawn))


def tick_lists(sources: dict[str, Schema], max_ticks: int = 6, max_size: int = 80) -> st.SearchStrategy[list[Tick]]:
    """Ticks of changes, some of them empty, that come back to a few rows of every source."""
    return st.builds(
        lambda ticks, size, seed: ticks_of(random.Random(seed), sources, ticks, size),
        *(st.integers(1, max_ticks), st.integers(0, max_size), seeds),
    )


def ticks_of(chance: random.Random, sources: dict[str, Schema], ticks: int, size: int) -> list[Tick]:
    """So many changes, spread over so many ticks."""
    pool = [(name, row) for name, schema in sources.items() for row in _pool(chance, schema)]
    found: list[Tick] = [{} for _ in range(ticks)]
    for _ in range(size):
        name, row = chance.choice(pool)
        chance.choice(found).setdefault(name, []).append((row, chance.choice(WEIGHTS)))
    return found


@st.composite
def cases(draw: Draw, max_steps: int = 8, max_ticks: int = 6) -> Case:
    """A query of a few steps over one to three sources, and its ticks."""
    schemata = {f"t{i}": draw(schemas()) for i in range(draw(st.integers(1, 3)))}
    steps = draw(step_lists(schemata, max_steps))
    ticks = draw(tick_lists(schemata, max_ticks))
    return Case({name: str(schema) for name, schema in schemata.items()}, steps, ticks)


@st.composite
def step_lists(draw: Draw, sources: dict[str, Schema], max_steps: int = 8) -> list[Step]:
    """Steps that each apply to what the sources and the steps before them give."""
    circuit = Circuit()
    streams = [circuit.source(name, schema) for name, schema in sources.items()]
    sizes = [20] * len(streams)
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, max_steps))):
        step, size = draw(st.sampled_from(MAKERS))(draw, streams, sizes)
        if step is None or size > LARGEST:
            continue
        steps.append(step)
        streams.append(apply(streams, step))
        sizes.append(size)
    return steps


# -- makers: what a step could be, and roughly how many rows it would give; None where nothing fits

Made = tuple[Step | None, int]
NOTHING: Made = (None, 0)


def _pick(draw: Draw, streams: Sequence[Stream]) -> int:
    """Some stream; the newest ones more often, so that steps build on each other."""
    return len(streams) - 1 - draw(st.integers(0, len(streams) - 1))


def _subset(draw: Draw, names: Sequence[str], min_size: int = 0, max_size: int = WIDEST) -> list[str]:
    return draw(st.lists(st.sampled_from(names), unique=True, min_size=min_size, max_size=max_size))


def _of_types(schema: Schema, *types: Type) -> list[int]:
    return [i for i, f in enumerate(schema.fields) if f.type in types]


def _comparable(schema: Schema) -> list[tuple[int, int]]:
    fields = [(i, f) for i, f in enumerate(schema.fields) if f.type != TEXTS]
    return [(i, j) for i, f in fields for j, g in fields if i != j and f.type == g.type]


def _predicate(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    at = _pick(draw, streams)
    schema = streams[at].schema
    if ANY in schema.types:
        return NOTHING  # a function would get its bytes
    places = {
        "odd": [(i,) for i in _of_types(schema, BIGINT, INTEGER)],
        "less": _comparable(schema),
        "known": [(i,) for i in range(len(schema))],
        "true": [(i,) for i in _of_types(schema, BOOLEAN)],
        "short": [(i,) for i in _of_types(schema, STRING)],
    }
    assert places.keys() == PREDICATES.keys()
    name = draw(st.sampled_from([name for name, found in places.items() if found]))
    return ["filter", at, name, list(draw(st.sampled_from(places[name])))], sizes[at]


def _mapping(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    at = _pick(draw, streams)
    schema = streams[at].schema
    if ANY in schema.types:
        return NOTHING
    places: dict[str, list[tuple[int, ...]]] = {
        "halved": [(i,) for i in _of_types(schema, BIGINT, INTEGER)],
        "scaled": [(i,) for i in _of_types(schema, DOUBLE)],
        "upper": [(i,) for i in _of_types(schema, STRING)],
        "size and head": [(i,) for i in _of_types(schema, STRING)],
        "one": [()],
    }
    assert places.keys() == MAPPINGS.keys()
    name = draw(st.sampled_from([name for name, found in places.items() if found]))
    how = draw(st.sampled_from(["map", "extend"])) if len(schema) < WIDEST else "map"
    return [how, at, name, list(draw(st.sampled_from(places[name])))], sizes[at]


def _expansion(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    at = _pick(draw, streams)
    schema = streams[at].schema
    places = {"letters": _of_types(schema, STRING), "below": _of_types(schema, BIGINT, INTEGER)}
    assert places.keys() == EXPANSIONS.keys()
    fitting = [(name, i) for name, found in places.items() for i in found]
    if not fitting or ANY in schema.types:
        return NOTHING
    name, column = draw(st.sampled_from(fitting))
    return ["flat_map", at, name, [column]], sizes[at]


def _selection(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    at = _pick(draw, streams)
    return ["select", at, _subset(draw, streams[at].schema.names, 1)], sizes[at]


def _not_null(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    at = _pick(draw, streams)
    return ["not_null", at, draw(st.sampled_from(streams[at].schema.names))], sizes[at]


def _recoding(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    """Wider integers and decimals, NULL allowed."""
    at = _pick(draw, streams)
    wider = {INTEGER: BIGINT, NARROW: Decimal(30, 2)}
    fields = [
        Field(f.name, draw(st.sampled_from([f.type, wider.get(f.type, f.type)])), f.nullable or draw(st.booleans()))
        for f in streams[at].schema.fields
    ]
    return ["recode", at, str(Schema(fields))], sizes[at]


def _alone(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    at = _pick(draw, streams)
    return [draw(st.sampled_from(["negate", "inspect", "distinct", "distinct"])), at], sizes[at]


def _alike(streams: Sequence[Stream], at: int) -> list[int]:
    """The streams that add to this one: the same types, in order."""
    return [i for i, s in enumerate(streams) if s.schema.types == streams[at].schema.types]


def _addition(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    at = _pick(draw, streams)
    others = st.sampled_from(_alike(streams, at))
    if draw(st.booleans()):
        return ["minus", at, draw(others)], 2 * sizes[at]
    return ["plus", at, *draw(st.lists(others, min_size=1, max_size=2))], 3 * sizes[at]


def _pairs(draw: Draw, left: Schema, right: Schema) -> list[list[str]]:
    """Columns to join on: of the same type, and none of the right twice."""
    fitting = [(f.name, g.name) for f in left.fields for g in right.fields if _joins(f.type, g.type)]
    if not fitting:
        return []
    once = (lambda pair: pair[0], lambda pair: pair[1])
    drawn = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=2, unique_by=once))
    return [list(pair) for pair in drawn]


def _joins(a: Type, b: Type) -> bool:
    return a == b or {a, b} == {BIGINT, INTEGER}


def _existence(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    left, right = _pick(draw, streams), _pick(draw, streams)
    on = _pairs(draw, streams[left].schema, streams[right].schema)
    if not on:
        return NOTHING
    return [draw(st.sampled_from(["semijoin", "antijoin"])), left, right, on], sizes[left]


def _joining(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    left, right = _pick(draw, streams), _pick(draw, streams)
    on = _pairs(draw, streams[left].schema, streams[right].schema)
    if not on:
        return NOTHING
    sides = [[0, name] for name in streams[left].schema.names] + [[1, name] for name in streams[right].schema.names]
    picks = draw(st.lists(st.sampled_from(sides), min_size=1, max_size=WIDEST, unique_by=tuple))
    how = draw(st.sampled_from(["join", "join", "join", "left_join", "right_join", "full_join"]))
    return [how, left, right, on, picks], sizes[left] * sizes[right] // 3 + 1


MEASURED = (BIGINT, INTEGER, NARROW, DATE, TIMESTAMP)  # times whose distance is known
TIMES = (*MEASURED, DOUBLE, BOOLEAN)


def _in_force(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    left, right = _pick(draw, streams), _pick(draw, streams)
    a, b = streams[left].schema, streams[right].schema
    moments = [(f, g) for f in a.fields for g in b.fields if f.type in TIMES and _joins(f.type, g.type)]
    if not moments:
        return NOTHING
    f, g = draw(st.sampled_from(moments))
    on = [pair for pair in _pairs(draw, a, b) if f.name != pair[0] and g.name != pair[1]]
    measured = f.type in MEASURED
    options = {
        "direction": draw(st.sampled_from(["backward", "forward", *["nearest"] * measured])),
        "tolerance": draw(st.sampled_from([None, 0, 2, 10**12])) if measured else None,
        "strict": draw(st.booleans()),
        "how": draw(st.sampled_from(["inner", "left"])),
    }
    sides = [[0, name] for name in a.names] + [[1, name] for name in b.names]
    picks = draw(st.lists(st.sampled_from(sides), min_size=1, max_size=WIDEST, unique_by=tuple))
    return ["asof_join", left, right, on, [f.name, g.name], options, picks], sizes[left]


def _testing(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    """Tests of words: of fields against constants, and against each other."""
    at = _pick(draw, streams)
    fields = streams[at].schema.fields
    tests: list[list[Any]] = []
    for _ in range(draw(st.integers(1, 2))):
        number = draw(st.integers(0, len(fields) - 1))
        field = fields[number]
        fitting = [how for how in (*COMPARISONS, "is_null", "is_not_null") if testable(field, how)]
        if not fitting or field.type not in (BIGINT, INTEGER, STRING, DOUBLE, BOOLEAN):
            return NOTHING
        how = draw(st.sampled_from(fitting))
        others = [i for i, f in enumerate(fields) if f.type == field.type]
        if how in ("is_null", "is_not_null"):
            tests.append([number, how, [], None])
        elif draw(st.booleans()):
            tests.append([number, how, [], draw(st.sampled_from(others))])
        else:
            constants = st.lists(st.sampled_from(DOMAINS[field.type]), min_size=1, max_size=2)
            tests.append([number, how, draw(constants), None])
    return ["where", at, tests], sizes[at]


def _multiway(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    """Atoms over a few variables: the same stream twice, cycles, repetitions, constants, parts that hang apart."""
    atoms = [_pick(draw, streams) for _ in range(draw(st.integers(2, 4)))]
    typed: dict[str, Type] = {}
    terms: list[list[Any]] = []
    for at in atoms:
        found: list[Any] = []
        for field in streams[at].schema.fields:
            fitting = [name for name, of in typed.items() if _joins(of, field.type)]
            kind = draw(st.integers(0, 9))
            if kind == 0:
                found.append(None)
            elif kind == 1 and field.type in (BIGINT, STRING):
                found.append([draw(st.sampled_from(DOMAINS[field.type]))])
            elif fitting and kind < 8:
                found.append(draw(st.sampled_from(fitting)))
            else:
                found.append(f"v{len(typed)}")
                typed[found[-1]] = field.type
        terms.append(found)
    names = [name for name in typed if any(name in of for of in terms)]
    select = _subset(draw, names, 1) if names else None
    if not select:
        return NOTHING
    order = draw(st.permutations(names)) if draw(st.booleans()) else None
    size = 1
    for at in atoms:
        size = size * sizes[at] // 3 + 1
    return [f"multijoin {len(atoms)}", *atoms, terms, select, order], size


NUMBERS = (BIGINT, INTEGER, NARROW, WIDE, DOUBLE, FLOAT)


def _aggregation(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    at = _pick(draw, streams)
    schema = streams[at].schema
    calls = [["count"], *([function, name] for name in schema.names for function in ("count", "min", "max"))]
    for i in _of_types(schema, *NUMBERS, Decimal(30, 2)):
        calls += [["sum", schema.names[i]], ["avg", schema.names[i]]] * 2
    by = _subset(draw, schema.names, max_size=2)
    chosen = draw(st.lists(st.sampled_from(calls), min_size=not by, max_size=3))
    return ["aggregate", at, by, chosen], sizes[at]


def _ranking(draw: Draw, streams: Sequence[Stream], sizes: Sequence[int]) -> Made:
    at = _pick(draw, streams)
    names = streams[at].schema.names
    how = st.sampled_from(["", "asc", "desc", "asc nulls last", "desc nulls first"])
    order = [[name, draw(how)] for name in _subset(draw, names, max_size=2)]
    by = _subset(draw, names, max_size=1)
    return ["top", at, draw(st.integers(0, 4)), draw(st.integers(0, 2)), order, by], sizes[at]


MAKERS = [
    *(_joining, _aggregation, _ranking, _existence, _alone, _addition) * 2,
    *(_multiway, _multiway, _testing, _joining, _in_force, _predicate, _mapping),
    *(_expansion, _selection, _not_null, _recoding),
]
