"""Inference of types: columns of relations without rows have the types of what they are joined and compared with.

A variable has one type wherever it stands in a rule, and a column in all rules. So in ``[?a :to ?b] [?b :to ?c]`` the
values of ``:to`` are entities, before there is any.

>>> from everview.frontends.rules.program import RuleAtom, Rule
>>> from everview.types import BIGINT
>>> a, b, c = map(RuleVariable, "abc")
>>> ring = Rule(RuleAtom("?", (a, c)), (RuleAtom(":to", (a, b)), RuleAtom(":to", (b, c))))
>>> inferred(RuleProgram((ring,)), {(":to", 0): BIGINT})[(":to", 1)]
BIGINT
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterable, Mapping
from typing import Any

from everview.errors import EdnError
from everview.frontends.rules.program import Constant, Constraint, RuleAtom, RuleProgram, RuleVariable, Term
from everview.frontends.rules.walk import literals
from everview.types import BIGINT, BINARY, BOOLEAN, DATE, DAY_TIME, DOUBLE, STRING, TIME, TIMESTAMP, Decimal, Type

Column = tuple[str, int]
Node = tuple[str, int] | tuple[int, str]  # a column of a relation, or a variable of a rule


def inferred(program: RuleProgram, known: Mapping[Column, Type]) -> dict[Column, Type]:
    """The types of all columns for which the program, or ``known``, tells one."""
    classes = _Classes()
    for column, type_ in known.items():
        classes.say(column, type_)
    for number, rule in enumerate(program.rules):
        for literal in (rule.head, *literals(rule.body)):
            if isinstance(literal, RuleAtom):
                for place, term in enumerate(literal.terms):
                    classes.meet((literal.relation, place), term, number)
            elif isinstance(literal, Constraint):
                classes.meet_terms(literal.left, literal.right, number)
    return {
        node: type_ for node in classes.nodes() if (type_ := classes.type_of(node)) is not None and _is_column(node)
    }


def _is_column(node: Node) -> bool:
    return isinstance(node[0], str)


class _Classes:
    """Classes of columns and variables that must have one type: a union-find."""

    def __init__(self) -> None:
        self._above: dict[Any, Any] = {}
        self._types: dict[Any, Type] = {}

    def nodes(self) -> Iterable[Any]:
        return list(self._above)

    def type_of(self, node: Node) -> Type | None:
        return self._types.get(self._top(node))

    def say(self, node: Node, type_: Type) -> None:
        self._types.setdefault(self._top(node), type_)

    def meet(self, node: Node, term: Term, rule: int) -> None:
        match term:
            case RuleVariable(name):
                self._join(node, (rule, name))
            case Constant(value, of):
                self.say(node, of or type_of_value(value))
            case _:
                self._top(node)

    def meet_terms(self, left: Term, right: Term, rule: int) -> None:
        if isinstance(left, RuleVariable):
            self.meet((rule, left.name), right, rule)
        elif isinstance(right, RuleVariable):
            self.meet((rule, right.name), left, rule)

    def _join(self, a: Node, b: Node) -> None:
        top, other = self._top(a), self._top(b)
        if top == other:
            return
        self._above[other] = top
        if other in self._types:
            self._types.setdefault(top, self._types[other])

    def _top(self, node: Any) -> Any:
        above = self._above.setdefault(node, node)
        while above != node:
            node, above = above, self._above[above]
        return node


def type_of_value(value: Any) -> Type:
    """The type of an attribute whose first value this is: integers have 64 bits, decimals 38 digits."""
    match value:
        case bool():
            return BOOLEAN
        case int():
            return BIGINT
        case float():
            return DOUBLE
        case decimal.Decimal():
            return Decimal(38, 10)
        case str():
            return STRING
        case bytes():
            return BINARY
        case dt.datetime():
            return TIMESTAMP
        case dt.date():
            return DATE
        case dt.time():
            return TIME
        case dt.timedelta():
            return DAY_TIME
        case _:
            raise EdnError(
                f"{value!r} is no value of a fact", hint="values are numbers, text, truth values and moments"
            )
