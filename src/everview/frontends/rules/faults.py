"""Errors of rules: a message, the rule that it is about, and the place of the rule in its text.

>>> from everview.errors import UnboundVariable
>>> from everview.frontends.rules.program import RuleAtom, TextPlace, Rule, RuleVariable
>>> rule = Rule(RuleAtom("p", (RuleVariable("x"),)), (RuleAtom("q", (RuleVariable("y"),)),), place=TextPlace(3, 1))
>>> print(fault(UnboundVariable, "variable x is not bound", rule, "bind it in the body"))
variable x is not bound
  line 3, column 1:
    p(x) :- q(y).
  hint: bind it in the body
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeVar

from everview.errors import DatalogError, EverviewError, TypeConflict, TypeMismatch
from everview.frontends.rules.program import NOWHERE, Rule, TextPlace

__all__ = ["fault", "misplaced", "placed", "require_text", "within_depth"]

SHOWN = 160  # characters of a rule at most

E = TypeVar("E", bound=DatalogError)


@contextmanager
def within_depth(kind: type[EverviewError]) -> Generator[None]:
    """Turn a `RecursionError` into an error that says that the text is nested too deeply."""
    try:
        yield
    except RecursionError:
        raise kind("the text is nested too deeply", hint="give inner parts relations of their own") from None


def fault(kind: type[E], message: str, rule: Rule | None, hint: str, place: TextPlace = NOWHERE) -> E:
    """Make an error about a rule; ``place`` if it is known more exactly than the place of the rule."""
    if rule is None:
        return kind(message + placed("", place), hint=hint)
    return kind(message + placed(str(rule), place if place != NOWHERE else rule.place), hint=hint)


def placed(text: str, place: TextPlace) -> str:
    """The lines after a message: the place, and the text there."""
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    where = f"line {place.line}, column {place.column}" if place != NOWHERE else "in" if shown else ""
    where += f" of {place.file}" if place.file else ""
    return "" if not where else f"\n  {where}:\n    {shown}" if shown else f"\n  {where}"


def misplaced(error: EverviewError, rule: Rule) -> DatalogError:
    """Turn an error about an expression into one about the rule in which it stands."""
    if isinstance(error, DatalogError):
        return error
    kind = TypeConflict if isinstance(error, TypeMismatch) else DatalogError
    return fault(kind, error.message, rule, error.hint or "look at the types of its columns")


def require_text(text: object) -> str:
    """What is given as a program, which is to be a text."""
    if not isinstance(text, str):
        raise DatalogError(f"{text!r} is no text of a program", hint="give a str")
    return text
