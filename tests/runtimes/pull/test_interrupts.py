"""An exception at any line of a transaction or a poll: views are as before or as after, and usable."""

from __future__ import annotations

from collections import Counter
from typing import Any

from everview.plan.nodes import Scan, Top
from everview.runtimes.pull import PullPipeline
from everview.runtimes.pull.feed import PulledFeed
from everview.sources.memory import Memory
from everview.sources.protocol import Update
from torture.every_line import Passed, Place, RaiseAt
from torture.interrupts import traced


def test_a_transaction_of_a_source() -> None:
    tracks = Memory("id BIGINT, rating BIGINT NOT NULL", "id", [(n, n % 10) for n in range(100)])
    pipeline = PullPipeline({"track": tracks})
    track = Scan("track", tracks.schema)
    best = pipeline.attach(Top(track, ((track.column(1), "desc"),), 3))
    rating = 10

    def act() -> None:
        with pipeline.transaction() as tx:
            tx.upsert("track", [(7, rating), (8, rating)])

    passed = Passed()
    traced(passed, act)
    lines = [place for line in sorted(passed.lines) if (place := Place(*line, 1)).stateful]
    assert len(lines) > 80
    for place in lines:
        rating += 1
        traced(RaiseAt(place), act)
        pipeline.poll()  # whoever comes next takes what counts
        assert pipeline.verify(), place
        found = {row[1] for row in best.rows() if row[0] in (7, 8)}
        assert found in ({rating}, {rating - 1}), place
        act()
        assert {row[1] for row in best.rows() if row[0] in (7, 8)} == {rating}, place


class Told:
    """The rows that a listener makes of what it is told of a view."""

    def __init__(self, feed: PulledFeed) -> None:
        self.rows: Counter[Any] = Counter()
        feed.subscribe(self, snapshot=True)

    def __call__(self, changes: Any, epoch: int) -> None:
        for row, weight in changes.pairs:  # no line that could be interrupted
            self.rows[row] += weight

    def right(self, feed: PulledFeed) -> bool:
        return {row: n for row, n in self.rows.items() if n} == dict(feed.contents().pairs)


def test_all_views_are_as_before_or_as_after() -> None:
    """Read at once, before another turn; and the change is told once."""
    tracks = Memory("id BIGINT, rating BIGINT NOT NULL", "id", [(n, n % 10) for n in range(100)])
    pipeline = PullPipeline({"track": tracks})
    track = Scan("track", tracks.schema)
    best = pipeline.attach(Top(track, ((track.column(1), "desc"),), 3))
    every = pipeline.attach(track)
    told = {feed: Told(feed) for feed in (best, every)}
    rating = 10

    def seen() -> tuple[set[int], set[int]]:
        return tuple({row[1] for row in feed.rows() if row[0] in (7, 8)} for feed in (best, every))

    def act() -> None:
        with pipeline.transaction() as tx:
            tx.upsert("track", [(7, rating), (8, rating)])

    def attach() -> None:
        tracks.write(Update.of([((n, rating - 1), -1) for n in (7, 8)] + [((n, rating), 1) for n in (7, 8)]))
        pipeline.attach(Top(track, ((track.column(0), "desc"),), 3)).close()

    for change in (act, attach):
        passed = Passed()
        traced(passed, change)
        lines = [place for line in sorted(passed.lines) if (place := Place(*line, 1)).stateful]
        for place in lines:
            rating += 1
            traced(RaiseAt(place), change)
            assert seen() in (({rating}, {rating}), ({rating - 1}, {rating - 1})), place
            pipeline.poll()
            assert all(listener.right(feed) for feed, listener in told.items()), place
            act()
            assert seen() == ({rating}, {rating}), place
            assert all(listener.right(feed) for feed, listener in told.items()), place
        rating += 1
