"""Exceptions at any moment: whatever they cut short, the database is as it was before or as it is afterwards.

`Moments` counts the lines, or the bytecodes, of Everview that an act goes through, and raises at one of them. A
`Scenario` is a database in one of two states, and an act that leads from the first to the second and back. `interrupt`
lets the act be cut short at one moment, and looks at everything: tables, views, epoch, who listens, shapes that are
kept, whether other threads can go on, whether the next changes work, and what another process would find on disk.
"""

from __future__ import annotations

import contextlib
import dis
import linecache
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import everview as ev
from everview.errors import BrokenConstraint
from everview.sources import Memory
from everview.sources.protocol import Update
from torture.outcome import Outcome

SOURCE = str(Path(ev.__file__).parent)
# Where something changes that outlives a call; what only computes is a matter of these.
STATEFUL = (
    *("database/", "runtimes/embedded/", "runtimes/pull/", "runtimes/epoch.py", "runtimes/state.py", "traces/"),
    *("codes/dictionary.py", "views/", "listening/", "sources/", "relational/", "blocks.py"),
)
Contents = dict[str, list[Any]]


class Interrupt(KeyboardInterrupt):
    """What is raised; only where the trial raises it."""


class Moments:
    """The moments of Everview's code in this thread, counted; at one of them `Interrupt` is raised, once.

    Moments are lines or ``opcodes``, of all code or only of what is `STATEFUL`.
    """

    def __init__(self, at: int = 0, *, opcodes: bool = False, all_code: bool = True) -> None:
        self.at, self.opcodes, self.count = at, opcodes, 0
        self.where = ""
        self._files = (f"{SOURCE}/",) if all_code else tuple(f"{SOURCE}/{part}" for part in STATEFUL)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self._files):
            return None
        frame.f_trace_opcodes = self.opcodes
        return self._local

    def _local(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event != ("opcode" if self.opcodes else "line"):
            return self._local
        if gives_back(frame):
            return self._local
        self.count += 1
        if self.count == self.at:
            self.where = f"{frame.f_code.co_filename.removeprefix(SOURCE)}:{frame.f_lineno}+{frame.f_lasti}"
            sys.settrace(None)
            raise Interrupt(self.where)
        return self._local


ENDS_OF_BLOCKS = ("SWAP", "LOAD_CONST", "PRECALL", "CALL", "PUSH_EXC_INFO", "WITH_EXCEPT_START")


def gives_back(frame: FrameType) -> bool:
    """Whether a with-statement is about to call the end of its block, by its own code or by its handler of exceptions.

    There the interpreter runs no signal handler and needs no memory, so nothing is ever raised; only a tracer can. Nor
    is anything raised where a ``try`` begins, which the table of handlers leaves out for that reason, nor between the
    choice of a listener and its first line (`everview.listening.calls.call_each`).
    """
    at = frame.f_lasti
    if frame.f_code.co_name == "<genexpr>" and frame.f_code.co_filename.endswith("listening/calls.py"):
        return True
    if dis.opname[frame.f_code.co_code[at]] == "NOP":
        return True
    if dis.opname[frame.f_code.co_code[at]] not in ENDS_OF_BLOCKS:
        return False
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno or 0)  # code of no line has none
    return line.lstrip().startswith("with ")


def traced(moments: Callable[[FrameType, str, Any], Any], act: Callable[[], None]) -> None:
    """Do something, and count its moments, until one of them raises."""
    before = sys.gettrace()
    try:
        sys.settrace(moments)
        act()
    except Interrupt:
        pass
    finally:
        sys.settrace(before)


# -- scenarios

