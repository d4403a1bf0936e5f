"""Multiway joins, worst-case optimal under change: one delta query an atom, over indexes of the inputs alone.

``Δ(A₁ ⋈ … ⋈ Aₙ) = Σᵢ A₁ … Aᵢ₋₁ (after) ⋈ ΔAᵢ ⋈ Aᵢ₊₁ … Aₙ (before)``: each query begins with the rows of one atom's
change and binds the other variables one at a time, proposing from the smallest index that has the variable and
intersecting with the others. Weights multiply, each relation's once, where its last variable is bound. Nothing
between the inputs and the result is kept. The order of the atoms makes changes of one tick count once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from everview.errors import SchemaError
from everview.kernels.large import arrange, project
from everview.operators.extending import HEAVY, MOST, DeltaLevel, DeltaPlan, Extending, IndexLookup
from everview.operators.form import CompiledForm, Reason, call
from everview.operators.index import sorted_by
from everview.operators.nested import split_held
from everview.operators.operator import (
    Context,
    Evenly,
    FieldOrigin,
    Layout,
    Moment,
    Operator,
    Origins,
    Port,
    Single,
    Step,
    TimedStep,
    nothing,
    word_columns,
)
from everview.traces.view import Batches, TraceView
from everview.traces.wide import Wide
from everview.types import BIGINT, Field, Schema
from everview.types.words import Matrix, Words

Fields = tuple[int, ...]
AT_ONCE = 1 << 17  # proposals of a level that a compiled tick follows; with more, the step goes on in slices
FEW = 1000  # seeds that all shards may follow, since it costs little to find out where the work is


@dataclass(frozen=True)
class Order:
    """An order of an atom's fields, as in an index; the first ``key`` fields determine the shard of a row."""

    fields: Fields
    key: int = 1


@dataclass(frozen=True)
class Query:
    """The delta query of one atom.

    ``variables`` are those that the atom does not bind, in the order in which they are bound. ``indexes`` has for every
    other atom the order in which it is read, and for the atom itself that in which its changes come.
    """

    variables: tuple[int, ...]
    indexes: tuple[Order, ...]


@dataclass(frozen=True)
class IndexReading:
    """An index of one atom, read before or after the tick."""

    atom: int
    order: Order
    moment: Moment


@dataclass(frozen=True)
class Multijoin(Operator):
    """The natural join of several relations; ``variables`` says which variable each field of each atom is.

    Within an atom all variables are different. ``select`` are the variables that make a result.
    """

    atoms: tuple[Layout, ...]
    variables: tuple[Fields, ...]
    select: Fields
    schema: Schema
    queries: tuple[Query, ...]
    reasons: tuple[str, ...] = field(default=(), compare=False, repr=False)  # why the queries are as they are

    def __post_init__(self) -> None:
        coded: dict[int, Field] = {}
        for layout, variables in zip(self.atoms, self.variables, strict=True):
            for column, variable in zip(layout.schema.fields, variables, strict=True):
                other = coded.setdefault(variable, column)
                if (other.type, other.words) != (column.type, column.words):
                    raise SchemaError(
                        f"{other} and {column} are one variable of a join, and differ",
                        hint="recode them to one type first",
                    )

    @property
    def inputs(self) -> tuple[Port, ...]:
        return tuple(Port(Layout(layout.schema), Single()) for layout in self.atoms)

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        """The join of a tick's whole Z-sets: the query of the first atom over all of the others."""
        orders = self.queries[0].indexes
        readings = [IndexReading(atom, orders[atom], Moment.AFTER) for atom in range(1, len(self.atoms))]
        wide = [self._sorted(deltas[reading.atom], reading) for reading in readings]
        seeds = project(deltas[0], word_columns(self.atoms[0].schema, self.queries[0].indexes[0].fields))
        plan = self.plan(0, tuple(readings))
        return Step(gathered(Extending(plan, wide).run(seeds), self))

    def _sorted(self, rows: Matrix, reading: IndexReading) -> Wide:
        layout = self.index(reading.atom, reading.order)
        batch = sorted_by(rows, word_columns(self.atoms[reading.atom].schema, reading.order.fields))
        return Wide([Batches(layout.width + 1, [batch] if batch.shape[0] else [])])

    # -- from fields to words

    def index(self, atom: int, order: Order) -> Layout:
        """The layout of an atom's index."""
        schema = self.atoms[atom].schema
        return Layout(Schema(schema.fields[f] for f in order.fields), order.key, sorted=True)

    def plan(self, seed: int, readings: tuple[IndexReading, ...], depth: int = 0, *, dealt: bool = False) -> DeltaPlan:
        """A delta query over words, for prefixes that begin with so many words of time and, dealt, with their piece."""
        wanted = seed, readings, depth, dealt
        if wanted not in self._plans:
            self._plans[wanted] = _plan(self, *wanted)
        return self._plans[wanted]

    @cached_property
    def _plans(self) -> dict[tuple[int, tuple[IndexReading, ...], int, bool], DeltaPlan]:
        return {}

    def width(self, variable: int) -> int:
        """How many words a variable has."""
        return next(
            layout.schema.fields[variables.index(variable)].words
            for layout, variables in zip(self.atoms, self.variables, strict=True)
            if variable in variables
        )

    @property
    def whole(self) -> bool:
        """Whether a result has all variables, so that different bindings give different results."""
        return {v for variables in self.variables for v in variables} == set(self.select)


