"""Lower aggregates: arguments become columns, FILTER makes them NULL, and an aggregate without groups gets one key.

Without groups there is one row even if there is no input. So all rows agree on a key, and a constant row, the results
over no rows, stands in while that key is absent: ``aggregate ∪ (constant ▷ aggregate)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everview.circuit.circuit import Circuit
from everview.circuit.grouped import aggregated
from everview.circuit.stream import Stream
from everview.errors import SchemaError
from everview.lowering.constants import constant
from everview.lowering.joins import everywhere
from everview.lowering.rows import extended, picked, projected
from everview.operators.aggregate import Call
from everview.operators.aggregate.registry import IN_PLANS, Form
from everview.operators.functions import Function
from everview.operators.index import Direction
from everview.orders import direction_of
from everview.plan.aggregates import of_nothing
from everview.plan.nodes import Aggregate
from everview.plan.typing import call, cast
from everview.scalars.expressions import TRUE, USER, AggregateCall, Column, Expression, Literal
from everview.scalars.functions.user import user_aggregate
from everview.types import BOOLEAN, Field, unknown_name

Direct = tuple[tuple[Expression, Direction], ...]


@dataclass(frozen=True)
class Wanted:
    """A call of the operator whose arguments are still expressions."""

    function: str
    arguments: tuple[Expression, ...] = ()
    order: Direct = ()
    distinct: bool = False
    nulls: bool = False
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    user: Function | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*self.arguments, *(by for by, _ in self.order))

    def call(self, places: Sequence[int], circuit: Circuit) -> Call:
        user = "" if self.user is None else circuit.function(self.user, self.user.shape)
        count = len(self.arguments)
        order = tuple(zip(places[count:], (how for _, how in self.order), strict=True))
        return Call(self.function, tuple(places[:count]), self.distinct, order, self.nulls, user=user, **self.extra)


def grouped(plan: Aggregate, stream: Stream) -> Stream:
    """The stream of an aggregate."""
    wanted = [wanted_of(c) for c in plan.calls]
    groups = tuple(dict.fromkeys(plan.groups))
    expressions = [*groups, *(e for w in wanted for e in w.expressions)]
    stream, places = extended(stream, expressions)
    calls: dict[str, Call] = {}
    start = len(groups)
    for number, one in enumerate(wanted):
        stop = start + len(one.expressions)
        calls[f"result {number}"] = one.call(places[start:stop], stream.circuit)
        start = stop
    if not groups:
        return _of_all(plan, stream, calls)
    by = list(dict.fromkeys(places[: len(groups)]))
    made = _aggregated(stream, by, calls)
    own = [by.index(places[groups.index(g)]) for g in plan.groups]
    return _as_declared(plan, picked(made, [*own, *range(len(by), len(made.schema))], plan.names))


def _aggregated(stream: Stream, by: Sequence[int], calls: dict[str, Call]) -> Stream:
    """One row for each group: its columns, then the results under names that no column has."""
    taken = {stream.schema.names[column] for column in by}
    prefix = ""
    while any(f"{prefix}{name}" in taken for name in calls):
        prefix += "the "
    return aggregated(
        stream, [stream.schema.names[column] for column in by], {f"{prefix}{n}": c for n, c in calls.items()}
    )


def _of_all(plan: Aggregate, stream: Stream, calls: dict[str, Call]) -> Stream:
    """The results over all rows; those over no rows if there are none."""
    keyed = everywhere(stream)
    made = _aggregated(keyed, [len(keyed.schema) - 1], calls)
    declared = _as_declared(plan, picked(made, range(1, len(made.schema)), plan.names))
    key = everywhere(declared)
    nothing = constant(stream.circuit, (tuple(of_nothing(c) for c in plan.calls),), plan.schema)
    name = key.schema.names[-1]
    missing = everywhere(nothing).antijoin(picked(key, [len(key.schema) - 1]), name)
    return declared + picked(missing, range(len(plan.schema)))


def _as_declared(plan: Aggregate, stream: Stream) -> Stream:
    """The results in the types that the plan says they have."""
    if stream.schema.types == plan.schema.types:
        return stream.under(plan.schema)
    expressions: list[Expression] = []
    for number, (given, wanted) in enumerate(zip(stream.schema.fields, plan.schema.fields, strict=True)):
        expressions.append(cast(Column(number, given.name, given.type, given.nullable), wanted.type))
    return projected(stream, expressions, plan.schema.names).under(plan.schema)


# -- which call is which


def wanted_of(asked: AggregateCall) -> Wanted:
    """The operator's call for a call of the plan."""
    name = asked.function.lower()
    if name.startswith(USER):
        return _user(asked)
    make = CALLS.get(name)
    if make is None:
        raise unknown_name("aggregate", asked.function, list(CALLS))
    return make(asked)


