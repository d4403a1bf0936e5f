"""Syntax trees of expressions to expressions of the plan.

One table says how each kind of node is bound and which of its arguments are understood; a node or an argument that
is not in it is refused. Types are those of `everview.plan.typing`, its errors get the place in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from everview.errors import EverviewError, UnknownName
from everview.frontends.sql import types
from everview.frontends.sql.context import Context
from everview.frontends.sql.names import Scope
from everview.frontends.sql.pipes import Place
from everview.plan.typing import call, cast, coerced, implicit, is_integer, literal
from everview.scalars.expressions import (
    FALSE,
    NULL,
    TRUE,
    Call,
    Exists,
    Expression,
    InQuery,
    Literal,
    Now,
)
from everview.types import BOOLEAN, DATE, DOUBLE, FLOAT, STRING, TIMESTAMP, Decimal, Type

LISTED = 10  # comparisons of values that are better a list
LONGEST_CHAIN = 150  # operators in a row, each over the result of the one before


@dataclass(frozen=True)
class Here:
    """Where an expression stands: its row, and what it may call."""

    context: Context
    scope: Scope
    clause: str
    aggregates: bool = False
    windows: bool = False
    named: Mapping[str, exp.Window] = field(default_factory=dict[str, exp.Window])
    given: Mapping[str, Expression] = field(default_factory=dict[str, Expression])  # already bound, by name

    def deeper(self, node: exp.Expr) -> Here:
        return replace(self, context=self.context.deeper(node))

    def inside(self, what: str) -> Here:
        """Inside a call that holds no others of its kind."""
        return replace(self, clause=what, aggregates=False, windows=False)


Handler = Callable[[Any, Here], Expression]
HANDLERS: dict[type[exp.Expr], tuple[Handler, tuple[str, ...]]] = {}


def handles(*kinds: type[exp.Expr], args: str = "this") -> Callable[[Handler], Handler]:
    """Registers how nodes are bound, and which of their arguments that understands."""

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            assert kind not in HANDLERS, kind
            HANDLERS[kind] = (handler, tuple(args.split()))
        return handler

    return register


def expression(node: exp.Expr, here: Here) -> Expression:
    """What a tree means of the rows here."""
    while type(node) is exp.Paren:
        node = node.this
    here = here.deeper(node)
    try:
        found = HANDLERS.get(type(node))
        if found is not None:
            handler, known = found
            if known != ("*",):
                here.context.only(node, *known)
            return handler(node, here)
        if isinstance(node, exp.Func):
            return _function(node, here)
        raise here.context.unsupported(_called(node), node)
    except EverviewError as error:
        here.context.source.locate(error, node)
        raise


def condition(node: exp.Expr, here: Here, what: str = "") -> Expression:
    """A truth value; raises when it is something else."""
    found = expression(node, here)
    try:
        return implicit(found, BOOLEAN, what or f"the condition of {here.clause}")
    except EverviewError as error:
        here.context.source.locate(error, node)
        raise


def _function(node: exp.Expr, here: Here) -> Expression:
    from everview.frontends.sql.functions import function

    return function(node, here)


def _called(node: exp.Expr) -> str:
    return node.key.upper().replace("_", " ")


# -- names and constants


MOMENTS = {  # unless a column is called so
    "current_date": Now("date"),
    "current_timestamp": Now("timestamp"),
    "localtimestamp": Now("timestamp"),
}


@handles(exp.Column, args="this table db catalog")
def _column(node: exp.Column, here: Here) -> Expression:
    if isinstance(node.this, exp.Star):
        raise here.context.error(f"* is not a value in {here.clause}", node, "a star stands in SELECT and count(*)")
    parts = tuple(part.name for part in node.parts)
    given = here.given.get(parts[0]) if len(parts) == 1 else None
    if given is not None:
        return given
    try:
        return here.scope.find(parts)
    except UnknownName:
        moment = MOMENTS.get(parts[0].lower()) if len(parts) == 1 and not node.this.args.get("quoted") else None
        if moment is None:
            raise
        return moment


@handles(Place)
def _place(node: Place, here: Here) -> Expression:
    return placed(node, here)[1]


def placed(node: Place, here: Here) -> tuple[str, Expression]:
    """The name and the value of the column at a place."""
    columns = here.scope.star()
    at = int(node.this.name) if isinstance(node.this, exp.Literal) else 0
    if not 1 <= at <= len(columns):
        raise here.context.error(f"{here.clause} {at}: there is no such column", node.this, f"there are {len(columns)}")
    return columns[at - 1].name, columns[at - 1].expression


@handles(exp.Dot, args="this expression")
def _dot(node: exp.Dot, here: Here) -> Expression:
    if not isinstance(node.expression, exp.Identifier):
        raise here.context.unsupported(f"the name {node.sql('spark')[:60]}", node, "relations have one name")
    return call("get_field", expression(node.this, here), literal(node.expression.name))


@handles(exp.Star, args="except_ replace rename")
def _star(node: exp.Star, here: Here) -> Expression:
    raise here.context.error(f"* is not a value in {here.clause}", node, "a star stands in SELECT and count(*)")


@handles(exp.Literal, args="this is_string")
def _literal(node: exp.Literal, here: Here) -> Expression:
    return types.constant(node, here.context)


@handles(exp.RawString, exp.National, exp.UnicodeString)
def _text(node: exp.Expr, here: Here) -> Expression:
    return literal(node.name)


@handles(exp.HexString, args="this is_integer")
def _hexadecimal(node: exp.HexString, here: Here) -> Expression:
    return types.hexadecimal(node, here.context)


@handles(exp.Boolean)
def _boolean(node: exp.Boolean, here: Here) -> Expression:
    return TRUE if node.this else FALSE


@handles(exp.Null, args="")
def _null(node: exp.Null, here: Here) -> Expression:
    return NULL


@handles(exp.CurrentDate)
def _today(node: exp.CurrentDate, here: Here) -> Expression:
    return Now("date")


@handles(exp.CurrentTimestamp, exp.CurrentDatetime, exp.Localtimestamp, args="sysdate")
def _now(node: exp.Expr, here: Here) -> Expression:
    return Now("timestamp")


@handles(exp.Interval, args="this unit")
def _interval(node: exp.Interval, here: Here) -> Expression:
    written = types.duration(node, here.context)
    if written is not None:
        return written
    return call("multiply", expression(node.this, here), types.unit_of(node, here.context))


@handles(exp.Placeholder, exp.Parameter, exp.SessionParameter, args="*")
def _parameter(node: exp.Expr, here: Here) -> Expression:
    raise here.context.unsupported(
        "a parameter", node, "a view has no parameters; write the value, or join a table of them"
    )


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
def _operator(node: exp.Binary, here: Here) -> Expression:
    """A chain of operators, without going deeper for each."""
    chain: list[exp.Expr] = []
    first: exp.Expr = node
    while type(first) in OPERATORS:
        here.context.only(first, "this", "expression", "typed", "safe")
        chain.append(first)
        first = bare(first.this)
    if len(chain) > LONGEST_CHAIN:
        hint = f"at most {LONGEST_CHAIN} operators may follow each other; use sub-sums in brackets"
        raise here.context.error(f"{len(chain)} operators in a row", chain[0], hint)
    found = expression(first, here)
    for operator in reversed(chain):
        found = _operated(operator, found, expression(operator.expression, here), here)
    return found


def bare(node: exp.Expr) -> exp.Expr:
    while type(node) is exp.Paren:
        node = node.this
    return node


def _operated(node: exp.Expr, a: Expression, b: Expression, here: Here) -> Expression:
    name = OPERATORS[type(node)]
    if isinstance(node, exp.Div):
        if node.args.get("safe") and here.context.dialect != "spark":
            b = call("nullif", b, literal(0))
        if node.args.get("typed") and is_integer(a.type) and is_integer(b.type):
            name = "integral_divide"
        if here.context.dialect == "duckdb" and isinstance(a.type, Decimal):
            a = coerced(a, DOUBLE)  # there every quotient is one
    if isinstance(node, exp.Sub) and a.type == b.type == DATE and here.context.dialect in ("duckdb", "postgres"):
        name = "datediff"
    try:
        return call(name, a, b)
    except EverviewError as error:
        here.context.source.locate(error, node)
        raise


@handles(exp.Neg)
def _negated(node: exp.Neg, here: Here) -> Expression:
    inner = bare(node.this)
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.this.isdigit():
        return literal(-int(inner.this))
    return call("negate", expression(inner, here))


@handles(exp.BitwiseNot)
def _flipped(node: exp.BitwiseNot, here: Here) -> Expression:
    return call("bit_not", expression(node.this, here))


@handles(exp.DPipe, args="this expression safe")
def _joined(node: exp.DPipe, here: Here) -> Expression:
    return call("concat", *(expression(part, here) for part in _parts(node, exp.DPipe)))


def _parts(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of a chain of one operator, from left to right, however deep its tree is."""
    found: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        part = bare(waiting.pop())
        if type(part) is kind:
            waiting += (part.this, part.expression)
        else:
            found.append(part)
    return found[::-1]


