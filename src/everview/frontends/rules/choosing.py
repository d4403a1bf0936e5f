"""Choices: relations that keep one row for each value of their key columns.

``.decl st(v: symbol, u: symbol) choice-domain u`` is Soufflé's: there is one ``v`` for each ``u``. Soufflé keeps the
row that comes first, which depends on how it computes. Here it is, of all rows with one key, the one derived in the
fewest steps, and of several such rows the least in the order of the columns. So what is kept follows from the rows that
are read, and changes with them.

A row has 0 steps if the body of its rule reads no relation of its own recursive group, and otherwise one more than
the greatest number of steps of the rows of the group that it is derived from. A row rests only on rows of fewer steps,
which are chosen before it: no row is kept because of itself. For that, all relations of the group have a column of
their steps inside of the recursion. Round by round nothing that was chosen is taken back, as rows of more steps come
later.

Several domains, ``choice-domain u, v``, are a matching: a row is kept if it shares its value of no domain with a row
that was kept before. It is found in rounds of its own kind: each adds, of the rows that share no value with a row kept
in an earlier round, those that are the least of their value in every domain. The least of all such rows is always among
them, so in the end no row is left that would fit. Rounds of the recursive group and of the matching are the same ones,
and with one domain they keep the rows that are told above.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Final, Literal

from everview.errors import DatalogError
from everview.frontends.rules.bodies import bodies
from everview.frontends.rules.faults import fault
from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Constant,
    Functor,
    Rule,
    RuleAtom,
    RuleVariable,
    Term,
)
from everview.frontends.rules.walk import RulePart, rebuilt_rule, rewritten
from everview.plan.aggregates import aggregate_call
from everview.plan.conditions import conjunction
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Distinct, Join, Project, Recursive, Reference, Union
from everview.plan.typing import call, literal
from everview.scalars.expressions import TRUE, Expression, moved

STEPS: Final = "number of steps"  # the name of the column; no column of a text is called so


def with_steps(group: Sequence[str], rules: Sequence[Rule]) -> list[Rule]:
    """The rules of a group, each body on its own, with the steps of a row as the last column of each relation."""
    return [made for rule in rules for made in _with_steps(group, rule)]


def check_not_aggregated(rules: Iterable[Rule]) -> None:
    """Refuse aggregates in the heads of a recursive group in which a relation chooses."""
    for rule in rules:
        if any(isinstance(term, AggregateTerm) for term in rule.head.terms):
            hint = "aggregate the result of the recursion, in a rule of another relation"
            message = f"{rule.head.relation} is aggregated in a recursion with a choice-domain"
            raise fault(DatalogError, message, rule, hint)


def _with_steps(group: Sequence[str], rule: Rule) -> Iterator[Rule]:
    for body in bodies(rule.body):
        steps: list[Term] = []
        made = tuple(_counted(part, group, steps) for part in body)
        yield replace(rule, head=_wider(rule.head, _one_more(steps)), body=made)


def _counted(part: BodyLiteral, group: Sequence[str], steps: list[Term]) -> BodyLiteral:
    if not isinstance(part, RuleAtom) or part.relation not in group:
        return part
    steps.append(RuleVariable(f"?steps {len(steps)}"))
    return _wider(part, steps[-1])


def _wider(atom: RuleAtom, steps: Term) -> RuleAtom:
    return replace(atom, terms=(*atom.terms, steps))


def _one_more(steps: Sequence[Term]) -> Term:
    if not steps:
        return Constant(0)
    return Functor("+", (steps[0] if len(steps) == 1 else Functor("max", tuple(steps)), Constant(1)))


def renamed(rule: Rule, names: Mapping[str, str]) -> Rule:
    """The rule with other names for some relations."""

    def named(part: RulePart) -> RulePart:
        if not isinstance(part, RuleAtom) or part.relation not in names:
            return part
        return replace(part, relation=names[part.relation])

    head = replace(rule.head, relation=names.get(rule.head.relation, rule.head.relation))
    return rebuilt_rule(replace(rule, head=head), partial(rewritten, change=named))


# -- plans


def chosen(rows: Plan, keys: Sequence[int]) -> Plan:
    """One row for each value of the key columns: that of the fewest steps, then the least by its other columns."""
    width = len(rows.schema)
    stepped = rows.schema.names[-1] == STEPS
    others = [column for column in range(width - stepped) if column not in keys]
    order = [width - 1, *others] if stepped else others
    groups = tuple(rows.column(column) for column in keys) or (TRUE,)
    if not order:
        return Aggregate(rows, groups, (), tuple(rows.schema.names[column] for column in keys))
    named = [part for column in order for part in (literal(f"_{column}"), rows.column(column))]
    alone = len(order) == 1
    least = aggregate_call("min", (rows.column(order[0]) if alone else call("named_struct", *named),))
    names = (*(f"key {column}" for column in range(len(groups))), "least")
    plan = Aggregate(rows, groups, (least,), names)
    result = plan.column(len(groups))
    columns: dict[int, Expression] = {column: plan.column(place) for place, column in enumerate(keys)}
    columns |= {column: result if alone else call("get_field", result, literal(f"_{column}")) for column in order}
    return Project(plan, tuple(columns[column] for column in range(width)), rows.schema.names)


def matching(rows: Plan, kept: Plan, domains: Sequence[Sequence[int]]) -> Plan:
    """The rows kept by earlier rounds, and those that this round adds: they fit, and are the least in every domain."""
    fitting = reduce(lambda left, keys: _joined(left, kept, "anti", keys), domains, rows)
    every = range(len(rows.schema))
    least = (chosen(fitting, keys) for keys in domains)
    return Union((kept, reduce(lambda left, right: _joined(left, right, "semi", every), least, Distinct(fitting))))


def matched(name: str, rows: Plan, domains: Sequence[Sequence[int]]) -> Plan:
    """The rows of a relation that is not recursive and has several domains."""
    kept = Reference(f"{name} by rounds", rows.schema)
    return Recursive(((kept.name, matching(rows, kept, domains)),), kept, inflates=True)


def _joined(left: Plan, right: Plan, kind: Literal["semi", "anti"], columns: Iterable[int]) -> Plan:
    """The rows of the left for which the right has, or has not, a row with the same values of some columns."""
    width = len(left.schema)
    pairs = [(left.column(column), moved(right.column(column), lambda column: column + width)) for column in columns]
    return Join(left, right, kind, conjunction(call("equal", *pair) for pair in pairs))


def without_steps(plan: Plan) -> Plan:
    """The rows of a relation without the number of steps."""
    return Project(plan, plan.columns[:-1], plan.schema.names[:-1])
