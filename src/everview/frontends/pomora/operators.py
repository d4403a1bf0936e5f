"""Every operator of PomoRA as a plan over the plans of its inputs, all of them sets of rows with named attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everview.errors import BadAggregate, DatalogError, TypeConflict
from everview.frontends.pomora.algebra import (
    Combined,
    Connected,
    Formula,
    FormulaSelection,
    Grouping,
    Projection,
    Renaming,
    WrittenRelation,
)
from everview.frontends.pomora.formulas import AttributeColumns, comparisons, condition
from everview.frontends.rules.faults import fault
from everview.frontends.rules.meeting import alike, as_type, met
from everview.frontends.rules.program import TextPlace
from everview.frontends.rules.relations import aggregate_type
from everview.operators.aggregate.call import Call as Aggregated
from everview.operators.aggregate.registry import aggregates_of
from everview.plan.conditions import conjunction
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Distinct, Except, Filter, Join, JoinKind, Project, Union, Values
from everview.plan.typing import call, coerced, literal
from everview.scalars.expressions import USER, AggregateCall, Column, Expression, Literal
from everview.types import BIGINT, Field, Schema, Type, unknown_name

KNOWN = {name: int(name != "count") for name in aggregates_of("pomologic")}  # how many attributes each aggregate takes


def written(expression: WrittenRelation) -> Plan:
    """A plan of constant rows."""
    if not expression.rows:
        raise fault(DatalogError, "a relation without rows has no attributes", None, "leave it out", expression.place)
    names = tuple(name for name, _ in expression.rows[0])
    rows = [dict(row) for row in expression.rows]
    for row in rows:
        if set(row) != set(names):
            hint = f"the first has {', '.join(names)}"
            raise fault(DatalogError, "the rows have different attributes", None, hint, expression.place)
    columns = [_constants([row[name] for row in rows], name, expression.place) for name in names]
    schema = Schema(Field(name, column[0].type, nullable=False) for name, column in zip(names, columns, strict=True))
    return Distinct(Values(tuple(zip(*columns, strict=True)), schema))


def _constants(values: Sequence[object], name: str, place: TextPlace) -> list[Literal]:
    """The constants of one column, cast to one type; integers are BIGINT."""
    literals = [literal(value, BIGINT if type(value) is int and _is_long(value) else None) for value in values]
    type_: Type | None = literals[0].type
    for one in literals:
        type_ = None if type_ is None else met(type_, one.type)
    if type_ is None:
        raise fault(TypeConflict, f"attribute {name} has values of different types", None, "write one type", place)
    made = [as_type(one, type_) for one in literals]
    return [one for one in made if isinstance(one, Literal)]


def _is_long(value: int) -> bool:
    return -(1 << 63) <= value < 1 << 63


def projection(expression: Projection, given: Plan) -> Plan:
    """Some attributes, every combination of values once."""
    if not expression.attributes:
        raise fault(DatalogError, "a projection to no attributes", None, "name one of them at least", expression.place)
    _check_different(expression.attributes, expression.place)
    columns = AttributeColumns.of(given, expression.place)
    kept = tuple(columns[name] for name in expression.attributes)
    return Distinct(Project(bag(given), kept, expression.attributes))


def renaming(expression: Renaming, given: Plan) -> Plan:
    """The same rows, some attributes by other names."""
    columns = AttributeColumns.of(given, expression.place)
    new = dict(expression.pairs)
    for old in new:
        columns[old]  # refuses what is not there
    names = tuple(new.get(name, name) for name in given.schema.names)
    _check_different(names, expression.place)
    _check_different([old for old, _ in expression.pairs], expression.place)
    return Project(given, given.columns, names)


def selection(expression: FormulaSelection, given: Plan) -> Plan:
    """The rows for which a formula holds."""
    return Filter(given, condition(expression.formula, AttributeColumns.of(given, expression.place)))


def united(plans: Sequence[Plan], place: TextPlace) -> Plan:
    """The rows of all, each once; they have the same attributes, in any order."""
    if len(plans) == 1:
        return plans[0]
    names = plans[0].schema.names
    for plan in plans[1:]:
        _check_same(plans[0], plan, place)
    types = [_met((plan.schema[name].type for plan in plans), name, place) for name in names]
    return Distinct(Union(tuple(_as(bag(plan), names, types) for plan in plans)))


def bag(plan: Plan) -> Plan:
    """The plan without its `Distinct`, for a place where duplicates are removed later."""
    return bag(plan.input) if isinstance(plan, Distinct) else plan


def _met(types: Iterable[Type], name: str, place: TextPlace) -> Type:
    first, *others = types
    for other in others:
        common = met(first, other)
        if common is None:
            raise fault(TypeConflict, f"attribute {name} is of {first} and of {other}", None, "cast one of them", place)
        first = common
    return first


def _as(plan: Plan, names: Sequence[str], types: Sequence[Type]) -> Plan:
    """The plan with its attributes in the given order and types."""
    columns = AttributeColumns.of(plan)
    wanted = tuple(coerced(columns[name], type_) for name, type_ in zip(names, types, strict=True))
    return plan if wanted == plan.columns else Project(plan, wanted, tuple(names))


def combined(expression: Combined, left: Plan, right: Plan) -> Plan:
    """The plan of an operator of two relations."""
    match expression.operator:
        case "difference":
            return _difference(left, right, expression.place)
        case "cartesian_product":
            _check_disjoint(left, right, expression)
            return Join(left, right, "inner")
        case "theta_join" | "equijoin":
            return _theta(expression, left, right)
        case "natural_join":
            return _natural(left, right, expression.place)
        case "semijoin" | "antijoin":
            kind: JoinKind = "semi" if expression.operator == "semijoin" else "anti"
            return Join(left, right, kind, _common(left, right, expression.place))


def _difference(left: Plan, right: Plan, place: TextPlace) -> Plan:
    _check_same(left, right, place)
    names = left.schema.names
    types = [_met((plan.schema[name].type for plan in (left, right)), name, place) for name in names]
    return Except(_as(left, names, types), _as(right, names, types))


def _theta(expression: Combined, left: Plan, right: Plan) -> Plan:
    assert expression.formula is not None, "a join by a formula has one"
    _check_disjoint(left, right, expression)
    if expression.operator == "equijoin":
        _check_equalities(expression)
    both = Join(left, right, "inner")
    columns = AttributeColumns(_of_both(both), expression.place)
    return Join(left, right, "inner", condition(expression.formula, columns))


def _of_both(join: Join) -> dict[str, Column]:
    fields = enumerate(join.both.fields)
    return {field.name: Column(place, field.name, field.type, field.nullable) for place, field in fields}


def _natural(left: Plan, right: Plan, place: TextPlace) -> Plan:
    """Pairs that agree on their common attributes, which the result has once."""
    joined = Join(left, right, "inner", _common(left, right, place))
    width = len(left.schema)
    kept = [*range(width), *(width + field for field, name in enumerate(right.schema.names) if name not in left.schema)]
    names = (*left.schema.names, *right.schema.names)
    return Project(joined, tuple(joined.column(field) for field in kept), tuple(names[field] for field in kept))


def _common(left: Plan, right: Plan, place: TextPlace) -> Expression | None:
    """The condition that all common attributes are equal; None if there are none."""
    width, equalities = len(left.schema), list[Expression]()
    for field_place, field in enumerate(right.schema.fields):
        if field.name in left.schema:
            own = left.column(left.schema.index(field.name))
            pair = alike(own, Column(width + field_place, field.name, field.type, field.nullable))
            if pair is None:
                problem = f"attribute {field.name} is of {own.type} on one side and of {field.type} on the other"
                raise fault(TypeConflict, problem, None, "rename one of them", place)
            equalities.append(call("equal", *pair))
    return conjunction(equalities)


def grouping(expression: Grouping, given: Plan) -> Plan:
    """One row a group: the grouping attributes and the aggregate. A group that has no rows is not there."""
    _check_different((*expression.by, expression.name), expression.place)
    columns = AttributeColumns.of(given, expression.place)
    arguments = tuple(columns[name] for name in expression.arguments)
    made = _aggregate(expression, arguments, given.schema)
    groups = tuple(columns[name] for name in expression.by)
    aggregate = Aggregate(given, groups, (made,), (*expression.by, expression.name))
    return aggregate if groups else _if_any(aggregate, given)


def _if_any(aggregate: Aggregate, given: Plan) -> Plan:
    """The aggregate of all rows, without a row if there are none."""
    (name,) = aggregate.names
    count = AggregateCall("count", (), False, None, (), BIGINT, False)
    both = Aggregate(given, (), (*aggregate.calls, count), (name, "rows in all"))
    return Project(Filter(both, call("greater", both.column(1), literal(0))), (both.column(0),), (name,))


def _aggregate(expression: Grouping, arguments: tuple[Column, ...], schema: Schema) -> AggregateCall:
    name, type_ = expression.function, aggregate_type(expression.function)
    if name not in KNOWN:
        if type_ is None:
            raise unknown_name("aggregate", name, KNOWN)
        return AggregateCall(USER + name.lower(), arguments, False, None, (), type_, True)
    if len(arguments) != KNOWN[name]:
        problem = f"{name} takes {KNOWN[name]} attributes, and was given {len(arguments)}"
        raise fault(BadAggregate, problem, None, "write count, or sum(attribute)", expression.place)
    fields = tuple(column.index for column in arguments)
    result = Aggregated(name, fields).result(schema, expression.name)
    return AggregateCall(name, arguments, False, None, (), result.type, result.nullable)


# -- checks


def _check_different(names: Sequence[str], place: TextPlace) -> None:
    for name in names:
        if list(names).count(name) > 1:
            raise fault(DatalogError, f"attribute {name} would be there twice", None, "give it another name", place)


def _check_same(left: Plan, right: Plan, place: TextPlace) -> None:
    if set(left.schema.names) != set(right.schema.names):
        shown = [", ".join(plan.schema.names) for plan in (left, right)]
        problem = f"relations with different attributes: ({shown[0]}) and ({shown[1]})"
        raise fault(DatalogError, problem, None, "project or rename, so that both have the same", place)


def _check_disjoint(left: Plan, right: Plan, expression: Combined) -> None:
    for name in left.schema.names:
        if name in right.schema:
            problem = f"both sides of a {expression.operator} have an attribute {name}"
            raise fault(DatalogError, problem, None, "rename it on one side, or use natural_join", expression.place)


def _denies(formula: Formula) -> bool:
    return isinstance(formula, Connected) and (formula.connective == "not" or any(map(_denies, formula.parts)))


def _check_equalities(expression: Combined) -> None:
    assert expression.formula is not None
    for compared in comparisons(expression.formula):
        if compared.operator != "=" or _denies(expression.formula):
            problem = f"an equijoin is by equality, and not by {compared}"
            raise fault(DatalogError, problem, None, "use theta_join", expression.place)
