"""The functions and predicates of queries, by the names that Clojure has for them, as terms of Datalog.

``/`` of integers is a DOUBLE, as there are no ratios; ``count`` is of text. What is not in the tables below is looked
up among the functions of SQL (``year``, ``regexp-replace``) and among those that are registered.

>>> print(function("mod", (RuleVariable("x"), Constant(3)), NOWHERE))
((x % 3) + 3) % 3
>>> [str(literal) for literal in predicate("<", (Constant(1), RuleVariable("x"), Constant(9)), NOWHERE)]
['1 < x', 'x < 9']
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any, Final

from everview.errors import EdnError
from everview.frontends.edn.faults import refuse
from everview.frontends.rules.program import (
    NOWHERE,
    BodyLiteral,
    Comparison,
    Constant,
    Constraint,
    Functor,
    Holds,
    RuleVariable,
    Term,
    TextPlace,
)
from everview.frontends.rules.relations import function_type
from everview.frontends.rules.terms import COMPARISONS
from everview.plan.typing import is_function
from everview.types import STRING, unknown_name

__all__ = ["NOWHERE", "RuleVariable", "function", "predicate"]

Make = Callable[..., Term]
MANY: Final = 1 << 30

_SPACES: Final = ("clojure.core/", "clojure.string/", "string/", "str/")
_COMPARISONS: Final[dict[str, Comparison]] = {
    "=": "=", "==": "=", "!=": "!=", "not=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip


def function(name: str, arguments: tuple[Term, ...], place: TextPlace) -> Term:
    """The term of a function's call; raises `EdnError` for an unknown function."""
    plain = _plain(name)
    if plain in _COMPARISONS:
        tests = [_sql(COMPARISONS[test.operator])(test.left, test.right) for test in _chain(plain, arguments, place)]
        return reduce(_sql("and"), tests)
    known = _FUNCTIONS.get(plain)
    if known is not None:
        least, most, make = known
        _check_count(name, least, most, arguments, place)
        return make(*arguments)
    if function_type(name) is not None:
        return Functor(name, arguments)
    if is_function(plain.replace("-", "_")):
        return Functor(f"sql.{plain.replace('-', '_')}", arguments)
    raise _unknown(name, place)


def predicate(name: str, arguments: tuple[Term, ...], place: TextPlace) -> tuple[BodyLiteral, ...]:
    """The literals of a call that must be true."""
    plain = _plain(name)
    if plain in _COMPARISONS:
        return tuple(_chain(plain, arguments, place))
    return (Holds(function(name, arguments, place)),)


def may_be_null(name: str) -> bool:
    """Can a function give NULL for values other than NULL? Those of the table below cannot."""
    plain = _plain(name)
    return plain not in _FUNCTIONS and plain not in _COMPARISONS


def _plain(name: str) -> str:
    return next((name[len(space) :] for space in _SPACES if name.startswith(space)), name)


def _chain(name: str, arguments: tuple[Term, ...], place: TextPlace) -> list[Constraint]:
    if len(arguments) < 2 or (_COMPARISONS[name] == "!=" and len(arguments) > 2):
        takes = "two" if _COMPARISONS[name] == "!=" else "two or more"
        raise refuse(place, f"{name} compares {takes} values, not {len(arguments)}", f"write ({name} ?x ?y)")
    return [Constraint(_COMPARISONS[name], a, b) for a, b in pairwise(arguments)]


def _check_count(name: str, least: int, most: int, arguments: tuple[Term, ...], place: TextPlace) -> None:
    if least <= len(arguments) <= most:
        return
    takes = f"{least} or more" if most == MANY else str(least) if least == most else f"{least} to {most}"
    raise refuse(place, f"{name} takes {takes} arguments, not {len(arguments)}", f"write {name} with {takes}")


def _unknown(name: str, place: TextPlace) -> EdnError:
    known = unknown_name("function", name, sorted([*_FUNCTIONS, *_COMPARISONS]))
    hint = known.hint or ""
    return refuse(place, f"there is no function {name}", hint if len(hint) < 200 else hint.split(" available:")[0])


# -- what they are


def _sql(name: str) -> Make:
    return lambda *arguments: Functor(f"sql.{name}", arguments)


def _folded(name: str) -> Make:
    return lambda *arguments: reduce(lambda a, b: Functor(name, (a, b)), arguments)


