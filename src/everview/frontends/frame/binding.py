"""Steps of frames to plans: each kind of step is bound by one function, to the frames that it reads.

Expressions are bound as those of SQL are, by the same tables; columns of certain frames are looked up by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final
from weakref import WeakKeyDictionary

from everview.errors import QueryError
from everview.frontends.frame.bound import BoundFrame, FrameFields, made, origin
from everview.frontends.frame.columns import quoted
from everview.frontends.frame.steps import FrameStep
from everview.frontends.sql.context import Bound
from everview.frontends.sql.items import GivenRows, Known, set_operation
from everview.frontends.sql.names import Visible, fold
from everview.plan.catalog import Readable
from everview.plan.node import Plan, unique
from everview.plan.nodes import Distinct, Filter, Join, JoinKind, Project, Top
from everview.plan.typing import call
from everview.scalars.expressions import Column, Expression
from everview.scalars.session_zone import session_zone
from everview.types import unknown_name

SORTED: Final = " sorted"  # the relation of columns that serve only an order
PLACES: Final = " places"  # the relation of columns that are named by their places
Binder = Callable[["FrameBinding", FrameStep, list[BoundFrame]], BoundFrame]


class FrameBinding:
    """Binds steps against a catalog, each once."""

    def __init__(self, catalog: Readable) -> None:
        self.catalog = catalog
        self._bound: WeakKeyDictionary[FrameStep, BoundFrame] = WeakKeyDictionary()

    def frame(self, step: FrameStep) -> BoundFrame:
        """The frame of a step; raises if what it says cannot be."""
        known = self._bound.get(step)
        if known is not None:
            return known
        with session_zone(self.catalog.timezone):
            for one in step.walk():
                if one not in self._bound:
                    self._bound[one] = BINDERS[one.kind](self, one, [self._bound[i] for i in one.inputs])
        return self._bound[step]

    def over(self, frame: BoundFrame, step: FrameStep) -> GivenRows:
        """The rows of a frame for the expressions of a step."""
        return GivenRows(frame.plan, frame.scope, self._known(frame, step), self.catalog)

    def _known(self, frame: BoundFrame, step: FrameStep) -> Known:
        """The columns of frames that a step may name, among those of a frame."""
        marks = {one.mark: one for one in (*step.named, *step.inputs)}

        def known(mark: str, name: str) -> Column | None:
            if mark not in marks:
                return None
            bound = self._bound[marks[mark]]
            return frame.column(frame.known_as(bound.fields.identities[bound.place(name)], name))

        return known

    def between(self, left: BoundFrame, right: BoundFrame, pairs: Plan, step: FrameStep) -> GivenRows:
        """The pairs of rows of two frames for the condition of a join."""
        both = joined_frames(left, right, pairs, step)
        sides = {step.inputs[0]: (left, 0), step.inputs[1]: (right, left.width)}
        inner = self._known(both, step)
        marks = {one.mark: one for one in (*step.named, *step.inputs)}

        def known(mark: str, name: str) -> Column | None:
            side = sides.get(marks[mark]) if mark in marks else None
            if side is None or step.inputs[0] is step.inputs[1]:
                return inner(mark, name)
            frame, start = side
            return both.column(start + frame.place(name))

        return GivenRows(pairs, both.scope, known, self.catalog)


def joined_frames(left: BoundFrame, right: BoundFrame, plan: Plan, step: FrameStep) -> BoundFrame:
    """The columns of two frames side by side; those that both have are no longer known by their identities."""
    clash = {*left.fields.identities} & {*right.fields.identities}
    fresh = tuple(
        (step.number, place) if identity in clash else identity
        for place, identity in enumerate(right.fields.identities, left.width)
    )
    fields = left.fields + replace(right.fields, identities=fresh)
    return BoundFrame(plan, fields, (), left.blurred | right.blurred | clash)


# -- rows as they are, and fewer


def _relation(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    name = binding.catalog.find(step.said["name"])
    plan = binding.catalog.scan(name)
    names = plan.schema.names
    fields = FrameFields(names, (name,) * len(names), tuple((step.number, place) for place in range(len(names))))
    return BoundFrame(plan, fields)


def _alias(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    (frame,) = inputs
    return replace(frame, fields=replace(frame.fields, relations=(step.said["name"],) * frame.width))


def _filter(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    (frame,) = inputs
    return frame.over(Filter(frame.plan, binding.over(frame, step).condition(step.said["test"], "filter")))


def _distinct(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    frame = inputs[0].settled()
    names = step.said.get("columns")
    if names is None:
        return frame.over(Distinct(frame.plan))
    places = tuple(sorted({frame.place(name) for name in names}))
    return frame.over(Distinct(frame.plan) if len(places) == frame.width else Top(frame.plan, (), 1, 0, places))


def _sort(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    frame = inputs[0].settled()
    order = binding.over(frame, step).order(step.said["by"])
    computed = list(dict.fromkeys(key for key, _ in order if not isinstance(key, Column)))
    if not computed:
        return replace(frame, order=order)
    names = unique([*frame.fields.names, *(f"sort key {place + 1}" for place in range(len(computed)))])
    plan = Project(frame.plan, (*frame.plan.columns, *computed), names)
    places = {key: frame.width + place for place, key in enumerate(computed)}
    keys = [plan.column(places[key]) if key in places else key for key, _ in order]
    return replace(frame, plan=plan, order=tuple((key, way) for key, (_, way) in zip(keys, order, strict=True)))


def _limit(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    (frame,) = inputs
    return frame.over(Top(frame.plan, frame.order, step.said.get("limit"), step.said.get("offset", 0)))


# -- other columns


def _select(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    return _items(binding, step, inputs[0], step.said["items"])


def _items(binding: FrameBinding, step: FrameStep, frame: BoundFrame, items: list[str]) -> BoundFrame:
    """Items over the rows, which may name columns by their places; the keys of the rows' order are taken along."""
    rows = binding.over(frame, step)
    places = [Visible(PLACES, str(place), frame.column(place), bare=False) for place in range(frame.width)]
    keys = [Visible(SORTED, str(place), key, bare=False) for place, (key, _) in enumerate(frame.order)]
    rows = replace(rows, scope=replace(rows.scope, visible=(*rows.scope.visible, *places, *keys)))
    bound = rows.select([*items, *(_at(SORTED, place) for place in range(len(frame.order)))])
    count = len(bound.names) - len(frame.order)
    order = tuple((bound.plan.column(count + place), way) for place, (_, way) in enumerate(frame.order))
    return replace(made(bound.plan, bound.names[:count], step, frame), order=order)


