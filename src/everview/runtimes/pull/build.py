"""Pipelines from plans: one node for each part of a plan, shared by all views that have this part.

>>> from everview.plan.nodes import Scan as From
>>> from everview.sources.memory import Memory
>>> from everview.types import Schema
>>> artist = Memory("id BIGINT", "id")
>>> Build({"artist": artist}).of(From("track", Schema.parse("id BIGINT")))
Traceback (most recent call last):
everview.errors.UnknownName: source "track" does not exist
  hint: available: artist
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from everview.errors import DefinitionError
from everview.lowering.constants import python_value
from everview.optimize.predicates import push_predicates
from everview.optimize.simplify import drop_needless, fold_constants
from everview.optimize.subqueries import decorrelate
from everview.plan import nodes as plans
from everview.plan.conditions import Key, conjunction, split
from everview.plan.node import Plan, unique
from everview.plan.tree import title
from everview.plan.typing import call
from everview.runtimes.pull.aggregate import PullAggregate
from everview.runtimes.pull.calls import KEEP
from everview.runtimes.pull.demand import Sort
from everview.runtimes.pull.filter import PullFilter
from everview.runtimes.pull.join import PullJoin
from everview.runtimes.pull.lookup import JoinMatching
from everview.runtimes.pull.node import PullNode
from everview.runtimes.pull.project import PullProject
from everview.runtimes.pull.scan import PullScan
from everview.runtimes.pull.semijoin import PullSemiJoin
from everview.runtimes.pull.top import PullTop
from everview.runtimes.pull.union import PullUnion
from everview.runtimes.pull.values import PullValues
from everview.scalars.expressions import Column, Expression, Literal, Now, moved, walk
from everview.sources.protocol import Source
from everview.types import Field, Schema, Struct, has_map, unknown_name

# Subqueries become joins, and predicates go down to where they decide how much is read.
PASSES: Final[tuple[Callable[[Plan], Plan], ...]] = (
    fold_constants,
    decorrelate,
    drop_needless,
    push_predicates,
    fold_constants,
    drop_needless,
)


def prepared(plan: Plan) -> Plan:
    """The plan after `PASSES`: conditions near the sources, columns under their names."""
    better = plan
    for change in PASSES:
        better = change(better)
    return (
        better if better.schema.names == plan.schema.names else plans.Project(better, better.columns, plan.schema.names)
    )


class Build:
    """A builder of nodes for plans over some sources; equal parts of plans get the same node."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        known: Mapping[Plan, PullNode] | None = None,
        around: Callable[[PullNode], PullNode] = lambda node: node,
    ) -> None:
        self.sources = sources
        self.nodes: dict[Plan, PullNode] = dict(known or {})
        self._around = around

    def of(self, plan: Plan) -> PullNode:
        """The node of a plan, built if it is not there yet."""
        node = self.nodes.get(plan)
        if node is None:
            _check(plan)
            node = self.nodes[plan] = self._made(plan)
        return node

    def _made(self, plan: Plan) -> PullNode:
        match plan:
            case plans.Scan(relation):
                return self._around(PullScan(relation, self._source(relation)))
            case plans.Values(rows, schema):
                cells = [tuple(python_value(cell.value, cell.type) for cell in row) for row in rows]
                return self._around(PullValues(cells, schema))
            case plans.Filter(input_, predicate):
                return self._around(PullFilter(self.of(input_), predicate))
            case plans.Project(input_, expressions):
                return self._around(PullProject(self.of(input_), expressions, plan.schema))
            case plans.Union():
                return self._around(PullUnion(list(map(self.of, plan.inputs)), plan.schema))
            case plans.Distinct(input_):
                return self._around(PullAggregate(self.of(input_), range(len(plan.schema)), (), plan.schema))
            case plans.Aggregate(input_, groups, calls):
                node, places = self._extended(self.of(input_), groups)
                return self._around(PullAggregate(node, places, calls, plan.schema))
            case plans.Top():
                return self._top(plan)
            case plans.Join():
                return self._join(plan)
            case plans.Intersect(left, right, False) | plans.Except(left, right, False):
                kind = "semi" if isinstance(plan, plans.Intersect) else "anti"
                return self.of(plans.Distinct(plans.Join(left, right, kind, _all_equal(left, right))))
            case _:
                raise DefinitionError(f"{title(plan)} cannot be maintained by pulling from sources", hint=KEEP)

    def _source(self, name: str) -> Source:
        if name not in self.sources:
            raise unknown_name("source", name, list(self.sources))
        return self.sources[name]

    def _extended(self, node: PullNode, expressions: Sequence[Expression]) -> tuple[PullNode, tuple[int, ...]]:
        """A node extended by a column for each expression that is not a column, and the places of all expressions."""
        added = list(dict.fromkeys(e for e in expressions if not isinstance(e, Column)))
        width = len(node.schema)
        places = tuple(e.index if isinstance(e, Column) else width + added.index(e) for e in expressions)
        if not added:
            return node, places
        fields = (
            *node.schema.fields,
            *(Field(f"computed {number}", e.type, e.nullable) for number, e in enumerate(added)),
        )
        names = unique(f.name for f in fields)
        schema = Schema(replace(f, name=name) for f, name in zip(fields, names, strict=True))
        return self._around(PullProject(node, (*columns(node.schema), *added), schema)), places

    def _narrowed(self, node: PullNode, schema: Schema, chosen: Sequence[int]) -> PullNode:
        """A node with only the chosen columns, under a schema."""
        if len(chosen) == len(node.schema):
            return node
        every = columns(node.schema)
        return self._around(PullProject(node, [every[column] for column in chosen], schema))

    def _top(self, plan: plans.Top) -> PullNode:
        input_ = self.of(plan.input)
        if plan.limit is None and not plan.offset:
            return input_
        width = len(input_.schema)
        node, places = self._extended(input_, [by for by, _ in plan.order])
        sorts = [Sort.of(column, how) for column, (_, how) in zip(places, plan.order, strict=True)]
        if plan.limit is None and plan.partition:
            raise DefinitionError(f"{title(plan)} cannot be maintained by pulling from sources", hint=KEEP)
        top = self._around(PullTop(node, sorts, plan.limit, plan.offset, plan.partition))
        return self._narrowed(top, plan.schema, range(width))

    def _join(self, plan: plans.Join) -> PullNode:
        if plan.kind in ("right", "full"):
            return self.of(_turned(plan))
        width = len(plan.left.schema)
        parts = split(plan.condition, width)
        left, lefts = self._extended(self.of(plan.left), [k.left for k in parts.keys])
        right, rights = self._extended(self.of(plan.right), [k.right for k in parts.keys])
        matching = self._matching(plan, (left, right), parts.keys, (lefts, rights), parts.rest)
        if plan.kind in ("semi", "anti"):
            kind = "semi" if plan.kind == "semi" else "anti"
            return self._narrowed(self._around(PullSemiJoin(left, right, kind, matching)), plan.schema, range(width))
        own = (*range(width), *(len(left.schema) + column for column in range(len(plan.right.schema))))
        kind = "left" if plan.kind == "left" else "inner"
        schema = plan.schema if len(own) == len(left.schema) + len(right.schema) else _beside(left, right, kind)
        return self._narrowed(self._around(PullJoin(left, right, kind, matching, schema)), plan.schema, own)

    def _matching(
        self,
        plan: plans.Join,
        sides: tuple[PullNode, PullNode],
        keys: Sequence[Key],
        places: tuple[tuple[int, ...], tuple[int, ...]],
        rest: Expression | None,
    ) -> JoinMatching:
        left, right = sides
        width, wide = len(plan.left.schema), len(left.schema)
        test = None if rest is None else moved(rest, lambda column: column if column < width else column - width + wide)
        return JoinMatching.of(places, [key.null_safe for key in keys], test, _beside(left, right, "inner"))