def _plain(function: str) -> Callable[[AggregateCall], Wanted]:
    def make(asked: AggregateCall) -> Wanted:
        (value,) = _of(asked, 1)
        return Wanted(function, (_kept(asked, value),), distinct=asked.distinct)

    return make


def _pair(function: str) -> Callable[[AggregateCall], Wanted]:
    """The maker of calls of two values; where one is NULL, so is the other."""

    def make(asked: AggregateCall) -> Wanted:
        a, b = _of(asked, 2)
        there = call("and", call("is_not_null", a), call("is_not_null", b))
        kept = there if asked.filter is None else call("and", asked.filter, there)
        return Wanted(function, tuple(call("if", kept, value, Literal(None, value.type)) for value in (a, b)))

    return make


def _unordered(function: str) -> Callable[[AggregateCall], Wanted]:
    """The maker of calls whose result does not depend on repetitions, so that DISTINCT changes nothing."""

    def make(asked: AggregateCall) -> Wanted:
        (value,) = _of(asked, 1)
        return Wanted(function, (_kept(asked, value),))

    return make


def _count(asked: AggregateCall) -> Wanted:
    if not asked.arguments:
        if asked.filter is None:
            return Wanted("count")
        return Wanted("count", (_kept(asked, TRUE),))
    if asked.distinct:
        first, *others = asked.arguments
        return Wanted("count", (_kept(asked, first), *others), distinct=True)
    if len(asked.arguments) == 1:
        return Wanted("count", (_kept(asked, asked.arguments[0]),))
    there = call("and", *(call("is_not_null", a) for a in asked.arguments))
    return Wanted("count", (_kept(asked, call("if", there, TRUE, Literal(None, BOOLEAN))),))


def _count_if(asked: AggregateCall) -> Wanted:
    (value,) = _of(asked, 1)
    return Wanted("count", (_kept(asked, call("if", value, TRUE, Literal(None, BOOLEAN))),))


def _end(function: str) -> Callable[[AggregateCall], Wanted]:
    """The maker of `first` and `last`; without an ORDER BY, in the order of the values themselves."""

    def make(asked: AggregateCall) -> Wanted:
        value, skips = asked.arguments[0], _skips_nulls(asked)
        order = _order(asked)
        if asked.filter is not None:
            kept = call("coalesce", asked.filter, Literal(False, BOOLEAN))
            order = ((kept, Direction.DESC if function == "first" else Direction.ASC), *order)
        return Wanted(function, (_kept(asked, value),), order, nulls=not skips)

    return make


def _skips_nulls(asked: AggregateCall) -> bool:
    """Whether a call passes over NULL, as ``first(x, true)`` does."""
    return len(asked.arguments) > 1 and isinstance(asked.arguments[1], Literal) and bool(asked.arguments[1].value)


def _by(function: str) -> Callable[[AggregateCall], Wanted]:
    """The maker of `max_by` and `min_by`; rows whose second argument is NULL do not count."""
    direction = Direction.ASC if function == "last" else Direction.ASC_NULLS_LAST

    def make(asked: AggregateCall) -> Wanted:
        value, by = _of(asked, 2)
        by = _kept(asked, by)
        known = call("if", call("is_null", by), Literal(None, value.type), value)
        return Wanted(function, (known,), ((by, direction),), nulls=True)

    return make


