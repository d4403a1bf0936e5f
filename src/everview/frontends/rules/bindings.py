"""Rows that bind variables: a plan, and for each variable the expression over its rows that gives the value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from everview.errors import DatalogError
from everview.frontends.rules.faults import fault
from everview.frontends.rules.matching import HIDDEN
from everview.frontends.rules.program import AggregateTerm, Negation, Rule, RuleAtom
from everview.frontends.rules.terms import Values
from everview.plan import nodes
from everview.plan.conditions import conjunction
from everview.plan.node import Plan
from everview.plan.nodes import Distinct, Filter, Project
from everview.plan.references import free_references
from everview.scalars.expressions import TRUE, Expression
from everview.types import BOOLEAN, Field, Schema

ONE_ROW = nodes.Values(((TRUE,),), Schema([Field("one row", BOOLEAN, nullable=False)]))

Identify = Callable[[str, Sequence[str], Sequence[Expression]], Expression]  # of a relation and its columns


@dataclass(frozen=True)
class BodyContext:
    """The surroundings of a body: its rule, and a plan for each relation that the body reads, without duplicates."""

    rule: Rule
    relation: Callable[[RuleAtom], Plan]
    identify: Identify | None = None  # the content id of an atom's row
    around: frozenset[str] = frozenset()  # variables that are bound outside of it
    _numbers: Iterator[int] = field(default_factory=count, compare=False, repr=False)

    def fresh(self) -> str:
        """A new variable for the compiler; its name is the same whenever the rule is compiled."""
        return f"{HIDDEN}{next(self._numbers)}"

    def inside(self, bindings: Bindings) -> BodyContext:
        """The context of a negation or an aggregate in this body, which sees the variables bound so far."""
        return replace(self, around=self.around | bindings.values.keys())


@dataclass(frozen=True)
class Bindings:
    """Rows, one for every way in which a body holds, with an expression for each variable."""

    plan: Plan | None = None
    values: Values = field(default_factory=dict[str, Expression])

    @property
    def rows(self) -> Plan:
        """The plan; of a body that has joined nothing yet, one row without variables."""
        return ONE_ROW if self.plan is None else self.plan

    def where(self, conditions: Iterable[Expression]) -> Bindings:
        """The rows for which all conditions hold."""
        met = conjunction(c for c in conditions if c != TRUE)
        return self if met is None else replace(self, plan=Filter(self.rows, met))

    def having(self, values: Mapping[str, Expression]) -> Bindings:
        """The same rows with more variables."""
        return replace(self, values={**self.values, **values})


def seeded(bindings: Bindings, names: Sequence[str], part: AggregateTerm | Negation, context: BodyContext) -> Bindings:
    """Distinct values of some variables: the start for solving a negation or an aggregate."""
    if not names:
        return Bindings()
    if free_references(bindings.rows):
        raise _not_seeded(names, part, context.rule)
    plan = Distinct(Project(bindings.rows, tuple(bindings.values[n] for n in names), tuple(names)))
    return Bindings(plan, dict(zip(names, plan.columns, strict=True)))


def _not_seeded(names: Sequence[str], part: AggregateTerm | Negation, rule: Rule) -> DatalogError:
    """The refusal of a part whose start would be values that a recursion still finds."""
    given = ", ".join(names)
    result, body = (f"{given}, n", f"n = {part}") if isinstance(part, AggregateTerm) else (given, f"{part}")
    message = f"{part} needs {given}, which only other parts of this recursive rule bind"
    hint = (
        f"give it a rule of its own, as in q({result}) :- r({given}), {body}. with a relation r that is not recursive "
        f"and has every {given} there may be; then read q({result}) here"
    )
    return fault(DatalogError, message, rule, hint)
