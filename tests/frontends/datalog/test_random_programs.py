"""Random programs with recursion, negation and aggregates against a naive evaluation, tick by tick."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from everview import Database, connect
from everview.errors import DatalogError
from frontends.datalog.naive import BASE, Program, Row, facts, nested_programs, programs


def _ticked(held: dict[str, set[Row]], changes: list[tuple[str, Row, int]]) -> dict[str, list[tuple[Row, int]]]:
    """The changes that make sense, one for a row: what is not there comes, what is there goes."""
    found: dict[str, list[tuple[Row, int]]] = {}
    for name, row, weight in changes:
        if (row in held[name]) == (weight < 0):
            found.setdefault(name, []).append((row, weight))
            (held[name].add if weight > 0 else held[name].remove)(row)
    return found


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.lists(facts(), min_size=1, max_size=4))
def test_views_are_what_rules_mean_after_every_tick(program: Program, ticks: list[list[tuple[str, Row, int]]]) -> None:
    try:
        assert _checked(program, ticks).verify()
    except DatalogError as error:  # an aggregate or a negation that compares with what recursion binds
        assume("which only other parts of this recursive rule bind" not in str(error))
        raise


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(nested_programs(), st.lists(facts(), min_size=1, max_size=3))
def test_negations_and_counts_inside_of_each_other(program: Program, ticks: list[list[tuple[str, Row, int]]]) -> None:
    _checked(program, ticks)


def _checked(program: Program, ticks: list[list[tuple[str, Row, int]]]) -> Database:
    """A database whose views were what the program means after every tick, and told so."""
    db = connect()
    db.datalog(str(program))
    held: dict[str, set[Row]] = {name: set() for name in BASE}
    heads = [*(name for name in program.arities if name not in BASE), "total"]
    before = {name: Counter(db.view(name).rows()) for name in heads}
    for changes in [[], *ticks]:
        out = db.apply(_ticked(held, changes))
        meant = program.meaning(held)
        for name in heads:
            now = Counter(db.view(name).rows())
            assert now == Counter(meant.get(name, set())), (name, str(program))
            told = Counter(dict(out.get(name, [])))
            assert {r: w for r, w in told.items() if w} == _difference(before[name], now)
            before[name] = now
    return db


def _difference(before: Counter[Row], now: Counter[Row]) -> dict[Row, int]:
    rows = {*before, *now}
    return {row: now[row] - before[row] for row in rows if now[row] != before[row]}
