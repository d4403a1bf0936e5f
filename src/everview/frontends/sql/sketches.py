"""Sketches in SQL: the aggregates that make and join them, and estimates that need none.

A sketch is a function of the values of a group, all of which are kept: of HLL and theta sketches the different hashes,
of KLL sketches the numbers. So a view of sketches is right after any deletion, and its state grows with the group. What
is asked of a sketch in the same query, ``hll_sketch_estimate(hll_sketch_agg(x))``, is answered from that state exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from everview.frontends.sql.expressions import Site, expression
from everview.plan.aggregates import aggregate_call
from everview.plan.typing import call, cast, is_integer, is_number, literal
from everview.scalars.coercion import coerced, mismatch
from everview.scalars.expressions import AggregateCall, Call, Expression, Literal
from everview.scalars.kinds import VOID
from everview.scalars.signatures import sketches as rules
from everview.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Type,
)

Aggregating = Callable[..., Expression]
Formula = Callable[[Aggregating, list[Expression]], Expression]

# -- aggregates


def _hll(aggregating: Aggregating, given: list[Expression]) -> Expression:
    name = "hll_sketch_agg"
    lg = rules.size(name, given[1] if len(given) > 1 else Literal(12, INTEGER), "lgConfigK", 4, 21)
    hashed = call("sketch_hash", rules.counted(name, given[0], fractions=False))
    return call("hll_of", aggregating("collect_set", hashed), lg)


def _theta(aggregating: Aggregating, given: list[Expression]) -> Expression:
    name = "theta_sketch_agg"
    lg = rules.lg_entries(name, given[1] if len(given) > 1 else Literal(12, INTEGER))
    return call("theta_of", aggregating("collect_set", call("sketch_hash", rules.counted(name, given[0]))), lg)


def _hll_union(aggregating: Aggregating, given: list[Expression]) -> Expression:
    name = "hll_union_agg"
    different = rules.different_sizes(name, given[1] if len(given) > 1 else Literal(False, BOOLEAN))
    return call("hll_union_of", aggregating("collect_set", rules.sketch(name, given[0])), different)


def _theta_union(aggregating: Aggregating, given: list[Expression]) -> Expression:
    name = "theta_union_agg"
    lg = rules.lg_entries(name, given[1] if len(given) > 1 else Literal(12, INTEGER))
    return call("theta_union_of", aggregating("collect_set", rules.sketch(name, given[0])), lg)


def _theta_intersection(aggregating: Aggregating, given: list[Expression]) -> Expression:
    sketch = rules.sketch("theta_intersection_agg", given[0])
    return call("theta_intersection_of", aggregating("collect_set", sketch))


def _kll(kind: str, type_: Type) -> Formula:
    name = f"kll_sketch_agg_{kind}"

    def formula(aggregating: Aggregating, given: list[Expression]) -> Expression:
        value = given[0]
        taken = is_integer(value.type) if type_ == BIGINT else value.type in (type_, FLOAT)
        if not taken and value.type != VOID:
            raise mismatch(name, (value.type,), f"it takes {type_}; cast it")
        value = coerced(value, type_)
        if type_ != BIGINT:
            value = call("if", call("is_nan", value), Literal(None, type_), value)
        k = rules.size(name, given[1] if len(given) > 1 else Literal(200, INTEGER), "k", 8, 65535)
        return call("kll_of", aggregating("collect_list", value), k)

    return formula


def _kll_merge(kind: str) -> Formula:
    name = f"kll_merge_agg_{kind}"

    def formula(aggregating: Aggregating, given: list[Expression]) -> Expression:
        k = rules.size(name, given[1], "k", 8, 65535) if len(given) > 1 else literal(0)  # that of the sketches
        return call(f"kll_merge_of_{kind}", aggregating("collect_list", rules.sketch(name, given[0])), k)

    return formula


def _top(aggregating: Aggregating, given: list[Expression]) -> Expression:
    """The most frequent values; of those that are as frequent the least ones, and NULL last."""
    name, value = "approx_top_k", given[0]
    if not is_number(value.type) and value.type not in (STRING, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise mismatch(name, (value.type,), "it takes numbers, text, truth values, dates and timestamps; cast it")
    most = rules.size(name, given[1] if len(given) > 1 else Literal(5, INTEGER), "k", 1, _MOST_TRACKED)
    tracked = given[2] if len(given) > 2 else Literal(_TRACKED, INTEGER)
    assert isinstance(most, Literal) and isinstance(most.value, int), "sizes are literals"
    rules.size(name, tracked, "maxItemsTracked", most.value, _MOST_TRACKED)
    absent = call("if", call("is_null", value), literal(True), Literal(None, BOOLEAN))
    return call("most_frequent_of", aggregating("collect_list", value), aggregating("count", absent), most)


_TRACKED, _MOST_TRACKED = 10_000, 1_000_000

# Each aggregate: how many arguments it may have besides the first, and its formula.
SKETCHED: Final[dict[str, tuple[int, Formula]]] = {
    "hll_sketch_agg": (1, _hll),
    "hll_union_agg": (1, _hll_union),
    "theta_sketch_agg": (1, _theta),
    "theta_union_agg": (1, _theta_union),
    "theta_intersection_agg": (0, _theta_intersection),
    "approx_top_k": (2, _top),
    **{f"kll_sketch_agg_{kind}": (1, _kll(kind, type_)) for kind, type_ in rules.KLL_TYPES.items()},
    **{f"kll_merge_agg_{kind}": (1, _kll_merge(kind)) for kind in rules.KLL_TYPES},
}

# All functions of sketches; as their format is our own, Spark is not asked what they give.
OF_SKETCHES: Final = frozenset({*SKETCHED, *rules.SKETCHES} - {*rules.MAKING_SKETCHES})


# -- estimates


def _state(value: Expression, maker: str) -> AggregateCall | None:
    """What a sketch is made of, if an aggregate of this query made it."""
    if not isinstance(value, Call) or value.function != maker:
        return None
    (held, _) = value.arguments
    return held if isinstance(held, AggregateCall) else None


def _different(held: AggregateCall, rest: list[Expression]) -> Expression:
    return aggregate_call("count", held.arguments, distinct=True, filter=held.filter)


def _count(held: AggregateCall, rest: list[Expression]) -> Expression:
    return aggregate_call("count", held.arguments, filter=held.filter)


def _quantile(held: AggregateCall, rest: list[Expression]) -> Expression | None:
    share = rest[0]
    several = isinstance(share, Call) and share.function == "array"
    shares = share.arguments if isinstance(share, Call) and several else (share,)
    if not all(isinstance(s, Literal) and s.value is not None and 0 <= s.value <= 1 for s in shares):
        return None
    each = [aggregate_call("percentile_approx", (*held.arguments, s), filter=held.filter) for s in shares]
    if not several:
        return each[0]
    made = call("array", *each)
    return call("if", call("is_null", each[0]), Literal(None, made.type), made)


Exact = Callable[[AggregateCall, list[Expression]], Expression | None]
# What reads a sketch: what made one in the same query, and what is asked of its values instead.
_EXACT: Final[dict[str, tuple[str, Exact]]] = {
    "hll_sketch_estimate": ("hll_of", _different),
    "theta_sketch_estimate": ("theta_of", _different),
    **{f"kll_sketch_get_n_{kind}": ("kll_of", _count) for kind in rules.KLL_TYPES},
    **{f"kll_sketch_get_quantile_{kind}": ("kll_of", _quantile) for kind in rules.KLL_TYPES},
}


def estimate(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
    """An estimate of a sketch; of one that this query makes, the exact number."""
    name = node.name.lower()
    made = call(name, *(expression(argument, site) for argument in arguments))
    assert isinstance(made, Call), "a function of sketches is a call"
    maker, exact = _EXACT[name]
    held = _state(made.arguments[0], maker)
    found = None if held is None else exact(held, list(made.arguments[1:]))
    return made if found is None else cast(found, made.type)