TABLES = """
CREATE TABLE account (id BIGINT PRIMARY KEY, owner STRING, country STRING);
CREATE TABLE transfer (id BIGINT PRIMARY KEY, src BIGINT, dst BIGINT, amount DECIMAL(12,2));
CREATE TABLE note (who STRING);
CREATE TABLE count_up (n BIGINT PRIMARY KEY);
CREATE MATERIALIZED VIEW exposure AS
  SELECT a.country, SUM(t.amount) AS total, COUNT(*) AS n
  FROM transfer t JOIN account a ON a.id = t.src GROUP BY a.country;
CREATE MATERIALIZED VIEW reached AS
  WITH RECURSIVE path(src, dst) AS (
    SELECT src, dst FROM transfer UNION SELECT p.src, t.dst FROM path p JOIN transfer t ON t.src = p.dst)
  SELECT * FROM path;
CREATE MATERIALIZED VIEW names AS SELECT DISTINCT owner FROM account UNION SELECT who FROM note;
CREATE MATERIALIZED VIEW first AS SELECT owner FROM account ORDER BY owner LIMIT 2;
CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n FROM count_up;
INSERT INTO account VALUES (1, 'Ada', 'UK'), (2, 'Bob', 'DE'), (3, 'Cy', 'DE');
INSERT INTO transfer VALUES (10, 1, 2, 120), (11, 2, 3, 75.5);
INSERT INTO note VALUES ('Ada'), ('Zoe');
"""

Act = Callable[[ev.Database, str], None]  # told a text that has not been there yet


@dataclass(frozen=True)
class Scenario:
    """An act, what undoes it, and what it needs beforehand."""

    name: str
    act: Act
    back: Act
    prepare: Callable[[ev.Database], None] = lambda db: None


def _apply(db: ev.Database, text: str) -> None:
    accounts = [((1, "Ada", "UK"), -1), ((1, text, "FR"), 1), ((4, text + "4", "FR"), 1)]
    db.apply({"account": accounts, "transfer": [((12, 3, 4, 5), 1), ((10, 1, 2, 120), -1)], "note": [((text,), 2)]})


def _apply_back(db: ev.Database, text: str) -> None:
    with db.transaction() as tx:
        tx.upsert("account", [(1, "Ada", "UK")])
        tx.delete("account", [4])
        tx.delete("transfer", [12])
        tx.upsert("transfer", [(10, 1, 2, 120)])
        tx._tx.become("note", [("Ada",), ("Zoe",)])


def _transaction(db: ev.Database, text: str) -> None:
    with db.transaction() as tx:
        tx.upsert("account", [(1, text, "FR"), (4, text + "4", "FR")])
        try:
            with db.transaction() as inner:
                inner.insert("note", [("never",)])
                raise LookupError
        except LookupError:
            pass
        tx.insert("transfer", [(12, 3, 4, 5)])
        with db.transaction() as inner:
            inner.delete("transfer", [10])
            inner.insert("note", [(text,), (text,)])


def _sql(db: ev.Database, text: str) -> None:
    db.sql(f"""
      BEGIN;
      UPDATE account SET owner = '{text}', country = 'FR' WHERE id = 1;
      INSERT INTO account VALUES (4, '{text}4', 'FR');
      DELETE FROM transfer WHERE id = 10;
      INSERT INTO transfer SELECT 12, 3, 4, 5;
      INSERT INTO note VALUES ('{text}'), ('{text}');
      COMMIT""")


def _statement(db: ev.Database, text: str) -> None:
    db.sql(f"INSERT INTO note SELECT '{text}' FROM account")


def _statement_back(db: ev.Database, text: str) -> None:
    db.sql("DELETE FROM note WHERE who NOT IN ('Ada', 'Zoe')")


def _create(db: ev.Database, text: str) -> None:
    db.sql("CREATE MATERIALIZED VIEW more AS SELECT owner || '!' AS shout, COUNT(*) AS n FROM account GROUP BY owner")


def _create_back(db: ev.Database, text: str) -> None:
    db.sql("DROP VIEW more")


def _replace(db: ev.Database, text: str) -> None:
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW names AS SELECT DISTINCT upper(owner) AS owner FROM account")


