"""Python functions in SQL: of columns, of rows and of groups, against the oracle, and after reopening."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everview as ev
from everview.errors import DefinitionError, FunctionError, SqlError, UnknownName
from everview.scalars.functions import user


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has functions of its own."""
    monkeypatch.setattr(user, "_USERS", {})


def define() -> None:
    @ev.function("DOUBLE")
    def fahrenheit(celsius: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        return pc.add(pc.multiply(celsius, 1.8), 32.0)

    @ev.function("STRING", name="label", by_row=True)
    def labelled(name: str | None, x: float | None) -> str | None:  # pyright: ignore[reportUnusedFunction]
        return None if name is None else f"{name}:{x}"

    @ev.aggregate("DOUBLE")
    def spread(x: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        starts = np.asarray(x.offsets)[:-1]
        values = np.asarray(x.values)[starts[0] :] if len(starts) else np.zeros(0)
        starts = starts - starts[0]
        return pa.array(np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts))

    @ev.aggregate("DOUBLE", by_group=True)
    def weighted(x: list[float], w: list[int]) -> float | None:  # pyright: ignore[reportUnusedFunction]
        total = sum(w)
        return None if total == 0 else sum(a * b for a, b in zip(x, w, strict=True)) / total

    @ev.aggregate("STRING", by_group=True)
    def listed(x: list[float]) -> str:  # pyright: ignore[reportUnusedFunction]
        return ",".join(map(str, x))


VIEWS = """
CREATE TABLE reading (id BIGINT PRIMARY KEY, place STRING, c DOUBLE, w BIGINT);
CREATE MATERIALIZED VIEW warm AS
  SELECT id, fahrenheit(c) AS f, label(place, c) AS name FROM reading WHERE fahrenheit(c) > 50;
CREATE MATERIALIZED VIEW by_place AS
  SELECT place, spread(c) AS s, weighted(c, w) AS mean, COUNT(*) AS n FROM reading GROUP BY place;
CREATE MATERIALIZED VIEW filtered AS
  SELECT place, spread(c) FILTER (WHERE w > 1) AS s, listed(DISTINCT c) AS d, listed(c ORDER BY w DESC, id) AS o,
         weighted(DISTINCT c, w) FILTER (WHERE c > 0) AS m
  FROM reading GROUP BY place;
CREATE MATERIALIZED VIEW whole AS SELECT spread(c) AS s, listed(c) AS l FROM reading;
CREATE MATERIALIZED VIEW wide AS
  SELECT place FROM reading GROUP BY place HAVING spread(c) > (SELECT spread(fahrenheit(c)) / 4 FROM reading);
"""


@pytest.fixture
def db() -> ev.Database:
    define()
    db = ev.connect()
    db.sql(VIEWS)
    return db


def test_functions_of_columns_and_of_rows(db: ev.Database) -> None:
    db.sql("INSERT INTO reading VALUES (1, 'A', 20, 1), (2, 'A', 5, 1), (3, NULL, 100, 1), (4, 'B', NULL, 1)")
    assert sorted(db.view("warm").rows()) == [(1, 68.0, "A:20.0"), (3, 212.0, None)]
    assert db.sql("SELECT label('x', 1.5D) AS a, fahrenheit(0D) AS f") == [("x:1.5", 32.0)]
    assert db.verify().raise_if_different()


def test_aggregates_under_inserts_and_deletes(db: ev.Database) -> None:
    assert db.view("whole").rows() == [(None, None)], "of nothing, NULL"
    db.sql("INSERT INTO reading VALUES (1, 'A', 1, 1), (2, 'A', 4, 3), (3, 'A', NULL, 9), (4, 'B', NULL, 1)")
    assert sorted(db.view("by_place").rows()) == [("A", 3.0, 3.25, 3), ("B", None, None, 1)]
    assert db.verify().raise_if_different()
    db.sql("DELETE FROM reading WHERE id = 1")
    assert sorted(db.view("by_place").rows()) == [("A", 0.0, 4.0, 2), ("B", None, None, 1)]
    db.sql("DELETE FROM reading")
    assert db.view("by_place").rows() == []
    assert db.view("whole").rows() == [(None, None)]
    assert db.verify().raise_if_different()


def test_distinct_filter_and_order(db: ev.Database) -> None:
    db.sql("INSERT INTO reading VALUES (1, 'A', 1, 1), (2, 'A', 4, 2), (3, 'A', 4, 3), (4, 'A', -2, 4), (5, 'B', 7, 1)")
    assert sorted(db.view("filtered").rows()) == [
        ("A", 6.0, "-2.0,1.0,4.0", "-2.0,4.0,4.0,1.0", 21 / 6),
        ("B", None, "7.0", "7.0", 7.0),
    ]
    assert db.verify().raise_if_different()


Change = tuple[int, str | None, float | None, int]
changes: st.SearchStrategy[list[list[Change | int]]] = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 6),
            st.sampled_from(["A", "B", None]),
            st.sampled_from([None, -1.0, 0.5, 20.0]),
            st.integers(0, 3),
        )
        | st.integers(0, 6),
        max_size=5,
    ),
    max_size=4,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes)
