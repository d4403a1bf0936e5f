"""From a program of PomoRA to a plan for every relation that it assigns to.

A statement reads relations as they are at its point of the program, so a name stands for one plan after the other:
each assignment adds to the last. A loop is a fixed point: the least sets that hold what their relations held before
and all that its assignments add. That is what repeating the block gives as long as more rows never take rows away;
a loop in which they would, because it subtracts or aggregates what it assigns to, is refused.

>>> from everview.frontends.pomora.parse import parse
>>> from everview.plan.catalog import Tables
>>> from everview.types import Schema
>>> known = Tables({"edge": Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL")}, sets=["edge"])
>>> print(compile_program(parse("start := projection([:a], edge);"), known)["start"])
Distinct
  Project a
    Scan edge
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from everview.errors import DatalogError, NotStratified, UnknownRelation
from everview.frontends.pomora.algebra import (
    Assignment,
    ChangeLoop,
    Combined,
    Expression,
    FormulaSelection,
    Grouping,
    NamedRelation,
    Projection,
    Renaming,
    Statement,
    United,
    WrittenRelation,
    assignments,
    expressions_in,
    read_by,
)
from everview.frontends.pomora.operators import (
    bag,
    combined,
    grouping,
    projection,
    renaming,
    selection,
    united,
    written,
)
from everview.frontends.rules.faults import fault
from everview.plan.catalog import Readable
from everview.plan.node import Plan
from everview.plan.nodes import Distinct, Recursive, Reference, Scan
from everview.plan.references import free_references
from everview.types import Schema


def compile_program(block: tuple[Statement, ...], relations: Readable) -> dict[str, Plan]:
    """The plans of all relations assigned by a program, as of its end; each after the plans it scans."""
    last = {a.target: number for number, statement in enumerate(block) for a in assignments((statement,))}
    for assignment in assignments(block):
        if assignment.target in relations.names():
            problem = f"{assignment.target} is a relation of the database, and cannot be assigned to"
            raise fault(DatalogError, problem, None, "give the result another name", assignment.place)
    point = Point(relations, {}, {})
    done: dict[str, Plan] = {}
    for number, statement in enumerate(block):
        changed = point.after(statement)
        # What no later statement adds to is read as a relation of its own, so that its plan is there once.
        ready = {name: plan for name, plan in changed.items() if last[name] == number}
        done |= ready
        scanned = {name: Scan(name, plan.schema) for name, plan in ready.items()}
        point = Point(relations, {**point.held, **changed, **scanned}, {})
    return done


class _Unknown(Exception):
    """A relation of a loop whose columns are not known yet."""


@dataclass(frozen=True)
class Point:
    """A point of a program: what each relation that was assigned to holds there.

    Inside a loop, ``fed`` are the columns of the relations that it assigns to, as far as they are known.
    """

    relations: Readable
    held: Mapping[str, Plan]
    fed: Mapping[str, Schema | None]

    def after(self, statement: Statement) -> dict[str, Plan]:
        """The relations that a statement assigns to, as they are after it."""
        match statement:
            case Assignment():
                return {statement.target: self._with_more(statement.target, [statement])}
            case ChangeLoop(block):
                return self._fixed_point(tuple(assignments(block)))

    def _with_more(self, target: str, given: Iterable[Assignment]) -> Plan:
        """The rows of a relation, and those that assignments add."""
        before = [self.held[target]] if target in self.held else []
        added = list(given)
        return united([*before, *(self.plan(a.expression) for a in added)], added[0].place)

    # -- loops

    def _fixed_point(self, block: tuple[Assignment, ...]) -> dict[str, Plan]:
        targets = tuple(dict.fromkeys(a.target for a in block))
        _check_adding(block, frozenset(targets))
        bindings = self._bindings(block, targets)
        return {name: _over(name, bindings) for name in targets}

    def _bindings(self, block: tuple[Assignment, ...], targets: tuple[str, ...]) -> dict[str, Plan]:
        """The plans of a loop's relations; their columns depend on each other, and are found by rounds."""
        fed: dict[str, Schema | None] = {
            name: self.held[name].schema if name in self.held else None for name in targets
        }
        while True:
            inside = Point(self.relations, self.held, fed)
            bound = {name: inside._fed(name, block) for name in targets}
            schemas = {name: None if plan is None else plan.schema for name, plan in bound.items()}
            if schemas == fed:
                break
            fed = schemas
        for name, plan in bound.items():
            if plan is None:
                place = next(a.place for a in block if a.target == name)
                hint = "assign something to it before the loop, or in it without reading it"
                raise fault(DatalogError, f"{name} is made of itself alone, and so of nothing", None, hint, place)
        return {name: bag(plan) for name, plan in bound.items() if plan is not None}

    def _fed(self, target: str, block: tuple[Assignment, ...]) -> Plan | None:
        """The plan of a relation of a loop by those assignments whose columns are known; None if there are none."""
        parts: list[Plan] = [self.held[target]] if target in self.held else []
        own = [a for a in block if a.target == target]
        for assignment in own:
            try:
                parts.append(self.plan(assignment.expression))
            except _Unknown:
                continue
        return united(parts, own[0].place) if parts else None

    # -- expressions

    def plan(self, expression: Expression) -> Plan:
        """The plan of an expression, without duplicates."""
        match expression:
            case NamedRelation():
                return self._named(expression)
            case WrittenRelation():
                return written(expression)
            case Projection():
                return projection(expression, self.plan(expression.input))
            case Renaming():
                return renaming(expression, self.plan(expression.input))
            case FormulaSelection():
                return selection(expression, self.plan(expression.input))
            case United(parts):
                return united(self._all_known(parts), expression.place)
            case Combined():
                return combined(expression, self.plan(expression.left), self.plan(expression.right))
            case Grouping():
                return grouping(expression, self.plan(expression.input))

    def _all_known(self, parts: tuple[Expression, ...]) -> list[Plan]:
        """The plans of those parts of a union whose columns are known by now."""
        plans: list[Plan] = []
        for part in parts:
            try:
                plans.append(self.plan(part))
            except _Unknown:
                continue
        if not plans:
            raise _Unknown
        return plans

    def _named(self, named: NamedRelation) -> Plan:
        name = named.name
        if name in self.fed:
            schema = self.fed[name]
            if schema is None:
                raise _Unknown
            return Reference(name, schema)
        if name in self.held:
            return self.held[name]
        if name not in self.relations.names():
            known = ", ".join(sorted([*self.relations.names(), *self.held])) or "none"
            raise fault(UnknownRelation, f"there is no relation {name} here", None, f"there are: {known}", named.place)
        plan = self.relations.scan(name)
        return plan if self.relations.is_set(name) else Distinct(plan)


