"""Expressions on Arrow columns: one implementation for both runtimes, a column at a time.

It says what an expression means and what its errors are. Where words suffice, operators run a program over words
instead (`everview.scalars.in_words`), and come back here when that fails.

A failing function fails the tick: an overflow, a division by zero and a cast of what has no value there raise, naming
the expression and the first row's operands. CASE, IF, COALESCE, AND and OR evaluate a branch that may fail only on
the rows that reach it. An expression that occurs twice is evaluated once.

>>> from everview.scalars.expressions import Column
>>> from everview.plan.typing import call, literal
>>> from everview.types import INTEGER
>>> x = Column(0, "x", INTEGER)
>>> share = call("case", call("equal", x, literal(0)), literal(0.0), call("divide", literal(1), x))
>>> Evaluate((share,))(pa.array([4, 0, None], pa.int32()))[0].to_pylist()
[0.25, 0.0, None]
>>> Evaluate((call("divide", literal(1), x),))(pa.array([4, 0], pa.int32()))
Traceback (most recent call last):
everview.errors.ArithmeticFailure: division by zero in 1.0D / CAST(x AS DOUBLE): 1.0D / 0.0D
  hint: try_divide gives NULL there
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa

from everview.errors import ArithmeticFailure, EverviewError, FunctionError
from everview.operators.functions import Function
from everview.operators.word_program import WordProgram, given_value
from everview.scalars import in_words
from everview.scalars.casts import convert
from everview.scalars.choosing import CHOOSING, ChosenRows, Run
from everview.scalars.expressions import (
    TRY,
    Call,
    Cast,
    Column,
    Expression,
    GivenValue,
    LambdaCall,
    LambdaVariable,
    Literal,
    Now,
    UserCall,
    columns_of,
    rewritten,
    walk,
)
from everview.scalars.failures import call_failure, cast_failure, lambda_failure, settled
from everview.scalars.functions import KERNELS
from everview.scalars.functions.kernel import Value, is_scalar, whole
from everview.scalars.functions.user import user_function
from everview.scalars.text import sql
from everview.types import DATE, Array, Field, MapType, Schema, Struct, Type, Variant

_MOMENT: Final[ContextVar[dt.datetime]] = ContextVar("moment")


@contextmanager
def moment(time: dt.datetime) -> Generator[None]:
    """Set the value of CURRENT_TIMESTAMP within a block: one moment for all expressions of a tick."""
    token = _MOMENT.set(time if time.tzinfo else time.replace(tzinfo=dt.UTC))
    try:
        yield
    finally:
        _MOMENT.reset(token)


@dataclass(frozen=True, slots=True)
class Evaluate:
    """A picklable function of columns that evaluates expressions; its `name` is the same in every run.

    Called without columns it gives scalars.
    """

    expressions: tuple[Expression, ...]
    users: tuple[Function, ...] = ()
    _run: list[tuple[Run, ...]] = field(default_factory=list, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.users:
            names = sorted({e.name for x in self.expressions for e in walk(x) if isinstance(e, UserCall)})
            object.__setattr__(self, "users", tuple(map(user_function, names)))

    @property
    def name(self) -> str:
        """A short name that says which expressions these are."""
        return "x" + blake2b(repr(self.expressions).encode(), digest_size=8).hexdigest()

    @property
    def digested(self) -> tuple[Callable[..., Any], ...]:
        """The users' functions that are called, whose code counts when a state tells whether it has changed."""
        return tuple(function.call for function in self.users)

    def __call__(self, *columns: Value) -> tuple[Value, ...]:
        if not self._run:
            self._run.append(Compiler(self.expressions, self.users).runs)
        rows = ChosenRows(columns, len(columns[0]) if columns else None)
        return tuple(rows.whole(run(rows)) for run in self._run[0])

    def projection_in_words(
        self, source: Schema, keep: tuple[int, ...], arguments: tuple[int, ...], out: Schema
    ) -> WordProgram | str:
        """The program over words that keeps some fields and adds these expressions of others; or why there is none."""
        return in_words.projection(self.expressions, source, keep, arguments, out)

    def predicate_in_words(self, source: Schema, arguments: tuple[int, ...]) -> WordProgram | str:
        """The program over words that keeps the rows for which the one expression is true; or why there is none."""
        (condition,) = self.expressions
        return in_words.predicate(condition, source, arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return Evaluate, (self.expressions, self.users)


class Compiler:
    """A compiler of expressions to closures over `ChosenRows`; expressions that occur twice share a memo."""

    def __init__(self, expressions: Sequence[Expression], users: Sequence[Function]) -> None:
        self._users = {f.name: f for f in users}
        self._often: Counter[Expression] = Counter(
            e for x in expressions for e in walk(x) if isinstance(e, (Call, Cast, UserCall))
        )
        self._places: dict[Expression, int] = {}
        self._made: dict[Expression, Run] = {}
        self.runs = tuple(map(self.run, expressions))

    def run(self, expression: Expression) -> Run:
        made = self._made.get(expression)
        if made is None:
            made = self._made[expression] = self._remembered(expression, self._run(expression))
        return made

    def _remembered(self, expression: Expression, run: Run) -> Run:
        if self._often[expression] < 2:
            return run
        place = self._places.setdefault(expression, len(self._places))

        def remembered(rows: ChosenRows) -> Value:
            value = rows.memo.get(place)
            if value is None:
                value = rows.memo[place] = run(rows)
            return value

        return remembered

    def _run(self, expression: Expression) -> Run:
        match expression:
            case Column(index):
                return lambda rows: rows.column(index)
            case Literal(value, type_):
                constant = scalar(value, type_)
                return lambda rows: constant
            case GivenValue(number, type_):
                return lambda rows: scalar(given_value(number), type_)
            case Now():
                return lambda rows: _now(expression)
            case Cast(argument, type_, try_):
                return self._cast(expression, self.run(argument), argument.type, type_, try_)
            case Call(function, arguments) if function in CHOOSING:
                return CHOOSING[function](arguments, [self.run(a) for a in arguments], expression.type)
            case Call():
                return self._call(expression)
            case UserCall():
                return self._user_call(expression)
            case LambdaCall():
                return self._lambda_call(expression)
            case _:
                raise AssertionError(f"{type(expression).__name__} is no scalar expression of one row")

    def _cast(self, expression: Expression, inner: Run, type_: Type, to: Type, try_: bool) -> Run:
        def run(rows: ChosenRows) -> Value:
            value = inner(rows)
            single = is_scalar(value)
            array = whole(value, 1)
            cast_ = settled(convert(array, type_, to), try_, lambda row: cast_failure(expression, array, row, type_))
            return cast_[0] if single else cast_

        return run

    def _call(self, expression: Call) -> Run:
        name = expression.function
        attempt = name not in KERNELS and name.startswith(TRY)
        kernel = KERNELS[name.removeprefix(TRY) if attempt else name]
        inner = [self.run(a) for a in expression.arguments]
        out = expression.type.arrow

        def run(rows: ChosenRows) -> Value:
            values = [i(rows) for i in inner]
            single = all(map(is_scalar, values))
            if single:
                values = [whole(v, 1) if i == 0 else v for i, v in enumerate(values)]
            try:
                result = kernel(out, *values)
            except pa.ArrowException as error:
                raise ArithmeticFailure(f"{error} in {sql(expression)}", hint="the tick was not applied") from error
            result = settled(result, attempt, lambda row: call_failure(expression, values, row))
            if result.type != out:
                result = result.cast(out)
            return result[0] if single and not is_scalar(result) else result

        return run

    def _lambda_call(self, expression: LambdaCall) -> Run:
        apply, out = _applied(expression.function), expression.type.arrow
        inner = [self.run(a) for a in expression.arguments]
        bodies = [self._body(*both) for both in zip(expression.bodies, expression.variables, strict=True)]

        def run(rows: ChosenRows) -> Value:
            values = [i(rows) for i in inner]
            single = rows.count is None
            count = 1 if rows.count is None else rows.count
            applied = [partial(body, rows) for body in bodies]
            given = [whole(v, count) for v in values]
            result = settled(apply(given, applied, out), False, lambda row: lambda_failure(expression, given, row))
            return result[0] if single else result

        return run

    def _body(self, body: Expression, variables: tuple[LambdaVariable, ...]) -> Callable[..., Value]:
        """A body as a function of the rows around, of the row that each element is of, and of the variables' values."""
        read = sorted(columns_of(body))
        outer = {e for e in walk(body) if isinstance(e, LambdaVariable) and e.number < variables[0].number}
        assert not outer, "variables of a lambda around this one are columns here"
        places = {variable.number: len(read) + i for i, variable in enumerate(variables)}

        def placed(e: Expression) -> Expression:
            if isinstance(e, Column):
                return replace(e, index=read.index(e.index))
            if isinstance(e, LambdaVariable) and e.number in places:
                return Column(places[e.number], e.name, e.type, e.nullable)
            return e

        (run,) = Compiler((rewritten(body, placed),), tuple(self._users.values())).runs

        def applied(rows: ChosenRows, parents: Any, *values: Any) -> Value:
            around = [rows.column(i).take(parents) for i in read]
            inside = ChosenRows([*around, *values], len(parents))
            return inside.whole(run(inside))

        return applied

    def _user_call(self, expression: UserCall) -> Run:
        function = self._users[expression.name]
        inner = [self.run(a) for a in expression.arguments]
        out = Schema((Field(expression.name, expression.type),))

        def run(rows: ChosenRows) -> Value:
            values = [i(rows) for i in inner]
            single = all(map(is_scalar, values))
            arrays = [whole(v, 1 if single else rows.count or 0) for v in values]
            table = pa.table(arrays, names=[str(i) for i in range(len(arrays))])
            (result,) = function.columns(table, out, check=False)
            if result.type != expression.type.arrow:
                raise FunctionError(
                    f"function {expression.name} returned {result.type}, not {expression.type.arrow}",
                    hint=f"declared: {expression.type}",
                )
            return result[0] if single else result

        return run


def _applied(function: str) -> Any:
    """How a function that takes functions is computed."""
    from everview.scalars.applied import APPLIED

    if function in APPLIED:
        return APPLIED[function]
    from everview.scalars.applied_maps import APPLIED_TO_MAPS

    return APPLIED_TO_MAPS[function]


def scalar(value: Any, type_: Type) -> Value:
    """A literal's value as an Arrow scalar."""
    return pa.scalar(outward(value, type_), type_.arrow)


def outward(value: Any, type_: Type) -> Any:
    """A literal's value as Arrow takes it."""
    if isinstance(type_, Struct) and isinstance(value, tuple):
        return {f.name: outward(v, f.type) for f, v in zip(type_.fields, value, strict=True)}
    if isinstance(type_, MapType) and value is not None:
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(outward(k, type_.key), outward(v, type_.value)) for k, v in pairs]
    if isinstance(type_, Array) and isinstance(value, tuple):
        return [outward(v, type_.element) for v in value]
    if isinstance(value, Variant):
        return value.raw
    return list(value) if isinstance(value, tuple) else value


