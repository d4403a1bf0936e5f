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

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from everview.frontends.fluent import Home, Part, Query, trees
from everview.frontends.fluent.conditions import relation_name
from everview.runtimes.pull.build import prepared
from everview.runtimes.pull.feed import PulledFeeds
from everview.runtimes.pull.pipeline import PullPipeline
from everview.sources.protocol import is_keyed
from everview.types import Schema, unknown_name

Shaped = Callable[[str, Part, PulledFeeds], Any]  # a view of a query, by the name, its parts, and their feeds


class AtPipeline:
    """Where queries over the sources of a pipeline are at home; ``shaped`` makes of their feeds what is handed out."""

    def __init__(self, pipeline: PullPipeline, shaped: Shaped | None = None) -> None:
        self.pipeline = pipeline
        self._shaped: Shaped = shaped or Living

    def query(self, relation: str, alias: str | None = None) -> Query:
        """A query of a source, to be built step by step."""
        return Query.of(self, self.find(relation), alias)

    # -- what it may read

    def same(self, other: Home) -> bool:
        return isinstance(other, AtPipeline) and other.pipeline is self.pipeline

    def names(self) -> Iterable[str]:
        return self.pipeline.sources

    def find(self, name: str) -> str:
        """The name of a source; case does not matter where it is plain whose it is."""
        found = [each for each in self.pipeline.sources if each.casefold() == name.casefold()]
        if name in found or len(found) == 1:
            return name if name in found else found[0]
        raise unknown_name("source", name, list(self.pipeline.sources))

    def relation(self, name: str) -> Schema:
        return self.pipeline.sources[self.find(name)].schema

    def key(self, name: str) -> tuple[str, ...]:
        source = self.pipeline.sources[self.find(name)]
        return source.key if is_keyed(source) else ()

    # -- what is done with queries

    def prepare(self, query: Query) -> Prepared:
        return Prepared(self, query, query.parts())

    def run(self, query: Query) -> Any:
        return self.answered(query.parts())

    def materialize(self, query: Query, name: str | None) -> Any:
        return self.living(query.parts(), query.said.relation if name is None else relation_name(name))

    def answered(self, part: Part) -> Any:
        """What a query gives, from the rows of all its parts at one moment."""
        named = dict(part.walk(""))
        rows = self.pipeline.pull(*(one.plan for one in named.values()))
        return trees(part, dict(zip(named, rows, strict=True)))

    def living(self, part: Part, name: str) -> Any:
        """A view of a query: one feed for each of its parts."""
        feeds = self.pipeline.attach_all({each: one.plan for each, one in part.walk(name)})
        try:
            return self._shaped(name, part, feeds)
        except BaseException:
            feeds.close()
            raise


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query over sources that has been checked as a whole, and planned."""

    home: AtPipeline
    query: Query
    part: Part

    def run(self) -> Any:
        """What it gives now."""
        return self.home.answered(self.part)

    def materialize(self, name: str | None = None) -> Any:
        """A view of it."""
        return self.home.materialize(self.query, name)

    def explain(self) -> str:
        """The plan of every part, as it is built."""
        named = self.part.walk(self.query.said.relation)
        return "\n\n".join(f"{name}\n{prepared(part.plan)}" for name, part in named)


class Living:
    """A view of a query as trees, put together anew whenever it is read."""

    def __init__(self, name: str, part: Part, feeds: PulledFeeds) -> None:
        self.name, self.part, self.feeds = name, part, feeds

    def value(self) -> Any:
        """What the query gives now."""
        with self.feeds.lock:
            rows = {name: feed.rows() for name, feed in self.feeds.feeds.items()}
        return trees(self.part, rows, self.name)

    def explain(self) -> str:
        """The pipelines of all parts."""
        return "\n\n".join(f"{name}: {feed.explain()}" for name, feed in self.feeds.feeds.items())

    def close(self) -> None:
        """Let it go."""
        self.feeds.close()
