"""The same query and the same changes over memory, SQLite and PostgreSQL: equal to each other and to a recompute.

After every turn of the four phases: everything is removed, added back, edited at random, and edited back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everview.oracle.plans import contents as contents_of
from everview.oracle.rows import Rows
from everview.plan.node import Plan
from everview.pull import Feed, Pipeline
from everview.runtimes.pull.fluent import AtPipeline
from everview.sources.protocol import Source
from everview.types import Schema
from frontends.fluent.drawn import Recipe, build, recipes
from frontends.fluent.music import TABLES, Music, rows
from frontends.fluent.naive import evaluate
from runtimes.pull.drawn import KEYS, SCHEMAS, contents, plans
from runtimes.pull.phases import phases
from runtimes.pull.stores import fill, held, in_memory, in_postgres, in_sqlite

Given = dict[str, list[tuple[Any, ...]]]
Stores = dict[str, dict[str, Source]]
STARTS = st.fixed_dictionaries({name: contents(name) for name in SCHEMAS})
FIXTURES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]

MUSIC = {name: Schema.parse(columns) for name, columns in TABLES.items()}
IDS = dict.fromkeys(MUSIC, ("id",))
LIBRARIES = st.fixed_dictionaries(
    {name: st.lists(rows(name), max_size=5, unique_by=lambda row: row[0]) for name in MUSIC}
)


@pytest.fixture(scope="module")
def stores(postgres: str) -> Iterator[Stores]:
    with in_postgres(SCHEMAS, KEYS, postgres, "plans") as there:
        yield {"memory": in_memory(SCHEMAS, KEYS), "sqlite": in_sqlite(SCHEMAS, KEYS), "postgres": there}


@pytest.fixture(scope="module")
def libraries(postgres: str) -> Iterator[Stores]:
    with in_postgres(MUSIC, IDS, postgres, "queries") as there:
        yield {"memory": in_memory(MUSIC, IDS), "sqlite": in_sqlite(MUSIC, IDS), "postgres": there}


def shown(feed: Feed) -> dict[Any, int]:
    return Rows.inside(feed.schema, list(feed.contents())).weights


@settings(max_examples=40, suppress_health_check=FIXTURES)
@given(plan=plans(), start=STARTS, spare=STARTS, seed=st.integers(0, 2**32))
def test_plans(stores: Stores, plan: Plan, start: Given, spare: Given, seed: int) -> None:
    pipelines = {store: Pipeline(sources) for store, sources in stores.items()}
    for sources in stores.values():
        fill(sources, start)
    feeds = {store: pipeline.attach(plan) for store, pipeline in pipelines.items()}
    _compare(stores, feeds, plan)
    for turn in phases(start, spare, KEYS, seed):
        for pipeline in pipelines.values():
            pipeline.apply(turn)
        _compare(stores, feeds, plan)


def _compare(stores: Stores, feeds: Mapping[str, Feed], plan: Plan) -> None:
    known = {name: list(Counter(rows).items()) for name, rows in held(stores["memory"]).items()}
    wanted = contents_of(plan, known).weights
    for store, feed in feeds.items():
        assert shown(feed) == wanted, store


@settings(max_examples=40, suppress_health_check=FIXTURES)
@given(recipe=recipes(), start=LIBRARIES, spare=LIBRARIES, seed=st.integers(0, 2**32))
def test_fluent_queries(libraries: Stores, recipe: Recipe, start: Given, spare: Given, seed: int) -> None:
    pipelines = {store: Pipeline(sources) for store, sources in libraries.items()}
    for sources in libraries.values():
        fill(sources, start)
    views = {store: build(AtPipeline(pipeline), recipe).materialize() for store, pipeline in pipelines.items()}
    _compare_trees(libraries, views, recipe)
    for turn in phases(start, spare, IDS, seed):
        for pipeline in pipelines.values():
            pipeline.apply(turn)
        _compare_trees(libraries, views, recipe)


def _compare_trees(libraries: Stores, views: Mapping[str, Any], recipe: Recipe) -> None:
    known = held(libraries["memory"])
    wanted = evaluate(recipe, Music({name: {row[0]: row for row in rows} for name, rows in known.items()}))
    for store, view in views.items():
        assert view.value() == wanted, store
