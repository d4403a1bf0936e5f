"""Bind syntax trees of expressions to expressions of the plan.

One table says how each kind of node is bound and which of its arguments are understood; a node or an argument that
is not in it is refused. Types are those of `everview.plan.typing`, its errors get the place in the text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql import types
from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.names import Scope
from everview.plan.typing import call, cast, coerced, implicit, is_integer, literal
from everview.scalars.expressions import (
    NULL,
    Call,
    Exists,
    Expression,
    InQuery,
    Literal,
)
from everview.scalars.session_zone import UTC, session_zone
from everview.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTERVALS,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Type,
)

LISTED = 10  # comparisons of values that are better a list
LONGEST_CHAIN = 150  # operators in a row, each over the result of the one before


@dataclass(frozen=True)
class Site:
    """The site of an expression: the columns in scope, the clause, and the kinds of calls that are allowed there."""

    context: QueryContext
    scope: Scope
    clause: str
    aggregates: bool = False
    windows: bool = False
    named: Mapping[str, exp.Window] = field(default_factory=dict[str, exp.Window])
    given: Mapping[str, Expression] = field(default_factory=dict[str, Expression])  # already bound, by name

    def deeper(self, node: exp.Expr) -> Site:
        return replace(self, context=self.context.deeper(node))

    def inside(self, what: str) -> Site:
        """The site inside a call that may hold no call of its own kind."""
        return replace(self, clause=what, aggregates=False, windows=False)


Handler = Callable[[Any, Site], Expression]
HANDLERS: dict[type[exp.Expr], tuple[Handler, tuple[str, ...]]] = {}


def handles(*kinds: type[exp.Expr], args: str = "this") -> Callable[[Handler], Handler]:
    """Register the decorated function to bind some kinds of nodes; ``args`` names the arguments it understands."""

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            assert kind not in HANDLERS, kind
            HANDLERS[kind] = (handler, tuple(args.split()))
        return handler

    return register


def expression(node: exp.Expr, site: Site) -> Expression:
    """Bind a tree to an expression over the rows in scope."""
    while type(node) is exp.Paren:
        node = node.this
    site = site.deeper(node)
    try:
        bind = HANDLERS.get(type(node))
        if bind is not None:
            handler, known = bind
            if known != ("*",):
                site.context.only(node, *known)
            return handler(node, site)
        if isinstance(node, exp.Func):
            return _function(node, site)
        raise site.context.unsupported(_called(node), node)
    except EverviewError as error:
        site.context.source.locate(error, node)
        raise


def condition(node: exp.Expr, site: Site, what: str = "") -> Expression:
    """Bind a tree that must be BOOLEAN; raises for any other type."""
    value = expression(node, site)
    try:
        return implicit(value, BOOLEAN, what or f"the condition of {site.clause}")
    except EverviewError as error:
        site.context.source.locate(error, node)
        raise


def _function(node: exp.Expr, site: Site) -> Expression:
    from everview.frontends.sql.functions import function

    return function(node, site)


def _called(node: exp.Expr) -> str:
    return node.key.upper().replace("_", " ")


# -- arithmetic

OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.Mod: "modulo",
    exp.IntDiv: "integral_divide",
    exp.BitwiseAnd: "bit_and",
    exp.BitwiseOr: "bit_or",
    exp.BitwiseXor: "bit_xor",
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
}


@handles(*OPERATORS, args="this expression typed safe")
def _operator(node: exp.Binary, site: Site) -> Expression:
    """Bind a chain of operators in a loop, so that a long chain needs no deep recursion."""
    chain: list[exp.Expr] = []
    first: exp.Expr = node
    while type(first) in OPERATORS:
        site.context.only(first, "this", "expression", "typed", "safe")
        chain.append(first)
        first = bare(first.this)
    if len(chain) > LONGEST_CHAIN:
        hint = f"at most {LONGEST_CHAIN} operators may follow each other; use sub-sums in brackets"
        raise site.context.error(f"{len(chain)} operators in a row", chain[0], hint)
    value = expression(first, site)
    for operator in reversed(chain):
        value = _operated(operator, value, expression(operator.expression, site), site)
    return value


def bare(node: exp.Expr) -> exp.Expr:
    while type(node) is exp.Paren:
        node = node.this
    return node


def _operated(node: exp.Expr, a: Expression, b: Expression, site: Site) -> Expression:
    name = OPERATORS[type(node)]
    if isinstance(node, exp.Div):
        if node.args.get("safe") and site.context.dialect != "spark":
            b = call("nullif", b, literal(0))
        if node.args.get("typed") and is_integer(a.type) and is_integer(b.type):
            name = "integral_divide"
        if site.context.dialect == "duckdb" and isinstance(a.type, Decimal):
            a = coerced(a, DOUBLE)  # there every quotient is one
    if site.context.dialect in DAYS_BETWEEN and isinstance(node, (exp.Add, exp.Sub)):
        name = "datediff" if isinstance(node, exp.Sub) and a.type == b.type == DATE else name
        if isinstance(node, exp.Sub) and a.type == b.type == TIMESTAMP:
            with session_zone(UTC):  # what has elapsed, whatever clocks have shown
                return call("subtract", a, b)
        a, b = _moved(a, b), _moved(b, a)
    try:
        value = call(name, a, b)
        return _quotient(value) if name == "divide" and site.context.dialect == "duckdb" else value
    except EverviewError as error:
        site.context.source.locate(error, node)
        raise


def _moved(value: Expression, by: Expression) -> Expression:
    """A date that an interval moves as a timestamp; any other value as it is."""
    return cast(value, TIMESTAMP_NTZ) if value.type == DATE and by.type in INTERVALS else value


def _quotient(value: Expression) -> Expression:
    """A quotient of floats that is infinite, or NaN, where the divisor is zero."""
    if not isinstance(value, Call) or value.type not in (DOUBLE, FLOAT):
        return value
    a, b = value.arguments
    if isinstance(b, Literal) and b.value:
        return value
    infinite = call("multiply", a, Literal(math.inf, value.type))
    return call("if", call("equal", b, Literal(0.0, value.type)), infinite, value)


@handles(exp.Neg)
def _negated(node: exp.Neg, site: Site) -> Expression:
    inner = bare(node.this)
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.this.isdigit():
        return literal(-int(inner.this))
    return call("negate", expression(inner, site))


@handles(exp.BitwiseNot)
def _flipped(node: exp.BitwiseNot, site: Site) -> Expression:
    return call("bit_not", expression(node.this, site))


@handles(exp.DPipe, args="this expression safe")
def _joined(node: exp.DPipe, site: Site) -> Expression:
    return call("concat", *(expression(part, site) for part in _parts(node, exp.DPipe)))


def _parts(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of a chain of one operator, from left to right, however deep its tree is."""
    operands: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        part = bare(waiting.pop())
        if type(part) is kind:
            waiting += (part.this, part.expression)
        else:
            operands.append(part)
    return operands[::-1]