def _replace_back(db: ev.Database, text: str) -> None:
    db.sql("""CREATE OR REPLACE MATERIALIZED VIEW names AS
              SELECT DISTINCT owner FROM account UNION SELECT who FROM note""")


def _create_table(db: ev.Database, text: str) -> None:
    db.sql("CREATE TABLE copied AS SELECT owner, country FROM account")


def _create_table_back(db: ev.Database, text: str) -> None:
    db.sql("DROP TABLE copied")


def _replace_table(db: ev.Database, text: str) -> None:
    db.sql("CREATE OR REPLACE TABLE alone (id BIGINT PRIMARY KEY, v STRING)")


def _replace_table_back(db: ev.Database, text: str) -> None:
    db.sql("INSERT INTO alone VALUES (1, 'one')")


def _alone(db: ev.Database) -> None:
    db.sql("CREATE TABLE alone (id BIGINT PRIMARY KEY, v STRING); INSERT INTO alone VALUES (1, 'one')")


def _alter_table(db: ev.Database, text: str) -> None:
    db.sql("ALTER TABLE alone ADD COLUMN w BIGINT DEFAULT 7 CHECK (w > 1)")


def _alter_table_back(db: ev.Database, text: str) -> None:
    db.sql("ALTER TABLE alone DROP CONSTRAINT IF EXISTS alone_w_check; ALTER TABLE alone DROP COLUMN IF EXISTS w")


def _alone_and_read(db: ev.Database) -> None:
    _alone(db)
    db.sql("CREATE MATERIALIZED VIEW read_alone AS SELECT upper(v) AS v FROM alone")


def _constrained(db: ev.Database) -> None:
    db.sql("""
        CREATE TABLE parent (id BIGINT PRIMARY KEY); INSERT INTO parent VALUES (1);
        CREATE TABLE child (id BIGINT PRIMARY KEY, p BIGINT REFERENCES parent, n BIGINT UNIQUE CHECK (n > 0))
    """)


def _refused(db: ev.Database, text: str) -> None:
    """A tick that a constraint refuses, and one that it does not."""
    with contextlib.suppress(BrokenConstraint):
        db.sql("INSERT INTO child VALUES (1, 9, 1)")
    db.sql("INSERT INTO child VALUES (1, 1, 1) RETURNING *")


def _refused_back(db: ev.Database, text: str) -> None:
    db.sql("DELETE FROM child")


def _rules(db: ev.Database, text: str) -> None:
    db.datalog("tied(x, y) :- transfer(_, x, y, _). tied(x, z) :- tied(x, y), transfer(_, y, z, _).")


def _rules_back(db: ev.Database, text: str) -> None:
    db.rules()[0].remove()


def _attach(db: ev.Database, text: str) -> None:
    db.attach("fed", Memory("id BIGINT, v STRING", "id", [(1, "one"), (2, "two")]))


def _attach_back(db: ev.Database, text: str) -> None:
    if "fed" in db.tables():
        db.drop("fed")


def _vacuum(db: ev.Database, text: str) -> None:
    db.vacuum()


def _checkpoint(db: ev.Database, text: str) -> None:
    _apply(db, text)
    db.checkpoint()


def _listener(db: ev.Database, text: str) -> None:
    """Two who come, are told of a change, and go."""
    told: list[Any] = []
    one = db.view("names").subscribe(lambda changes, epoch: told.append(changes), snapshot=True)
    some = db._core.telling.subscribe_all(["names", "first"], lambda changes, epoch: told.append(changes))
    _apply(db, text)
    one.close()
    some.close()


def _facts(db: ev.Database, text: str) -> None:
    """Attributes that are new, and facts of them: one act."""
    db.transact(f'[{{:pet/name "{text}" :pet/age 3}} {{:pet/name "Tom" :pet/age 4}}]')


def _facts_back(db: ev.Database, text: str) -> None:
    for name in [each for each in db.tables() if each.startswith((":pet", "db/"))]:
        db.drop(name)


