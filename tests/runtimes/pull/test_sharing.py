"""Views that share parts come and go while sources change: each is right, whenever it was attached."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from everview.oracle.plans import contents as contents_of
from everview.oracle.rows import Rows
from everview.plan.node import Plan, walk
from everview.pull import Feed, Pipeline
from everview.sources.memory import Memory
from runtimes.pull.doubles import Snitch
from runtimes.pull.drawn import KEYS, SCHEMAS, contents, plans
from runtimes.pull.phases import phases
from runtimes.pull.stores import held

Given = dict[str, list[tuple[Any, ...]]]
STARTS = st.fixed_dictionaries({name: contents(name) for name in SCHEMAS})


def rows_of(feed: Feed) -> dict[Any, int]:
    return Rows.inside(feed.schema, list(feed.contents())).weights


@settings(max_examples=60)
@given(plans(), STARTS, STARTS, st.integers(0, 2**32))
def test_views_come_and_go(plan: Plan, start: Given, spare: Given, seed: int) -> None:
    random = Random(seed)
    parts = list(walk(plan))
    sources = {name: Memory(SCHEMAS[name], KEYS[name], start[name]) for name in SCHEMAS}
    pipeline = Pipeline(sources)
    feeds: list[tuple[Plan, Feed]] = []
    for turn in phases(start, spare, KEYS, seed):
        step = random.random()
        if step < 0.4:
            part = random.choice(parts)
            feeds.append((part, pipeline.attach(part)))
        elif step < 0.6 and feeds:
            feeds.pop(random.randrange(len(feeds)))[1].close()
        if random.random() < 0.3:  # others make the change, and someone takes it
            for name, update in turn.items():
                sources[name].write(update)
            if random.random() < 0.5:
                pipeline.poll()
            else:
                feeds.append((plan, pipeline.attach(plan)))
        else:
            pipeline.apply(turn)
        known = {name: [(row, 1) for row in rows] for name, rows in held(sources).items()}
        for part, feed in feeds:
            assert rows_of(feed) == contents_of(part, known).weights
    for _, feed in feeds:
        feed.close()
    assert pipeline.read == ()


def test_demands_and_updates_on_their_way() -> None:
    """What a view asks for goes up as one demand, a change comes down as one update."""
    from everview.plan.nodes import Filter, Project, Scan, Top
    from everview.plan.typing import call, literal

    noted: list[Snitch] = []

    def around(node: Any) -> Snitch:
        noted.append(Snitch(node))
        return noted[-1]

    tracks = Memory("id BIGINT, title STRING, rating BIGINT NOT NULL", "id", [(n, f"t{n}", n) for n in range(50)])
    pipeline = Pipeline({"track": tracks}, around=around)
    scan = Scan("track", tracks.schema)
    good = Filter(scan, call("less", scan.column(2), literal(40)))
    named = Project(good, (good.column(2), good.column(0)), ("stars", "id"))
    feed = pipeline.attach(Top(named, ((named.column(0), "desc"),), 3))
    assert sorted(feed.rows()) == [(37, 37), (38, 38), (39, 39)]
    at_source = noted[0]
    (asked,) = at_source.demands
    assert [str(each) for each in asked.where] == ["rating < 40L"]
    assert [(s.column, s.descends) for s in asked.order] == [(2, True), (0, False)]
    assert asked.limit == 3
    pipeline.apply({"track": [((38, "t38", 38), -1), ((60, "t60", 60), 1)]})
    assert sorted(feed.rows()) == [(36, 36), (37, 37), (39, 39)]
    (told,) = at_source.updates
    assert sorted(told) == [((38, "t38", 38), -1), ((60, "t60", 60), 1)]
    assert at_source.demands[1].after == (37, 37)
    assert at_source.demands[1].limit == 1