# -- logic


@handles(exp.And, args="this expression")
def _and(node: exp.And, here: Here) -> Expression:
    return all_of("and", [condition(part, here, "AND") for part in _parts(node, exp.And)])


@handles(exp.Or, args="this expression")
def _or(node: exp.Or, here: Here) -> Expression:
    return all_of("or", _listed([condition(part, here, "OR") for part in _parts(node, exp.Or)]))


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
    """One call of all; what is said twice is said once."""
    parts = list(dict.fromkeys(parts))
    return parts[0] if len(parts) == 1 else call(name, *parts)


@handles(exp.Xor, args="this expression")
def _xor(node: exp.Xor, here: Here) -> Expression:
    return call("not_equal", condition(node.this, here), condition(node.expression, here))


@handles(exp.Not)
def _not(node: exp.Not, here: Here) -> Expression:
    inner = bare(node.this)
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return call("is_not_null", expression(inner.this, here))
    found = condition(inner, here, "NOT")
    if isinstance(found, (Exists, InQuery)):
        return replace(found, negated=not found.negated)
    return call("not", found)


@handles(exp.Is, args="this expression")
def _is(node: exp.Is, here: Here) -> Expression:
    value, what = expression(node.this, here), node.expression
    if isinstance(what, exp.Null):
        return call("is_null", value)
    if isinstance(what, exp.Boolean):
        return call("null_safe_equal", value, expression(what, here))
    raise here.context.unsupported(f"IS {what.sql('spark')[:40]}", node, "there are IS NULL, IS TRUE and IS FALSE")


