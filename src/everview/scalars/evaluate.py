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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import ArithmeticFailure, BadPattern, CastFailure, EverviewError, FunctionError
from everview.operators.functions import Function
from everview.operators.word_program import WordProgram
from everview.scalars import in_words
from everview.scalars.casts import convert, safe
from everview.scalars.expressions import (
    TRY,
    Call,
    Cast,
    Column,
    Expression,
    LambdaCall,
    LambdaVariable,
    Literal,
    Now,
    UserCall,
    columns_of,
    rewritten,
    walk,
)
from everview.scalars.functions import FAILING, KERNELS
from everview.scalars.functions.kernel import Checked, Value, assembled, is_scalar, truth, whole
from everview.scalars.functions.patterns import like_regex
from everview.scalars.functions.user import user_function
from everview.scalars.text import sql, value_text
from everview.types import DATE, Array, Field, MapType, Schema, Struct, Type, Variant

Run = Callable[["ChosenRows"], Value]
_MOMENT: Final[ContextVar[dt.datetime]] = ContextVar("moment")


@contextmanager
def moment(at: dt.datetime) -> Generator[None]:
    """Set the value of CURRENT_TIMESTAMP within a block: one moment for all expressions of a tick."""
    token = _MOMENT.set(at if at.tzinfo else at.replace(tzinfo=dt.UTC))
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


class ChosenRows:
    """The rows on which expressions are evaluated, all or chosen ones; a column is filtered when it is first read."""

    __slots__ = ("_chosen", "_columns", "count", "memo")

    def __init__(self, columns: Sequence[Value], count: int | None, chosen: Value | None = None) -> None:
        self._columns = list(columns)
        self._chosen = chosen
        self.count = count  # None: no columns, everything is a scalar
        self.memo: dict[int, Value] = {}

    def column(self, index: int) -> Value:
        column = self._columns[index]
        if self._chosen is not None and len(column) != self.count:
            column = self._columns[index] = column.take(self._chosen)
        return column

    def choose(self, mask: Any) -> ChosenRows:
        chosen_rows = np.flatnonzero(mask)
        if len(chosen_rows) == self.count:
            return self
        # Columns that were chosen already are of this length; the others are chosen from the beginning.
        chosen = pa.array(chosen_rows)
        base = [self.column(i) for i in range(len(self._columns))] if self._chosen is not None else self._columns
        return ChosenRows(base, len(chosen_rows), chosen)

    def whole(self, value: Value) -> Value:
        return value if self.count is None or not is_scalar(value) else pa.repeat(value, self.count)


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
            case Now():
                return lambda rows: _now(expression)
            case Cast(argument, type_, try_):
                return self._cast(expression, self.run(argument), argument.type, type_, try_)
            case Call(function, arguments) if function in _CHOOSING:
                return _CHOOSING[function](arguments, [self.run(a) for a in arguments], expression.type)
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
            cast_ = _settled(convert(array, type_, to), try_, lambda row: _cast_failure(expression, array, row, type_))
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
            result = _settled(result, attempt, lambda row: _failure(expression, values, row))
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
            result = _settled(apply(given, applied, out), False, lambda row: _lambda_failure(expression, given, row))
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
    return pa.scalar(_outward(value, type_), type_.arrow)


def _outward(value: Any, type_: Type) -> Any:
    if isinstance(type_, Struct) and isinstance(value, tuple):
        return {f.name: _outward(v, f.type) for f, v in zip(type_.fields, value, strict=True)}
    if isinstance(type_, MapType) and value is not None:
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(_outward(k, type_.key), _outward(v, type_.value)) for k, v in pairs]
    if isinstance(type_, Array) and isinstance(value, tuple):
        return [_outward(v, type_.element) for v in value]
    if isinstance(value, Variant):
        return value.raw
    return list(value) if isinstance(value, tuple) else value


