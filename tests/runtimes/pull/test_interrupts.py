"""An exception at any line of a transaction or a poll: the next turn finds sources and views right and usable."""

from __future__ import annotations

from everview.plan.nodes import Scan, Top
from everview.runtimes.pull import PullPipeline
from everview.sources.memory import Memory
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
