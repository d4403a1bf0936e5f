"""Transactions over several sources: one notification, nested, and no trace of one that fails, wherever it does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.errors import DuplicateKey, ListenerError, NegativeWeight, PipelineError, TransactionError, UnknownName
from everview.oracle.plans import contents as contents_of
from everview.oracle.rows import Rows
from everview.plan.node import Plan
from everview.pull import Feed, Pipeline
from everview.sources.memory import Memory
from everview.sources.protocol import Request, Update
from runtimes.pull.doubles import Fault, Faults, Fragile, FragileSource
from runtimes.pull.drawn import KEYS, SCHEMAS, contents, plans
from runtimes.pull.phases import phases
from runtimes.pull.stores import held

Given = dict[str, list[tuple[Any, ...]]]
STARTS = st.fixed_dictionaries({name: contents(name) for name in SCHEMAS})


def rows_of(feed: Feed) -> dict[Any, int]:
    return Rows.inside(feed.schema, list(feed.contents())).weights


def wanted(plan: Plan, pipeline: Pipeline) -> dict[Any, int]:
    known = held(pipeline.sources)
    return contents_of(plan, {name: [(row, 1) for row in rows] for name, rows in known.items()}).weights


@settings(max_examples=40)
@given(plans(depth=3), STARTS, STARTS, st.integers(0, 2**32), st.data())
def test_a_fault_anywhere_leaves_all_as_it_was(
    plan: Plan, start: Given, spare: Given, seed: int, data: st.DataObject
) -> None:
    faults = Faults()
    sources = {name: FragileSource(SCHEMAS[name], KEYS[name], start[name]) for name in SCHEMAS}
    for source in sources.values():
        source.faults = faults
    pipeline = Pipeline(sources, around=lambda node: Fragile(node, faults))
    feed = pipeline.attach(plan)
    told: list[Any] = []
    feed.subscribe(lambda changes, epoch: told.append(changes))
    for turn in phases(start, spare, KEYS, seed):
        before, known, tellings = rows_of(feed), held(sources), len(told)
        faults.left = data.draw(st.integers(0, 12))
        try:
            pipeline.apply(turn)
        except Fault:
            assert len(told) == tellings
            if not pipeline.stale:  # no source has been committed
                assert rows_of(feed) == before
                assert {name: sorted(map(repr, rows)) for name, rows in held(sources).items()} == {
                    name: sorted(map(repr, rows)) for name, rows in known.items()
                }
            faults.left = None
            rest = {name: update for name, update in turn.items() if not _is_in(sources[name], known[name])}
            pipeline.apply(rest)
        faults.left = None
        assert rows_of(feed) == wanted(plan, pipeline)


def _is_in(source: Memory, before: list[Any]) -> bool:
    """Whether a source has committed what the others have not."""
    return sorted(map(repr, source.pull(Request()))) != sorted(map(repr, before))


@pytest.fixture
def shop() -> Pipeline:
    return Pipeline(
        {
            "account": Memory("id BIGINT, owner STRING NOT NULL", "id", [(1, "Ada"), (2, "Bob")]),
            "payment": Memory("id BIGINT, account BIGINT NOT NULL, amount BIGINT NOT NULL", "id", [(1, 1, 5)]),
            "note": Memory("account BIGINT NOT NULL, text STRING"),
        }
    )


def totals(shop: Pipeline) -> Plan:
    from everview.plan.nodes import Aggregate, Join, Scan
    from everview.plan.typing import call
    from everview.scalars.expressions import AggregateCall, Column
    from everview.types import BIGINT, STRING

    account, payment = (Scan(name, shop.sources[name].schema) for name in ("account", "payment"))
    joined = Join(payment, account, "inner", call("equal", Column(1, "account", BIGINT), Column(3, "id", BIGINT)))
    total = AggregateCall("sum", (Column(2, "amount", BIGINT, False),), False, None, (), BIGINT, True)
    return Aggregate(joined, (Column(4, "owner", STRING, False),), (total,), ("owner", "total"))


def test_one_notification_for_several_sources(shop: Pipeline) -> None:
    feed, told = shop.attach(totals(shop)), list[Any]()
    feed.subscribe(lambda changes, epoch: told.append((sorted(changes), epoch)), snapshot=True)
    with shop.transaction() as tx:
        tx.insert("account", [(3, "Cid")])
        tx.insert("payment", [(2, 3, 7), (3, 3, 1)])
        tx.upsert("payment", [(1, 2, 6)])
        assert feed.rows() == [("Ada", 5)]
    assert told == [([(("Ada", 5), 1)], 0), ([(("Ada", 5), -1), (("Bob", 6), 1), (("Cid", 8), 1)], 1)]
    with shop.transaction() as tx:
        tx.upsert("account", [(2, "Bob")])
        tx.insert("payment", [(9, 1, 1)])
        tx.delete("payment", [9, 10])
    assert len(told) == 2  # nothing has changed


def test_an_inner_one_that_fails_undoes_only_itself(shop: Pipeline) -> None:
    feed = shop.attach(totals(shop))
    with shop.transaction() as tx:
        tx.insert("payment", [(2, 1, 1)])
        with pytest.raises(Fault), shop.transaction() as inner:  # noqa: PT012
            inner.insert("account", [(3, "Cid")])
            inner.upsert("payment", [(2, 1, 100)])
            inner.insert("note", [(1, "x")])
            raise Fault
        with shop.transaction() as inner:
            inner.insert("payment", [(3, 1, 2)])
    assert feed.rows() == [("Ada", 8)]
    assert held(shop.sources)["account"] == [(1, "Ada"), (2, "Bob")]
    assert held(shop.sources)["note"] == []


def test_an_exception_leaves_no_trace(shop: Pipeline) -> None:
    feed, told = shop.attach(totals(shop)), list[Any]()
    feed.subscribe(lambda changes, epoch: told.append(changes))
    before = held(shop.sources)
    with pytest.raises(Fault), shop.transaction() as tx:  # noqa: PT012
        tx.delete("payment", [1])
        tx.insert("note", [(1, "x")])
        raise Fault
    assert (feed.rows(), held(shop.sources), told) == ([("Ada", 5)], before, [])
    with pytest.raises(TransactionError, match="ended"):
        tx.insert("note", [(1, "x")])
    shop.apply({"payment": [((2, 2, 2), 1)]})
    assert sorted(feed.rows()) == [("Ada", 5), ("Bob", 2)]


def test_what_cannot_be_is_refused(shop: Pipeline) -> None:
    feed = shop.attach(totals(shop))
    with pytest.raises(DuplicateKey), shop.transaction() as tx:
        tx.insert("account", [(1, "Eve")])
    with pytest.raises(NegativeWeight):
        shop.apply({"payment": [((1, 1, 6), -1)]})
    with pytest.raises(UnknownName, match="paiment"), shop.transaction() as tx:
        tx.insert("paiment", [(1, 1, 1)])
    with pytest.raises(TransactionError), shop.transaction():
        shop.attach(totals(shop))
    with pytest.raises(PipelineError, match="read by"):
        shop.drop("account")
    assert feed.rows() == [("Ada", 5)]


def test_rows_of_a_source_without_a_key(shop: Pipeline) -> None:
    with shop.transaction() as tx:
        assert tx.insert("note", [(1, "x"), (1, "x"), {"account": 2}]) == 3
        assert tx.delete("note", [(1, "x")]) == 1
    assert sorted(held(shop.sources)["note"], key=repr) == [(1, "x"), (2, None)]
    with pytest.raises(NegativeWeight), shop.transaction() as tx:
        tx.delete("note", [(7, "x")])


def test_others_changes_are_taken_together(shop: Pipeline) -> None:
    feed, told = shop.attach(totals(shop)), list[Any]()
    feed.subscribe(lambda changes, epoch: told.append(sorted(changes)))
    shop.sources["account"].write(Update({(3, "Cid"): 1}))
    shop.sources["payment"].write(Update({(2, 3, 4): 1}))
    assert feed.rows() == [("Ada", 5)]
    assert shop.poll()
    assert not shop.poll()
    assert told == [[(("Cid", 4), 1)]]


def test_a_view_is_attached_after_others_changes(shop: Pipeline) -> None:
    first, told = shop.attach(totals(shop)), list[Any]()
    first.subscribe(lambda changes, epoch: told.append(sorted(changes)))
    shop.sources["payment"].write(Update({(2, 2, 4): 1}))
    second = shop.attach(totals(shop))
    assert sorted(first.rows()) == sorted(second.rows()) == [("Ada", 5), ("Bob", 4)]
    assert told == [[(("Bob", 4), 1)]]


def test_a_listener_that_raises_is_reported_when_all_were_told(shop: Pipeline) -> None:
    feed, told = shop.attach(totals(shop)), list[Any]()

    def fail(changes: Any, epoch: int) -> None:
        raise Fault

    feed.subscribe(fail)
    feed.subscribe(lambda changes, epoch: told.append(epoch))
    with pytest.raises(ListenerError, match="Fault"):
        shop.apply({"payment": [((2, 2, 4), 1)]})
    assert told == [1]
    assert sorted(feed.rows()) == [("Ada", 5), ("Bob", 4)]


def test_a_listener_may_change_sources(shop: Pipeline) -> None:
    feed, told = shop.attach(totals(shop)), list[Any]()

    def answer(changes: Any, epoch: int) -> None:
        told.append(epoch)
        if epoch == 1:
            shop.apply({"payment": [((9, 1, 1), 1)]})

    feed.subscribe(answer)
    shop.apply({"payment": [((2, 2, 4), 1)]})
    assert told == [1, 2]
    assert sorted(feed.rows()) == [("Ada", 6), ("Bob", 4)]


def test_the_second_of_two_sources_that_refuses(shop: Pipeline) -> None:
    """There is no commit of two databases in one; the views show what the sources hold, from the next turn on."""
    faults = Faults()
    fragile = FragileSource("id BIGINT, account BIGINT NOT NULL, amount BIGINT NOT NULL", "id", [(1, 1, 5)])
    pipeline = Pipeline({"account": shop.sources["account"], "payment": fragile})
    feed, told = pipeline.attach(totals(pipeline)), list[Any]()
    feed.subscribe(lambda changes, epoch: told.append(sorted(changes)))
    fragile.faults = faults
    faults.left = 4  # begin, write twice, changes, commit
    with pytest.raises(Fault):
        pipeline.apply({"account": [((1, "Ada"), -1), ((1, "Eve"), 1)], "payment": [((2, 1, 1), 1)]})
    assert pipeline.stale
    assert told == []
    assert pipeline.poll()
    assert feed.rows() == [("Eve", 5)]
    assert told == [[(("Ada", 5), -1), (("Eve", 5), 1)]]
    pipeline.apply({"payment": [((2, 1, 1), 1)]})
    assert feed.rows() == [("Eve", 6)]
