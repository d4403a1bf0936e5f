"""Every public function, called with what it does not expect.

Each function has a call that works. A trial replaces one of its arguments, or several, by hostile values. Nothing but
an `EverviewError` may come out, and whatever comes out as one must leave the database as it was, and at work.
"""

from __future__ import annotations

import datetime as dt
import inspect
import random
import shutil
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import everview as ev
from everview.circuit import Stream
from everview.database.handles import Rules
from everview.database.transactions import Transaction
from everview.database.views import Table, View
from everview.frontends.fluent import Query
from everview.frontends.fluent.conditions import Col
from everview.notebook import live
from everview.sources import Files, Lines, Memory, SQLite
from everview.sources import Iterator as Iterated
from everview.sources.protocol import Request, Update
from everview.views import Changes, OrderedView, Related, ScalarView, Subscription, TableView, TreeView
from everview.views.change import Change
from torture.outcome import Outcome
from torture.texts import hostile_texts
from torture.values import Own, columns, frame, values

TYPES = {
    "n": "BIGINT", "b": "BOOLEAN", "i": "INT", "f": "DOUBLE", "g": "FLOAT", "d": "DECIMAL(10,2)", "s": "STRING",
    "y": "BINARY", "day": "DATE", "at": "TIMESTAMP", "a": "ARRAY<INT>", "st": "STRUCT<x: INT, y: STRING>",
}  # fmt: skip
TABLE = "id BIGINT NOT NULL, " + ", ".join(f"{name} {of}" for name, of in TYPES.items())
SPEC = {
    "relations": [{"name": "A", "schema": ["a", "b"]}],
    "nodes": [{"id": "scan", "op": "Scan", "rel": "A"}],
    "outputs": [{"name": "Res", "from": "scan"}],
}


FILES = {
    "mode": "insert", "rejects": "aside", "nulls": ("",), "delimiter": ";", "quote": '"', "decimal": ",",
    "encoding": "latin-1", "header": False, "date_format": "%d.%m.%Y", "timestamp_format": "%d.%m.%Y %H:%M",
    "thousands": ".",
}  # fmt: skip
OTHER, TRACE = object(), object()  # stand for another stream of the circuit at hand, and its trace


