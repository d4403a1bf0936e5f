"""Trees are what nested loops over the rows make of them; versions share what has not changed, and stay."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview import Database, connect
from everview.errors import DefinitionError, ShapeError, UnknownName
from everview.views import Node, Related, TableView, TreeView, plain
from views.given import in_order

ids = st.sampled_from([None, 1, 2, 3])
artists = st.tuples(st.integers(1, 3), st.sampled_from(["a", "b", None]))
albums = st.tuples(st.integers(1, 3), ids, st.sampled_from(["x", "y"]))
tracks = st.tuples(ids, st.integers(0, 3))
weights = st.sampled_from([1, 1, 1, 2, -1, -1])
ticks = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "artist": st.lists(st.tuples(artists, weights), max_size=3),
            "album": st.lists(st.tuples(albums, weights), max_size=3),
            "track": st.lists(st.tuples(tracks, weights), max_size=4),
        },
    ),
    max_size=6,
)
TABLES = {
    "artist": "id BIGINT NOT NULL, name STRING",
    "album": "id BIGINT NOT NULL, artist BIGINT, title STRING",
    "track": "album BIGINT, n BIGINT NOT NULL",
}


def music() -> Database:
    db = connect()
    for name, columns in TABLES.items():
        db.create_table(name, columns)
        db.create_view(f"{name}s", lambda of, name=name: of[name].select(*of[name].schema.names))
    return db


def tree_of(db: Database, **how: Any) -> TreeView:
    tracks = Related("tracks", "tracks", on=("id", "album"), by="n desc", show=["n"])
    first = Related("first", "tracks", on=("id", "album"), by="n", show=["n"], one=True)
    albums = Related("albums", "albums", on=("id", "artist"), by=("title", "desc"), related=[tracks, first])
    return db.view("artists").tree(albums, by="name desc", **how)


def naive(db: Database) -> list[Any]:
    """The same tree by nested loops."""
    rows = {name: db.table(name).rows() for name in TABLES}

    def numbered(album: Any, how: str) -> list[Any]:
        mine = [row for row in rows["track"] if row[0] == album[0]]
        return [{"n": n} for _, n in in_order(mine, [(1, how)])]

    def of_album(album: Any) -> Any:
        first = next(iter(numbered(album, "asc")), None)
        return {
            "id": album[0],
            "artist": album[1],
            "title": album[2],
            "tracks": numbered(album, "desc"),
            "first": first,
        }

    def of_artist(artist: Any) -> Any:
        mine = [row for row in rows["album"] if row[1] == artist[0]]
        return {"id": artist[0], "name": artist[1], "albums": list(map(of_album, in_order(mine, [(2, "desc")])))}

    return list(map(of_artist, in_order(rows["artist"], [(1, "desc")])))


def apply(db: Database, tick: dict[str, Any]) -> None:
    """A tick, without what would take away a row that is not there."""
    with db.transaction() as tx:
        for table, pairs in tick.items():
            there = db.table(table).rows()
            for row, weight in pairs:
                if weight > 0:
                    tx.apply({table: [(row, weight)]})
                    there += [row] * weight
                elif row in there:
                    tx.apply({table: [(row, -1)]})
                    there.remove(row)


@settings(max_examples=30)
@given(ticks)
def test_trees(stream: list[dict[str, Any]]) -> None:
    db = music()
    apply(db, (stream or [{}])[0])
    tree, single = tree_of(db), tree_of(db, one=True)
    told: list[Any] = []
    sums: dict[Node, int] = dict(tree.contents())
    tree.subscribe(lambda changes, epoch: told.append(changes))
    versions: list[tuple[Any, Any]] = []
    for tick in stream[1:]:
        before, calls = tree.data, len(told)
        versions.append((before, copy.deepcopy(plain(before))))
        apply(db, tick)
        expected = naive(db)
        assert tree.to_list() == expected
        assert len(tree) == len(expected)
        assert single.to_list() == (expected[0] if expected else None)
        assert len(told) - calls == (plain(before) != expected), "once, and only on change"
        for node, weight in told[-1] if len(told) > calls else ():
            sums[node] = sums.get(node, 0) + weight
        assert {n: w for n, w in sums.items() if w} == {n: tree.data.count(n) for n in tree.data}
        for old in before:  # all that is the same is the same object
            assert all(new is old for new in tree.data if new == old) or tree.data.count(old) > 1
    for version, was in versions:
        assert plain(version) == was, "older versions stay as they were"


def test_versions_share_what_has_not_changed() -> None:
    db = music()
    db.apply(
        {
            "artist": [((1, "Ada"), 1), ((2, "Bob"), 1)],
            "album": [((10, 1, "x"), 1), ((11, 1, "y"), 1), ((20, 2, "z"), 1)],
            "track": [((10, 1), 1), ((11, 2), 1), ((20, 3), 1)],
        }
    )
    tree = tree_of(db)
    bob, ada = before = tree.data
    assert tree.data is before
    db.apply({"track": [((10, 7), 1)]})
    after = tree.data
    assert after[0] is bob
    assert after[1] is not ada
    assert after[1].albums[0] is ada.albums[0], "y"
    assert after[1].albums[1] is not ada.albums[1], "x"
    assert after[1].albums[1].tracks[1] is ada.albums[1].tracks[0]
    assert after[1].albums[1].first is ada.albums[1].first
    assert [t.n for t in ada.albums[1].tracks] == [1]
    db.apply({"track": [((99, 7), 1)]})
    assert tree.data is after, "a row that belongs to nothing shows nowhere"


def test_a_child_that_does_not_show() -> None:
    """Of one shown child, a second changes nothing: nobody is told, and the node stays."""
    db = music()
    db.apply({"artist": [((1, "Ada"), 1)], "album": [((10, 1, "b"), 1)]})
    tree = db.view("artists").tree(Related("album", "albums", on=("id", "artist"), by="title", one=True))
    told: list[Any] = []
    tree.subscribe(lambda changes, epoch: told.append(changes))
    before = tree.data
    db.apply({"album": [((11, 1, "c"), 1)]})
    assert tree.data[0] is before[0]
    assert told == []
    db.apply({"album": [((12, 1, "a"), 1)]})
    assert tree.data[0].album.id == 12
    ((old, minus), (new, plus)) = sorted(told[0], key=lambda pair: pair[1])
    assert (old, minus, new, plus) == (before[0], -1, tree.data[0], 1)


def test_one_call_for_a_transaction_over_all_tables() -> None:
    db = music()
    tree = tree_of(db)
    told: list[int] = []
    tree.subscribe(lambda changes, epoch: told.append(len(changes)))
    with db.transaction() as tx:
        tx.insert("track", [(10, 1)])
        with db.transaction() as inner:
            inner.insert("album", [(10, 1, "x")])
        with pytest.raises(KeyError), db.transaction() as inner:  # noqa: PT012
            inner.insert("artist", [(7, "gone")])
            raise KeyError
        tx.insert("artist", [(1, "Ada")])
    assert told == [1]
    with pytest.raises(KeyError), db.transaction() as tx:  # noqa: PT012
        tx.insert("artist", [(2, "Bob")])
        raise KeyError
    assert told == [1]
    assert tree.to_list() == naive(db)


def test_all_shapes_are_right_when_anyone_is_told() -> None:
    """Whoever is told reads the new state: of every view, of every shape, and of shapes of shapes."""
    db = music()
    seen: list[Any] = []

    def look(changes: Any, epoch: int) -> None:
        views = [tree.to_list() == naive(db), len(rows), len(rows_again), len(db.view("artists"))]
        seen.append(views)

    db.view("tracks").subscribe(look)
    rows = db.view("artists").live()
    rows_again = TableView(rows)
    tree = tree_of(db)
    db.view("artists").subscribe(look)
    for shape in (rows, rows_again, tree):
        shape.subscribe(look)
    with db.transaction() as tx:
        tx.insert("artist", [(1, "Ada"), (2, "Bob")])
        tx.insert("track", [(1, 1)])
    assert seen == [[True, 2, 2, 2]] * 5


def test_nodes() -> None:
    db = music()
    db.apply({"artist": [((1, "Ada"), 1)], "album": [((10, 1, "x"), 1)]})
    (node,) = tree_of(db).data
    assert node["name"] == node.name == "Ada"
    assert dict(node) == node
    assert hash(pickle.loads(pickle.dumps(node))) == hash(node)
    with pytest.raises(AttributeError, match="does not change"):
        node.name = "Bob"
    with pytest.raises(TypeError):
        node["name"] = "Bob"  # type: ignore[index]
    with pytest.raises(AttributeError, match="there are id, name, albums"):
        _ = node.nmae
    with pytest.raises(KeyError):
        _ = node["nmae"]


def test_the_end_of_a_tree() -> None:
    db = music()
    db.apply({"artist": [((1, "Ada"), 1)], "track": [((1, 1), 1)]})
    tree = tree_of(db)
    changes = tree.changes()
    db.create_view("tracks", lambda of: of["track"].select("n"), replace=True)
    assert tree.closed, "a branch of it is not what it was"
    assert list(changes) == []
    assert tree.to_list() == [{"id": 1, "name": "Ada", "albums": []}]


def test_a_replaced_view_changes_its_tree() -> None:
    db = music()
    db.apply({"artist": [((1, "Ada"), 1), ((2, "Bob"), 1)]})
    tree = tree_of(db)
    told: list[Any] = []
    tree.subscribe(lambda changes, epoch: told.append(changes.removed))
    db.create_view("artists", lambda of: of["artist"].distinct().top(1, "name"), replace=True)
    assert [node.name for node in tree.data] == ["Ada"]
    assert [[node.name for node in removed] for removed in told] == [["Bob"]]


def test_html_of_trees() -> None:
    db = music()
    db.apply({"artist": [((1, "<i>"), 1)], "album": [((10, 1, "<b>"), 1)]})
    html = tree_of(db)._repr_html_()
    assert "&lt;i&gt;" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert html.count("<table>") == 2, "a table in a cell"
    db.apply({"artist": [((at, "x"), 1) for at in range(100)]})
    assert "and 51 more" in tree_of(db)._repr_html_()


@pytest.mark.parametrize(
    ("related", "error"),
    [
        (Related("name", "albums", on=("id", "artist")), ShapeError),
        (Related("albums", "albums"), ShapeError),
        (Related("albums", "albums", on=("id", "nobody")), UnknownName),
        (Related("albums", "album", on=("id", "artist")), DefinitionError),
    ],
)
def test_what_makes_no_tree(related: Related, error: type[Exception]) -> None:
    db = music()
    with pytest.raises(error):
        db.view("artists").tree(related)
    assert not db._core.telling.listeners