# -- logic


@handles(exp.And, args="this expression")
def _and(node: exp.And, site: Site) -> Expression:
    return all_of("and", [condition(part, site, "AND") for part in _parts(node, exp.And)])


@handles(exp.Or, args="this expression")
def _or(node: exp.Or, site: Site) -> Expression:
    return all_of("or", _listed([condition(part, site, "OR") for part in _parts(node, exp.Or)]))


def _listed(parts: list[Expression]) -> list[Expression]:
    """``x = 1 OR x = 2 OR …`` as one list, which is looked up instead of tried."""
    values: dict[Expression, list[Expression]] = {}
    rest: list[Expression] = []
    for part in parts:
        match part:
            case Call("equal", (value, Literal() as option)):
                values.setdefault(value, []).append(option)
            case _:
                rest.append(part)
    if sum(map(len, values.values())) < LISTED:
        return parts
    return [*(call("in", value, *dict.fromkeys(options)) for value, options in values.items()), *rest]


def all_of(name: str, parts: list[Expression]) -> Expression:
    """One AND or OR of all parts, without repetitions."""
    parts = list(dict.fromkeys(parts))
    return parts[0] if len(parts) == 1 else call(name, *parts)


@handles(exp.Xor, args="this expression")
def _xor(node: exp.Xor, site: Site) -> Expression:
    return call("not_equal", condition(node.this, site), condition(node.expression, site))