def _over(name: str, bindings: Mapping[str, Plan]) -> Plan:
    """The plan of one relation of a loop, with no other relations of the loop than the needed ones."""
    needed, waiting = dict[str, None](), [name]
    while waiting:
        here = waiting.pop()
        if here not in needed:
            needed[here] = None
            waiting.extend(sorted(free_references(bindings[here])))
    if not free_references(bindings[name]):
        return Distinct(bindings[name])
    chosen = tuple((other, plan) for other, plan in bindings.items() if other in needed)
    return Recursive(chosen, Reference(name, bindings[name].schema))


# -- loops that only add


def _check_adding(block: Iterable[Assignment], targets: frozenset[str]) -> None:
    """Refuse a loop in which more rows might take rows away."""
    for assignment in block:
        for operator, name in _taken_away(assignment.expression, targets):
            raise fault(
                NotStratified,
                f"{assignment.target} is assigned {operator} of {name}, to which the same loop assigns",
                None,
                f"what it gives would depend on the order of the rounds: do it after the loop, when {name} is complete",
                assignment.place,
            )


def _taken_away(expression: Expression, targets: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Pairs of an operator and one of the ``targets``, where the operator may lose rows as the target grows."""
    for part in expressions_in(expression):
        match part:
            case Combined("difference", _, given):
                operator = "a difference"
            case Combined("antijoin", _, given):
                operator = "an antijoin"
            case Grouping(_, _, function, _, given):
                operator = f"a group_by ({function})"
            case _:
                continue
        yield from ((operator, name) for name in read_by(given) if name in targets)
