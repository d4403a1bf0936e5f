"""Queries that are planned once: bound, optimized, lowered and compiled for their text, and then answered many times.

Plans are kept with the catalog that they were bound to, so that other definitions have other plans. A text is planned
when it comes for the second time. Parameters that are compared with columns may have other values each time; with
parameters elsewhere, or with anything that depends on more than the definitions, a query is bound each time.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Final, cast

from everview.errors import EverviewError
from everview.frontends.sql import Select, Statement
from everview.frontends.sql.parameters import ParameterValues
from everview.operators.where import COMPARISONS
from everview.operators.word_program import GivenWord
from everview.plan import node
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Filter, Project, Scan, Top, scans
from everview.plan.outers import is_subquery
from everview.runtimes.embedded.once import PlannedAnswer
from everview.scalars.coercion import bits, is_integer
from everview.scalars.expressions import Call, Cast, Column, Expression, GivenValue, Literal, Now, UserCall, walk
from everview.scalars.in_words.slots import literal_words
from everview.types import DATE, STRING, TIMESTAMP, Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from everview.database.catalog import Catalog

MOST_PLANS: Final = 500  # that a catalog keeps
LONGEST_TEXT: Final = 20_000  # characters of a text that is kept
LIGHT: Final = (Scan, Filter, Project, Aggregate, Top)
_TRAVELS: Final = re.compile(r"\bAS\s+OF\b", re.IGNORECASE)  # which epoch that is depends on when it is asked
PlanKey = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A query that needs only the values of its parameters to be answered."""

    statement: Select
    answer: PlannedAnswer

    light: bool  # whether its time grows with the rows that it reads, and no faster

    def words(self, given: ParameterValues) -> list[GivenWord]:
        """The values of the parameters, in the order of their numbers."""
        return [_word(value) for value in given.by_name.values()]


class QueryPlans:
    """The planned queries of a catalog, the least used of which are let go of; for all threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[PlanKey, PlannedQuery | None] = OrderedDict()  # None: seen once, or never planned
        self._never: set[PlanKey] = set()
        self._guard = Lock()

    def __len__(self) -> int:
        """The number of known texts."""
        return len(self._kept)

    def known(self, key: PlanKey) -> PlannedQuery | None:
        """The plan of a query if there is one already."""
        return self._kept.get(key)

    def find(
        self,
        key: PlanKey,
        catalog: Catalog,
        given: ParameterValues,
        bind: Callable[[ParameterValues], Sequence[Statement]],
    ) -> PlannedQuery | None:
        """The plan of a query; None if it is not to be used again, or is not yet. ``bind`` binds it with parameters."""
        with self._guard:
            seen = key in self._kept
            planned = self._kept.setdefault(key, None)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_PLANS:
                self._never.discard(self._kept.popitem(last=False)[0])
            if planned is not None or not seen or key in self._never:
                return planned
        planned = _planned(catalog, given, bind)
        with self._guard:
            self._kept[key] = planned
            if planned is None:
                self._never.add(key)
        return planned


def plan_key(text: str, dialect: str, schema: str, given: ParameterValues) -> PlanKey | None:
    """The key of a kept plan: the text, the schema in use, the kinds of parameters; None if it is not kept."""
    if len(text) > LONGEST_TEXT or _TRAVELS.search(text):
        return None
    kinds: list[object] = []
    for name, value in given.by_name.items():
        if value.value is None or not _is_variable(value.type):
            return None
        kinds += name, value.type
    return text, dialect, schema, *kinds


def _is_variable(type_: Type) -> bool:
    """Whether the values of a type are one word each, or one text."""
    return is_integer(type_) or type_ in (STRING, DATE, TIMESTAMP)


def _word(value: Literal) -> GivenWord:
    if value.type == STRING:
        return GivenWord(value.value, kind=STRING.kind, text=value.value.encode())
    if is_integer(value.type):
        return GivenWord(value.value, word=value.value)
    (word,) = literal_words(value)
    return GivenWord(value.value, word=word)


# -- planning


def _planned(
    catalog: Catalog, given: ParameterValues, bind: Callable[[ParameterValues], Sequence[Statement]]
) -> PlannedQuery | None:
    names = given.by_name
    variables = {name: GivenValue(number, value.type) for number, (name, value) in enumerate(names.items())}
    open_ = cast("Mapping[str, Literal]", variables)
    try:
        (statement,) = bind(replace(ParameterValues.by_names(open_), given=given.given))
    except (EverviewError, AttributeError, LookupError, TypeError, ValueError):  # where the binder asks for a value
        return None
    if not isinstance(statement, Select) or not _is_fixed(statement.plan, catalog, len(names)):
        return None
    light = all(isinstance(part, LIGHT) for part in node.walk(statement.plan)) and not any(
        map(is_subquery, _expressions(statement.plan))
    )
    return PlannedQuery(statement, PlannedAnswer(statement.plan), light)


def _is_fixed(plan: Plan, catalog: Catalog, parameters: int) -> bool:
    """Whether a plan gives the right rows as long as the definitions stay, whatever its parameters' values are."""
    expressions = list(_expressions(plan))
    if any(isinstance(one, Now | UserCall) for one in expressions):
        return False
    relations = catalog.relations
    if any(name not in relations for name in scans(plan)):
        return False
    there = [one for one in expressions if isinstance(one, GivenValue)]
    compared = sum(map(_compares, expressions))
    everywhere = len(there) == compared == repr(plan).count(f"{GivenValue.__name__}(")
    return everywhere and {one.number for one in there} == {*range(parameters)}


def _expressions(plan: Plan) -> Iterator[Expression]:
    """All expressions of a plan, and of the subqueries in them."""
    for part in node.walk(plan):
        for whole in part.expressions:
            for expression in walk(whole):
                yield expression
                if is_subquery(expression):
                    yield from _expressions(expression.plan)


def _compares(expression: Expression) -> bool:
    """Whether an expression compares a column with a parameter as values of one type, which cannot fail."""
    if not isinstance(expression, Call) or expression.function not in COMPARISONS or len(expression.arguments) != 2:
        return False
    left, right = map(_widened, expression.arguments)
    kinds = {type(left), type(right)}
    return kinds == {Column, GivenValue} and _comparable(left.type, right.type)


def _comparable(left: Type, right: Type) -> bool:
    return left == right or (is_integer(left) and is_integer(right))


def _widened(expression: Expression) -> Expression:
    """An expression without the cast of an integer to a wider one."""
    if isinstance(expression, Cast) and is_integer(expression.type) and is_integer(expression.argument.type):
        return expression.argument if bits(expression.type) >= bits(expression.argument.type) else expression
    return expression