def _at(relation: str, place: int) -> str:
    return f"{quoted(relation)}.{quoted(str(place))}"


def _with_columns(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    """All columns, those of some names replaced, and new ones behind them."""
    (frame,) = inputs
    new = dict(zip(map(fold, step.said["names"]), step.said["items"], strict=True))
    items: list[str] = []
    for place, name in enumerate(frame.fields.names):
        items.append(new.get(fold(name), f"{_at(PLACES, place)} AS {quoted(name)}"))
    there = {*map(fold, frame.fields.names)}
    items += [item for name, item in new.items() if name not in there]
    return _items(binding, step, frame, items)


def _renamed(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    """The same columns under other names: of some by their old ones, or of all."""
    (frame,) = inputs
    others = step.said.get("all")
    if others is None:
        new = {fold(old): name for old, name in step.said["names"]}
        others = [new.get(fold(name), name) for name in frame.fields.names]
    elif len(others) != frame.width:
        raise QueryError(
            f"{len(others)} names for {frame.width} columns", hint=f"they are {', '.join(frame.fields.names)}"
        )
    kept = [old == name for old, name in zip(frame.fields.names, others, strict=True)]
    identities = tuple(
        identity if same else (step.number, place)
        for place, (identity, same) in enumerate(zip(frame.fields.identities, kept, strict=True))
    )
    relations = tuple(r if same else None for r, same in zip(frame.fields.relations, kept, strict=True))
    return replace(frame, fields=FrameFields(tuple(others), relations, identities))


def _drop(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    """All columns but the named ones and the columns given as objects of their frames."""
    (frame,) = inputs
    gone = {place for name in step.said["names"] for place in frame.places(name)}
    for text in step.said["items"]:
        place = origin(binding.over(frame, step).select([text]).plan, 0, frame.plan)
        gone |= set() if place is None else {place}
    left = [place for place in range(frame.width) if place not in gone]
    if not left:
        raise QueryError("a frame without columns", hint="leave one at least")
    keys = [key for key, _ in frame.order]
    columns = (*(frame.plan.column(place) for place in left), *keys)
    names = unique([*(frame.fields.names[place] for place in left), *(f"sort key {n + 1}" for n in range(len(keys)))])
    plan = Project(frame.plan, columns, names)
    order = tuple((plan.column(len(left) + place), way) for place, (_, way) in enumerate(frame.order))
    return BoundFrame(plan, frame.fields.at(left), order, frame.blurred)


# -- groups


def _group(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    frame, said = inputs[0].settled(), step.said
    rows = binding.over(frame, step)
    items, keys = said["items"], said["keys"]
    if "column" in said:
        bound = rows.pivot(items, said["column"], said["values"], said["calls"])
    elif not items and not said["calls"]:
        raise QueryError("groups without keys and aggregates", hint='write agg(F.sum("amount"))')
    else:
        bound = rows.select([*items, *said["calls"]], keys, said.get("grouping", ""))
    return made(bound.plan, bound.names, step, frame)


# -- two frames


def _join(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    left, right = (frame.settled() for frame in inputs)
    kind: JoinKind = step.said["how"]
    pairs = Join(left.plan, right.plan, "inner")
    using = step.said.get("using")
    if using is not None:
        test = _equal(left, right, using, pairs)
    elif "test" in step.said:
        test = binding.between(left, right, pairs, step).condition(step.said["test"], "join")
    else:
        test = None
    plan = Join(left.plan, right.plan, kind, test)
    if kind in ("semi", "anti"):
        return left.over(plan)
    both = joined_frames(left, right, plan, step)
    return both if using is None else _merged(both, left, right, using, kind, step)


def _equal(left: BoundFrame, right: BoundFrame, using: Sequence[str], pairs: Plan) -> Expression:
    tests = [
        call("equal", pairs.column(left.place(name)), pairs.column(left.width + right.place(name))) for name in using
    ]
    return tests[0] if len(tests) == 1 else call("and", *tests)


def _merged(
    both: BoundFrame, left: BoundFrame, right: BoundFrame, using: Sequence[str], kind: str, step: FrameStep
) -> BoundFrame:
    """The columns that are compared by name once and first, then the others of both sides."""
    pairs = [(left.place(name), left.width + right.place(name)) for name in using]
    compared = {place for pair in pairs for place in pair}
    rest = [place for place in range(both.width) if place not in compared]
    of_right = kind == "right"
    values: list[Expression] = [both.column(pair[of_right]) for pair in pairs]
    if kind == "full":
        values = [call("coalesce", *(both.column(place) for place in pair)) for pair in pairs]
    first = both.fields.at([pair[of_right] for pair in pairs])
    if kind == "full":
        first = replace(first, identities=tuple((step.number, place) for place in range(len(pairs))))
    fields = first + both.fields.at(rest)
    plan = Project(both.plan, (*values, *(both.column(place) for place in rest)), unique(fields.names))
    return BoundFrame(plan, fields, (), both.blurred)


def _set(binding: FrameBinding, step: FrameStep, inputs: list[BoundFrame]) -> BoundFrame:
    left, right = (frame.settled() for frame in inputs)
    kind = step.said["set"]
    if "BY NAME" in kind and not step.said.get("missing"):
        _same_names(left, right)
    sides = [Bound(frame.plan, frame.fields.names) for frame in (left, right)]
    bound = set_operation(kind, sides[0], sides[1], binding.catalog)
    if bound.names != left.fields.names:
        return made(bound.plan, bound.names, step)
    return left.over(bound.plan)


def _same_names(left: BoundFrame, right: BoundFrame) -> None:
    for one, other in ((left, right), (right, left)):
        for name in one.fields.names:
            if not other.places(name):
                error = unknown_name("column", name, other.fields.names)
                hint = f"{error.hint}; or allow it: unionByName(…, allowMissingColumns=True)"
                raise QueryError(f'column "{name}" is on one side only', hint=hint)


BINDERS: Final[Mapping[str, Binder]] = {
    "relation": _relation,
    "alias": _alias,
    "filter": _filter,
    "distinct": _distinct,
    "sort": _sort,
    "limit": _limit,
    "select": _select,
    "with_columns": _with_columns,
    "renamed": _renamed,
    "drop": _drop,
    "group": _group,
    "join": _join,
    "set": _set,
}