# -- comparison


def compared(name: str, a: Expression, b: Expression) -> Expression:
    """A comparison; a moment that is written as text is read once, here."""
    if name == "null_safe_not_equal":
        return call("not", call("null_safe_equal", a, b))
    return call(name, as_moment(a, b.type), as_moment(b, a.type))


def as_moment(found: Expression, beside: Type) -> Expression:
    if beside not in (DATE, TIMESTAMP) or not (isinstance(found, Literal) and found.type == STRING):
        return found
    read = types.read_moment(found, beside)
    return found if read is None else read


# -- cases and casts


@handles(exp.Case, args="this ifs default")
def _case(node: exp.Case, here: Here) -> Expression:
    subject = None if node.this is None else expression(node.this, here)
    parts: list[Expression] = []
    for branch in node.args["ifs"]:
        here.context.only(branch, "this", "true")
        if subject is None:
            parts.append(condition(branch.this, here, "CASE WHEN"))
        else:
            parts.append(compared("equal", subject, expression(branch.this, here)))
        parts.append(expression(branch.args["true"], here))
    if node.args.get("default") is not None:
        parts.append(expression(node.args["default"], here))
    return call("case", *parts)


@handles(exp.If, args="this true false")
def _if(node: exp.If, here: Here) -> Expression:
    otherwise = node.args.get("false")
    test = condition(node.this, here, "IF")
    yes = expression(node.args["true"], here)
    return call("if", test, yes, NULL if otherwise is None else expression(otherwise, here))


@handles(exp.Cast, exp.TryCast, args="this to safe requires_string")
def _cast(node: exp.Cast, here: Here) -> Expression:
    of = types.type_of(node.to, here.context)
    inner = bare(node.this)
    if isinstance(inner, exp.Literal) and inner.is_string and of in (DATE, TIMESTAMP):
        if not node.args.get("safe"):
            return types.moment(inner.this, of, node, here.context)
        return types.read_moment(literal(inner.this), of) or Literal(None, of)
    value = expression(inner, here)
    if is_integer(of) and here.context.dialect in ROUNDING:
        value = _rounded(value)
    return cast(value, of, try_=bool(node.args.get("safe")))


ROUNDING = ("duckdb", "postgres", "snowflake", "redshift", "trino", "presto")  # Spark cuts digits off


def _rounded(value: Expression) -> Expression:
    """The nearest whole number; of a float that is halfway, the even one."""
    if isinstance(value.type, Decimal):
        return call("round", value)
    return call("bround", value) if value.type in (DOUBLE, FLOAT) else value
