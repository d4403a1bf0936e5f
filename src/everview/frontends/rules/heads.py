"""Heads as plans: the rows of a head are those that its rules derive, each once.

The types of a head are those declared, or else those that its rules give: integers meet in the wider type. A head with
aggregates is grouped by its other columns, over the bindings of all its rules together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from everview.errors import DatalogError, TypeConflict
from everview.frontends.rules.aggregating import made, together
from everview.frontends.rules.bindings import Bindings, BodyContext
from everview.frontends.rules.bodies import bodies, solved
from everview.frontends.rules.faults import fault
from everview.frontends.rules.meeting import as_type, met
from everview.frontends.rules.program import AggregateTerm, Rule, RuleAtom, RuleVariable, Term, Wildcard
from everview.frontends.rules.terms import expression, unbound
from everview.plan import nodes
from everview.plan.node import Plan, unique
from everview.plan.nodes import Project, Union, Values
from everview.plan.nullary import NULLARY
from everview.plan.typing import is_integer
from everview.scalars.expressions import TRUE, Expression, Literal
from everview.types import BIGINT, Field, Schema, Type


@dataclass(frozen=True)
class RuleRows:
    """Rows of one rule: a plan, and for each column of the head the expression that it holds or aggregates."""

    rule: Rule
    rows: Plan
    columns: tuple[Expression, ...]


def column_names(head: RuleAtom) -> tuple[str, ...]:
    """Names for the columns of an undeclared head: those of the variables that stand there."""
    if not head.terms:
        return NULLARY.names
    if head.names is not None:
        return head.names
    return unique(_name(term, number) for number, term in enumerate(head.terms))


def _name(term: Term, number: int) -> str:
    match term:
        case RuleVariable(name):
            return name
        case AggregateTerm(function, (RuleVariable(name),), None):
            return f"{function}_{name}"
        case AggregateTerm(function):
            return function
        case _:
            return f"c{number + 1}"


def functions_of(rules: Sequence[Rule]) -> dict[int, str]:
    """The function of each aggregated column of a head."""
    functions: dict[int, str] = {}
    for rule in rules:
        for number, term in enumerate(rule.head.terms):
            if isinstance(term, AggregateTerm) and term.body is None:
                before = functions.setdefault(number, term.function)
                if before != term.function:
                    message = (
                        f"column {number + 1} of {rule.head.relation} is aggregated by {before} and {term.function}"
                    )
                    raise fault(DatalogError, message, rule, "use one function in all rules of a head")
    return functions


def parts_of(rule: Rule, functions: dict[int, str], context: BodyContext) -> list[RuleRows]:
    """The rows of a rule, one part for each choice of branches."""
    branches = [solved(body, context) for body in bodies(rule.body)]
    if len(branches) > 1 and any(function not in ("min", "max") for function in functions.values()):
        branches = [together(branches)]  # what several branches give counts once
    return [RuleRows(rule, bound.rows, _columns(rule, functions, bound)) for bound in branches]


def _columns(rule: Rule, functions: dict[int, str], bound: Bindings) -> tuple[Expression, ...]:
    return tuple(_column(rule, number, functions.get(number), bound) for number in range(len(rule.head.terms)))


def _column(rule: Rule, number: int, function: str | None, bound: Bindings) -> Expression:
    term = rule.head.terms[number]
    if isinstance(term, Wildcard):
        raise unbound("_", rule, " in the head")
    if function is None:
        return expression(term, bound.values, rule)
    if not isinstance(term, AggregateTerm):
        if function not in ("min", "max"):
            message = f"column {number + 1} of {rule.head.relation} is a {function} in other rules"
            raise fault(DatalogError, message, rule, f"aggregate it here, too: {function}({term})")
        return expression(term, bound.values, rule)
    if function == "count" or not term.arguments:
        return Literal(1, BIGINT)
    if len(term.arguments) != 1:
        raise fault(DatalogError, f"{function} takes one argument", rule, f"write {function}(x)")
    return expression(term.arguments[0], bound.values, rule)


# -- types


def column_types(
    head: str, declared: Schema | None, before: Schema | None, parts: Sequence[RuleRows], names: Sequence[str]
) -> Schema:
    """The schema of a head: as declared, else the types in which the rows of all rules, and ``before``, meet."""
    fields: list[Field] = []
    for number, column in enumerate(names):
        given = [(p.rule, p.columns[number]) for p in parts]
        nullable = any(e.nullable for _, e in given) or (before is not None and before.fields[number].nullable)
        if declared is not None:
            fields.append(replace(declared.fields[number], nullable=nullable))
            continue
        type_ = None if before is None else before.fields[number].type
        for rule, e in sorted(given, key=lambda pair: isinstance(pair[1], Literal)):
            type_ = _with(type_, e, rule, f"column {column} of {head}")
        assert type_ is not None, "a head has a rule"
        fields.append(Field(column, type_, nullable))
    return Schema(fields)


def _with(type_: Type | None, e: Expression, rule: Rule, what: str) -> Type:
    own = BIGINT if isinstance(e, Literal) and is_integer(e.type) else e.type
    if type_ is None:
        return own
    if isinstance(e, Literal) and as_type(e, type_) is not None:
        return type_
    common = met(type_, own)
    if common is None:
        hint = "a column has one type; to_number, to_float and to_string convert"
        raise fault(TypeConflict, f"{what} is {type_} and {own}", rule, hint)
    return common


# -- plans


def union_of(schema: Schema, parts: Sequence[RuleRows]) -> list[Plan]:
    """Plans for the rows of all parts under one schema; facts become one plan of constants."""
    facts = [p for p in parts if not p.rule.body and all(isinstance(e, Literal) for e in p.columns)]
    typed = [_as_types(p, schema) for p in facts]
    written = dict.fromkeys(row for row in typed if all(isinstance(e, Literal) for e in row))
    rest = [p for p, row in zip(facts, typed, strict=True) if row not in written]
    rest += [p for p in parts if p.rule.body or not all(isinstance(e, Literal) for e in p.columns)]
    plans: list[Plan] = []
    if written:
        plans.append(Values(tuple(tuple(e for e in row if isinstance(e, Literal)) for row in written), schema))
    return plans + [Project(p.rows, _as_types(p, schema), schema.names) for p in rest]


def given_rows(given: Plan, schema: Schema) -> Plan:
    """The rows that a head is given besides its rules, cast to its schema."""
    columns = tuple(as_type(c, f.type) or c for c, f in zip(given.columns, schema.fields, strict=True))
    return Project(given, columns, schema.names)


def _as_types(part: RuleRows, schema: Schema) -> tuple[Expression, ...]:
    columns: list[Expression] = []
    for e, f in zip(part.columns, schema.fields, strict=True):
        cast_column = as_type(e, f.type)
        if cast_column is None:
            message = f"column {f.name} of {part.rule.head.relation} is {f.type}, and the rule gives {e.type}"
            raise fault(TypeConflict, message, part.rule, "to_number, to_float and to_string convert")
        columns.append(cast_column)
    return tuple(columns)


def all_of(plans: Sequence[Plan]) -> Plan:
    """The rows of all plans."""
    return plans[0] if len(plans) == 1 else Union(tuple(plans))


# -- heads with aggregates


def contributed(declared: Schema | None, functions: Mapping[int, str], rows: Schema) -> Schema:
    """The schema of the rows that a head aggregates: keys and columns of min and max have their declared types."""
    if declared is None:
        return rows
    fields = zip(declared.fields, rows.fields, strict=True)
    kept = (number not in functions or functions[number] in ("min", "max") for number in range(len(rows)))
    return Schema(
        Field(d.name, d.type if keep else r.type, r.nullable) for keep, (d, r) in zip(kept, fields, strict=True)
    )


def grouped(rows: Plan, functions: Mapping[int, str], declared: Schema | None, rule: Rule) -> Plan:
    """Group the rows of all rules of a head by its plain columns, and aggregate the others."""
    keys = [number for number in range(len(rows.schema)) if number not in functions]
    groups = tuple(rows.column(number) for number in keys) or (TRUE,)  # one group, but of nothing there is none
    aggregates = {number: made(function, (rows.column(number),), rule) for number, function in functions.items()}
    calls = [c for aggregate in aggregates.values() for c in aggregate.calls]
    names = unique([*(str(g) for g in groups), *(f"a{i}" for i in range(len(calls)))])
    plan = nodes.Aggregate(rows, groups, tuple(calls), names)
    results = iter(plan.columns[len(groups) :])
    values: dict[int, Expression] = {number: plan.column(place) for place, number in enumerate(keys)}
    for number, aggregate in aggregates.items():
        values[number] = aggregate.finish([next(results) for _ in aggregate.calls])
    shown = declared.names if declared is not None else rows.schema.names
    columns = tuple(_declared(values[number], declared, number, rule) for number in range(len(rows.schema)))
    if columns == plan.columns and shown == plan.schema.names:
        return plan
    return Project(plan, columns, shown)


def _declared(value: Expression, declared: Schema | None, number: int, rule: Rule) -> Expression:
    if declared is None:
        return value
    f = declared.fields[number]
    cast_value = as_type(value, f.type)
    if cast_value is None:
        message = f"column {f.name} of {rule.head.relation} is {f.type}, and the rule gives {value.type}"
        raise fault(TypeConflict, message, rule, "declare it as that type")
    return cast_value
