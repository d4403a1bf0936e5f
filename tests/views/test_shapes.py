"""Every shape is what its definition says of the rows, after every change; and its changes add up to it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import EverviewError, ListenerError, ShapeError, UnknownName
from everview.types import Schema
from everview.views import OrderedView, ScalarView, Shape, TableView
from strategies import DOMAINS
from views.given import Given, bag, in_order, rows_of, text

TYPES = list(DOMAINS)


@st.composite
def schemas(draw: Any) -> Schema:
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    return Schema.of(**{f"c{at}": of if draw(st.booleans()) else of.not_null for at, of in enumerate(types)})


def rows(schema: Schema) -> st.SearchStrategy[Any]:
    columns = [st.sampled_from([*DOMAINS[f.type], *([None] if f.nullable else [])]) for f in schema]
    return st.tuples(*columns)


def streams(schema: Schema) -> st.SearchStrategy[Any]:
    weights = st.sampled_from([1, 1, 1, -1, -1, 2, -2])
    return st.lists(st.lists(st.tuples(rows(schema), weights), max_size=6), max_size=6)


class Sum:
    """What a listener makes of all that it is told."""

    def __init__(self, shape: Shape, *, snapshot: bool) -> None:
        self.held: Counter[str] = Counter()
        self.calls = 0
        if not snapshot:
            self.held = bag(shape.contents())
        shape.subscribe(self, snapshot=snapshot)

    def __call__(self, changes: Any, epoch: int) -> None:
        found = bag(changes)
        assert len(found) == len(list(changes)), "netted"
        self.held.update(found)
        self.held = Counter({row: weight for row, weight in self.held.items() if weight})
        self.calls += 1


@given(st.data())
def test_table(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    feed = Given(schema)
    first, *others = [*data.draw(streams(schema)), []]
    feed.change(first)
    view = TableView(feed)
    told = Sum(view, snapshot=data.draw(st.booleans()))
    for changes in others:
        before = told.calls
        feed.change(changes)
        assert Counter(map(text, view.rows())) == Counter(map(text, rows_of(feed.held)))
        assert len(view) == len(view.rows())
        assert told.held == bag(view.contents()) == bag(feed.held)
        assert told.calls - before == bool(bag(changes)), "once, and only on change"


@given(st.data())
def test_ordered(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    feed = Given(schema)
    directions = st.tuples(st.sampled_from(schema.names), st.sampled_from(["asc", "desc"]))
    by = data.draw(st.lists(directions, max_size=2, unique_by=lambda pair: pair[0]))
    limit, offset = data.draw(st.one_of(st.none(), st.integers(0, 4))), data.draw(st.integers(0, 3))
    first, *others = [*data.draw(streams(schema)), []]
    feed.change(first)
    view = OrderedView(feed, *by, limit=limit, offset=offset)
    told = Sum(view, snapshot=data.draw(st.booleans()))
    places = [(schema.index(name), how) for name, how in by]
    for changes in others:
        before, calls = list(map(text, view)), told.calls
        feed.change(changes)
        whole = in_order(rows_of(feed.held), places)
        expected = [text(row) for row in (whole[offset:] if limit is None else whole[offset : offset + limit])]
        assert [text(row) for row in view] == expected
        assert len(view) == len(expected)
        assert [text(view[at]) for at in range(-len(view), len(view))] == expected * 2
        assert [text(row) for row in view[1:3]] == expected[1:3]
        assert [text(row) for row in view[::-2]] == expected[::-2]
        assert told.held == Counter(expected) == bag(view.contents())
        assert told.calls - calls == (Counter(before) != Counter(expected)), "only if what shows has changed"


def test_where_null_stands() -> None:
    feed = Given("n BIGINT")
    feed.change([((n,), 1) for n in (2, None, 1)])
    found = {how: [n for (n,) in OrderedView(feed, f"n {how}")] for how in NULLS}
    assert found == NULLS
    assert [n for (n,) in OrderedView(feed, ("n", "desc nulls first"))] == NULLS["desc nulls first"]


NULLS = {
    "": [None, 1, 2],
    "asc": [None, 1, 2],
    "DESC": [2, 1, None],
    "asc nulls first": [None, 1, 2],
    "nulls last": [1, 2, None],
    "asc nulls last": [1, 2, None],
    "desc NULLS first": [None, 2, 1],
    "desc nulls first": [None, 2, 1],
    "desc nulls last": [2, 1, None],
}


def test_a_window_of_many_rows() -> None:
    feed = Given("id BIGINT NOT NULL, n BIGINT NOT NULL")
    feed.change([((i, (i * 7919) % 10007), 1) for i in range(5000)])
    view = OrderedView(feed, "n desc", limit=10, offset=2000)
    told = Sum(view, snapshot=True)
    for i in range(0, 5000, 61):
        feed.change([((i, (i * 7919) % 10007), -1), ((i, i), 1)])
        expected = in_order(rows_of(feed.held), [(1, "desc")])[2000:2010] if i % 10 == 0 else view.rows()
        assert view.rows() == expected
        assert told.held == bag((row, 1) for row in view)


def test_edits_in_any_order() -> None:
    """An update is a row that goes and a row that comes; which is given first says nothing."""
    feed = Given("id BIGINT NOT NULL, v BIGINT")
    table, ordered = TableView(feed, dicts=True), OrderedView(feed, "id", dicts=True)
    feed.change([(("r1", 1), 1)])
    feed.change([(("r1", 2), 1), (("r1", 1), -1)])
    feed.change([(("r1", 2), -1), (("r1", 3), 1), (("r1", 3), -1), (("r1", 4), 1)])
    assert table.rows() == ordered.rows() == [{"id": "r1", "v": 4}]
    assert {"id": "r1", "v": 4} in table
    assert ("r1", 3) not in table


def test_scalar() -> None:
    feed = Given("n BIGINT")
    view = ScalarView(feed, default=0)
    told: list[Any] = []
    view.subscribe(lambda changes, epoch: told.append(sorted(changes)))
    assert view.value == 0
    feed.change([((5,), 1)])
    assert view.value == 5
    feed.change([((6,), 1), ((5,), -1)])
    feed.change([((6,), 1), ((6,), -1)])
    assert view.value == 6
    assert told == [[((5,), 1)], [((5,), -1), ((6,), 1)]]
    feed.change([((7,), 1)])
    with pytest.raises(ShapeError, match="given has 2 rows"):
        _ = view.value
    assert "2 rows" in repr(view)
    feed.change([((6,), -1)])
    assert (view.value, repr(view)) == (7, "<scalar view given: 7>")
    with pytest.raises(ShapeError, match="2 columns"):
        ScalarView(Given("a BIGINT, b BIGINT"))


@pytest.mark.parametrize(
    ("by", "how", "error"),
    [
        (["x"], {}, UnknownName),
        (["n sideways"], {}, EverviewError),
        ([], {"limit": -1}, ShapeError),
        ([], {"offset": -1}, ShapeError),
    ],
)
def test_what_cannot_be_ordered(by: list[str], how: dict[str, int], error: type[Exception]) -> None:
    feed = Given("n BIGINT")
    with pytest.raises(error):
        OrderedView(feed, *by, **how)
    assert not feed.subscriptions


def test_a_listener_that_raises_harms_nobody() -> None:
    feed = Given("n BIGINT")
    view, other = OrderedView(feed), TableView(feed)
    told: list[int] = []

    def fails(changes: Any, epoch: int) -> None:
        raise ValueError("no")

    view.subscribe(fails)
    view.subscribe(lambda changes, epoch: told.append(epoch))
    with pytest.raises(ListenerError, match="given raised ValueError: no"):
        feed.change([((1,), 1)])
    assert told == [1]
    assert view.rows() == [(1,)]
    with pytest.raises(ListenerError):
        feed.change([((2,), 1)])
    assert view.rows() == [(1,), (2,)]
    with pytest.raises(ValueError, match="no"):
        other.subscribe(fails, snapshot=True)
    assert sorted(other.rows()) == [(1,), (2,)]


def test_the_end() -> None:
    feed = Given("n BIGINT")
    view, ended = OrderedView(feed), list[str]()
    view.subscribe(lambda changes, epoch: None, ended=lambda: ended.append("listener"))
    feed.change([((1,), 1)])
    feed.end()
    assert view.closed
    assert ended == ["listener"]
    assert view.rows() == [(1,)], "as it was last"
    assert list(view.changes()) == []
    with TableView(feed) as table:
        pass
    feed.change([((2,), 1)])
    assert table.rows() == [(1,)]


def test_html_is_escaped_and_cut() -> None:
    feed = Given("name STRING")
    views = [TableView(feed), OrderedView(feed)]
    scalar = ScalarView(feed)
    feed.change([(("<b>",), 1)])
    for view in [*views, scalar]:
        assert "&lt;b&gt;" in view._repr_html_()
        assert "<b>" not in view._repr_html_()
    feed.change([((f"n{i}",), 1) for i in range(200)])
    for view in views:
        assert view._repr_html_().count("<tr>") == 51
        assert "and 151 more" in view._repr_html_()
        assert "201 rows" in repr(view)
