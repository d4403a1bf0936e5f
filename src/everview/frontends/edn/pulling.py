"""Pull as a plan: a struct for each entity, with a field for each attribute, and arrays where there may be many values.

An entity inside of another is known by the way to it, the entities from the outermost to itself: for every way there is
one struct, made of the values joined to it. Values are in ascending order, entities by their numbers, so that a limit
keeps the same ones whatever the order in which facts came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import count
from typing import Any, Final

from everview.errors import EdnError
from everview.frontends.edn.attributes import Attributes, EdnAttribute, Fact, KeyedColumn, Pair
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import ScalarForm
from everview.frontends.edn.pull_patterns import ID, PulledAttribute, PullPattern
from everview.frontends.rules.meeting import as_type, family
from everview.plan.aggregates import aggregate_call
from everview.plan.conditions import conjunction
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Distinct, Filter, Join, Project
from everview.plan.typing import call, literal
from everview.scalars.expressions import Expression, LambdaCall, LambdaVariable, Literal, moved
from everview.types import INTEGER, STRING, Array, Struct

MOST_JOINS: Final = 200  # attributes of a pattern, counted wherever they are repeated


def pulled(rows: Plan, column: int, pattern: PullPattern, attributes: Attributes) -> Plan:
    """The rows with a struct by a pattern in place of the entity in a column."""
    entities = Distinct(Project(rows, (rows.column(column),), ("way 0",)))
    structs = _Pulling(attributes).structs(entities, pattern)
    width = len(rows.schema)
    tie = call("equal", rows.column(column), moved(structs.column(0), lambda field: field + width))
    joined = Join(rows, structs, "inner", tie)
    columns = [*joined.columns[:width]]
    columns[column] = joined.column(width + 1)
    return Project(joined, tuple(columns), rows.schema.names)


class _Pulling:
    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self._joins = count()
        self._variables = count(1_000_000)

    def structs(self, ways: Plan, pattern: PullPattern, since: int | None = None) -> Plan:
        """A struct for every way, behind its columns; inside of a recursion that began at a place of the way.

        An entity of such a way that stands in it before is not gone into again: only its number is told.
        """
        width = len(ways.schema)
        entity = ways.column(width - 1)
        seen = [
            call("equal", ways.column(place), entity)
            for place in range(width - 1 if since is None else since, width - 1)
        ]
        again = reduce(lambda a, b: call("or", a, b), seen) if seen else None
        inside = ways if again is None else Filter(ways, call("not", again))
        made: Plan = ways
        fields: dict[str, Expression] = {}
        if pattern.entity is not None:
            fields[pattern.entity] = entity
        elif again is not None:
            fields[ID] = call("if", again, entity, Literal(None, entity.type))
        for one in self._wanted(pattern, entity):
            values = self._values(inside, one, pattern, width - 1 if since is None else since)
            before = len(made.schema)
            if values is not None:
                made = Join(made, values, "left", _tied(made, values, width, before))
            value = Literal(None, STRING) if values is None else made.column(before + width)
            fields[one.key] = _or_default(value, one)
        named = [part for name, value in fields.items() for part in (literal(name), value)]
        names = (*(f"way {place}" for place in range(width)), "struct")
        return Project(made, (*made.columns[:width], call("named_struct", *named)), names)

    def _wanted(self, pattern: PullPattern, entity: Expression) -> Sequence[PulledAttribute]:
        if not pattern.wildcard:
            return pattern.attributes
        named = {one.attribute for one in pattern.attributes if not one.reverse}
        keys = {one.key.casefold() for one in pattern.attributes}
        facts = [f for f in self._attributes.facts() if f.value is not None and f.entity == entity.type]
        others = [f.name for f in facts if f.name not in named and f.name.casefold() not in keys]
        return [*(PulledAttribute(name, name, place=pattern.place) for name in sorted(others)), *pattern.attributes]

    # -- values

    def _values(self, ways: Plan, one: PulledAttribute, pattern: PullPattern, since: int) -> Plan | None:
        """The values of an attribute for every way that has some, one or an array; None if it has no facts yet."""
        if next(self._joins) >= MOST_JOINS:
            message = f"the pattern asks for more than {MOST_JOINS} attributes, levels of recursion counted each"
            raise refuse(pattern.place, message, "ask for fewer levels")
        attribute = self._attribute(one)
        if attribute.value is None:
            return None
        facts = attribute.rows(None)
        facts = facts if attribute.is_set else Distinct(facts)
        if one.reverse:
            facts = Project(facts, (facts.column(1), facts.column(0)), ("e", "v"))
        width = len(ways.schema)
        entity, owner = ways.column(width - 1), facts.column(0)
        if family(entity.type) != family(owner.type):
            message = f"{one.key} is of entities that are {owner.type}, and is asked of {entity.type}"
            raise refuse(one.place, message, "pull attributes of the entity that the variable stands for")
        same = call("equal", entity, moved(owner, lambda place: place + width))
        joined = Join(ways, facts, "inner", same)
        names = (*(f"way {place}" for place in range(width)), f"way {width}")
        values: Plan = Project(joined, (*joined.columns[:width], joined.column(width + 1)), names)
        inner = _repeated(pattern, one)
        if inner is not None:
            values = self.structs(values, inner, since if isinstance(one.inner, int) else None)
        return self._gathered(values, width, one) if one.reverse or self._is_many(attribute) else _last(values, width)

    def _gathered(self, values: Plan, width: int, one: PulledAttribute) -> Plan:
        """The values of each way as an array, in order, at most as many as the limit says."""
        alone = len(values.schema) == width + 1
        value = values.column(width)
        kept = value if alone else call("named_struct", literal("by"), value, literal("is"), values.column(width + 1))
        groups = values.columns[:width]
        names = (*(f"way {place}" for place in range(width)), "values")
        rows = Aggregate(values, tuple(groups), (aggregate_call("collect_set", (kept,)),), names)
        array = call("sort_array", rows.column(width), literal(True))
        if one.limit is not None:
            array = call("slice", array, literal(1, INTEGER), literal(one.limit, INTEGER))
        shown = array if alone else self._members(array)
        return Project(rows, (*rows.columns[:width], shown), names)

    def _members(self, array: Expression) -> Expression:
        """The structs of an array whose elements have them beside their entities."""
        assert isinstance(array.type, Array) and isinstance(array.type.element, Struct), "elements have two fields"
        element = LambdaVariable(next(self._variables), "x", array.type.element)
        body = call("get_field", element, literal("is"))
        return LambdaCall("transform", (array,), (body,), ((element,),), Array(body.type), array.nullable)

    # -- attributes

    def _attribute(self, one: PulledAttribute) -> EdnAttribute:
        try:
            known = self._attributes.find(one.attribute)
        except EdnError as error:
            raise refuse(one.place, error.message, error.hint or "") from None
        if known is None:
            error = self._attributes.unknown(one.attribute)
            raise refuse(one.place, error.message, error.hint or "")
        return known

    def _is_many(self, attribute: EdnAttribute) -> bool:
        """May an entity have several values?"""
        match attribute.means:
            case KeyedColumn():
                return False
            case Fact(relation) | Pair(relation):
                key = self._attributes.around.key(relation)
                return tuple(key) != (self._attributes.scan(relation).schema.names[0],)
            case None:
                return True


def _repeated(pattern: PullPattern, one: PulledAttribute) -> PullPattern | None:
    """The pattern of what an attribute refers to; of a recursion the same one, with a level less."""
    if not isinstance(one.inner, int):
        return one.inner
    less = replace(one, inner=one.inner - 1)
    kept = [less if other is one else other for other in pattern.attributes if other is not one or one.inner > 1]
    return replace(pattern, attributes=tuple(kept))


def _last(values: Plan, width: int) -> Plan:
    """The ways with their value, or with the struct of it."""
    names = (*values.schema.names[:width], "value")
    return Project(values, (*values.columns[:width], values.columns[-1]), names)


def _tied(made: Plan, values: Plan, width: int, before: int) -> Expression | None:
    pairs = zip(made.columns[:width], values.columns[:width], strict=True)
    return conjunction([call("equal", a, moved(b, lambda place: place + before)) for a, b in pairs])


def _or_default(value: Expression, one: PulledAttribute) -> Expression:
    if one.default is None:
        return value
    type_ = value.type.element if isinstance(value.type, Array) else value.type
    made = as_type(literal(one.default), type_)
    if made is not None and isinstance(value.type, Array):
        made = call("array", made)
    if made is None:
        message = f"the values of {one.key} are {value.type}, and the default {ScalarForm(one.default)!r} is none"
        raise refuse(one.place, message, "give a value of that type")
    return call("coalesce", value, made)


# -- as Python has them


def without_gaps(value: Any) -> Any:
    """A pulled value with absent attributes left out; None if nothing remains."""
    match value:
        case dict():
            kept = {key: inner for key, part in value.items() if (inner := without_gaps(part)) is not None}  # pyright: ignore[reportUnknownVariableType]
            return kept or None  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [inner for part in value if (inner := without_gaps(part)) is not None] or None  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
