"""Verifying views: the oracle computes them again from scratch, and the rows are compared.

The oracle shares no operator with the runtimes, so rows on which both agree are right, or wrong in the definition. It
is plain Python over all rows at once, for a check now and then, not for every tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from html import escape
from time import perf_counter
from typing import Any

from everview.circuit.circuit import Circuit
from everview.errors import SchemaError, UnknownName, VerificationFailed
from everview.oracle import contents, schema_of, sources_of
from everview.oracle.plans import contents as contents_of_plan
from everview.oracle.rows import Rows, difference, seen
from everview.plan.node import Plan
from everview.types import Schema, unknown_name
from everview.zset import ZSet
from everview.zset.batch import Batch
from everview.zset.elements import position

SHOWN = 5  # examples

Entry = tuple[tuple[Any, ...], int]


@dataclass(frozen=True, slots=True)
class Rest:
    """The rows that one Z-set has and another has not: how many, and a few of them with their weights."""

    count: int = 0
    examples: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, schema: Schema, weights: Mapping[tuple[Any, ...], int]) -> Rest:
        """The rest of the rows with positive weights; the first rows in order are its examples."""
        positive = {row: w for row, w in weights.items() if w > 0}
        few = nsmallest(SHOWN, seen(schema, positive.items()), key=lambda entry: position(entry[0]))
        return cls(len(positive), tuple(few))

    def lines(self, what: str) -> list[str]:
        """The rest as lines of text: how many rows, then the examples."""
        if not self.count:
            return []
        more = [f"    … and {self.count - len(self.examples):,} more"] if self.count > len(self.examples) else []
        return [f"  {what} {_counted(self.count, 'row')}", *(f"    {_shown(entry)}" for entry in self.examples), *more]


@dataclass(frozen=True, slots=True)
class Compared:
    """A view compared with its definition, which says ``rows + missing − extra``.

    ``rows`` is how many different rows the view holds, ``expected`` how many it should hold.
    """

    view: str
    rows: int
    expected: int
    missing: Rest = Rest()
    extra: Rest = Rest()

    @property
    def agree(self) -> bool:
        return not self.missing.count and not self.extra.count

    def __bool__(self) -> bool:
        return self.agree

    def __str__(self) -> str:
        held = f"{self.view}: {_counted(self.rows, 'row')}"
        if self.agree:
            return f"{held}, as it should be"
        return "\n".join(
            [
                f"{held}, and should be {self.expected:,}",
                *self.missing.lines("lacks"),
                *self.extra.lines("has too many:"),
            ]
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a verification, view by view; true if all views agree."""

    views: Mapping[str, Compared]
    seconds: float

    @property
    def different(self) -> tuple[str, ...]:
        """The views that do not hold what they should."""
        return tuple(name for name, compared in self.views.items() if not compared)

    def __bool__(self) -> bool:
        return not self.different

    def __getitem__(self, view: str) -> Compared:
        return self.views[view]

    def __str__(self) -> str:
        return "\n".join([f"{self._title()}, in {self.seconds:.1f} s", *map(str, self.views.values())])

    def _title(self) -> str:
        if self:
            return f"{_counted(len(self.views), 'view')} verified"
        return f"{len(self.different)} of {len(self.views)} views differ"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("view", "", "rows", "missing", "extra", "examples"))
        body = "".join(map(_html_row, self.views.values()))
        title = f"<p><b>{escape(self._title())}</b>, in {self.seconds:.1f} s</p>"
        return f"{title}<table><tr>{head}</tr>{body}</table>"

    def raise_if_different(self) -> Verdict:
        """Return the verdict, or raise `VerificationFailed` with its text if a view differs."""
        if self:
            return self
        raise VerificationFailed(
            str(self),
            hint="are these the rows that the sources held at the views' epoch? If so, this is a bug: report it",
        )