def _plan(join: Multijoin, seed: int, readings: tuple[IndexReading, ...], depth: int, dealt: bool) -> DeltaPlan:
    query = join.queries[seed]
    place: dict[int, Words] = {}
    end = depth + 2 * dealt

    def bind(variable: int) -> None:
        nonlocal end
        place[variable] = np.arange(end, end + join.width(variable))
        end += join.width(variable)

    def words(atom: int, fields: Fields) -> Words:
        places = [place[join.variables[atom][field]] for field in fields]
        return np.concatenate(places) if places else np.empty(0, np.int64)

    def lookup(reading: int, bound: int) -> IndexLookup:
        atom, order = readings[reading].atom, readings[reading].order
        fields, last = order.fields, bound == len(order.fields) - 1
        route = words(atom, fields[: order.key]) if bound >= order.key else np.empty(0, np.int64)
        return IndexLookup(reading, words(atom, fields[:bound]), route, last, np.empty(0, np.int64))

    for seed_field in query.indexes[seed].fields:
        bind(join.variables[seed][seed_field])
    mine = [n for n, reading in enumerate(readings) if reading.atom != seed]
    own = {n: [join.variables[readings[n].atom][f] for f in readings[n].order.fields] for n in mine}
    checks = tuple(
        lookup(n, len(own[n]))._replace(last=True) for n in mine if all(variable in place for variable in own[n])
    )
    levels: list[DeltaLevel] = []
    for variable in query.variables:
        bound = {n: own[n].index(variable) for n in mine if variable in own[n]}
        assert all({*own[n][:k]} <= place.keys() for n, k in bound.items()), "an index follows the order of binding"
        before = [lookup(n, k) for n, k in bound.items()]
        bind(variable)
        lookups = tuple(
            look._replace(whole=words(readings[n].atom, readings[n].order.fields)) if look.last else look
            for n, look in zip(bound, before, strict=True)
        )
        levels.append(DeltaLevel(join.width(variable), lookups))
    picks = [*(place[variable] for variable in join.select), np.arange(depth)]
    counted = bool(query.variables) and query.variables[-1] not in join.select
    return DeltaPlan(checks, tuple(levels), np.concatenate(picks), counted)


def gathered(parts: Iterator[Matrix], join: Multijoin, depth: int = 0) -> Matrix:
    """All results of some parts; equal ones, if there can be any, are added up early to keep memory small."""
    width = join.schema.width + depth
    kept: list[Matrix] = []
    rows = 0
    for part in parts:
        kept.append(part)
        rows += part.shape[0]
        if rows > MOST and not join.whole:
            kept = [arrange(np.concatenate(kept), np.arange(width))]
            rows = kept[0].shape[0]
    if not kept:
        return nothing(width)
    return kept[0] if len(kept) == 1 else np.concatenate(kept)


