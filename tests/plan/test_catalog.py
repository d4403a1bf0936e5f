"""The contract with front ends: a new language runs in a database and in a pipeline, which tell it the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everview import connect
from everview.circuit.circuit import Circuit
from everview.database.frontends import ReadableDatabase, add_text
from everview.errors import DefinitionError, UnknownName
from everview.frontends.dialects import LANGUAGES, is_sql
from everview.frontends.sql import bind_query
from everview.optimize import optimize
from everview.plan.catalog import NamedPlan, Readable, Tables
from everview.plan.nodes import Distinct
from everview.runtimes.pull.fluent import ReadableSources
from everview.runtimes.spark.stored import StoredDefinition
from everview.serve.written_views import read_views
from everview.sources.memory import Memory
from everview.spark.queries import Queries
from everview.types import Schema

SCHEMA = Schema.parse("id BIGINT NOT NULL, n BIGINT")
TEXT = "fewer = edge; fewest = fewer"


def copies(text: str, catalog: Readable, only: str | None = None) -> tuple[NamedPlan, ...]:
    """A language of which every statement names a relation without its duplicates."""
    known = Tables({name: catalog.relation(name) for name in catalog.names()})
    return tuple(_copies(text, known, only))


def _copies(text: str, known: Tables, only: str | None) -> Iterator[NamedPlan]:
    for statement in text.split(";"):
        name, relation = (part.strip() for part in statement.split("="))
        plan = Distinct(known.scan(known.find(relation)))
        known.relations[name] = plan.schema
        if only in (None, name):
            yield NamedPlan(name, plan, optimize(plan), (relation,), is_set=True)


def test_a_new_language_in_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "copies", copies)
    with connect(tmp_path / "db") as db:
        db.create_table("edge", "a BIGINT, b BIGINT")
        with db._core.definitions.changing():
            assert add_text(db._core, TEXT, "copies") == ("fewer", "fewest")
        db.apply({"edge": [((1, 2), 2)]})
        assert db.view("fewest").rows() == [(1, 2)]
        with pytest.raises(DefinitionError, match="fewer, fewest read it"):
            db.drop("edge")
    with connect(tmp_path / "db") as db:
        db.apply({"edge": [((1, 2), -1), ((3, 4), 1)]})
        assert db.view("fewest").rows() == [(1, 2), (3, 4)]
        assert db.verify()


def test_a_text_defines_all_its_views_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "copies", copies)
    db = connect()
    db.create_table("edge", "a BIGINT, b BIGINT")
    with pytest.raises(DefinitionError, match="edge"), db._core.definitions.changing():
        add_text(db._core, "fewer = edge; edge = fewer", "copies")
    assert db.views() == []


def test_a_new_language_in_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "copies", copies)
    circuit = Circuit()
    circuit.source("edge", "a BIGINT, b BIGINT")
    queries = Queries(circuit)
    queries.define_text(TEXT, "copies")
    assert list(circuit.sinks) == ["fewer", "fewest"]
    assert queries.readable().is_set("fewest")
    assert not queries.readable().is_set("edge")


def test_a_new_language_in_a_pipeline_that_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read as SQL, and its views have the names that the server gives them."""
    assert is_sql("copies")
    monkeypatch.setitem(LANGUAGES, "copies", copies)
    assert not is_sql("copies")
    stored = StoredDefinition("fewer", TEXT, "copies")
    views = read_views(stored, Tables({"edge": Schema.parse("a BIGINT, b BIGINT")}), str.upper)
    assert [view.name for view in views] == ["FEWER", "FEWEST"]


def in_a_database() -> Readable:
    db = connect()
    db.create_table("t", SCHEMA, key="id")
    return ReadableDatabase(db._core.catalog)


def in_a_pipeline() -> Readable:
    circuit = Circuit()
    circuit.source("t", SCHEMA)
    return Queries(circuit).readable({"t": ("id",)})


def in_sources() -> Readable:
    return ReadableSources({"t": Memory(SCHEMA, "id", [])})


@pytest.mark.parametrize("made", [in_a_database, in_a_pipeline, in_sources])
def test_every_adapter_tells_the_same(made: object) -> None:
    assert callable(made)
    catalog: Readable = made()
    assert list(catalog.names()) == ["t"]
    assert catalog.find("t") == "t"
    assert catalog.relation("t") == SCHEMA
    assert catalog.scan("t").schema == SCHEMA
    assert catalog.key("t") == ("id",)
    assert catalog.is_set("t")
    assert catalog.function("nobody_has_it") is None
    assert catalog.default("t", "n") is None
    assert bind_query("SELECT n + 1 AS m FROM t", catalog).plan.schema == Schema.parse("m BIGINT")
    with pytest.raises(UnknownName):
        catalog.find("tt")
