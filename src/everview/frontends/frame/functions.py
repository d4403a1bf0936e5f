"""Functions of columns, named as in ``pyspark.sql.functions``: every function of SQL that there is, by its name.

There is no list of functions here: the names are those of the tables that SQL is bound by, so ``F.upper("name")`` is
``upper(name)``. A text among the arguments names a column, but where PySpark takes it for a value: `TAKES` says where,
and what PySpark calls the parameters.

>>> from everview import functions as F
>>> F.round("price", 2), F.split("words", " "), F.transform("xs", lambda x: x + 1)
(Column<round(`price`, 2)>, Column<split(`words`, ' ')>, Column<transform(`xs`, `x_1` -> (`x_1` + 1))>)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from difflib import get_close_matches
from functools import cache, partial
from typing import Any, Final

from everview.errors import UnknownName, WrongType, shown
from everview.frontends.frame.columns import (
    FrameColumn,
    as_column,
    called,
    case,
    column_or_name,
    literal_column,
    named_column,
)
from everview.frontends.sql.functions import CHANCE, SPECIAL
from everview.frontends.sql.generators import GENERATORS
from everview.frontends.sql.lambdas import USES as APPLIED
from everview.frontends.sql.written import NAMES, RANKS
from everview.scalars.signatures import ALIASES, INTERNAL, SIGNATURES

# The parameters of functions that take values beside columns, or are called with names; a value has a "!".
_TAKES = """
any_value col ignoreNulls!, approx_count_distinct col rsd!, approx_percentile col percentage! accuracy!,
array_append col value!, array_contains col value!, array_insert arr pos value!, array_position col value!,
array_join col delimiter! null_replacement!, array_prepend col value!, array_remove col element!,
assert_true col errMsg!, bround col scale!, ceil col scale!, ceiling col scale!,
concat_ws sep! *, conv col fromBase! toBase!, date_format date format!, date_trunc format! timestamp,
decode col charset!, element_at col extraction!, encode col charset!, first col ignorenulls!, last col ignorenulls!,
first_value col ignoreNulls!, last_value col ignoreNulls!, floor col scale!, format_number col d!,
format_string format! *, from_csv col schema! options!, from_json col schema! options!, from_unixtime timestamp format!,
from_utc_timestamp timestamp tz!, get_json_object col path!, instr str substr! start! occurrence!, json_tuple col *!,
lag col offset! default!, lead col offset! default!, levenshtein left right threshold!, listagg col delimiter!,
locate substr! str pos!, lpad col len! pad!, rpad col len! pad!, map_contains_key col value!, mode col deterministic!,
months_between date1 date2 roundOff!, next_day date dayOfWeek!, nth_value col offset! ignoreNulls!, ntile n!,
percentile col percentage! frequency!, percentile_approx col percentage! accuracy!, raise_error errMsg!,
regexp_extract str pattern! idx!, regexp_extract_all str regexp idx!, regexp_instr str regexp idx!,
regexp_replace string pattern! replacement! position!, round col scale!, schema_of_csv csv! options!,
schema_of_json json! options!, sha2 col numBits!, shiftleft col numBits!, shiftright col numBits!,
shiftrightunsigned col numBits!, sort_array col asc!, split str pattern! limit, string_agg col delimiter!,
substring_index str delim! count!, to_csv col options!, to_date col format!, to_json col options!,
to_timestamp col format!, to_utc_timestamp timestamp tz!, translate srcCol matching! replace!, trunc date format!,
try_to_date col format!, try_variant_array_append v path! value, try_variant_get v path! targetType!,
try_variant_insert v path! value, try_variant_set v path! value create_if_missing!, unix_timestamp timestamp format!,
variant_array_append v path! value, variant_delete v *!, variant_get v path! targetType!, variant_insert v path! value,
variant_set v path! value create_if_missing!, variant_strip_nulls v include_arrays!
"""


def _line(text: str) -> tuple[str, tuple[str, ...]]:
    name, *parameters = text.split()
    return name, tuple(parameters)


TAKES: Final = dict(map(_line, _TAKES.replace("\n", " ").split(",")))
# Other names that PySpark has for what SQL calls otherwise.
OTHERWISE: Final = {"create_map": "map", "bitwise_not": "bit_not", "reduce": "aggregate"}
_FLAGS: Final = ("ignoreNulls", "ignorenulls", "deterministic")  # said behind a call, or nothing at all


@cache
def names() -> frozenset[str]:
    """The names of all functions: those of SQL that a method can have."""
    sql = (*SIGNATURES, *ALIASES, *NAMES, *RANKS, *GENERATORS, *SPECIAL, *APPLIED)
    made = (name for name in sql if name.isidentifier() and name not in INTERNAL)
    return frozenset((*made, *OTHERWISE, *OWN))


def __getattr__(name: str) -> Callable[..., FrameColumn]:
    if name.startswith("__"):
        raise AttributeError(name)
    own = OWN.get(name)
    if own is not None:
        return own
    if name not in names():
        near = get_close_matches(name, names(), n=1)
        hint = f'did you mean "{near[0]}"?' if near else "docs/reference/sql-functions.md lists what there is"
        if name in ("udf", "pandas_udf", "arrow_udf"):
            hint = 'write it as ev.function, and call it by F.call_function("name", …)'
        if name in CHANCE:
            hint = "a view must give the same answer when a row is taken away again; store the value in a table"
        raise UnknownFunction(f"there is no function {name}", hint=hint)
    name = OTHERWISE.get(name, name)
    return partial(_applied if name in APPLIED else _call, name)


def __dir__() -> list[str]:
    return sorted(names())


class UnknownFunction(UnknownName, AttributeError):
    """A function that does not exist; `hasattr` may ask for it."""


# -- calls


def _call(name: str, *given: Any, **named: Any) -> FrameColumn:
    """A call of a function of SQL."""
    flags = {flag: named.pop(flag) for flag in _FLAGS if flag in named}
    arguments = [_argument(name, place, value) for place, value in enumerate(_in_places(name, given, named))]
    if len(arguments) == 2 and TAKES.get(name, ())[1:2] in (("ignoreNulls!",), ("ignorenulls!",), ("deterministic!",)):
        flags["said"] = arguments.pop().text == "true"
    made = called(name, *arguments)
    if any(flags.values()) and name != "mode":
        made = FrameColumn(f"{made.text} IGNORE NULLS", steps=made.steps, whole=True)
    return made


def _in_places(name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
    """The arguments in the order of the parameters."""
    if len(given) == 1 and isinstance(given[0], list | tuple) and name not in TAKES:
        given = tuple(given[0])  # as in F.array(["a", "b"])
    values, parameters = list(given), [p.rstrip("!") for p in TAKES.get(name, ("col",))]
    for parameter in parameters[len(given) :]:
        if parameter not in named:
            break
        values.append(named[parameter])
    if len(values) - len(given) != len(named):
        hint = f"it is called as {name}({', '.join(parameters)})" if name in TAKES else "give the arguments by place"
        raise WrongType(f"{name}: no parameter is called {', '.join(named)}", hint=hint)
    while len(values) > 1 and values[-1] is None and name in TAKES:
        values.pop()  # a parameter that was left out
    return values


def _argument(name: str, place: int, value: Any) -> FrameColumn:
    parameters = TAKES.get(name, ())
    last = parameters[min(place, len(parameters) - 1)] if parameters else ""
    taken = last.endswith("!") and (place < len(parameters) or last == "*!")
    if isinstance(value, Mapping):
        return called("map", *(part for pair in _pairs(value) for part in pair))
    if not isinstance(value, FrameColumn | str) and callable(getattr(value, "simpleString", None)):
        return literal_column(value.simpleString())  # a type of PySpark, as a schema
    if name in ("count", "any_value") and isinstance(value, str) and value == "*":
        return FrameColumn("*", whole=True)
    return as_column(value) if taken else column_or_name(value)


def _pairs(value: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return list(value.items())


_depth: ContextVar[int] = ContextVar("_depth", default=0)  # of functions within functions


def _applied(name: str, *given: Any) -> FrameColumn:
    """A call of a function that takes functions: ``F.filter("xs", lambda x: x > 1)``."""
    arguments = [_lambda(value) if inspect.isfunction(value) else column_or_name(value) for value in given]
    if not any(map(inspect.isfunction, given)):
        return _call(name, *given)
    return called(name, *arguments)


def _lambda(function: Callable[..., Any]) -> FrameColumn:
    """A function of Python as a lambda function of SQL; its variables have numbers, so that none hides another."""
    depth = _depth.get() + 1
    before = _depth.set(depth)
    try:
        variables = [f"`{name}_{depth}`" for name in inspect.signature(function).parameters]
        body = as_column(function(*(FrameColumn(variable, whole=True) for variable in variables)))
    finally:
        _depth.reset(before)
    head = variables[0] if len(variables) == 1 else f"({', '.join(variables)})"
    return FrameColumn(f"{head} -> {body.operand}", steps=body.steps, whole=True)


# -- what is no function of SQL


def _col(col: str) -> FrameColumn:
    """The column of a name."""
    return named_column(col)


def _lit(col: Any) -> FrameColumn:
    """A value as a literal."""
    return as_column(col)


def _expr(str: str) -> FrameColumn:
    """An expression of SQL."""
    return FrameColumn(str)


def _when(condition: FrameColumn, value: Any) -> FrameColumn:
    """A value where a condition is true; `FrameColumn.when` and `FrameColumn.otherwise` follow."""
    return case(None, condition, value)


def _distinct(name: str, *cols: Any) -> FrameColumn:
    parts = [column_or_name(col) for col in cols]
    steps = tuple(step for part in parts for step in part.steps)
    return FrameColumn(f"{name}(DISTINCT {', '.join(part.text for part in parts)})", steps=steps, whole=True)


def _ordered(way: str, col: Any) -> FrameColumn:
    return getattr(column_or_name(col), way)()


def _struct(*cols: Any) -> FrameColumn:
    """A struct of columns, whose fields have their names."""
    listed = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple | set) else cols
    columns = [column_or_name(col) for col in listed]
    steps = tuple(step for column in columns for step in column.steps)
    return FrameColumn(f"struct({', '.join(column.item for column in columns)})", steps=steps, whole=True)


def _call_function(funcName: str, *cols: Any) -> FrameColumn:
    """A call of a function by its name: one of SQL, or one that was registered."""
    return called(funcName, *(column_or_name(col) for col in cols))


def _broadcast(df: Any) -> Any:
    """The frame itself: a hint to broadcast it means nothing in one process."""
    return df


def _window(timeColumn: Any, windowDuration: str, slideDuration: str | None = None) -> FrameColumn:
    """The window of time that a moment lies in."""
    if not isinstance(windowDuration, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise WrongType(f"window: {shown(windowDuration)} is no span", hint='write F.window("at", "10 minutes")')
    spans = (windowDuration,) if slideDuration is None else (windowDuration, slideDuration)
    return called("window", column_or_name(timeColumn), *spans)


OWN: Final[dict[str, Callable[..., Any]]] = {
    "col": _col,
    "column": _col,
    "lit": _lit,
    "expr": _expr,
    "when": _when,
    "struct": _struct,
    "broadcast": _broadcast,
    "window": _window,
    "call_function": _call_function,
    "call_udf": _call_function,
    **{
        other: partial(_distinct, name)
        for other, name in {
            "count_distinct": "count",
            "countDistinct": "count",
            "sum_distinct": "sum",
            "sumDistinct": "sum",
            "listagg_distinct": "listagg",
            "string_agg_distinct": "string_agg",
        }.items()
    },
    **{
        way: partial(_ordered, way)
        for way in ("asc", "desc", "asc_nulls_first", "asc_nulls_last", "desc_nulls_first", "desc_nulls_last")
    },
}