@dataclass(frozen=True)
class MultijoinIncremental(Operator):
    """The change of a multiway join, given the changes of its atoms.

    Seeds that were dealt say which piece of how many they stand for, in two words more.
    """

    join: Multijoin
    dealt: bool = False
    wide = True  # it looks up keys on all shards

    @property
    def inputs(self) -> tuple[Port, ...]:
        return self._ports

    @cached_property
    def _ports(self) -> tuple[Port, ...]:
        layouts = (self.join.index(atom, query.indexes[atom]) for atom, query in enumerate(self.join.queries))
        return tuple(Port(dealt(layout), Evenly()) if self.dealt else Port(layout) for layout in layouts)

    @cached_property
    def readings(self) -> tuple[IndexReading, ...]:
        """All index readings, each once: for every seed, earlier atoms after the tick, later atoms before the tick."""
        distinct_readings: dict[IndexReading, None] = {}
        for seed in range(len(self.join.atoms)):
            distinct_readings |= dict.fromkeys(self.readings_of(seed))
        return tuple(distinct_readings)

    @cached_property
    def _places(self) -> dict[IndexReading, int]:
        """The place of each reading among the views that are read."""
        return {reading: place for place, reading in enumerate(self.readings)}

    def readings_of(self, seed: int) -> tuple[IndexReading, ...]:
        return tuple(
            IndexReading(atom, order, Moment.AFTER if atom < seed else Moment.BEFORE)
            for atom, order in enumerate(self.join.queries[seed].indexes)
            if atom != seed
        )

    @property
    def reads(self) -> tuple[Layout, ...]:
        return self._read

    @cached_property
    def _read(self) -> tuple[Layout, ...]:
        return tuple(self.join.index(reading.atom, reading.order) for reading in self.readings)

    @property
    def output(self) -> Layout:
        return self.join.output

    @property
    def origins(self) -> Origins:
        """A variable that all atoms have comes from whichever has changed."""
        return self._sought(self.join.select, range(len(self.join.atoms)))

    @property
    def lookups(self) -> tuple[Origins, ...]:
        """Rows of an atom are found by changes of others that have the same values of the variables of both."""
        return tuple(
            self._sought(
                [self.join.variables[reading.atom][field] for field in reading.order.fields],
                [seed for seed in range(len(self.join.atoms)) if reading in self.readings_of(seed)],
            )
            for reading in self.readings
        )

    def _sought(self, variables: Sequence[int], seeds: Sequence[int]) -> Origins:
        """Variables, in order, as fields of the seeds, if all of these have them."""
        origins = dict[int, tuple[FieldOrigin, ...]]()
        for place, variable in enumerate(variables):
            fields = [self._seed_variables[seed].get(variable) for seed in seeds]
            known = [FieldOrigin(seed, field) for seed, field in zip(seeds, fields, strict=True) if field is not None]
            if len(known) == len(fields):
                origins[place] = tuple(known)
        return origins

    @cached_property
    def _seed_variables(self) -> tuple[Mapping[int, int], ...]:
        """Where the changes of each atom have its variables."""
        return tuple(
            {self.join.variables[atom][field]: place for place, field in enumerate(query.indexes[atom].fields)}
            for atom, query in enumerate(self.join.queries)
        )

    @property
    def form(self) -> CompiledForm | Reason:
        if self.dealt:
            return "its seeds are spread over shards"
        from everview.kernels.multiway import delta_queries  # which a program without such joins does not load

        sections = list[int]()
        for seed in range(len(self.join.atoms)):
            section = _in_words(*self._query_plan(seed, 0))
            sections += [len(section) + 1, *section]
        return call(delta_queries, sections, x=self.join.schema.width + 1, y=AT_ONCE)

    def step(self, deltas: Sequence[Matrix], views: Sequence[Any], context: Context) -> Step:
        return Step(self._change(deltas, views, np.empty(0, np.int64)))

    def step_at(
        self, now: Words, deltas: Sequence[Matrix], woken: Matrix | None, views: Sequence[Any], context: Context
    ) -> TimedStep:
        """The change over timed entries: each result ends in the time that it belongs to."""
        return split_held(self._change(deltas, views, now), now)

    def _change(self, deltas: Sequence[Matrix], views: Sequence[Wide], now: Words) -> Matrix:
        parts = (
            part for seed, rows in enumerate(deltas) if rows.shape[0] for part in self._query(seed, rows, views, now)
        )
        return gathered(parts, self.join, now.size)

    def _query(self, seed: int, rows: Matrix, views: Sequence[Wide], now: Words) -> Iterator[Matrix]:
        plan, places = self._query_plan(seed, now.size)
        wide = [views[place] for place in places]
        return Extending(plan, wide, now.size, self.dealt).run(_prefixes(rows, now, dealt=self.dealt))

    def _query_plan(self, seed: int, depth: int) -> tuple[DeltaPlan, tuple[int, ...]]:
        """The plan of a query, and which of the views it reads."""
        if (seed, depth) not in self._known:
            mine = self.readings_of(seed)
            plan = self.join.plan(seed, mine, depth, dealt=self.dealt)
            self._known[seed, depth] = plan, tuple(self._places[reading] for reading in mine)
        return self._known[seed, depth]

    @cached_property
    def _known(self) -> dict[tuple[int, int], tuple[DeltaPlan, tuple[int, ...]]]:
        return {}