def _percentile(function: str) -> Callable[[AggregateCall], Wanted]:
    def make(asked: AggregateCall) -> Wanted:
        value, fraction = asked.arguments if len(asked.arguments) == 2 else (asked.arguments[0], Literal(0.5, BOOLEAN))
        if not isinstance(fraction, Literal) or fraction.value is None or not 0 <= fraction.value <= 1:
            raise SchemaError(f"{asked.function} at {fraction}", hint="give a constant from 0 to 1")
        kept = _kept(asked, value)
        extra = {"fraction": float(fraction.value)}
        return Wanted(function, (kept,), _own_order(asked, kept), asked.distinct, extra=extra)

    return make


def _mode(asked: AggregateCall) -> Wanted:
    kept = _kept(asked, _of(asked, 1)[0])
    return Wanted("mode", (kept,), _own_order(asked, kept), asked.distinct)


def _own_order(asked: AggregateCall, value: Expression) -> Direct:
    """The direction in which the values themselves are read."""
    return tuple((value, direction(how)) for _, how in asked.order)


def _array(asked: AggregateCall) -> Wanted:
    (value,) = _of(asked, 1)
    return Wanted("array", (_kept(asked, value),), _order(asked), distinct=asked.distinct)


def _list(asked: AggregateCall) -> Wanted:
    """A call for all values including NULLs; it takes no filter, as a filter makes NULLs of other rows."""
    assert asked.filter is None, "a filter cannot be told from NULL"
    return Wanted("array", _of(asked, 1), _order(asked), distinct=asked.distinct, nulls=True)


def _set(asked: AggregateCall) -> Wanted:
    (value,) = _of(asked, 1)
    return Wanted("array", (_kept(asked, value),), distinct=True)


def _text(asked: AggregateCall) -> Wanted:
    value, *rest = asked.arguments
    separator = rest[0].value if rest and isinstance(rest[0], Literal) else ""
    return Wanted(
        "string", (_kept(asked, value),), _order(asked), distinct=asked.distinct, extra={"separator": separator or ""}
    )


def _user(asked: AggregateCall) -> Wanted:
    """A user's aggregate; like all of SQL's, it does not see NULL."""
    function = user_aggregate(asked.function.removeprefix(USER))
    first, *others = asked.arguments
    returns = {"returns": Field("result", asked.type)}
    return Wanted("user", (_kept(asked, first), *others), _order(asked), asked.distinct, False, returns, function)


# How a call of each form becomes one of the operator; a grouping set's indicators are gone by then.
_FORMS: Mapping[Form, Callable[[str], Callable[[AggregateCall], Wanted]]] = {
    "count": lambda function: _count,
    "count if": lambda function: _count_if,
    "values": _plain,
    "different values": _unordered,
    "end": _end,
    "by": _by,
    "percentile": _percentile,
    "median": _percentile,
    "mode": lambda function: _mode,
    "array": lambda function: _array,
    "array with nulls": lambda function: _list,
    "set": lambda function: _set,
    "text": lambda function: _text,
    "pair": _pair,
}
CALLS = {name: _FORMS[line.form](line.computed) for name, line in IN_PLANS.items() if line.form in _FORMS}


def _of(asked: AggregateCall, count: int) -> tuple[Expression, ...]:
    if len(asked.arguments) != count:
        raise SchemaError(f"{asked.function} of {len(asked.arguments)} values", hint=f"{asked.function} takes {count}")
    return asked.arguments


def _kept(asked: AggregateCall, value: Expression) -> Expression:
    """The value where the filter holds, else NULL, which no call counts."""
    return value if asked.filter is None else call("if", asked.filter, value, Literal(None, value.type))


def _order(asked: AggregateCall) -> Direct:
    return tuple((by, direction(how)) for by, how in asked.order)


def direction(how: str) -> Direction:
    """``"desc nulls last"`` as the operators know it; NULL is the least unless the words say otherwise.

    >>> direction("desc"), direction("asc nulls last")
    (<Direction.DESC: 'desc'>, <Direction.ASC_NULLS_LAST: 'asc nulls last'>)
    """
    return Direction(direction_of(how))
