"""From a query to one plan: translated to rules, compiled as all rules are, then aggregated as :find says.

Without aggregates the plan has a row for every different finding; variables of :with tell more of them apart. With them
it has a row a group, and none where nothing was found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from everview.errors import EdnError, EverviewError
from everview.frontends.edn.arguments import WrittenRows, given
from everview.frontends.edn.attributes import ENTITY, Attributes, EdnAttribute
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import AnyForm
from everview.frontends.edn.infer import Column, inferred
from everview.frontends.edn.patterns import Anything, Reads, SourceColumns
from everview.frontends.edn.pull_patterns import PullPattern, endless
from everview.frontends.edn.pulling import pulled
from everview.frontends.edn.query import Aggregated, EdnQuery, Found, PulledEntity
from everview.frontends.edn.translate import GOAL, Translated, translate
from everview.frontends.rules.compile import whole
from everview.frontends.rules.program import RuleVariable
from everview.operators.aggregate.registry import aggregates_of
from everview.plan.aggregates import aggregate_call
from everview.plan.catalog import Tables
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Filter, Project, Union, Values
from everview.plan.typing import call, is_number, literal
from everview.scalars.expressions import AggregateCall, Cast, Expression, Literal
from everview.types import ANY, BIGINT, INTEGER, STRING, Field, Schema, Type

_AGGREGATES: Final = aggregates_of("edn")


@dataclass(frozen=True)
class CompiledQuery:
    """The plan of a query; ``open`` has the attributes without facts, and the types that their values must have."""

    query: EdnQuery
    plan: Plan
    open: Mapping[str, Type | None] = field(default_factory=dict[str, "Type | None"])
    ranges: bool = False  # over all attributes of facts, so that another one changes it


def compile_query(
    query: EdnQuery, arguments: Sequence[AnyForm], attributes: Attributes, *, lenient: bool = False
) -> CompiledQuery:
    """The plan of a query with its arguments; raises `EdnError`. For ``lenient`` see `translate`."""
    made = translate(query, given(query, arguments), attributes, lenient=lenient)
    types = inferred(made.program, _known(made.reads))
    relations = {name: _rows(name, reads, types, attributes) for name, reads in made.reads.items()}
    sets = [name for name, reads in made.reads.items() if _is_set(reads)]
    try:
        plan = whole(made.program, GOAL, Tables(relations, sets=sets))
        plan = _with_pulls(query, _found(query, plan), attributes)
    except EdnError:
        raise
    except EverviewError as error:
        raise _told(error, query, made) from error
    return CompiledQuery(
        query, plan, _open(made.reads, types), any(isinstance(r, Anything) for r in made.reads.values())
    )


def _told(error: EverviewError, query: EdnQuery, made: Translated) -> EdnError:
    """Turn an error about a rule into one about the clause of the query that it came from."""
    message = error.message.split("\n")[0]
    variable = re.match(r"variable (\S+) is ", message)
    if variable is not None:
        name = variable.group(1)
        message = f"?{name.split('~')[0]}{message.removeprefix(f'variable {name}')}"
        return refuse(made.places.get(f"?{name}", query.place), message, error.hint or "a variable has one type")
    text = max((text for text in made.places if message.startswith(text)), key=len, default="")
    return refuse(made.places.get(text, query.place), message, error.hint or "look at the types of the attributes")


# -- what atoms read


def _known(reads: Mapping[str, Reads]) -> dict[Column, Type]:
    types = dict[Column, Type]()
    for name, read in reads.items():
        match read:
            case EdnAttribute():
                columns = (read.entity, read.value)
            case Anything():
                columns = (ENTITY, STRING)
            case SourceColumns(plan):
                columns = plan.schema.types
            case WrittenRows():
                columns = read.types
        types |= {(name, number): type_ for number, type_ in enumerate(columns) if type_ is not None}
    return types


def _open(reads: Mapping[str, Reads], types: Mapping[Column, Type]) -> dict[str, Type | None]:
    return {
        name: types.get((name, 1))
        for name, read in reads.items()
        if isinstance(read, EdnAttribute) and read.is_fact and read.value is None
    }


def _is_set(reads: Reads) -> bool:
    match reads:
        case EdnAttribute():
            return reads.is_set or reads.value is None
        case Anything(valued):
            return valued
        case SourceColumns():
            return False
        case WrittenRows():
            return True


def _rows(name: str, reads: Reads, types: Mapping[Column, Type], attributes: Attributes) -> Plan:
    match reads:
        case EdnAttribute():
            return reads.rows(types.get((name, 1)))
        case Anything(valued):
            return _anything(valued, types.get((name, 2)), attributes.facts())
        case SourceColumns(plan):
            return plan
        case WrittenRows():
            return reads.plan([types.get((name, number)) for number in range(len(reads.types))])


def _anything(valued: bool, wanted: Type | None, facts: Sequence[EdnAttribute]) -> Plan:
    """Facts of all attributes; if a type is ``wanted``, only of those with values of that type."""
    known = [fact for fact in facts if fact.value is not None and (not valued or wanted in (None, fact.value))]
    types = {fact.value for fact in known}
    type_ = wanted or (types.pop() if len(types) == 1 else ANY) or ANY
    schema = Schema(
        [Field("e", ENTITY, False), Field("a", STRING, False), Field("v", type_, False)][: 3 if valued else 2]
    )
    parts = [_named(fact, type_, schema) for fact in known]
    if not parts:
        return Values((), schema)
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def _named(fact: EdnAttribute, type_: Type, schema: Schema) -> Plan:
    assert fact.plan is not None
    entity, value = fact.plan.columns
    shown: Expression = value if value.type == type_ else Cast(value, type_)
    columns = (entity, Literal(fact.name, STRING), shown)
    return Project(fact.plan, columns[: len(schema)], schema.names)


# -- what is found


def _found(query: EdnQuery, plan: Plan) -> Plan:
    """The elements of :find from the bindings of its variables."""
    if not any(isinstance(element, Aggregated) for element in query.find):
        columns = [plan.column(_place(query, _variable(element).name)) for element in query.find]
        return Project(plan, tuple(columns), query.names)
    groups = list(
        dict.fromkeys(_variable(element).name for element in query.find if not isinstance(element, Aggregated))
    )
    calls = [_call(element, plan, query) for element in query.find if isinstance(element, Aggregated)]
    # Without groups there is a row also of nothing, which is no finding: the count tells.
    rows = AggregateCall("count", (), False, None, (), BIGINT, False)
    names = (*(f"g{number}" for number in range(len(groups))), *(f"a{number}" for number in range(len(calls))), "rows")
    by = tuple(plan.column(_place(query, name)) for name in groups)
    made = Aggregate(plan, by, (*calls, rows), names)
    kept = made if groups else Filter(made, call("greater", made.column(len(names) - 1), literal(0, BIGINT)))
    numbers = iter(range(len(groups), len(names)))
    places = [
        next(numbers) if isinstance(element, Aggregated) else groups.index(_variable(element).name)
        for element in query.find
    ]
    columns = tuple(_cut(element, kept.column(number)) for element, number in zip(query.find, places, strict=True))
    return Project(kept, columns, query.names)


def _with_pulls(query: EdnQuery, plan: Plan, attributes: Attributes) -> Plan:
    """The plan with what is pulled in place of the entities."""
    for column, element in enumerate(query.find):
        if isinstance(element, PulledEntity):
            _require_levels(element.pattern)
            plan = pulled(plan, column, element.pattern, attributes)
    return plan


def _variable(element: Found) -> RuleVariable:
    return element if isinstance(element, RuleVariable) else element.variable


def _cut(element: Found, value: Expression) -> Expression:
    """The first of all values, or the last, from the least to the greatest, where only so many are asked for."""
    if not isinstance(element, Aggregated) or element.most is None:
        return value
    ascending = literal(element.function == "min")
    kept = call("slice", call("sort_array", value, ascending), literal(1, INTEGER), literal(element.most, INTEGER))
    return kept if element.function == "min" else call("sort_array", kept, literal(True))


def _place(query: EdnQuery, name: str) -> int:
    """Where a variable stands among the bindings."""
    elements = list(map(_variable, query.find))
    return list(dict.fromkeys(v.name for v in (*elements, *query.with_))).index(name)


def _call(element: Aggregated, plan: Plan, query: EdnQuery) -> AggregateCall:
    line = _AGGREGATES[element.function]
    column = plan.column(_place(query, element.variable.name))
    if line.takes == "numbers" and not is_number(column.type):
        message = f"{element.function} takes numbers, and ?{element.variable.name} is {column.type}"
        raise refuse(element.place, message, "count, min, max and distinct take values of every type")
    if element.most is not None:
        return aggregate_call("collect_list", (column,))
    if line.form == "count different":
        return aggregate_call("count", (column,), distinct=True)
    return aggregate_call(line.name, (column,), distinct=line.form == "set")


def _require_levels(pattern: PullPattern) -> None:
    one = endless(pattern)
    if one is not None:
        message = f"the recursion of {one.key} has no number of levels, and so no columns that could be kept"
        raise refuse(one.place, message, f"write the number of levels: {{{one.key} 5}}; or ask without a name")