def _nothing(db: ev.Database, text: str) -> None:
    pass


SCENARIOS = (
    Scenario("apply", _apply, _apply_back),
    Scenario("apply back", _apply_back, _apply, lambda db: _apply(db, "~text0~")),
    Scenario("transaction", _transaction, _apply_back),
    Scenario("sql", _sql, _apply_back),
    Scenario("statement", _statement, _statement_back),
    Scenario("create view", _create, _create_back),
    Scenario("drop view", _create_back, _create, lambda db: _create(db, "")),
    Scenario("replace view", _replace, _replace_back),
    Scenario("create table as", _create_table, _create_table_back),
    Scenario("replace table", _replace_table, _replace_table_back, _alone),
    Scenario("alter table", _alter_table, _alter_table_back, _alone_and_read),
    Scenario("refused", _refused, _refused_back, _constrained),
    Scenario("rules", _rules, _rules_back),
    Scenario("attach", _attach, _attach_back),
    Scenario("facts", _facts, _facts_back),
    Scenario("vacuum", _vacuum, _nothing),
    Scenario("checkpoint", _checkpoint, _apply_back),
    Scenario("listener", _listener, _apply_back),
)


class Poll:
    """A source that changes, and is polled."""

    def __init__(self) -> None:
        self.source = Memory("id BIGINT, v STRING", "id", [(1, "one"), (2, "two")])

    def prepare(self, db: ev.Database) -> None:
        self._become("two")
        db.attach("fed", self.source)
        db.sql("CREATE MATERIALIZED VIEW fed_by AS SELECT v, COUNT(*) AS n FROM fed GROUP BY v")

    def act(self, db: ev.Database, text: str) -> None:
        self._become(text)
        db.poll()

    def back(self, db: ev.Database, text: str) -> None:
        self._become("two")
        db.poll()

    def _become(self, text: str) -> None:
        # An interrupt may have come after a write, before a poll has taken it.
        now = self.source._with_ahead().get(self.source._key_of((2, text)))
        if now[1] != text:
            self.source.write(Update.of([(now, -1), ((2, text), 1)]))


def scenarios() -> list[Scenario]:
    """All of them, those with a source of their own made anew."""
    poll = Poll()
    return [*SCENARIOS, Scenario("poll", poll.act, poll.back, poll.prepare)]


def kinds() -> list[tuple[Scenario, str]]:
    """Every scenario in memory and on disk, and some that save later."""
    periodic = [(each, "periodic") for each in scenarios() if each.name in ("apply", "checkpoint", "vacuum", "poll")]
    return [(each, how) for how in ("memory", "tick") for each in scenarios()] + periodic


# -- one interruption


