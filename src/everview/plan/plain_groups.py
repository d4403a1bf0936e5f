"""Groups by the parts of structs in place of the structs: ``GROUP BY window(ts, …)`` is one by its start and its end.

Rows are in one group by either, and the parts have an order, by which the state of windows that have closed is found.
"""

from __future__ import annotations

from everview.plan import node
from everview.plan.node import Plan, unique
from everview.plan.nodes import Aggregate, Filter, Project
from everview.plan.typing import call
from everview.scalars.expressions import Call, Column, Expression, Literal, rewritten


def plain_groups(plan: Plan) -> Plan:
    """The plan with every group that is a struct by its parts; the struct is made of them above."""
    return node.rewritten(plan, _plain)


def _plain(part: Plan) -> Plan:
    match part:
        case Project(Project(inner, given), expressions, names) if any(map(_is_struct, given)):
            return Project(inner, tuple(_over(given, e) for e in expressions), names)
        case Filter(Project(inner, given, names), predicate) if any(map(_is_struct, given)):
            return Project(Filter(inner, _over(given, predicate)), given, names)
        case _:
            return _grouped(part)


def _over(given: tuple[Expression, ...], expression: Expression) -> Expression:
    """An expression over the values that its columns have; a part of a struct is what the struct is made of."""

    def replaced(part: Expression) -> Expression:
        match part:
            case Column(index):
                return given[index]
            case Call("get_field", (Call("named_struct", made), Literal(name))):
                return next((v for n, v in zip(made[::2], made[1::2], strict=True) if n == Literal(name, n.type)), part)
            case _:
                return part

    return rewritten(expression, replaced)


def _grouped(part: Plan) -> Plan:
    if not isinstance(part, Aggregate) or not any(map(_is_struct, part.groups)):
        return part
    groups, names, widths = list[Expression](), list[str](), list[int]()
    for group, name in zip(part.groups, part.names, strict=False):
        parts = _parts(group) if _is_struct(group) else (group,)
        widths.append(len(parts))
        groups += parts
        names += [str(n.value) for n in _names(group)] if _is_struct(group) else [name]
    named = unique([*names, *part.names[len(part.groups) :]])
    inner = Aggregate(part.input, tuple(groups), part.calls, named)
    rebuilt, place = list[Expression](), 0
    for group, width in zip(part.groups, widths, strict=True):
        columns = inner.columns[place : place + width]
        rebuilt.append(_struct(group, columns) if _is_struct(group) else columns[0])
        place += width
    return Project(inner, (*rebuilt, *inner.columns[place:]), part.names)


def _is_struct(group: Expression) -> bool:
    return isinstance(group, Call) and group.function == "named_struct"


def _parts(group: Expression) -> tuple[Expression, ...]:
    assert isinstance(group, Call), "a struct is made by a call"
    return group.arguments[1::2]


def _names(group: Expression) -> list[Literal]:
    assert isinstance(group, Call), "a struct is made by a call"
    return [name for name in group.arguments[::2] if isinstance(name, Literal)]


def _struct(group: Expression, values: tuple[Expression, ...]) -> Expression:
    assert isinstance(group, Call), "a struct is made by a call"
    return call("named_struct", *(e for pair in zip(_names(group), values, strict=True) for e in pair))
