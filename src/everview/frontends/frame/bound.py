"""Frames that are bound: a plan, and what its columns are called and known by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from everview.errors import QueryError
from everview.frontends.frame.steps import FrameStep
from everview.frontends.sql.names import Scope, Visible, fold
from everview.plan.node import Plan, unique
from everview.plan.nodes import Aggregate, Distinct, Explode, Filter, Project, Top, Window
from everview.scalars.expressions import Column, Order
from everview.types import Field, Schema, unknown_name

Identity = tuple[int, int]  # of a column: the number of the step that has made it, and its place there


@dataclass(frozen=True)
class FrameFields:
    """The names of a frame's columns, their relations and their identities."""

    names: tuple[str, ...]
    relations: tuple[str | None, ...]
    identities: tuple[Identity, ...]

    def __add__(self, other: FrameFields) -> FrameFields:
        return FrameFields(
            self.names + other.names, self.relations + other.relations, self.identities + other.identities
        )

    def at(self, places: Sequence[int]) -> FrameFields:
        """Those at some places."""
        return FrameFields(
            tuple(self.names[p] for p in places),
            tuple(self.relations[p] for p in places),
            tuple(self.identities[p] for p in places),
        )


@dataclass(frozen=True)
class BoundFrame:
    """A frame as a plan. Columns of the plan behind those of ``fields`` serve only its ``order``.

    A column is found by its name, or by its identity, which it keeps through steps that leave it as it is. Identities
    that a join has on both sides are ``blurred``: they no longer say which column is meant.
    """

    plan: Plan
    fields: FrameFields
    order: Order = ()
    blurred: frozenset[Identity] = frozenset()

    @property
    def width(self) -> int:
        return len(self.fields.names)

    @property
    def schema(self) -> Schema:
        """The columns under the names they have; of two with the same name, the second with a number."""
        fields = self.plan.schema.fields[: self.width]
        names = unique(self.fields.names)
        return Schema([Field(name, f.type, f.nullable) for name, f in zip(names, fields, strict=True)])

    @property
    def scope(self) -> Scope:
        """The names that an expression over these rows may use."""
        return Scope(tuple(self._visible()))

    def _visible(self) -> Iterator[Visible]:
        for place, (name, relation) in enumerate(zip(self.fields.names, self.fields.relations, strict=True)):
            yield Visible(relation, name, self.column(place))

    def column(self, place: int) -> Column:
        """A column as an expression."""
        return replace(self.plan.column(place), name=self.fields.names[place])

    def settled(self) -> BoundFrame:
        """The same rows, in no order."""
        if len(self.plan.schema) == self.width:
            return replace(self, order=())
        plan = Project(self.plan, self.plan.columns[: self.width], unique(self.fields.names))
        return replace(self, plan=plan, order=())

    def over(self, plan: Plan) -> BoundFrame:
        """The same columns of another plan."""
        return replace(self, plan=plan)

    # -- looking up

    def place(self, name: str, what: str = "column") -> int:
        """The place of the one column of a name."""
        places = self.places(name)
        if not places:
            raise unknown_name(what, name, self.fields.names)
        if len(places) > 1:
            raise QueryError(f'column "{name}" is ambiguous', hint=self._told_apart(name, places))
        return places[0]

    def places(self, name: str) -> list[int]:
        """The places of columns of a name, whatever its case; that with the same case alone if there is one."""
        places = [place for place, known in enumerate(self.fields.names) if fold(known) == fold(name)]
        exact = [place for place in places if self.fields.names[place] == name]
        return exact if len(exact) == 1 else places

    def _told_apart(self, name: str, places: Iterable[int]) -> str:
        relations = [self.fields.relations[place] for place in places]
        if None in relations or len(set(relations)) < len(relations):
            return f'give frames names by alias("x"), and write "x.{name}"; or rename one of the columns'
        return f"write {' or '.join(f'{relation}.{name}' for relation in relations)}"

    def known_as(self, identity: Identity, name: str) -> int:
        """The place of the column with an identity."""
        if identity in self.blurred:
            hint = f'give each side a name: df.alias("a").join(df.alias("b"), …), and write F.col("a.{name}")'
            raise QueryError(f'column "{name}" is ambiguous: both sides of a join come from its frame', hint=hint)
        if identity not in self.fields.identities:
            hint = f"select it where it comes from; there are {', '.join(self.fields.names)}"
            raise QueryError(f'column "{name}" of another frame is not there', hint=hint)
        return self.fields.identities.index(identity)


def made(plan: Plan, names: Sequence[str], step: FrameStep, above: BoundFrame | None = None) -> BoundFrame:
    """The frame of a step: columns that it takes over from the frame ``above`` as they are keep their identities."""
    relations: list[str | None] = []
    identities: list[Identity] = []
    for place, name in enumerate(names):
        taken = None if above is None else origin(plan, place, above.plan)
        kept = above is not None and taken is not None and taken < above.width and above.fields.names[taken] == name
        relations.append(above.fields.relations[taken] if kept and above and taken is not None else None)
        identities.append(
            above.fields.identities[taken] if kept and above and taken is not None else (step.number, place)
        )
    blurred = frozenset[Identity]() if above is None else above.blurred
    return BoundFrame(plan, FrameFields(tuple(names), tuple(relations), tuple(identities)), (), blurred)


def origin(plan: Plan, place: int, above: Plan) -> int | None:
    """The place of an unchanged column in the plan ``above``; None for a computed column."""
    while plan is not above:
        match plan:
            case Project(input, expressions):
                value = expressions[place]
            case Aggregate(input, groups):
                if place >= len(groups):
                    return None
                value = groups[place]
            case Filter(input) | Distinct(input) | Top(input):
                plan = input
                continue
            case Window(input) | Explode(input):
                if place >= len(input.schema):
                    return None
                plan = input
                continue
            case _:
                return None
        if not isinstance(value, Column):
            return None
        plan, place = input, value.index
    return place
