"""Every node answers demands as if it had all its rows and sorted them: conditions, keys, orders, places, limits."""

from __future__ import annotations

from itertools import islice
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from everview.plan.node import Plan
from everview.runtimes.pull.build import Build, prepared
from everview.runtimes.pull.demand import Among, Demand, Sort
from everview.runtimes.pull.ordering import coming_after, sort_key
from everview.runtimes.pull.rows import satisfied
from everview.sources.memory import Memory
from runtimes.pull.drawn import KEYS, SCHEMAS, contents, plans, predicates

Row = tuple[Any, ...]
STARTS = st.fixed_dictionaries({name: contents(name) for name in SCHEMAS})


@st.composite
def demands(draw: st.DrawFn, plan: Plan, rows: list[Row]) -> Demand:
    """Something that may be asked of a plan that has these rows."""
    width = len(plan.schema)
    columns = st.integers(0, width - 1)
    where = (draw(predicates(plan)),) if draw(st.booleans()) else ()
    among: tuple[Among, ...] = ()
    if draw(st.booleans()):
        chosen = tuple(draw(st.lists(columns, min_size=1, max_size=2, unique=True)))
        keys = [tuple(row[at] for at in chosen) for row in rows[::2]] or [(None,) * len(chosen)]
        among = (Among(chosen, frozenset(keys)),)
    if not draw(st.booleans()):
        return Demand(where, among, keep=draw(st.booleans()))
    first = [Sort(at, *draw(st.sampled_from(WAYS))) for at in draw(st.lists(columns, max_size=2, unique=True))]
    order = (*first, *(Sort(at) for at in range(width) if at not in {s.column for s in first}))
    after = None
    if rows and draw(st.booleans()):
        row = draw(st.sampled_from(rows))
        after = tuple(row[s.column] for s in order)
    limit = draw(st.sampled_from([None, 1, 2, 5]))
    return Demand(where, among, order, after, limit, keep=draw(st.booleans()))


WAYS = [(False, True), (True, False), (False, True), (True, False), (False, False), (True, True)]


@settings(max_examples=100)
@given(plans(), STARTS, st.data())
def test_replies(plan: Plan, start: dict[str, list[Row]], data: st.DataObject) -> None:
    sources = {name: Memory(SCHEMAS[name], KEYS[name], start[name]) for name in SCHEMAS}
    node = Build(sources).of(prepared(plan))
    rows = list(node.pull(Demand()))
    for _ in range(3):
        demand = data.draw(demands(plan, rows))
        wanted = _meant(rows, plan, demand)
        found = list(islice(node.pull(demand), demand.limit))
        if demand.order:
            assert found == wanted
        else:
            assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def _meant(rows: list[Row], plan: Plan, demand: Demand) -> list[Row]:
    kept = list(satisfied(rows, plan.schema, Demand(demand.where, demand.among)))
    if not demand.order:
        return kept
    ordered = sorted(kept, key=sort_key(plan.schema, demand.order))
    if demand.after is not None:
        ordered = list(filter(coming_after(plan.schema, demand.order, demand.after), ordered))
    return ordered[: demand.limit]