@dataclass
class Trial:
    """A database in the first state of a scenario, with someone who listens and a shape that is kept."""

    scenario: Scenario
    path: Path | None
    opcodes: bool = False
    all_code: bool = False
    durability: str = "tick"
    db: ev.Database = field(init=False)

    def __post_init__(self) -> None:
        self.tried, self._ups = 0, 0
        self.db = ev.connect(self.path, durability=self.durability)
        self.db.sql(TABLES)
        self.scenario.prepare(self.db)
        self._text = "~text0~"
        self.told: dict[Any, int] = {}
        self._listen()
        self.first = self._seen()
        self.scenario.act(self.db, self._text)
        self.second = self._seen()
        self.scenario.back(self.db, self._text)
        assert self._seen() == self.first, "the scenario leads back"
        assert self.db.verify()
        moments = Moments(opcodes=self.opcodes, all_code=self.all_code)
        self.once(partial(traced, moments))
        self.moments = moments.count
        begun = time.perf_counter()
        self.scenario.act(self.db, self._text)
        self.seconds = time.perf_counter() - begun
        self.scenario.back(self.db, self._text)

    def _listen(self) -> None:
        self.told.clear()
        self._hearing = False  # whether the listener is at work, or was when it was interrupted
        self._subscription = self.db.view("exposure").subscribe(self._hear, snapshot=True)
        self._live = self.db.view("exposure").live()

    def _hear(self, changes: Any, epoch: int) -> None:
        self._hearing = True
        for row, weight in changes:
            self.told[row] = self.told.get(row, 0) + weight
        self._hearing = False

    def _next_text(self) -> None:
        self.tried += 1
        self._text = f"~text{self.tried}~"

    def _act(self) -> None:
        self.scenario.act(self.db, self._text)

    @classmethod
    def of(cls, scenario: Scenario, durability: str, home: Path) -> Trial:
        """One of a kind; where there is a state directory, it is in a folder that may not be there yet."""
        if durability == "memory":
            return cls(scenario, None)
        home.mkdir(parents=True, exist_ok=True)
        return cls(scenario, home / "state", durability=durability)

    def once(self, doing: Callable[[Callable[[], None]], None]) -> None:
        """Let the act be done by something that does not interrupt it, and go back."""
        self._next_text()
        doing(self._act)
        self.scenario.back(self.db, self._text)

    def interrupt(self, at: int) -> str | None:
        """Cut the act short at one moment; what is wrong then, if anything is."""
        moments = Moments(at, opcodes=self.opcodes, all_code=self.all_code)
        wrong = self.interrupt_by(partial(traced, moments), f"moment {at}")
        return None if wrong is None else f"{wrong} ({moments.where})"

    def interrupt_by(self, interrupting: Callable[[Callable[[], None]], None], how: str) -> str | None:
        """Let the act be done by something that may interrupt it; what is wrong then, if anything is."""
        self._next_text()
        self._files = None if self.path is None else _files(self.path)
        try:
            interrupting(self._act)
            wrong = self._wrong()
        except Exception as error:  # noqa: BLE001, whatever it is, it is a fault
            wrong = f"{type(error).__name__}: {error}"
        where = f"{self.scenario.name}, {self.durability if self.path else 'in memory'}, {how}"
        return None if wrong is None else f"{where}: {wrong}"

    def _wrong(self) -> str | None:
        self.db._core.access.settle()
        if self.db._core.access.open is not None and self.db._core.access.open.by_sql:
            self.db.sql("ROLLBACK")  # one of SQL that was cut short before its COMMIT is open, as it would be said
        if self._hearing:  # nobody is told twice, not even one who was cut short
            self._subscription.close()
            self._listen()
        found = _within(5, lambda: self.db.epoch)
        if found is None:
            return "another thread waits for ever"
        seen = self._seen()
        if seen not in (self.first, self.second):
            return f"neither before nor after: {_difference(seen, self.first)}; {_difference(seen, self.second)}"
        if self.path is not None and (fault := self._on_disk(seen)):
            return fault
        self._ups += 1
        self.db.apply({"count_up": [((self._ups,), 1)]})
        if self.db.view("counted").rows() != [(self._ups,)]:
            return f"the next change was lost: {self.db.view('counted').rows()}, not {self._ups}"
        held = dict(self.db.view("exposure").contents())
        told = {row: weight for row, weight in self.told.items() if weight}
        if told != held:
            return f"who listens was told {told}, and the view holds {held}"
        if sorted(self._live.rows()) != sorted(held):
            return f"a shape has {self._live.rows()}, and the view holds {held}"
        if self._ups % 25 == 0 and not (verdict := self.db.verify()):
            return f"views are not what their definitions say: {verdict}"
        if seen == self.second and self.second != self.first:
            self.scenario.back(self.db, self._text)
            if (back := self._seen()) != self.first:
                return f"the way back leads elsewhere: {_difference(back, self.first)}"
        return None

    def _seen(self, db: ev.Database | None = None) -> Contents:
        db = self.db if db is None else db
        found: Contents = {f"table {name}": db.table(name).rows() for name in db.tables() if name != "count_up"}
        found |= {f"view {name}": db.view(name).rows() for name in db.views() if name != "counted"}
        return {name: sorted(self._plain(row) for row in rows) for name, rows in found.items()}

    def _plain(self, row: Any) -> str:
        return re.sub(r"~text\d+~", "~", repr(row), flags=re.IGNORECASE)

    def _on_disk(self, seen: Contents) -> str | None:
        """What another process would find, if this one ended now."""
        assert self.path is not None
        if self.durability != "tick":
            self.db.checkpoint()
        elif _files(self.path) == self._files:
            return None  # which has been looked at
        copied = self.path.with_name("copied")
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(self.path, copied)
        with ev.connect(copied) as other:
            found = self._seen(other)
            if found != seen:
                return f"on disk is something else than in memory: {_difference(found, seen)}"
            if other.view("counted").rows() != [(self._ups,)]:
                return f"on disk is another count: {other.view('counted').rows()}, not {self._ups}"
        return None

    def close(self) -> None:
        """Let the directory go."""
        self.db.close()


