"""Fluent queries over sources: run by one pull, or kept as views of a pipeline.

>>> from everview.runtimes.pull.pipeline import PullPipeline
>>> from everview.sources.memory import Memory
>>> artists = Memory("id BIGINT, name STRING", "id", [(1, "Ada"), (2, "Bob")])
>>> tracks = Memory("id BIGINT, artist BIGINT, rating BIGINT", "id", [(1, 1, 5), (2, 1, 3), (3, 2, 4)])
>>> home = AtPipeline(PullPipeline({"artist": artists, "track": tracks}))
>>> best = home.query("track").order_by("rating", "desc").limit(1)
>>> home.query("artist").where("name", "Ada").related_many("best", best, on=("id", "artist")).run()
[{'id': 1, 'name': 'Ada', 'best': [{'id': 1, 'artist': 1, 'rating': 5}]}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from everview.frontends.fluent import Home, PreparedQuery, Query, QueryPart, trees
from everview.frontends.fluent.conditions import relation_name
from everview.plan.catalog import Readable
from everview.plan.node import Plan
from everview.runtimes.pull.build import prepared as prepared_plan
from everview.runtimes.pull.feed import PulledFeeds
from everview.runtimes.pull.pipeline import PullPipeline
from everview.sources.protocol import Source, is_keyed
from everview.types import Schema, unknown_name

Shaped = Callable[[str, QueryPart, PulledFeeds], Any]  # a view of a query, by the name, its parts, and their feeds


class ReadableSources(Readable):
    """The sources of a pipeline as a query may read them."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources

    def names(self) -> Iterable[str]:
        return self._sources

    def find(self, name: str) -> str:
        """The name of a source; case does not matter where it is plain whose it is."""
        matching = [each for each in self._sources if each.casefold() == name.casefold()]
        if name in matching or len(matching) == 1:
            return name if name in matching else matching[0]
        raise unknown_name("source", name, list(self._sources))

    def relation(self, name: str) -> Schema:
        return self._sources[self.find(name)].schema

    def key(self, name: str) -> tuple[str, ...]:
        source = self._sources[self.find(name)]
        return source.key if is_keyed(source) else ()


class AtPipeline(Home):
    """The home of queries over the sources of a pipeline; ``shaped`` makes of their feeds what is handed out."""

    def __init__(self, pipeline: PullPipeline, shaped: Shaped | None = None) -> None:
        self.pipeline = pipeline
        self._shaped: Shaped = shaped or Living

    def query(self, relation: str, alias: str | None = None) -> Query:
        """A query of a source, to be built step by step."""
        return Query.of(self, self.catalog.find(relation), alias)

    @property
    def catalog(self) -> ReadableSources:
        return ReadableSources(self.pipeline.sources)

    @property
    def definitions(self) -> PullPipeline:
        return self.pipeline

    def same(self, other: Home) -> bool:
        return isinstance(other, AtPipeline) and other.pipeline is self.pipeline

    def computed(self, plan: Plan) -> Plan:
        return prepared_plan(plan)

    # -- what is done with queries

    def run(self, query: Query, prepared: PreparedQuery | None = None) -> Any:
        return self.answered(query.parts() if prepared is None else prepared.part)

    def materialize(self, query: Query, name: str | None) -> Any:
        return self.living(query.parts(), query.said.relation if name is None else relation_name(name))

    def answered(self, part: QueryPart) -> Any:
        """The answer of a query, from the rows of all its parts at one moment."""
        named = dict(part.walk(""))
        rows = self.pipeline.pull(*(one.plan for one in named.values()))
        return trees(part, dict(zip(named, rows, strict=True)))

    def living(self, part: QueryPart, name: str) -> Any:
        """A view of a query: one feed for each of its parts."""
        feeds = self.pipeline.attach_all({each: one.plan for each, one in part.walk(name)})
        try:
            return self._shaped(name, part, feeds)
        except BaseException:
            feeds.close()
            raise


class Living:
    """A view of a query as trees, put together anew whenever it is read."""

    def __init__(self, name: str, part: QueryPart, feeds: PulledFeeds) -> None:
        self.name, self.part, self.feeds = name, part, feeds

    def value(self) -> Any:
        """The answer of the query now."""
        with self.feeds.lock:
            rows = {name: feed.rows() for name, feed in self.feeds.feeds.items()}
        return trees(self.part, rows, self.name)

    def explain(self) -> str:
        """The pipelines of all parts."""
        return "\n\n".join(f"{name}: {feed.explain()}" for name, feed in self.feeds.feeds.items())

    def close(self) -> None:
        """Let it go."""
        self.feeds.close()