def verify(circuit: Circuit, sources: Mapping[str, Batch | ZSet], views: Mapping[str, Batch | ZSet]) -> Verdict:
    """Compare views with the output of a query circuit for the rows that its sources hold.

    Every value must be the same, floats to the last bit: sums are exact however they came about.

    >>> circuit = Circuit()
    >>> orders = circuit.source("orders", "customer STRING, amount BIGINT NOT NULL")
    >>> orders.aggregate(["customer"], total=("sum", "amount")).sink("totals")
    >>> held = ZSet({("Ada", 5): 1, ("Bob", 7): 1})
    >>> verdict = verify(circuit, {"orders": held}, {"totals": ZSet({("Ada", 5): 1, ("Bob", 6): 1})})
    >>> bool(verdict), verdict["totals"].missing.examples
    (False, ((('Bob', 7), 1),))
    >>> print(verdict)
    1 of 1 views differ, in ... s
    totals: 2 rows, and should be 2
      lacks 1 row
        ('Bob', 7)
      has too many: 1 row
        ('Bob', 6)
    """
    start = perf_counter()
    _check_sources(circuit, sources, views)
    wanted = contents(circuit, sources, views)
    compared = {name: _compared(circuit, name, view, wanted[name]) for name, view in views.items()}
    return Verdict(compared, perf_counter() - start)


def _check_sources(circuit: Circuit, sources: Mapping[str, Batch | ZSet], views: Iterable[str]) -> None:
    """Refuse missing and unknown names, so that no source counts as empty because its name was misspelt."""
    for name, rows in sources.items():
        if name not in circuit.sources:
            raise unknown_name("source", name, circuit.sources)
        _check_types(f"source {name}", circuit.layout(circuit.sources[name]).schema, rows)
    for name in sources_of(circuit, views):
        if name not in sources:
            raise UnknownName(f'the rows of source "{name}" were not given', hint="give an empty Z-set if it has none")


def verify_plans(
    plans: Mapping[str, Plan], relations: Mapping[str, Batch | ZSet], views: Mapping[str, Batch | ZSet]
) -> Verdict:
    """Compare views with the answers of their plans over the rows that relations hold, as `verify` does for a circuit.

    A plan that reads another view gets the rows which that should hold, so plans come after those that they read.
    """
    start = perf_counter()
    given: dict[str, Any] = dict(relations)
    compared: dict[str, Compared] = {}
    for name, plan in plans.items():
        wanted = contents_of_plan(plan, given)
        given[name] = ZSet.of(wanted.outside(plan.schema))
        if name in views:
            compared[name] = compare(name, plan.schema, views[name], wanted)
    return Verdict({name: compared[name] for name in views}, perf_counter() - start)


def _compared(circuit: Circuit, name: str, view: Batch | ZSet, wanted: Rows) -> Compared:
    return compare(name, schema_of(circuit, name), view, wanted)


def compare(name: str, schema: Schema, view: Batch | ZSet, wanted: Rows) -> Compared:
    """Compare a view with the rows that it should hold."""
    _check_types(f"view {name}", schema, view)
    held = Rows.inside(schema, view)
    missing = difference(wanted.weights, held.weights)
    extra = {row: -w for row, w in missing.items()}
    return Compared(name, len(held), len(wanted), Rest.of(schema, missing), Rest.of(schema, extra))


def _check_types(what: str, schema: Schema, rows: Batch | ZSet) -> None:
    if isinstance(rows, Batch) and rows.schema.types != schema.types:
        raise SchemaError(f"{what} is ({schema}), not ({rows.schema})", hint="are these rows of another circuit?")


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _shown(entry: Entry) -> str:
    row, w = entry
    return repr(row) if w == 1 else f"{row!r} × {w:,}"


def _html_row(compared: Compared) -> str:
    examples = [
        *(f"− {_shown(entry)}" for entry in compared.missing.examples),
        *(f"+ {_shown(entry)}" for entry in compared.extra.examples),
    ]
    cells = [
        escape(compared.view),
        "✓" if compared else "✗",
        f"{compared.rows:,}",
        f"{compared.missing.count:,}",
        f"{compared.extra.count:,}",
        "<br>".join(map(escape, examples)),
    ]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