def _within(seconds: float, found: Callable[[], Any]) -> Any:
    """What a function gives in another thread; None if it takes too long."""
    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(found()), daemon=True)
    thread.start()
    thread.join(seconds)
    return result[0] if result else None


def _files(path: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


def _difference(a: Contents, b: Contents) -> str:
    return "; ".join(
        f"{name}: {a.get(name)} / {b.get(name)}" for name in sorted({*a, *b}) if a.get(name) != b.get(name)
    )


# -- signals


def alarmed(seconds: float, act: Callable[[], None]) -> None:
    """Do something, until a signal handler raises after some time, if it takes so long."""

    def handler(number: int, frame: FrameType | None) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            act()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupt:
        pass
    finally:
        signal.signal(signal.SIGALRM, before)


def interrupted_by_signal(trial: Trial, rng: random.Random) -> str | None:
    """Let a signal come at a random moment of the act, or somewhat later; what is wrong then, if anything is."""
    return trial.interrupt_by(partial(alarmed, rng.uniform(1e-5, 1.2 * trial.seconds)), "a signal")


# -- all of it


def evenly(count: int, among: int) -> list[int]:
    """So many of the numbers from 1 on, from all over them.

    >>> evenly(4, 100), evenly(10, 3)
    ([1, 26, 51, 76], [1, 2, 3])
    """
    return [1 + at * among // count for at in range(count)] if count < among else list(range(1, among + 1))


def run(seconds: float, seed: int) -> Outcome:
    """Cut every scenario short: at lines and bytecodes of all code, and by signals, at random for a third of the time.

    For the rest, every line of every act is gone through: see `torture.every_line`.
    """
    from torture.every_line import Enumeration  # which needs this module

    outcome, rng = Outcome(), random.Random(seed)
    Enumeration(outcome).run(2 * seconds / 3, rng)
    until = time.monotonic() + seconds / 3
    while time.monotonic() < until:
        for scenario in rng.sample(all_scenarios := scenarios(), len(all_scenarios)):
            durability = rng.choice(["", "tick", "periodic"])
            with tempfile.TemporaryDirectory() as home:
                path = Path(home) / "state" if durability else None
                trial = Trial(scenario, path, rng.random() < 0.3, rng.random() < 0.5, durability or "tick")
                _try(trial, rng, min(until, time.monotonic() + 20), outcome)
    return outcome


def _try(trial: Trial, rng: random.Random, until: float, outcome: Outcome) -> None:
    """Interrupt a trial until its time is over, or something is wrong with its database."""
    fault = None
    while time.monotonic() < until and fault is None:
        if rng.random() < 0.3:
            fault = interrupted_by_signal(trial, rng)
            outcome.tried["signals"] += 1
        else:
            fault = trial.interrupt(rng.randint(1, trial.moments))
            outcome.tried["bytecodes" if trial.opcodes else "lines"] += 1
    if fault is not None:
        outcome.faults.append(fault)
    else:
        trial.close()