def test_any_changes(ticks: list[list[Change | int]]) -> None:
    define()
    db = ev.connect()
    db.sql(VIEWS)
    for tick in ticks:
        with db.transaction() as tx:
            for change in tick:
                if isinstance(change, tuple):
                    tx.upsert("reading", [change])
                else:
                    tx.delete("reading", [change])
        assert db.verify().raise_if_different()


def test_other_dialects(db: ev.Database) -> None:
    db.sql("INSERT INTO reading VALUES (1, 'A', 1, 1), (2, 'A', 4, 2), (3, 'A', 4, 3)")
    query = "SELECT spread(c) FILTER (WHERE w > 0) AS s, listed(DISTINCT c) AS d, max(fahrenheit(c)) AS f FROM reading"
    for dialect in ("spark", "duckdb", "postgres"):
        assert db.sql(query, dialect=dialect) == [(3.0, "1.0,4.0", 39.2)]


def test_the_plan_shows_names(db: ev.Database) -> None:
    text = str(db.explain("filtered"))
    assert "listed(DISTINCT c)" in text
    assert "user:" not in text


# -- reopening


def test_a_directory_knows_names_not_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    define()
    with ev.connect(tmp_path) as db:
        db.sql(VIEWS)
        db.sql("INSERT INTO reading VALUES (1, 'A', 1, 1), (2, 'A', 4, 3)")
    with ev.connect(tmp_path) as db:
        db.sql("INSERT INTO reading VALUES (3, 'A', 20, 1), (4, 'B', 3, 1)")
        assert sorted(db.view("by_place").rows()) == [("A", 19.0, 6.6, 3), ("B", 0.0, 3.0, 1)]
        assert db.verify().raise_if_different()
    monkeypatch.setattr(user, "_USERS", {})
    with pytest.raises(UnknownName, match=r'view "\w+": function "\w+" does not exist') as failed:
        ev.connect(tmp_path)
    assert "@ev.function" in str(failed.value.hint)
    define()
    with ev.connect(tmp_path) as db:
        assert db.verify().raise_if_different()


# -- mistakes


def test_a_name_means_one_function() -> None:
    def make(by: float) -> Any:
        @ev.function("DOUBLE")
        def scaled(x: Any) -> Any:
            return pc.multiply(x, by)

        return scaled

    make(2.0)
    make(2.0)
    with pytest.raises(DefinitionError, match="another function scaled"):
        make(3.0)
    with pytest.raises(DefinitionError, match="another function scaled"):
        ev.aggregate("DOUBLE", name="scaled")(len)


@pytest.mark.parametrize("name", ["sum", "upper", "row_number", "extract", "now", "rand", "explode", "if", "case"])
def test_names_of_sql_are_taken(name: str) -> None:
    with pytest.raises(DefinitionError, match=f"{name} is a function of SQL already"):
        ev.function("DOUBLE", name=name)(lambda x: x)


def test_definitions_that_say_too_little() -> None:
    with pytest.raises(DefinitionError, match="'<lambda>' is no name"):
        ev.function("DOUBLE")(lambda x: x)
    with pytest.raises(DefinitionError, match="a function of which type"):
        ev.function(len)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ev.EverviewError, match="NUMBR"):
        ev.aggregate("NUMBR")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT id FROM reading WHERE spread(c) > 1", "the aggregate spread in WHERE"),
        ("SELECT spread() AS s FROM reading", "spread takes 1 arguments"),
        ("SELECT fahrenheit() AS f FROM reading", "fahrenheit of what"),
        ("SELECT listed(DISTINCT c ORDER BY w) AS l FROM reading", "distinct values in the order of others"),
        ("SELECT fahrenheit(c) FILTER (WHERE c > 1) AS f FROM reading", "follow an aggregate"),
    ],
)
def test_calls_that_mean_nothing(db: ev.Database, query: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        db.sql(query)


def test_unknown_names(db: ev.Database) -> None:
    with pytest.raises(UnknownName, match='function "sprad" does not exist'):
        db.sql("SELECT sprad(c) AS s FROM reading")


@pytest.mark.parametrize(
    ("decorator", "call", "message"),
    [
        (ev.function, lambda x: x.slice(1), "returned 1 values for 2 rows"),
        (ev.function, lambda x: x.cast(pa.float32()), "returned float, not double"),
        (ev.function, lambda x: 1 / 0, "raised ZeroDivisionError"),
        (ev.aggregate, lambda x: pa.array([1.0]), "returned 1 values for 2 groups"),
        (ev.aggregate, lambda x: pa.array([1, 2]), "returned int64, not double"),
        (ev.aggregate, lambda x: ["a", "b"], "returned list, not a column of double"),
        (ev.aggregate, lambda x: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_results_that_do_not_fit(decorator: Any, call: Any, message: str) -> None:
    decorator("DOUBLE", name="wrong")(call)
    db = ev.connect()
    db.sql("CREATE TABLE t (a DOUBLE); CREATE MATERIALIZED VIEW v AS SELECT a, wrong(a) AS b FROM t GROUP BY a")
    with pytest.raises(FunctionError, match=message):
        db.sql("INSERT INTO t VALUES (1), (2)")
    assert db.view("v").rows() == [], "the tick was not applied"
