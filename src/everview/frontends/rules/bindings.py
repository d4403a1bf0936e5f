"""Rows that bind variables: a plan, and over it what each variable is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from everview.errors import DatalogError
from everview.frontends.rules.faults import fault
from everview.frontends.rules.matching import HIDDEN
from everview.frontends.rules.program import Rule, RuleAtom
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
    """What a body stands in: its rule, and the plan of each relation that it reads, a set."""

    rule: Rule
    relation: Callable[[RuleAtom], Plan]
    identify: Identify | None = None  # the content id of an atom's row
    around: frozenset[str] = frozenset()  # variables that are bound outside of it
    _numbers: Iterator[int] = field(default_factory=count, compare=False, repr=False)

    def fresh(self) -> str:
        """A variable that nobody wrote; its name is the same whenever the rule is compiled."""
        return f"{HIDDEN}{next(self._numbers)}"

    def inside(self, found: Bindings) -> BodyContext:
        """What stands inside of a body, and sees what that binds."""
        return replace(self, around=self.around | found.values.keys())


@dataclass(frozen=True)
class Bindings:
    """Rows, one for every way in which a body holds, and what each variable is in them."""

    plan: Plan | None = None
    values: Values = field(default_factory=dict[str, Expression])

    @property
    def rows(self) -> Plan:
        return ONE_ROW if self.plan is None else self.plan

    def where(self, conditions: Iterable[Expression]) -> Bindings:
        met = conjunction(c for c in conditions if c != TRUE)
        return self if met is None else replace(self, plan=Filter(self.rows, met))

    def having(self, values: Mapping[str, Expression]) -> Bindings:
        return replace(self, values={**self.values, **values})


def seeded(found: Bindings, names: Sequence[str], what: str, context: BodyContext) -> Bindings:
    """The different bindings of some variables, for what is inside of a negation or an aggregate and needs them."""
    if not names:
        return Bindings()
    if free_references(found.rows):
        message = f"{what} needs {', '.join(names)} of the recursion before anything in it binds them"
        hint = f"bind {names[0]} in it by an atom of another relation, or do this outside of the recursion"
        raise fault(DatalogError, message, context.rule, hint)
    plan = Distinct(Project(found.rows, tuple(found.values[n] for n in names), tuple(names)))
    return Bindings(plan, dict(zip(names, plan.columns, strict=True)))