class World:
    """A database with a bit of everything, and what else there is to call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = db = ev.connect()
        db.create_table("t", TABLE, key="id")
        db.sql("""
          CREATE TABLE bag (n BIGINT, s STRING);
          CREATE MATERIALIZED VIEW totals AS SELECT s, SUM(n) AS total FROM bag GROUP BY s;
          CREATE MATERIALIZED VIEW one AS SELECT COUNT(*) AS c FROM bag;
          CREATE VIEW plain AS SELECT n FROM bag;
        """)
        db.create_view("made", lambda of: of["bag"].distinct())
        self.rules = db.datalog("twice(n) :- bag(n, _), bag(n, _).")
        db.query("t").where("n", ">", 0).materialize("fluent")
        db.attach("outside", Memory("k BIGINT, v STRING", "k", [(1, "a")]), keep=False)
        db.apply({"bag": [((1, "a"), 1), ((2, "b"), 2)], "t": [({"id": 1, "n": 5}, 1)]})
        self.before = self.state()

    def state(self) -> tuple[Any, ...]:
        """All that a failure must not change."""
        db = self.db
        core = db._core
        names = (*core.definitions.relations, *core.run.views)
        held = {name: list(core.holdings.contents_of(name)) for name in names}
        return db.epoch, db.tables(), db.views(), len(db.rules()), repr(held)  # in which NaN equals NaN

    def touched(self) -> bool:
        """Whether there has been a tick or another definition."""
        return self.db.epoch != self.before[0]

    def works(self) -> None:
        """The database takes a change, and its views are right."""
        self.db.apply({"bag": [((7, "works"), 1)]})
        assert self.db.verify(), "views that are wrong"
        self.db.apply({"bag": [((7, "works"), -1)]})
        self.before = self.state()

    def path(self, given: Any) -> Any:
        """A path inside of the folder, if it is one."""
        return str(self.folder / given) if isinstance(given, str) and given and "\0" not in given else given

    def close(self) -> None:
        self.db.close()

    # -- what there is to call, each anew

    def tx(self, what: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.db.transaction() as tx:
                return getattr(tx, what)(*args, **kwargs)

        return call

    def stream(self, what: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            circuit = ev.Circuit()
            source = circuit.source("a", "n BIGINT, s STRING")
            other = circuit.source("b", "n BIGINT, s STRING")
            args = tuple(other if arg is OTHER else other.trace() if arg is TRACE else arg for arg in args)
            made = getattr(source, what)(*args, **kwargs)
            if isinstance(made, Stream) and made.circuit is circuit:
                _run(circuit, made)

        return call

    def circuit(self, what: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            circuit = ev.Circuit()
            source = circuit.source("a", "n BIGINT, s STRING")
            source.sink("out")
            args = tuple(source if arg is OTHER else arg for arg in args)
            made = getattr(circuit, what)(*args, **kwargs)
            if isinstance(made, Stream):
                _run(circuit, made)

        return call

    def embedded(self, what: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            run = ev.Embedded(_circuit())
            try:
                return getattr(run, what)(*args, **kwargs)
            finally:
                run.tick({"a": [((1, "x"), 1)]})
                run.close()

        return call

    def kernel(self, what: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            kernel = ev.Kernel()
            kernel.define_graph("g", SPEC)
            if what != "activate_graph":
                kernel.activate_graph("g")
            kernel.define_relation("R", ["a"])
            try:
                return getattr(kernel, what)(*args, **kwargs)
            finally:
                if "g" in kernel.graphs and what != "activate_graph":
                    kernel.push_batch({"A": ev.Delta([(1, 2)])})

        return call

    def source(self, source: Callable[[], Any], what: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with _closing(source()) as made:
                found = getattr(made, what)(*args, **kwargs)
                return list(found) if isinstance(found, Iterator) else found

        return call

    def view(self, what: str, shape: str = "") -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            view: Any = self.db.view("one" if shape == "scalar" else "totals")
            view = getattr(view, shape)(*(["s"] if shape == "ordered" else [])) if shape else view
            made = getattr(view, what)(*args, **kwargs)
            try:
                _read(made)
            finally:
                for each in (made, view):
                    if hasattr(each, "close"):
                        each.close()

        return call

    def changes(self, what: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.db.view("totals").changes(snapshot=True) as changes:
                return getattr(changes, what)(*args, **kwargs)

        return call


def _closing(source: Any) -> Any:
    from contextlib import closing

    return closing(source)


def _circuit() -> ev.Circuit:
    circuit = ev.Circuit()
    circuit.source("a", "n BIGINT, s STRING").sink("out")
    return circuit


def _run(circuit: ev.Circuit, stream: Stream) -> None:
    """What was made works, too: it takes rows, and their removal."""
    stream.sink("made")
    run = ev.Embedded(circuit)
    rows = [((1, "x"), 1), ((2, None), 1), ((None, "y"), 2)]
    run.tick({"a": rows})
    run.tick({"a": [(row, -weight) for row, weight in rows[:2]]})
    run.close()


def _read(made: Any) -> None:
    for what in ("rows", "contents", "to_list"):
        if hasattr(made, what):
            getattr(made, what)()
    if isinstance(made, ScalarView):
        _ = made.value


@dataclass(frozen=True)
class Call:
    """A call that works: a function of a world, and arguments; those not in ``tried`` stay as they are."""

    of: Callable[[World], Callable[..., Any]]
    args: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])
    without: tuple[str, ...] = ()  # values that mean to wait, to take all there is, or are right

    def places(self) -> list[int | str]:
        return [*range(len(self.args)), *self.named]

    def arguments(self, world: World, instead: Mapping[int | str, Any]) -> tuple[list[Any], dict[str, Any]]:
        def made(place: int | str, good: Any) -> Any:
            if place in instead:
                return instead[place]
            return good(world) if isinstance(good, Made) else good

        args = [made(place, good) for place, good in enumerate(self.args)]
        return args, {name: made(name, good) for name, good in self.named.items()}


@dataclass(frozen=True)
class Made:
    """An argument that a world makes."""

    make: Callable[[World], Any]

    def __call__(self, world: World) -> Any:
        return self.make(world)


def _db(what: str, *args: Any, without: tuple[str, ...] = (), **named: Any) -> Call:
    return Call(lambda world: getattr(world.db, what), args, named, without)


def _of(method: str, what: str, *args: Any, without: tuple[str, ...] = (), **named: Any) -> Call:
    return Call(lambda world: getattr(world, method)(what), args, named, without)


def _plain(function: Callable[..., Any], *args: Any, without: tuple[str, ...] = (), **named: Any) -> Call:
    return Call(lambda world: function, args, named, without)


def _query(what: str, *args: Any, **named: Any) -> Call:
    def of(world: World) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            made = getattr(world.db.query("t"), what)(*given, **more)
            return made.run() if isinstance(made, Query) else made

        return call

    return Call(of, args, named)


def _other(world: World) -> Query:
    return world.db.query("bag")


ROWS = [(100, *(None for _ in TYPES))]
KEYS = count(1000)


def _connect(world: World) -> Callable[..., Any]:
    def call(path: Any, **named: Any) -> None:
        ev.connect(world.path(path), **named).close()

    return call


def _live(world: World) -> Callable[..., Any]:
    def call(shown: Any, query: Any, **named: Any) -> None:
        live(shown, query, **named).close()

    return call


def _embedded(world: World) -> Callable[..., Any]:
    def call(circuit: Any, path: Any, **named: Any) -> None:
        ev.Embedded(circuit, world.path(path), **named).close()

    return call


def _files(world: World) -> Callable[..., Any]:
    def call(paths: Any, *args: Any, **named: Any) -> None:
        with _closing(Files(world.path(paths), *args, **named)) as made:
            made.read()

    return call


def _stopping(world: World) -> Callable[..., Any]:
    def call(timeout: Any) -> None:
        runner = world.db.run()
        try:
            runner.stop(timeout)
        finally:
            runner.stop()

    return call


def _lines(world: World) -> Callable[..., Any]:
    def call(stream: Any, *args: Any, **named: Any) -> None:
        with _closing(Lines(world.path(stream), *args, **named)) as made:
            made.read()

    return call


def _sqlite(world: World) -> Callable[..., Any]:
    def call(database: Any, *args: Any, **named: Any) -> None:
        with _closing(SQLite(world.path(database), *args, **named)):
            pass

    return call


def _memory() -> Memory:
    return Memory("k BIGINT, v STRING", "k", [(1, "a")])


def _function(of: Any, **named: Any) -> Any:
    return ev.function(of, **named)(lambda n: n)


def _aggregate(of: Any, **named: Any) -> Any:
    class Longest:
        def step(self, state: Any, value: Any) -> Any:
            return value

    return ev.aggregate(of, **named)(Longest)


def calls() -> dict[str, Call]:
    """Every call that is tried, by what it is called in a program."""
    found: dict[str, Call] = {
        "ev.connect": Call(
            _connect,
            (None,),
            {"durability": "tick", "period": 0.1, "shards": 1, "views": None, "clock": "told", "timezone": None}
            | {"read_only": False},
        ),
        "notebook.live": Call(
            _live, (Made(lambda world: world.db.view("totals")), None), {"rows": 2, "by": "total", "every": 0.1}
        ),
        "ev.col": _plain(ev.col, "n"),
        "ev.and_": _plain(ev.and_, ("n", "=", 1)),
        "ev.or_": _plain(ev.or_, ("n", "=", 1)),
        "ev.not_": _plain(ev.not_, "n", "=", 1),
        "ev.function": _plain(_function, "BIGINT", name="f", by_row=True),
        "ev.aggregate": _plain(_aggregate, "BIGINT", name="f", by_group=False),
        "ev.incrementalize": _plain(ev.incrementalize, Made(lambda _: _circuit())),
        "ev.Policy": _plain(ev.Policy, 0.0, 65536, 4194304),
        "ev.Schema": _plain(ev.Schema, ()),
        "ev.Schema.parse": _plain(ev.Schema.parse, "n BIGINT"),
        "ev.Schema.of": _plain(lambda of: ev.Schema.of(n=of), Made(lambda _: ev.Schema.parse("n BIGINT").types[0])),
        "ev.Schema.index": _plain(ev.Schema.parse("n BIGINT").index, "n"),
        "ev.Schema.select": _plain(ev.Schema.parse("n BIGINT").select, ["n"]),
        "ev.Schema.rename": _plain(ev.Schema.parse("n BIGINT").rename, {"n": "m"}),
        "ev.Schema.from_arrow": _plain(ev.Schema.from_arrow, Made(lambda _: ev.Schema.parse("n BIGINT").arrow)),
        "ev.Schema.words": _plain(ev.Schema.parse("n BIGINT").words, 0),
        "ev.Batch.of": _plain(ev.Batch.of, "n BIGINT, s STRING", [((1, "a"), 1)], None),
        "ev.Delta": _plain(lambda *args: ev.Delta(*args).normalized(), [(1,)], [(2,)]),
        "ev.Delta.of": _plain(ev.Delta.of, {"adds": [(1,)]}),
        "ev.ZSet": _plain(ev.ZSet, {"a": 1}),
        "ev.ZSet.of": _plain(ev.ZSet.of, [("a", 1)]),
        "ev.ZSet.index_with": _plain(ev.ZSet({"a": 1}).index_with, len),
        "ev.ZSet.equi_join": _plain(ev.ZSet({("a", 1): 1}).equi_join, ev.ZSet({("a", 2): 1})),
        "ev.ZSet.filter": _plain(ev.ZSet({"a": 1}).filter, bool),
        "ev.ZSet.map": _plain(ev.ZSet({"a": 1}).map, str),
        "ev.ZSet.flat_map": _plain(ev.ZSet({"a": 1}).flat_map, list),
        "ev.ZSet.extend_leaves": _plain(ev.ZSet({"a": 1}).extend_leaves, lambda path, w: ev.ZSet({"b": 1})),
        "ev.ZSet.get_by_prefix": _plain(ev.ZSet({("a", 1): 1}).get_by_prefix, ("a",)),
        "ev.IndexedZSet": _plain(ev.IndexedZSet, {"a": ev.ZSet({1: 1})}),
        "ev.IndexedZSet.of": _plain(ev.IndexedZSet.of, [(("a", 1), 1)]),
        "ev.IndexedZSet.join": _plain(_indexed().join, Made(lambda _: _indexed()), lambda k, a, b: k),
        "ev.IndexedZSet.extend_leaves": _plain(_indexed().extend_leaves, lambda path, w: ev.ZSet({"b": 1})),
        "ev.IndexedZSet.get_by_prefix": _plain(_indexed().get_by_prefix, ("a",)),
        "ev.IndexedZSet.values": _plain(_indexed().values, "a"),
        "ev.Function": _plain(ev.Function, "f", abs, "columns"),
        "ev.Circuit": _plain(ev.Circuit, None),
        "ev.Embedded": Call(
            _embedded,
            (Made(lambda _: _circuit()), None),
            {
                "shards": 1,
                "check_functions": False,
                "policy": None,
                "as_is": False,
                "tables": None,
                "every": 0.0,
                "adopt": False,
            },
        ),
        "ev.Embedded.attach": _plain(ev.Embedded.attach, Made(lambda _: _circuit()), "/nowhere", None, shards=1),
        "ev.Kernel": _plain(ev.Kernel, check_types=False, types=None, order=None),
        "ev.Store.exists": _plain(ev.Store.exists, "/nowhere"),
        "ev.Store.attach": _plain(ev.Store.attach, "/nowhere", 1),
        "ev.Store.open": _plain(ev.Store.open, "/nowhere", None, None, None, adopt=False),
        "ev.Store.history": _plain(ev.Store.history, "/nowhere"),
        "ev.Store.times": _plain(ev.Store.times, "/nowhere"),
        "ev.Store.rewind": _plain(ev.Store.rewind, "/nowhere", 1),
        "db.sql": _db("sql", "SELECT ?", [1], dialect="spark"),
        "db.datalog": _db("datalog", "x(1).", dialect="souffle"),
        "db.remove_rules": _db("remove_rules", "twice(n) :- bag(n, _), bag(n, _).", dialect="souffle"),
        "db.content_ids": _db("content_ids", "bag", [(1, "a")]),
        "db.edn": _db("edn", "{:find [?n] :where [[?b :t/n ?n]]}", None, args=[], replace=False, dialect="datomic"),
        "db.transact": _db("transact", '[{:person/name "Ada"}]'),
        "db.query": _db("query", "t", None),
        "db.frame": _db("frame", "t"),
        "db.define": Call(
            lambda w: (
                lambda name, frame, **given: w.db.define(
                    name, w.db.frame("t") if isinstance(frame, str) and frame == "t" else frame, **given
                )
            ),
            ("of a frame", "t"),
            {"replace": True},
        ),
        "db.attach": _db("attach", "more", Made(lambda _: _memory()), keep=False, resync=False),
        "db.poll": _db("poll", limit=1),
        "db.poll of": _db("poll", "outside"),
        "db.detach": _db("detach", "outside"),
        "db.view": _db("view", "totals"),
        "db.table": _db("table", "t"),
        "db.run": Call(lambda w: lambda **given: w.db.run(**given).stop(), (), {"every": 1, "longest": 2, "limit": 3}),
        "runner.stop": Call(_stopping, (1.0,)),
        "db.explain": _db("explain", "totals", profile=False),
        "db.verify": _db("verify", "totals"),
        "db.observe": _db("observe", None),
        "db.why": _db("why", "totals", ("a", 1), rows=3, seconds=5.0),
        "db.why_not": _db("why_not", "totals", ("a", 9), rows=3, seconds=5.0),
        "db.create_table": _db("create_table", "new", "a INT", key="a", defaults={"a": 1}, if_not_exists=False),
        "db.create_view": _db(
            "create_view", "new", lambda of: of["bag"], replace=False, if_not_exists=False, materialized=True
        ),
        "db.drop": _db("drop", "one", if_exists=False, cascade=False),
        "db.apply": _db("apply", {"bag": [((1, "a"), 1)]}, negative=False),
        "db.advance": _db("advance", dt.datetime(2100, 1, 1)),
        "db.late": _db("late", "t"),
        "db.vacuum": _db("vacuum", 1),
        "tx.insert": _of("tx", "insert", "t", ROWS),
        "tx.upsert": _of("tx", "upsert", "t", ROWS),
        "tx.delete": _of("tx", "delete", "t", [(1,)]),
        "tx.delete from a bag": _of("tx", "delete", "bag", [(1, "a")]),
        "tx.update": _of("tx", "update", "t", [{"id": 1, "n": 2}]),
        "tx.apply": _of("tx", "apply", {"bag": [((1, "a"), 1)]}, negative=False),
        "tx.insert outside": _of("tx", "insert", "outside", [(2, "b")]),
        "tx.upsert outside": _of("tx", "upsert", "outside", [(2, "b")]),
        "tx.delete outside": _of("tx", "delete", "outside", [(1,)]),
        "view.subscribe": _of("view", "subscribe", lambda *_: None, snapshot=False, ended=None),
        "view.changes": _of("view", "changes", snapshot=False, maxsize=3, policy="merge"),
        "view.find": _of("view", "find", {"s": "a"}),
        "table.find": Call(lambda w: w.db.table("t").find, ({"id": 1},)),
        "table.get": Call(lambda w: w.db.table("t").get, (1,)),
        "view.explain": _of("view", "explain", profile=False),
        "view.live": _of("view", "live", dicts=False),
        "view.ordered": _of("view", "ordered", "s", limit=3, offset=0, dicts=False),
        "view.tree": _of("view", "tree", by="s", show=["s"], one=False),
        "view.tree of": _of("view", "tree", Made(lambda _: Related("more", "totals", on="s"))),
        "view.scalar": Call(lambda w: lambda default: w.db.view("one").scalar(default).close(), (None,)),
        "changes.next": _of("changes", "next", 0.0, without=("None", "1.5", "0", "3", "inf", "2**63", "10**400")),
        "Related": _plain(
            Related,
            "more",
            "totals",
            on="s",
            by=(),
            one=False,
            show=None,
            related=(),
        ),
        "query.where": _query("where", "n", ">", 0),
        "query.having": Call(lambda w: w.db.query("t").group_by("n").select("n").having, ("n", ">", 0)),
        "query.select": _query("select", "n", "s"),
        "query.select as": _query("select", m="n"),
        "query.group_by": _query("group_by", "n"),
        "query.order_by": _query("order_by", "n", "desc"),
        "query.limit": _query("limit", 3),
        "query.start_after": _query("start_after", {"id": 1}),
        "query.join": _query("join", Made(_other), "o", "n", "n", on=None),
        "query.left_join": _query("left_join", Made(_other), "o", "n", "n", on=None),
        "query.exists": _query("exists", Made(_other), on=("n", "n")),
        "query.not_exists": _query("not_exists", Made(_other), on=("n", "n")),
        "query.related_many": _query("related_many", "more", Made(_other), on=("n", "n")),
        "query.related_one": _query("related_one", "more", Made(_other), on=("n", "n")),
        "query.materialize": _query("materialize", "kept"),
        "circuit.source": _of("circuit", "source", "c", "n BIGINT"),
        "circuit.feedback": _of("circuit", "feedback", "n BIGINT"),
        "circuit.child": _of("circuit", "child", "loop", limit=10, changes=False),
        "circuit.table": _of("circuit", "table", "a", ["n"]),
        "circuit.layout": _of("circuit", "layout", 0),
        "circuit.label": _of("circuit", "label", 0),
        "circuit.line": _of("circuit", "line", 0),
        "circuit.fingerprint": _of("circuit", "fingerprint", 0),
        "circuit.global_id": _of("circuit", "global_id", 0),
        "circuit.stream": _of("circuit", "stream", 0),
        "circuit.user_functions": _of("circuit", "user_functions", 0),
        "circuit.function": _of("circuit", "function", abs, "columns", None),
        "circuit.sink": _of("circuit", "sink", "x", OTHER, keep=True, positive=False),
        "circuit.drop_sink": _of("circuit", "drop_sink", "out"),
        "circuit.drop_source": _of("circuit", "drop_source", "a"),
        "circuit.connect": _of("circuit", "connect", 0, 0, OTHER),
        "circuit.delay": _of("circuit", "delay", OTHER),
        "circuit.enter": _of("circuit", "enter", OTHER),
        "circuit.leave": _of("circuit", "leave", OTHER),
        "stream.map": _of("stream", "map", lambda n, s: (n, s), "n BIGINT, s STRING", columns=None, by_row=True),
        "stream.extend": _of("stream", "extend", lambda n, s: (n,), "m BIGINT", columns=None, by_row=True),
        "stream.filter": _of("stream", "filter", lambda n, s: True, columns=None, by_row=True),
        "stream.flat_map": _of("stream", "flat_map", lambda n, s: [(n, s)], "n BIGINT, s STRING"),
        "stream.index": _of("stream", "index", "n"),
        "stream.index_with": _of("stream", "index_with", lambda n, s: (n,), "k BIGINT", by_row=True),
        "stream.inspect": _of("stream", "inspect", lambda _: None),
        "stream.not_null": _of("stream", "not_null", "n"),
        "stream.plus": _of("stream", "plus", OTHER),
        "stream.recode": _of("stream", "recode", "n BIGINT, s STRING"),
        "stream.under": _of("stream", "under", ev.Schema.parse("n BIGINT, s STRING")),
        "stream.rename": _of("stream", "rename", {"n": "m"}),
        "stream.select": _of("stream", "select", "n", m="s"),
        "stream.top": _of("stream", "top", 2, "n", by="s", skip=0),
        "stream.sink": _of("stream", "sink", "name", keep=True, positive=False),
        "stream.aggregate": _of("stream", "aggregate", ["s"], total=("sum", "n")),
        "stream.distinct_incremental": _of("stream", "distinct_incremental", TRACE),
        "stream.join_trace": _of("stream", "join_trace", TRACE, "n", select=None),
        "stream.asof_join": _of(
            "stream",
            "asof_join",
            OTHER,
            "s",
            at="n",
            direction="backward",
            tolerance=None,
            strict=False,
            how="inner",
            select=None,
        ),
        "stream.as_of_now": _of("stream", "as_of_now", OTHER, "n", select=None, remember=False),
        "embedded.tick": _of("embedded", "tick", {"a": [((1, "x"), 1)]}),
        "embedded.encode": _of("embedded", "encode", {"a": [((1, "x"), 1)]}),
        "embedded.view": _of("embedded", "view", "out"),
        "embedded.table": _of("embedded", "table", "a"),
        "embedded.vacuum": _of("embedded", "vacuum", 1),
        "embedded.turn": _of("embedded", "turn", Made(lambda _: _circuit()), tables=None, says=None),
        "kernel.define_relation": _of("kernel", "define_relation", "S", ["a"], exact=False),
        "kernel.define_graph": _of("kernel", "define_graph", "h", SPEC, providers=None),
        "kernel.activate_graph": _of("kernel", "activate_graph", "g", None),
        "kernel.deactivate_graph": _of("kernel", "deactivate_graph", "g"),
        "kernel.drop_graph": _of("kernel", "drop_graph", "g"),
        "kernel.drop_relation": _of("kernel", "drop_relation", "R"),
        "kernel.explain": _of("kernel", "explain", "g"),
        "kernel.output": _of("kernel", "output", "Res"),
        "kernel.relation": _of("kernel", "relation", "A"),
        "kernel.push_batch": _of("kernel", "push_batch", {"A": {"adds": [(1, 2)]}}),
        "sources.Memory": _plain(Memory, "k BIGINT, v STRING", "k", [(1, "a")]),
        "sources.Memory.pull": Call(lambda w: w.source(_memory, "pull"), (Request(),)),
        "sources.Memory.write": Call(lambda w: w.source(_memory, "write"), (Update({}),)),
        "sources.Memory.resume": Call(lambda w: w.source(_memory, "resume"), ({},)),
        "sources.Memory.settle": Call(lambda w: w.source(_memory, "settle"), ({},)),
        "sources.Iterator": _plain(lambda *args: Iterated(*args).read(), [(1, "a")], "k BIGINT, v STRING", "k"),
        "sources.Iterator.read": Call(
            lambda w: w.source(lambda: Iterated([(1, "a")], "k BIGINT, v STRING"), "read"), (1,)
        ),
        "sources.Iterator.resume": Call(
            lambda w: w.source(lambda: Iterated([(1, "a")], "k BIGINT, v STRING"), "resume"), ({},)
        ),
        "sources.Iterator.settle": Call(
            lambda w: w.source(lambda: Iterated([(1, "a")], "k BIGINT, v STRING"), "settle"), ({},)
        ),
        "sources.Files": Call(_files, ("*.csv", "k BIGINT, v STRING", "k"), FILES),
        "sources.Lines": Call(_lines, ("l.json", "k BIGINT, v STRING", "k")),
        "sources.SQLite": Call(_sqlite, ("s.db", "x", None, None), {"watch": False, "keep": 1.0, "trim_every": 3}),
    }
    for what in ("join", "left_join", "right_join", "full_join"):
        found[f"stream.{what}"] = _of("stream", what, OTHER, "n", select=None)
    for what in ("semijoin", "antijoin"):
        found[f"stream.{what}"] = _of("stream", what, OTHER, "n")
    for what in ("count", "sum", "min", "max", "avg", "array"):
        found[f"agg.{what}"] = _plain(getattr(ev.agg, what), "n", "x")
    for what in ("in_", "not_in", "like", "ilike", "__add__", "__eq__", "__lt__", "__and__"):
        found[f"col.{what}"] = _plain(getattr(ev.col("n"), what), "x")
    found["col.between"] = _plain(ev.col("n").between, 1, 2)
    for shape in ("live", "ordered", "scalar", "tree"):
        of = partial(World.view, shape=shape)
        found[f"view.{shape}.subscribe"] = Call(
            lambda w, of=of: of(w, "subscribe"), (lambda *_: None,), {"snapshot": False, "ended": None}
        )
        found[f"view.{shape}.changes"] = Call(
            lambda w, of=of: of(w, "changes"), (), {"snapshot": False, "maxsize": 3, "policy": "merge"}
        )
    return found


def _indexed() -> ev.IndexedZSet:
    return ev.IndexedZSet.of([(("a", 1), 1)])


# What takes no argument needs no call, and neither does what only the library itself calls.
CLASSES: dict[str, type] = {
    "db": ev.Database, "tx": Transaction, "view": View, "table": Table, "rules": Rules, "query": Query, "col": Col,
    "circuit": ev.Circuit, "stream": Stream, "embedded": ev.Embedded, "kernel": ev.Kernel, "changes": Changes,
    "ev.ZSet": ev.ZSet, "ev.IndexedZSet": ev.IndexedZSet, "ev.Schema": ev.Schema, "sources.Memory": Memory,
    "sources.Iterator": Iterated, "view.live": TableView, "view.ordered": OrderedView, "view.scalar": ScalarView,
    "view.tree": TreeView, "subscription": Subscription, "change": Change,
}  # fmt: skip
OURS = {
    "query.of", "query.parts", "query.and_", "query.or_", "query.not_",
    "circuit.add", "circuit.fingerprints", "circuit.sink_again", "embedded.attach", "change.of",
    *(f"view.{shape}.follow" for shape in ("live", "ordered", "scalar", "tree")),
}  # fmt: skip


def forgotten() -> list[str]:
    """Public methods with parameters that no call tries."""
    known = {name.split(" ")[0] for name in calls()} | OURS
    return [
        f"{prefix}.{name}"
        for prefix, cls in CLASSES.items()
        for name in dir(cls)
        if not name.startswith("_") and f"{prefix}.{name}" not in known and _takes_something(cls, name)
    ]


def _takes_something(cls: type, name: str) -> bool:
    if not callable(getattr(cls, name)) or isinstance(inspect.getattr_static(cls, name), property):
        return False
    if hasattr(getattr(cls, name), "__inside__"):
        return False
    parameters = list(inspect.signature(getattr(cls, name)).parameters)
    return bool([each for each in parameters if each != "self"])


@dataclass
class Trial:
    """One world after the other, as long as trials need them, and what went wrong in them."""

    outcome: Outcome
    folder: Path
    world: World | None = None
    since: int = 0  # trials in this world

    def call(self, name: str, call: Call, instead: Mapping[int | str, Any], said: str) -> None:
        """One call, with some arguments replaced."""
        world = self.at_hand()
        self.outcome.tried["calls"] += 1
        try:
            args, named = call.arguments(world, instead)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call.of(world)(*args, **named)
        except (ev.EverviewError, Own) as error:
            self.refused(error, f"{name}({said})")
        except Exception:  # noqa: BLE001, which is what is looked for
            self.fault(f"{name}({said})")
        else:
            self.outcome.tried["accepted"] += 1
            self.go_on()

    def refused(self, error: Exception, said: str) -> None:
        """An error for users: it has a hint, and has changed nothing."""
        self.outcome.tried["refused"] += 1
        world = self.at_hand()
        if isinstance(error, ev.EverviewError) and not str(error).strip():
            self.outcome.faults.append(f"{said}: no message")
        if ";" in said:  # statements that came before the one that was refused count
            self.go_on()
        if world.touched() and world.state() != world.before:
            self.outcome.faults.append(f"{said}: refused, but something has changed\n{error}")
            self.renew()
            return
        self.since += 1
        if self.since % 100 == 0:
            self.check(said)

    def check(self, said: str) -> None:
        """All is as before, and works."""
        world = self.at_hand()
        if world.state() != world.before:
            self.outcome.faults.append(f"some trial before {said} has changed something")
            self.renew()
            return
        try:
            world.works()
        except Exception:  # noqa: BLE001, which is what is looked for
            self.fault(f"a change after {said}")
            self.renew()

    def fault(self, said: str) -> None:
        lines = traceback.format_exc().strip().splitlines()
        self.outcome.faults.append(f"{said}\n  " + "\n  ".join(line[:300] for line in lines[-7:]))
        self.go_on()

    def go_on(self) -> None:
        """Go on with what the call has made of the world; with another world if it has other definitions."""
        world = self.at_hand()
        if not world.touched():
            return
        if [world.db.tables(), world.db.views()] == [*world.before[1:3]]:
            world.before = world.state()
        else:
            self.renew()

    def renew(self) -> None:
        """The next trial has a world of its own."""
        if self.world is not None:
            with suppress(ev.EverviewError):
                self.world.close()
        self.world = None

    def at_hand(self) -> World:
        if self.world is None:
            self.world, self.since = World(self.folder), 0
        return self.world


def one_argument(trial: Trial, names: Iterable[str], chosen: Callable[[str], Iterable[str]]) -> None:
    """Each call with each argument replaced by each of some values, one at a time."""
    known, made = calls(), values()
    for name in names:
        call = known[name]
        for place in call.places():
            for value in chosen(f"{name} {place}"):
                if value not in call.without:
                    trial.call(name, call, {place: made[value]()}, f"{place}={value}")


def rows_in(trial: Trial, chosen: Iterable[tuple[str, str, str]]) -> None:
    """Rows of the table of all types, one column of one row hostile: as dict, as tuple, as frame."""
    made = values()
    for column, value, way in chosen:
        call = calls_of_rows()[way]
        if way.startswith("frame"):
            instead: Any = frame(value, column, (next(KEYS), next(KEYS)))
        else:
            cell = made[value]()
            key = next(KEYS)
            instead = (
                [{"id": key, column: cell}]
                if way != "tuple"
                else [(key, *(cell if name == column else None for name in TYPES))]
            )
        if way == "apply":
            instead = {"t": [(instead[0], 1)]}
        trial.outcome.tried["rows"] += 1
        place = 0 if way == "apply" else 1
        trial.call(f"rows as {way}", call, {place: instead}, f"{column}={value}")


def calls_of_rows() -> dict[str, Call]:
    return {
        "dict": _of("tx", "insert", "t", ROWS),
        "tuple": _of("tx", "insert", "t", ROWS),
        "frame": _of("tx", "insert", "t", ROWS),
        "frame to upsert": _of("tx", "upsert", "t", ROWS),
        "frame to update": _of("tx", "update", "t", ROWS),
        "update": _of("tx", "update", "t", ROWS),
        "apply": _db("apply", {}),
    }


def all_rows() -> list[tuple[str, str, str]]:
    """Every hostile value in every column, in every way."""
    cells = [(c, v, way) for c, v, way in product(TYPES, values(), ("dict", "tuple", "update", "apply"))]
    frames = [(c, v, way) for c, v, way in product(TYPES, columns(), ("frame", "frame to upsert", "frame to update"))]
    return [*cells, *frames]


def texts(trial: Trial, count: int, rng: random.Random) -> None:
    """Hostile texts, in each language."""
    for language, text in hostile_texts(count, rng):
        world = trial.at_hand()
        run: dict[str, Callable[[str], Any]] = {
            "sql": world.db.sql,
            "souffle": world.db.datalog,
            "edn": world.db.edn,
            "pomologic": lambda text, world=world: world.db.datalog(text, dialect="pomologic"),
            "pomora": lambda text, world=world: world.db.datalog(text, dialect="pomora"),
            "schema": ev.Schema.parse,
        }
        trial.outcome.tried[f"texts of {language}"] += 1
        trial.call(language, Call(lambda _, run=run, language=language: run[language], (text,)), {}, repr(text)[:500])
        if trial.world is not None:
            with suppress(ev.EverviewError):  # a text may be BEGIN
                trial.world.db.rollback()


def several(trial: Trial, rng: random.Random) -> None:
    """One call with several arguments replaced."""
    known, made = calls(), values()
    name = rng.choice(list(known))
    call = known[name]
    places = [place for place in call.places() if rng.random() < 0.6]
    chosen = {place: rng.choice([value for value in made if value not in call.without]) for place in places}
    said = ", ".join(f"{place}={value}" for place, value in chosen.items())
    trial.call(name, call, {place: made[value]() for place, value in chosen.items()}, said)


def run(seconds: float, seed: int) -> Outcome:
    """Try calls, rows and texts at random until the time is over."""
    rng, end = random.Random(seed), time.monotonic() + seconds
    folder = Path(tempfile.mkdtemp(prefix="hostile"))
    trial, every = Trial(Outcome(), folder), all_rows()
    names, kinds = list(calls()), list(values())
    try:
        while time.monotonic() < end:
            for _ in range(20):
                one_argument(trial, [rng.choice(names)], lambda _: [rng.choice(kinds)])
                several(trial, rng)
            rows_in(trial, [rng.choice(every) for _ in range(20)])
            texts(trial, 20, rng)
        trial.check("the last")
    finally:
        trial.renew()
        shutil.rmtree(folder, ignore_errors=True)
    return trial.outcome
