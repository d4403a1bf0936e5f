"""Watching a database: metrics, reports of ticks, spans of OpenTelemetry, logs."""

from __future__ import annotations

import json
import logging

import pytest

import everview as ev
from everview.observe import TickLogs, TickSpans, several


@pytest.fixture
def db():
    database = ev.connect()
    database.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v STRING, CHECK (k < 10))")
    database.sql("CREATE MATERIALIZED VIEW totals AS SELECT v, count(*) AS n FROM t GROUP BY v")
    return database


def test_metrics_are_numbers_and_text(db):
    db.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    db.sql("INSERT INTO t VALUES (3, 'b')")
    with db.view("totals").subscribe(lambda changes, epoch: None):
        seen = db.metrics()
    assert (seen.epoch, seen.listeners) == (db.epoch, 1)
    assert (dict(seen.tables), dict(seen.views)) == ({"t": 3}, {"totals": 2})
    assert (dict(seen.rows_in), dict(seen.rows_out)) == ({"t": 3}, {"totals": 4})
    assert 'everview_rows_out_total{view="totals"} 4\n' in str(seen)


def test_reports_of_ticks(db, caplog):
    reports = []
    db.observe(several(reports.append, TickLogs()))
    with caplog.at_level(logging.INFO, "everview.ticks"):
        db.sql("INSERT INTO t VALUES (1, 'a')")
        with db.transaction() as tx:
            tx.insert("t", [(2, "b"), (3, "b")])
        with pytest.raises(ev.EverviewError):
            db.sql("INSERT INTO t VALUES (11, 'x')")
    db.observe(None)
    db.sql("DELETE FROM t")
    assert [(r.epoch, dict(r.rows_in), dict(r.rows_out)) for r in reports] == [
        (3, {"t": 1}, {"totals": 1}),
        (4, {"t": 2}, {"totals": 1}),
        (5, {"t": 1}, {}),
    ]
    assert [report.failure is None for report in reports] == [True, True, False]
    logged = [json.loads(record.message) for record in caplog.records]
    assert [(each["event"], each["epoch"], "failure" in each) for each in logged] == [
        ("tick", 3, False),
        ("tick", 4, False),
        ("tick", 5, True),
    ]


def test_spans(db):
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("test")
    db.observe(TickSpans(tracer))
    with tracer.start_as_current_span("outer") as outer:
        db.sql("INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(ev.EverviewError):
        db.sql("INSERT INTO t VALUES (11, 'x')")
    done, _, failed = kept.get_finished_spans()
    assert (done.name, done.attributes["everview.epoch"], done.attributes["everview.rows_in.t"]) == (
        "everview.tick",
        3,
        1,
    )
    assert done.parent.span_id == outer.get_span_context().span_id
    assert done.end_time >= done.start_time
    assert (done.status.is_ok, failed.status.is_ok) == (True, False)


def test_an_observer_that_raises_harms_no_tick(db, caplog):
    def broken(report):
        raise ValueError("no")

    db.observe(broken)
    db.sql("INSERT INTO t VALUES (1, 'a')")
    assert db.table("t").rows() == [(1, "a")]
    assert "an observer of ticks raised" in caplog.text
