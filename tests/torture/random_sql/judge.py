"""Compare the engines' answers, and tell Everview's faults from the others' peculiarities."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from torture.random_sql.clauses import Query
from torture.random_sql.comparing import same, shown
from torture.random_sql.engines import Answer, Failure, Spark, duckdb_answers, everview_answers, normal
from torture.random_sql.reduce import Case, reduced
from torture.random_sql.tables import contents
from torture.random_sql.trees import Among, Call, Form, Node, NotThere

# Errors that depend on the rows; without Spark nobody can say whether they are right.
OF_VALUES = ("ArithmeticFailure", "CastFailure", "WeightOverflow")


@dataclass(frozen=True)
class Finding:
    """A fault: what kind, in which case, and all answers after the case's last tick."""

    kind: str  # rows, tick, exception
    case: Case
    answers: dict[str, Answer]

    @property
    def signature(self) -> str:
        """Equal for exceptions with one text, and for cases that differ only in names and literals."""
        ours = self.answers["everview"]
        if isinstance(ours, Failure) and self.kind != "rows":
            return f"{self.kind} {ours.cause}"
        return f"{self.kind} {normal(self.case.query.text('spark'))}"

    def __str__(self) -> str:
        tables = [f"CREATE TABLE {shape.name} ({shape.spark()})" for shape in self.case.shapes]
        ticks = [f"tick {dict(tick)!r}" for tick in self.case.ticks]
        at = min(self.case.made_after, len(ticks))
        lines = [*tables, *ticks[:at], f"view {self.case.query.text('spark')}", *ticks[at:]]
        for engine, answer in self.answers.items():
            lines.append(f"{engine:>8}: {answer if isinstance(answer, Failure) else shown(answer)}")
        return "\n  ".join([f"{self.kind}:", *lines])


def duckdb_text(query: Query) -> str | None:
    try:
        return query.text("duckdb")
    except NotThere:
        return None


def suspicious(ours: list[Answer], theirs: list[Answer]) -> tuple[str, int] | None:
    """What is first wrong with Everview's answers beside another engine's, and after which of the ticks.

    It is `exception` if a user would see one that is not meant for users, `tick` if a view that was accepted has no
    answer, `rows` if it has another.
    """
    for at, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        if isinstance(our, Failure):
            if our.raw:
                return "exception", at
            if our.stage != "create" and not isinstance(their, Failure):
                return "tick", at
        elif not isinstance(their, Failure) and not same(our, their):
            return "rows", at
    return None


KNOWN = Form("coalesce({0}, false)", "coalesce({0}, false)")


def with_known_membership(node: Any) -> Any:
    """A query in which every `IN (subquery)` that would be NULL is false."""
    parts = {field.name: _in_part(getattr(node, field.name)) for field in fields(node) if field.init}
    changed = replace(node, **parts)
    return Call(changed.type, KNOWN, (changed,)) if isinstance(changed, Among) else changed


def _in_part(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(map(_in_part, part))
    return with_known_membership(part) if isinstance(part, Node) else part


class Judge:
    """Looks into suspicions: asks Spark, if it is there, and makes the case small."""

    def __init__(self, spark: Spark | None, seconds: float) -> None:
        self.spark, self.seconds = spark, seconds
        self.chance = random.Random(0)

    def finding(self, kind: str, case: Case) -> Finding | None:
        """The case made small, if it is a fault; DuckDB is overruled by Spark."""
        if not self._fails(case, kind, self._beside_duckdb):
            if self.spark is None or not self._fails(case, kind, self._beside_spark):
                return None
            return self._found(
                kind, reduced(case, lambda each: self._fails(each, kind, self._beside_spark), self.seconds)
            )
        if kind != "exception" and self.spark is not None and not self._fails(case, kind, self._beside_spark):
            return None
        small = reduced(case, lambda each: self._fails(each, kind, self._beside_duckdb), self.seconds)
        if kind != "exception" and self.spark is not None and not self._fails(small, kind, self._beside_spark):
            # Made small, it had come to differ from DuckDB for another reason.
            small = reduced(case, lambda each: self._fails(each, kind, self._beside_spark), self.seconds)
        return self._found(kind, small)

    def small_refusal(self, case: Case) -> Query:
        """A smaller query that Everview refuses for the same reason, and that DuckDB, or else Spark, still answers."""
        other = self._beside_duckdb if self.spark is None or duckdb_text(case.query) is not None else self._beside_spark
        first = self.ours(case)[0]

        def still(each: Case) -> bool:
            ours, theirs = self.ours(each)[0], other(each)[0]
            return (
                isinstance(ours, Failure)
                and isinstance(first, Failure)
                and ours.cause == first.cause
                and not isinstance(theirs, Failure)
            )

        return reduced(case, still, self.seconds).query if still(case) else case.query

    def _found(self, kind: str, case: Case) -> Finding:
        answers: dict[str, Answer] = {"everview": self.ours(case)[-1], "duckdb": self._beside_duckdb(case)[-1]}
        if self.spark is not None:
            answers["spark"] = self._beside_spark(case)[-1]
        return Finding(kind, case, answers)

    def _fails(self, case: Case, kind: str, other: Callable[[Case], list[Answer]]) -> bool:
        ours = self.ours(case)
        found = suspicious(ours, other(case))
        if found is None or found[0] != kind:
            return False
        if kind == "rows" and other == self._beside_spark and self._is_documented(case):
            return False
        if kind == "tick" and self.spark is None:
            return not any(isinstance(our, Failure) and our.kind in OF_VALUES for our in ours)
        return True

    def _is_documented(self, case: Case) -> bool:
        """Whether Spark differs only by taking `IN (subquery)` for false where SQL says that it is unknown.

        Then all agree on the query in which what is unknown has been made false, wherever the operator stands.
        """
        known = replace(case, query=with_known_membership(case.query))
        return known != case and suspicious(self.ours(known), self._beside_spark(known)) is None

    def ours(self, case: Case) -> list[Answer]:
        return everview_answers(case.shapes, list(case.ticks), [case.query.text("spark")], case.made_after)[0]

    def _beside_duckdb(self, case: Case) -> list[Answer]:
        return duckdb_answers(case.shapes, list(case.ticks), [duckdb_text(case.query)], case.made_after)[0]

    def _beside_spark(self, case: Case) -> list[Answer]:
        """Spark's answers: the same after every tick but the last, where only that is asked."""
        assert self.spark is not None
        self.spark.load(case.shapes, contents(case.shapes, list(case.ticks)), self.chance)
        answer = self.spark.answer(case.query.text("spark"))
        unknown = Failure("run", "NotAsked", "")
        return [*(unknown for _ in range(len(case.ticks) - max(case.made_after, 1))), answer]
