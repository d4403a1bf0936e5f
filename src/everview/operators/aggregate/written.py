"""What a user writes as an aggregate: ``"count"``, ``("sum", "x")``, ``("percentile", "x", 0.9)``, …

A call is the name of a function or a function, then a column or a list of columns, then what the function takes
besides: a number for percentiles, and options as a dictionary.

>>> WrittenAggregate.of(("count distinct", ["city", "street"]))
WrittenAggregate(function='count', columns=('city', 'street'), distinct=True, fraction=0.5, options={})
>>> WrittenAggregate.of(("string", "name", {"separator": ", ", "order": "age desc"})).order
('age desc',)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from everview.errors import SchemaError, shown
from everview.operators.aggregate.call import Call, FieldOrder
from everview.operators.aggregate.registry import COMPUTED, computed
from everview.operators.functions import Function
from everview.types import Field, NotNullType, Schema, Type, unknown_name

# Every aggregate by name, and the options that it takes; the median is a percentile at a share that need not be said.
FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    name: () if name == "median" else line.options
    for line in COMPUTED
    if line.law != "user"
    for name in (("median", "percentile") if line.name == "percentile" else (line.name,))
}
OF_USER = ("type", "order", "nulls", "distinct", "by_group")
ALIASES = {name: line.name for line in COMPUTED for name in line.also}
DISTINCT = " distinct"


@dataclass(frozen=True)
class WrittenAggregate:
    """An aggregate as it was written, its words checked; `call` finds its columns."""

    function: str | Callable[..., Any] | Function
    columns: tuple[str, ...] = ()
    distinct: bool = False
    fraction: float = 0.5
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @staticmethod
    def of(call: Any) -> WrittenAggregate:
        """What a call says; a plain name is a call of no columns."""
        if isinstance(call, tuple | list) and len(call) < 2:  # pyright: ignore[reportUnknownArgumentType]
            raise SchemaError(f"{shown(call)} is no aggregate", hint='write ("sum", "amount"), or "count"')
        function, columns, *rest = call if isinstance(call, tuple | list) else (call, ())
        if not isinstance(columns, str | list | tuple):
            raise SchemaError(f"{shown(columns)} names no columns", hint='write ("sum", "amount")')
        options = rest.pop() if rest and isinstance(rest[-1], Mapping) else {}
        columns = (columns,) if isinstance(columns, str) else tuple(columns)
        if not isinstance(function, str):
            _check_options("a function", options, OF_USER)
            distinct = bool(options.get("distinct", False))
            return _checked(WrittenAggregate(function, columns, distinct, options=options), rest)
        return _named(function, columns, options, rest)

    @property
    def order(self) -> tuple[Any, ...]:
        """The order of the values, each item a column and a direction."""
        order = self.options.get("order", ())
        return (order,) if isinstance(order, str) else tuple(order)

    def call(self, schema: Schema, order: FieldOrder, user: str) -> Call:
        """The call on rows of a schema, its order and user's function found."""
        fields = tuple(map(schema.index, self.columns))
        function = self.function if isinstance(self.function, str) else "user"
        line = computed(function)
        only_values = self.distinct or line.law == "ordered"
        if only_values and any(field not in fields for field, _ in order):
            what = "the different values" if self.distinct else f"the {function}"
            written = f"{what} of {', '.join(self.columns)} in the order of another column"
            raise SchemaError(written, hint="order by the same column, or leave the order out")
        return Call(
            function,
            fields,
            self.distinct and line.law != "end",
            order,
            self._keeps_nulls(function),
            self.fraction,
            self.options.get("separator", ""),
            user,
            _declared(self.options["type"]) if user else None,
        )

    def _keeps_nulls(self, function: str) -> bool:
        """Whether NULLs stay among the values: only for first and last, and for a user's function."""
        default = "keep" if computed(function).keeps_nulls else "skip"
        nulls = self.options.get("nulls", default)
        if nulls not in ("keep", "skip"):
            raise SchemaError(f"nulls {nulls!r}", hint='write "nulls": "keep" or "nulls": "skip"')
        return nulls == "keep"


def _named(name: str, columns: tuple[str, ...], options: Mapping[str, Any], rest: list[Any]) -> WrittenAggregate:
    distinct = name.endswith(DISTINCT)
    plain = name.removesuffix(DISTINCT)
    function = ALIASES.get(plain, plain)
    if function not in FUNCTIONS or (distinct and function != "median" and computed(function).needs_order):
        raise unknown_name("aggregate", name, [*FUNCTIONS, "count distinct"])
    _check_options(name, options, FUNCTIONS[function])
    aggregate = WrittenAggregate(function, columns, distinct, options=options)
    if function == "median":
        return _checked(replace(aggregate, function="percentile"), rest)
    return _percentile(aggregate, rest) if computed(function).fraction else _checked(aggregate, rest)


def _percentile(aggregate: WrittenAggregate, rest: list[Any]) -> WrittenAggregate:
    match rest:
        case [int() | float() as fraction] if 0 <= fraction <= 1:
            return _checked(replace(aggregate, fraction=float(fraction)), [])
        case _:
            raise SchemaError(
                f"{aggregate.function} of {', '.join(aggregate.columns)} takes one number from 0 to 1, not {rest}",
                hint=f'write ("{aggregate.function}", "column", 0.9)',
            )


def _checked(aggregate: WrittenAggregate, rest: list[Any]) -> WrittenAggregate:
    """Refuse a wrong number of columns, and options that the function does not take."""
    name = aggregate.function if isinstance(aggregate.function, str) else "the function"
    if rest:
        raise SchemaError(f"{name} cannot take {rest[0]!r}", hint="after the columns come options as a dictionary")
    pair = isinstance(aggregate.function, str) and computed(name).pair
    if pair and (len(aggregate.columns) != 2 or aggregate.distinct):
        raise SchemaError(f"{name} of {', '.join(aggregate.columns)}", hint=f"{name} takes two columns, not DISTINCT")
    several = pair or not isinstance(aggregate.function, str) or (name == "count" and aggregate.distinct)
    if not aggregate.columns and (name != "count" or aggregate.distinct):
        raise SchemaError(f"{name} of what?", hint=f'write ("{name}", "column")')
    if len(aggregate.columns) > 1 and not several:
        raise SchemaError(f"{name} of {', '.join(aggregate.columns)}", hint=f"{name} takes one column")
    if isinstance(aggregate.function, str) and computed(name).needs_order and not aggregate.order:
        raise SchemaError(f"{name} in which order?", hint=f'write ("{name}", "column", {{"order": ["other column"]}})')
    if not isinstance(aggregate.function, str) and "type" not in aggregate.options:
        raise SchemaError("a function of which type?", hint='write (function, "column", {"type": "DOUBLE"})')
    return aggregate


def _check_options(name: str, options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    wrong = next((option for option in options if option not in known), None)
    if wrong is not None:
        raise SchemaError(f"{name} has no option {wrong!r}", hint=f"it takes {', '.join(known) or 'none'}")


def _declared(declared: Any) -> Field:
    """The field that a user's function fills: ``"DOUBLE"``, ``"BIGINT NOT NULL"``, or a type."""
    match declared:
        case Type():
            return Field("result", declared)
        case NotNullType():
            return Field("result", declared.type, nullable=False)
        case _:
            return Schema.parse(f"result {declared}").fields[0]