@handles(exp.Not)
def _not(node: exp.Not, site: Site) -> Expression:
    inner = bare(node.this)
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return call("is_not_null", expression(inner.this, site))
    value = condition(inner, site, "NOT")
    if isinstance(value, (Exists, InQuery)):
        return replace(value, negated=not value.negated)
    return call("not", value)


@handles(exp.Is, args="this expression")
def _is(node: exp.Is, site: Site) -> Expression:
    value, what = expression(node.this, site), node.expression
    if isinstance(what, exp.Null):
        return call("is_null", value)
    if isinstance(what, exp.Boolean):
        return call("null_safe_equal", value, expression(what, site))
    raise site.context.unsupported(f"IS {what.sql('spark')[:40]}", node, "there are IS NULL, IS TRUE and IS FALSE")


# -- comparison


def compared(name: str, a: Expression, b: Expression) -> Expression:
    """A comparison; a date or timestamp written as text is converted at once, not for every row."""
    if name == "null_safe_not_equal":
        return call("not", call("null_safe_equal", a, b))
    return call(name, as_moment(a, b.type), as_moment(b, a.type))


def as_moment(value: Expression, beside: Type) -> Expression:
    if beside not in WRITTEN or not (isinstance(value, Literal) and value.type == STRING):
        return value
    read = types.read_moment(value, beside)
    return value if read is None else read


# -- cases and casts


@handles(exp.Case, args="this ifs default")
def _case(node: exp.Case, site: Site) -> Expression:
    subject = None if node.this is None else expression(node.this, site)
    parts: list[Expression] = []
    for branch in node.args["ifs"]:
        site.context.only(branch, "this", "true")
        if subject is None:
            parts.append(condition(branch.this, site, "CASE WHEN"))
        else:
            parts.append(compared("equal", subject, expression(branch.this, site)))
        parts.append(expression(branch.args["true"], site))
    if node.args.get("default") is not None:
        parts.append(expression(node.args["default"], site))
    return call("case", *parts)


@handles(exp.If, args="this true false")
def _if(node: exp.If, site: Site) -> Expression:
    otherwise = node.args.get("false")
    test = condition(node.this, site, "IF")
    yes = expression(node.args["true"], site)
    return call("if", test, yes, NULL if otherwise is None else expression(otherwise, site))


@handles(exp.Cast, exp.TryCast, args="this to safe requires_string")
def _cast(node: exp.Cast, site: Site) -> Expression:
    inner = bare(node.this)
    if types.is_interval_of_any_units(node.to):
        from everview.frontends.sql.foreign_casts import cast_to_interval

        return cast_to_interval(node, expression(inner, site), site)
    type_ = types.type_of(node.to, site.context)
    if isinstance(inner, exp.Literal) and inner.is_string and type_ in WRITTEN and not node.to.expressions:
        if not node.args.get("safe"):
            return types.moment(inner.this, type_, node, site.context)
        return types.read_moment(literal(inner.this), type_) or Literal(None, type_)
    value = expression(inner, site)
    if isinstance(node.to.this, exp.Interval) or node.to.expressions or value.type in INTERVALS:
        from everview.frontends.sql.interval_casts import cast_by_units

        by_units = cast_by_units(node, value, type_, site.context)
        if by_units is not None:
            return by_units
    if site.context.dialect != "spark":
        from everview.frontends.sql.foreign_casts import foreign_cast

        foreign = foreign_cast(node, value, type_, site)
        if foreign is not None:
            return foreign
    return cast(value, type_, try_=bool(node.args.get("safe")))


WRITTEN = (DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ)  # types of literals that are written as text
POSTGRES = ("postgres", "postgresql")
DAYS_BETWEEN = ("duckdb", *POSTGRES)  # where a date less a date is a number, and a date and an interval a timestamp