def _in_words(plan: DeltaPlan, places: Sequence[int]) -> list[int]:
    """A plan as `delta_queries` reads it; ``places`` says where its readings are among those of the operator."""

    def lookup(look: IndexLookup) -> list[int]:
        return [places[look.reading], int(look.last), look.key.size, *look.key.tolist()]

    out = [plan.picks.size, len(plan.checks), len(plan.levels), int(plan.counted), *plan.picks.tolist()]
    for check in plan.checks:
        out += lookup(check)
    for level in plan.levels:
        out += [level.width, len(level.lookups), *(word for look in level.lookups for word in lookup(look))]
    return out


def _prefixes(rows: Matrix, now: Words, *, dealt: bool) -> Matrix:
    """Seeds as prefixes: the time first, then the piece of a dealt row, then its words."""
    front, depth = now.size + 2 * dealt, now.size
    if not front:
        return rows
    width = rows.shape[1] - 1 - 2 * dealt
    out = np.empty((rows.shape[0], front + width + 1), np.int64)
    out[:, :depth] = now
    out[:, depth:front] = rows[:, width:-1]
    out[:, front:-1] = rows[:, :width]
    out[:, -1] = rows[:, -1]
    return out


@dataclass(frozen=True)
class Deal(Operator):
    """Seeds of a delta query, to be spread evenly over shards: one with much work as several pieces. Linear.

    Few seeds are given to all, who divide the work where it is. Of many seeds, those with many proposals are divided;
    how many that is is looked up in the traces as they were: it decides who does what, never what is found.
    """

    join: Multijoin
    seed: int
    pieces: int  # at most
    wide = True

    @property
    def _layout(self) -> Layout:
        return self.join.index(self.seed, self.join.queries[self.seed].indexes[self.seed])

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self._layout),)

    @cached_property
    def readings(self) -> tuple[IndexReading, ...]:
        """The indexes that extend a seed first."""
        first = self.join.queries[self.seed].variables[:1]
        return tuple(
            IndexReading(atom, order, Moment.BEFORE)
            for atom, order in enumerate(self.join.queries[self.seed].indexes)
            if atom != self.seed and {*first} & {*self.join.variables[atom]}
        )

    @property
    def reads(self) -> tuple[Layout, ...]:
        return tuple(self.join.index(reading.atom, reading.order) for reading in self.readings)

    @property
    def output(self) -> Layout:
        return dealt(self._layout)

    def step(self, deltas: Sequence[Matrix], views: Sequence[Any], context: Context) -> Step:
        (rows,) = deltas
        if rows.shape[0] <= FEW and self.join.queries[self.seed].variables:
            pieces = np.full(rows.shape[0], self.pieces, np.int64)
        else:
            pieces = np.clip(self._extending(views).estimate(rows) // HEAVY + 1, 1, self.pieces)
        numbers = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        copies = np.repeat(rows, pieces, axis=0)
        return Step(np.column_stack([copies[:, :-1], numbers, np.repeat(pieces, pieces), copies[:, -1]]))

    def step_at(
        self, now: Words, deltas: Sequence[Matrix], woken: Matrix | None, views: Sequence[Any], context: Context
    ) -> TimedStep:
        return TimedStep(self.step(deltas, views, context).out)

    def _extending(self, views: Sequence[Wide]) -> Extending:
        plan = self.join.plan(self.seed, self.readings)
        return Extending(plan._replace(levels=plan.levels[:1]), views)


def dealt(layout: Layout) -> Layout:
    """Seeds with the number of their piece, and the number of all pieces."""
    number = [Field("piece", BIGINT, nullable=False), Field("pieces", BIGINT, nullable=False)]
    return Layout(Schema([*layout.schema.fields, *number]))