def _all_equal(left: Plan, right: Plan) -> Expression | None:
    """The condition that two rows side by side are equal in all columns, NULL to NULL."""
    others = [moved(column, lambda place: place + len(left.schema)) for column in right.columns]
    return conjunction(map(partial(call, "null_safe_equal"), left.columns, others))


def _beside(left: PullNode, right: PullNode, kind: str) -> Schema:
    fields = (*left.schema.fields, *(replace(f, nullable=f.nullable or kind == "left") for f in right.schema.fields))
    names = unique(f.name for f in fields)
    return Schema(replace(f, name=name) for f, name in zip(fields, names, strict=True))


def _turned(plan: plans.Join) -> Plan:
    """A right join as a left join; a full join as a left join and the unmatched rows of the right."""
    left, right = plan.left, plan.right
    wide, width = len(right.schema), len(left.schema)
    condition = plan.condition and moved(
        plan.condition, lambda column: column + wide if column < width else column - width
    )
    if plan.kind == "right":
        turned = plans.Join(right, left, "left", condition)
        order = (*range(wide, wide + width), *range(wide))
        return plans.Project(turned, tuple(turned.column(column) for column in order), plan.schema.names)
    alone = plans.Join(right, left, "anti", condition)
    nothing = tuple(Literal(None, type_) for type_ in left.schema.types)
    padded = plans.Project(alone, (*nothing, *alone.columns), plan.schema.names)
    return plans.Union((plans.Join(left, right, "left", plan.condition), padded))


def columns(schema: Schema) -> tuple[Column, ...]:
    """One expression for each column, which reads it."""
    return tuple(Column(place, f.name, f.type, f.nullable) for place, f in enumerate(schema.fields))


def _check(plan: Plan) -> None:
    """Refuse what only a circuit can maintain: the current time, and columns of structs."""
    for expression in plan.expressions:
        if any(isinstance(part, Now) for part in walk(expression)):
            raise DefinitionError(f"{expression} changes with time, which no source tells", hint=KEEP)
    for field in plan.schema.fields:
        if isinstance(field.type, Struct) or has_map(field.type):
            raise DefinitionError(f'column "{field.name}" is a {field.type}, which cannot be pulled', hint=KEEP)
