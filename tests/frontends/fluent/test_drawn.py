"""Random queries, run and kept, against nested loops over dicts, after every tick."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from everview import connect
from everview.database.fluent import part_of
from everview.frontends.fluent import trees
from everview.views import ScalarView, TreeView, plain
from frontends.fluent.drawn import Recipe, build, recipes
from frontends.fluent.music import Music, Tick, apply, create, filled, streams
from frontends.fluent.naive import evaluate


def shown(view: Any) -> Any:
    """What a living view shows, whatever its shape, as `run` gives it."""
    match view:
        case ScalarView():
            return plain(view.value)
        case TreeView():
            return view.to_list()
        case _:
            return plain(tuple(view.rows()))


def held(db: Any, name: str) -> Any:
    """What the flat views of a query hold, put together."""
    part = part_of(db._core.catalog, name)
    assert part is not None
    return trees(part, {view: db.view(view).rows() for view, _ in part.walk(name)}, name)


def same(recipe: Recipe, a: Any, b: Any) -> bool:
    """Equal; without an order, as bags."""
    if isinstance(a, list) and not recipe.has("order_by", "limit", "related_one", "related_many"):
        return sorted(map(repr, a)) == sorted(map(repr, b))
    return a == b


@given(recipes(), filled(), streams)
def test_a_query_is_what_it_means_after_every_tick(recipe: Recipe, first: Tick, stream: list[Tick]) -> None:
    db, music = connect(), Music()
    create(db)
    query = build(db, recipe)
    view = query.materialize("kept")
    wanted: Any = None
    for tick in (first, *stream, []):
        apply(db, music, tick)
        music.put(tick)
        wanted = evaluate(recipe, music)
        assert query.run() == wanted
        assert held(db, "kept") == wanted
        assert same(recipe, shown(view), wanted)
    assert db.verify()
    assert same(recipe, shown(query.materialize("late")), wanted)