def _now(expression: Now) -> Value:
    moment_ = _MOMENT.get(None) or dt.datetime.now(dt.UTC)
    return scalar(moment_.astimezone(dt.UTC).date() if expression.type == DATE else moment_, expression.type)


# -- constants


def fold(expression: Expression) -> Expression:
    """The expression with its constant parts evaluated; a part that fails stays, to fail when rows come to it.

    >>> from everview.plan.typing import call, literal
    >>> str(fold(call("add", literal(1), literal(2)))), str(fold(call("integral_divide", literal(1), literal(0))))
    ('3', '1L DIV 0L')
    """
    return rewritten(expression, _folded)


def _folded(expression: Expression) -> Expression:
    if not isinstance(expression, (Call, Cast)) or not all(isinstance(c, Literal) for c in expression.children):
        return expression
    try:
        (value,) = Evaluate((expression,))()
    except EverviewError:
        return expression
    return Literal(_inward(value), expression.type)


def _inward(value: Value) -> Any:
    """An Arrow value as literals hold it."""
    if not value.is_valid:
        return None
    if isinstance(value, pa.DurationScalar):
        return value.value
    return _tuples(value.as_py())


def _tuples(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC) if value.tzinfo else value
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    if isinstance(value, dict):
        return tuple(map(_tuples, value.values()))
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value