def _now(expression: Now) -> Value:
    moment_ = _MOMENT.get(None) or dt.datetime.now(dt.UTC)
    return scalar(moment_.astimezone(dt.UTC).date() if expression.type == DATE else moment_, expression.type)


# -- failures


def _settled(result: Any, attempt: bool, failure: Callable[[int], EverviewError]) -> Value:
    """The values of a result that may have failed: NULL in failed rows of an attempt, else the first row's error."""
    if not isinstance(result, Checked):
        return result
    if not result.failed.any():
        return result.value
    if not attempt:
        raise _because(failure(int(np.argmax(result.failed))), result.reason)
    return pc.if_else(pa.array(result.failed), pa.scalar(None, result.value.type), result.value)


def _because(error: EverviewError, reason: str) -> EverviewError:
    return type(error)(error.message.replace("{reason}", reason, 1), hint=error.hint)


def _lambda_failure(expression: LambdaCall, values: list[Value], row: int) -> EverviewError:
    shown = ", ".join(value_text(_plain(v[row]), a.type) for v, a in zip(values, expression.arguments, strict=True))
    return ArithmeticFailure(f"{{reason}} in {sql(expression)}: {shown}", hint="the tick was not applied")


def _cast_failure(expression: Expression, array: Value, row: int, type_: Type) -> EverviewError:
    shown = value_text(_plain(array[row]), type_)
    message = f"{shown} is not {_article(expression.type)}: {{reason}} in {sql(expression)}"
    return CastFailure(message, hint="try_cast gives NULL there")


def _article(type_: Type) -> str:
    return f"an {type_}" if type_.sql[0] in "AEIOU" else f"a {type_}"


_MARKS: Final = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "integral_divide": "DIV", "modulo": "%"}
_ATTEMPTS: Final = {*_MARKS} - {"integral_divide"} | {"element_at"}


def _failure(expression: Call, values: list[Value], row: int) -> EverviewError:
    name = expression.function
    if name == "is_one_row":
        return ArithmeticFailure("{reason}", hint="limit it to one, or take an aggregate such as max of them")
    shown = [
        value_text(_plain(v if is_scalar(v) else v[row]), a.type)
        for v, a in zip(values, expression.arguments, strict=True)
    ]
    operands = f" {_MARKS[name]} ".join(shown) if name in _MARKS else f"{name}({', '.join(shown)})"
    hint = f"try_{name} gives NULL there" if name in _ATTEMPTS else "correct the row, or guard it with CASE"
    kind = CastFailure if name in ("to_date", "to_timestamp", "unix_timestamp", "make_date") else ArithmeticFailure
    return kind(f"{{reason}} in {sql(expression)}: {operands}", hint=hint)


def _plain(value: Value) -> Any:
    return value.as_py()


# -- what chooses rows


def fallible(expression: Expression) -> bool:
    """Whether evaluating an expression may raise."""
    match expression:
        case Cast(argument, type_, try_):
            return (not try_ and not safe(argument.type, type_)) or fallible(argument)
        case Call("like", (value, *pattern)) if _is_pattern(pattern):
            return fallible(value)
        case Call(function, arguments):
            return function in FAILING or any(map(fallible, arguments))
        case UserCall():
            return True
        case LambdaCall():
            return any(map(fallible, expression.children))
        case _:
            return False


def _is_pattern(pattern: Sequence[Expression]) -> bool:
    """Whether the arguments are a literal LIKE pattern, and its escape if given, that cannot fail."""
    values = [part.value if isinstance(part, Literal) else None for part in pattern]
    if not all(isinstance(value, str) for value in values):
        return False
    try:
        like_regex(*([*values, "\\"][:2]))
    except BadPattern:
        return False
    return True


def _case(arguments: tuple[Expression, ...], runs: list[Run], type_: Type) -> Run:
    out = type_.arrow
    if any(map(fallible, arguments[1:])):
        return lambda rows: _choose(rows, runs, out) if rows.count is not None else _choose_one(rows, runs)
    return lambda rows: _choose_all(rows, runs) if rows.count is not None else _choose_one(rows, runs)