def _divided(*arguments: Term) -> Term:
    return reduce(lambda a, b: Functor("sql.divide", (a, b)), arguments)


def _less(*arguments: Term) -> Term:
    return Functor("-", arguments) if len(arguments) == 1 else _folded("-")(*arguments)


def _floor_mod(a: Term, b: Term) -> Term:
    """The remainder with the sign of the divisor."""
    return Functor("%", (Functor("+", (Functor("%", (a, b)), b)), b))


def _text(*arguments: Term) -> Term:
    return Functor("sql.concat", tuple(Functor("to_string", (argument,)) for argument in arguments))


def _part(text: Term, start: Term, end: Term | None = None) -> Term:
    return Functor("substr", (text, start, Constant(1 << 30) if end is None else _difference(end, start)))


def _difference(a: Term, b: Term) -> Term:
    if isinstance(a, Constant) and isinstance(b, Constant):
        return Constant(a.value - b.value)
    return Functor("-", (a, b))


def _length(text: Term) -> Term:
    return Functor("to_number", (Functor("sql.length", (text,)),))


def _remainder(*, is_zero: bool) -> Make:
    test = _sql("equal" if is_zero else "not_equal")
    return lambda n: test(Functor("%", (n, Constant(2))), Constant(0))


def _compared(operator: str, value: Any) -> Make:
    return lambda n: Functor(f"sql.{operator}", (n, Constant(value)))


def _blank(text: Term) -> Term:
    return _sql("equal")(Functor("sql.trim", (text,)), Constant("", STRING))


_FUNCTIONS: Final[dict[str, tuple[int, int, Make]]] = {
    # numbers
    "+": (1, MANY, _folded("+")),
    "-": (1, MANY, _less),
    "*": (1, MANY, _folded("*")),
    "/": (2, MANY, _divided),
    "quot": (2, 2, lambda a, b: Functor("/", (a, b))),
    "rem": (2, 2, lambda a, b: Functor("%", (a, b))),
    "mod": (2, 2, _floor_mod),
    "inc": (1, 1, lambda a: Functor("+", (a, Constant(1)))),
    "dec": (1, 1, lambda a: Functor("-", (a, Constant(1)))),
    "abs": (1, 1, _sql("abs")),
    "min": (1, MANY, _folded("min")),
    "max": (1, MANY, _folded("max")),
    "even?": (1, 1, _remainder(is_zero=True)),
    "odd?": (1, 1, _remainder(is_zero=False)),
    "zero?": (1, 1, _compared("equal", 0)),
    "pos?": (1, 1, _compared("greater", 0)),
    "neg?": (1, 1, _compared("less", 0)),
    **dict.fromkeys(("long", "int", "parse-long"), (1, 1, lambda a: Functor("to_number", (a,)))),
    **dict.fromkeys(("double", "float", "parse-double"), (1, 1, lambda a: Functor("to_float", (a,)))),
    # truth
    "not": (1, 1, _sql("not")),
    "and": (1, MANY, lambda *a: reduce(_sql("and"), a)),
    "or": (1, MANY, lambda *a: reduce(_sql("or"), a)),
    "true?": (1, 1, _compared("equal", True)),
    "false?": (1, 1, _compared("equal", False)),
    # text
    "str": (1, MANY, _text),
    "count": (1, 1, _length),
    "subs": (2, 3, _part),
    "upper-case": (1, 1, _sql("upper")),
    "lower-case": (1, 1, _sql("lower")),
    "trim": (1, 1, _sql("trim")),
    "triml": (1, 1, _sql("ltrim")),
    "trimr": (1, 1, _sql("rtrim")),
    "reverse": (1, 1, _sql("reverse")),
    "replace": (3, 3, _sql("replace")),
    "blank?": (1, 1, _blank),
    "includes?": (2, 2, _sql("contains")),
    "starts-with?": (2, 2, _sql("starts_with")),
    "ends-with?": (2, 2, _sql("ends_with")),
    "re-pattern": (1, 1, lambda pattern: pattern),
    "re-find": (2, 2, lambda pattern, text: Functor("sql.rlike", (text, pattern))),
    "re-matches": (2, 2, lambda pattern, text: Functor("match", (pattern, text))),
    # values
    "identity": (1, 1, lambda a: a),
    "array": (1, MANY, _sql("array")),
}
