"""Batches of random queries, asked of all engines, until the time is over.

A batch is three tables, a stream of changes, and some queries, each a materialized view; all of it follows from the
seed and the batch's number. DuckDB is asked after every tick, Spark after the last, and after one more drawn tick.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from dataclasses import dataclass, field

from torture.outcome import Outcome
from torture.random_sql.clauses import Query
from torture.random_sql.engines import Answer, Failure, Spark, duckdb_answers, everview_answers
from torture.random_sql.features import FEATURES
from torture.random_sql.judge import Finding, Judge, duckdb_text, suspicious
from torture.random_sql.queries import Queries
from torture.random_sql.reduce import Case
from torture.random_sql.tables import TableShape, Tick, contents, stream, tables

QUERIES, TICKS = 10, 4
LONGEST = 4_000  # characters of a query


@dataclass(frozen=True)
class Batch:
    """What one seed and number stand for."""

    shapes: tuple[TableShape, ...]
    ticks: list[Tick]
    queries: list[Query]
    made_after: int

    @classmethod
    def drawn(cls, seed: int, number: int, features: frozenset[str]) -> Batch:
        chance = random.Random(f"{seed}/{number}")
        shapes = tables(chance)
        ticks = stream(shapes, chance, TICKS)
        queries = Queries(chance, shapes, features)
        drawn: list[Query] = []
        while len(drawn) < QUERIES:
            query = queries.fresh()
            if len(query.text("spark")) <= LONGEST:
                drawn.append(query)
        return cls(shapes, ticks, drawn, chance.choice([0, 1, 1, 2]))

    def case(self, n: int, tick: int) -> Case:
        """One query of the batch, up to the answer with this number."""
        return Case(self.shapes, tuple(self.ticks[: max(self.made_after, 1) + tick]), self.made_after, self.queries[n])


@dataclass
class Trial:
    """Random SQL under way: counts, faults by signature, and what was refused, by cause."""

    spark: Spark | None = None
    features: frozenset[str] = FEATURES
    reduce_seconds: float = 20
    tried: Counter[str] = field(default_factory=Counter[str])
    faults: dict[str, str] = field(default_factory=dict[str, str])
    again: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, str] = field(default_factory=dict[str, str])
    end: float = math.inf  # when the time is over
    comparing: float = 0.0  # seconds spent on comparing, not on making faults small

    def run(self, seconds: float, seed: int) -> Outcome:
        """Batch after batch until the time is over; Spark has half of it, after a first batch without."""
        end = self.end = time.monotonic() + seconds
        on_spark = 0.0
        number = 0
        while time.monotonic() < end:
            started = time.monotonic()
            ask = self.spark is not None and on_spark < self.comparing / 2
            found = self.batch(seed, number, self.spark if ask else None)
            spent = time.monotonic() - started
            self.comparing += spent
            on_spark += spent * ask
            self._look_into(found, f"seed {seed}, batch {number}", end)
            number += 1
        return self.outcome()

    def batch(self, seed: int, number: int, spark: Spark | None) -> list[tuple[str, Case]]:
        """Ask the engines a batch; gives what is suspicious."""
        batch = Batch.drawn(seed, number, self.features)
        texts = [duckdb_text(query) for query in batch.queries]
        theirs = duckdb_answers(batch.shapes, batch.ticks, texts, batch.made_after)
        kept = [n for n, answers in enumerate(theirs) if not _too_many(answers)]
        spoken = [batch.queries[n].text("spark") for n in kept]
        ours = dict(zip(kept, everview_answers(batch.shapes, batch.ticks, spoken, batch.made_after), strict=True))
        self.tried["queries"] += len(kept)
        found: list[tuple[str, Case]] = []
        for n in kept:
            self._count(batch.case(n, 0), ours[n], theirs[n])
            suspicion = suspicious(ours[n], theirs[n])
            if suspicion is not None:
                found.append((suspicion[0], batch.case(n, suspicion[1])))
        if spark is not None:
            known = {id(case.query) for _, case in found}
            found += [each for each in self._beside_spark(batch, ours, spark) if id(each[1].query) not in known]
        return found

    def _count(self, case: Case, ours: list[Answer], theirs: list[Answer]) -> None:
        first, query = ours[0], case.query
        if isinstance(first, Failure) and first.stage == "create":
            self.tried["refused by Everview"] += 1
            if not any(isinstance(answer, Failure) for answer in theirs):
                self._refusal(f"refused, DuckDB answers: {first.cause}", case)
        elif isinstance(theirs[0], Failure):
            self.tried["not answered by DuckDB"] += 1
            if theirs[0].kind != "NotThere":
                self._note(f"not answered by DuckDB: {theirs[0].cause}", query)
        else:
            self.tried["queries compared with DuckDB"] += 1
            self.tried["answers compared with DuckDB"] += sum(not isinstance(answer, Failure) for answer in theirs)

    def _beside_spark(self, batch: Batch, ours: dict[int, list[Answer]], spark: Spark) -> list[tuple[str, Case]]:
        chance = random.Random(len(batch.ticks))
        found: list[tuple[str, Case]] = []
        answers = len(next(iter(ours.values()), []))
        for tick in sorted({answers - 1, chance.randrange(max(answers, 1))} if answers else set()):
            spark.load(batch.shapes, contents(batch.shapes, batch.ticks[: max(batch.made_after, 1) + tick]), chance)
            last = tick == answers - 1
            for n, our in ours.items():
                if time.monotonic() > self.end:
                    break  # a new session answers slowly, and there are twenty questions
                if last or not isinstance(our[tick], Failure):
                    their = spark.answer(batch.queries[n].text("spark"))
                    self._count_spark(batch.case(n, tick), our[tick], their, last)
                    suspicion = suspicious([our[tick]], [their])
                    if suspicion is not None:
                        found.append((suspicion[0], batch.case(n, tick)))
        return list({id(case.query): (kind, case) for kind, case in reversed(found)}.values())

    def _count_spark(self, case: Case, our: Answer, their: Answer, last: bool) -> None:
        if not isinstance(their, Failure) and not isinstance(our, Failure):
            self.tried["queries compared with Spark"] += last
            self.tried["answers compared with Spark"] += 1
        elif not last:
            return
        elif isinstance(our, Failure) and not isinstance(their, Failure):
            self._refusal(f"refused, Spark answers: {our.cause}", case)
        elif isinstance(their, Failure):
            self.tried["refused by Spark"] += 1
            if not isinstance(our, Failure):
                self._note(f"answered, Spark refuses: {their.cause}", case.query)

    def _refusal(self, cause: str, case: Case) -> None:
        """Count a refusal; of each cause one is made small."""
        is_new = cause not in self.refused
        self._note(cause, case.query)
        if is_new:
            started = time.monotonic()
            self.examples[cause] = Judge(self.spark, self.reduce_seconds / 4).small_refusal(case).text("spark")
            self.comparing -= time.monotonic() - started

    def _note(self, cause: str, query: Query) -> None:
        self.refused[cause] += 1
        text = query.text("spark")
        if cause not in self.examples or len(text) < len(self.examples[cause]):
            self.examples[cause] = text

    def _look_into(self, found: list[tuple[str, Case]], where: str, end: float) -> None:
        for kind, case in found:
            if kind == "exception" and self._is_known(case):
                continue
            seconds = min(self.reduce_seconds, max(end - time.monotonic(), 0.5))
            finding = Judge(self.spark, seconds).finding(kind, case)
            if finding is None:
                self.tried["differences that are DuckDB's"] += 1
                self._note(f"DuckDB differs ({kind})", case.query)
            else:
                self._add(finding, where)

    def _is_known(self, case: Case) -> bool:
        """Whether the exception of a case has been met before; then it need not be made small again."""
        signature = Finding("exception", case, {"everview": Judge(None, 0).ours(case)[-1]}).signature
        self.again[signature] += signature in self.faults
        return signature in self.faults

    def _add(self, finding: Finding, where: str) -> None:
        self.again[finding.signature] += 1
        if finding.signature in self.faults:
            return
        minutes = self.comparing / 60
        after = f"after {self.tried['queries']} queries, {minutes:.1f} minutes of comparing"
        self.faults[finding.signature] = f"{finding}\n  ({where}; {after})"

    def outcome(self) -> Outcome:
        compared = self.tried["queries compared with DuckDB"] + self.tried["queries compared with Spark"]
        rate = round(60 * compared / self.comparing) if self.comparing else 0
        faults = [f"{text}\n  (met {self.again[signature]} times)" for signature, text in self.faults.items()]
        notes = [f"{rate:,} queries compared a minute"]
        notes += [f"{count} × {cause}\n      {self.examples[cause]}" for cause, count in self.refused.most_common()]
        return Outcome(self.tried, faults, notes)


def _too_many(answers: list[Answer]) -> bool:
    return any(isinstance(answer, Failure) and answer.kind == "TooMany" for answer in answers)