def _choose_one(rows: ChosenRows, runs: list[Run]) -> Value:
    """CASE without columns, where conditions are scalars."""
    for condition, value in zip(runs[:-1:2], runs[1::2], strict=True):
        if condition(rows).as_py():
            return value(rows)
    return runs[-1](rows)


def _choose_all(rows: ChosenRows, runs: list[Run]) -> Value:
    chosen = runs[-1](rows)
    for condition, value in zip(runs[-3::-2], runs[-2::-2], strict=True):
        test = condition(rows)
        if is_scalar(test):
            chosen = value(rows) if test.as_py() else chosen
            continue
        chosen = pc.if_else(test.fill_null(False) if test.null_count else test, value(rows), chosen)
    return chosen


def _choose(rows: ChosenRows, runs: list[Run], out: pa.DataType) -> Value:
    places, parts = [], []
    where = np.arange(rows.count or 0)
    for condition, value in zip(runs[:-1:2], runs[1::2], strict=True):
        mask = truth(rows.whole(condition(rows)))
        if mask.any():
            chosen = rows.choose(mask)
            parts.append(chosen.whole(value(chosen)))
            places.append(where[mask])
            rows, where = rows.choose(~mask), where[~mask]
        if not len(where):
            break
    if len(where) or not parts:
        parts.append(rows.whole(runs[-1](rows)))
        places.append(where)
    return parts[0] if len(parts) == 1 else assembled(parts, places, out)


def _coalesce(arguments: tuple[Expression, ...], runs: list[Run], type_: Type) -> Run:
    out = type_.arrow
    lazy = any(map(fallible, arguments[1:]))

    def run(rows: ChosenRows) -> Value:
        if rows.count is None:
            return next((v for r in runs if (v := r(rows)).is_valid), pa.scalar(None, out))
        if not lazy:
            return pc.coalesce(*(rows.whole(r(rows)) for r in runs))
        values = rows.whole(runs[0](rows))
        for other in runs[1:]:
            if not values.null_count:
                break
            mask = values.is_null().to_numpy(zero_copy_only=False)
            chosen = rows.choose(mask)
            filled, places = chosen.whole(other(chosen)), [np.flatnonzero(~mask), np.flatnonzero(mask)]
            values = assembled([values.filter(pa.array(~mask)), filled], places, out)
        return values

    return run


def _joined(function: Callable[[Value, Value], Value], ends: bool) -> Callable[..., Run]:
    """The compiler of AND, which stops at false, or of OR, which stops at true; NULL stops neither."""

    def made(arguments: tuple[Expression, ...], runs: list[Run], type_: Type) -> Run:
        lazy = [False, *map(fallible, arguments[1:])]

        def run(rows: ChosenRows) -> Value:
            verdict = runs[0](rows)
            for other, careful in zip(runs[1:], lazy[1:], strict=True):
                if is_scalar(verdict):
                    if verdict.as_py() is ends:
                        return verdict
                    verdict = function(verdict, other(rows))
                elif not careful:
                    verdict = function(verdict, other(rows))
                else:
                    verdict = _where_open(rows, verdict, other)
            return verdict

        return run

    def _where_open(rows: ChosenRows, verdict: Value, other: Run) -> Value:
        opened = truth(pc.not_equal(verdict, pa.scalar(ends)).fill_null(True))
        if not opened.any():
            return verdict
        chosen = rows.choose(opened)
        if chosen is rows:
            return function(verdict, other(rows))
        mask = pa.array(opened)
        met = function(verdict.filter(mask), chosen.whole(other(chosen)))
        return pc.replace_with_mask(verdict, mask, met)

    return made


_CHOOSING: Final[dict[str, Callable[..., Run]]] = {
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
    "and": _joined(pc.and_kleene, ends=False),
    "or": _joined(pc.or_kleene, ends=True),
}


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
