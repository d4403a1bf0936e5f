"""The ways to run a query that must all agree with the oracle, and what agreeing means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from everview.circuit import Circuit, incrementalize, lifted
from everview.kernels import levels, sieve
from everview.kernels.threads import at_most
from everview.operators import extending, multijoin
from everview.oracle import evaluate
from everview.runtimes import ahead, compiled, compiled_scope, state
from everview.runtimes.embedded import Embedded
from everview.traces import spine
from everview.zset import ZSet
from oracle.cases import Case, Tick

Applied = dict[str, ZSet]


class Run:
    """A circuit at work, as the tests see it: ticks in, Z-sets out."""

    def __init__(self, embedded: Embedded) -> None:
        self.embedded = embedded

    def tick(self, changes: Tick) -> Applied:
        return {name: batch.to_zset() for name, batch in self.embedded.tick(changes).items()}

    def contents(self) -> Applied:
        return {name: view.contents().to_zset() for name, view in self.embedded.views.items()}


class Vacuumed(Run):
    """After every tick the dictionary forgets what no row refers to."""

    def tick(self, changes: Tick) -> Applied:
        outputs = super().tick(changes)
        self.embedded.vacuum()
        return outputs


class Reopened(Run):
    """Every tick finds the state in a directory, and leaves it there."""

    def __init__(self, open_: Callable[[], Embedded]) -> None:
        super().__init__(open_())
        self._open = open_

    def tick(self, changes: Tick) -> Applied:
        outputs = super().tick(changes)
        self.embedded.close()
        self.embedded = self._open()
        return outputs


Way = Callable[[Circuit], AbstractContextManager[Run]]


def _plainly(**options: Any) -> Way:
    @contextmanager
    def run(query: Circuit) -> Iterator[Run]:
        yield Run(Embedded(incrementalize(query), **options))

    return run


def _merging(ratio: int, fuel: int, small: int = 1, full: int = 1) -> Way:
    """Spines that merge under another policy, with sieves for the smallest: it must never show."""

    @contextmanager
    def run(query: Circuit) -> Iterator[Run]:
        with patch.multiple(spine, FUEL=fuel, SMALL=small, LARGE=1), patch.multiple(sieve, LEAST=1, APART=0):
            embedded = Embedded(incrementalize(query))
            for shards in embedded.state.traces.values():
                for trace in shards:
                    trace.past.ratio = ratio
                    trace.past.ledger[levels.LIMIT] = full
            yield Run(embedded)

    return run


@contextmanager
def _by_steps(query: Circuit) -> Iterator[Run]:
    """Every operator by its own step, nothing compiled to instructions."""
    with patch.object(state, "is_compilable", lambda _: False):
        yield Run(Embedded(incrementalize(query)))


def _giving_up(rows: int) -> Way:
    """Loops and multiway joins that are Python's, once they have grown by so many rows."""

    @contextmanager
    def run(query: Circuit) -> Iterator[Run]:
        with patch.object(compiled_scope, "MOST_ROWS", rows), patch.object(multijoin, "AT_ONCE", rows):
            yield Run(Embedded(incrementalize(query)))

    return run


@contextmanager
def _timed(query: Circuit) -> Iterator[Run]:
    """Instructions one by one, each with its time."""
    embedded = Embedded(incrementalize(query))
    if embedded.state.compiled is not None:
        embedded.state.compiled.timed = True
    yield Run(embedded)


@contextmanager
def _on_threads(query: Circuit) -> Iterator[Run]:
    """Instructions beside each other on threads, however few rows there are."""
    with patch.object(ahead, "MANY_ROWS", 0), patch.object(compiled, "MANY_ROWS", 0), at_most(2):
        yield Run(Embedded(incrementalize(query)))


@contextmanager
def _in_slices(query: Circuit) -> Iterator[Run]:
    """Multiway joins a few prefixes at a time, on shards, with every seed dealt in pieces."""
    few, heavy = patch.multiple(extending, SLICE=3, MOST=4, HEAVY=2), patch.multiple(multijoin, MOST=4, HEAVY=1, FEW=2)
    with few, heavy:
        yield Run(Embedded(incrementalize(query), shards=4))


@contextmanager
def _recomputed(query: Circuit) -> Iterator[Run]:
    yield Run(Embedded(lifted(query), as_is=True))


@contextmanager
def _vacuumed(query: Circuit) -> Iterator[Run]:
    yield Vacuumed(Embedded(incrementalize(query)))


@contextmanager
def _reopened(query: Circuit) -> Iterator[Run]:
    with TemporaryDirectory() as directory:
        run = Reopened(lambda: Embedded(incrementalize(query), directory))
        yield run
        run.embedded.close()


WAYS: dict[str, Way] = {
    "incremental": _plainly(),
    "lifted": _recomputed,
    "by steps": _by_steps,
    "on threads": _on_threads,
    "2 shards": _plainly(shards=2),
    "5 shards": _plainly(shards=5),
    "4 shards, in slices": _in_slices,
    "functions called twice": _plainly(check_functions=True),
    "merging by 2, slowly": _merging(ratio=2, fuel=1),
    "merging by 8, small ones together": _merging(ratio=8, fuel=4, small=4, full=7),
    "merging by 64": _merging(ratio=64, fuel=260, full=1024),
    "vacuumed": _vacuumed,
    "reopened": _reopened,
}

# Once more, for what is checked so alone.
SPECIAL: dict[str, Way] = {
    "3 shards": _plainly(shards=3),
    "loops round by round": _giving_up(0),
    "loops given up in the middle": _giving_up(5),
    "timed": _timed,
}


def check(case: Case, *names: str) -> None:
    """After every tick the contents of the views, and the sums of their changes, are what the oracle says."""
    query = case.build()
    expected = [evaluate(query, held) for held in case.sums()]
    for name in names or WAYS:
        with (WAYS | SPECIAL)[name](query) as run:
            totals: Applied = {}
            for number, tick in enumerate(case.ticks):
                for view, change in run.tick(tick).items():
                    totals[view] = totals.get(view, ZSet()) + change
                assert run.contents() == expected[number], f"contents after tick {number}, {name}"
                assert totals == expected[number], f"sum of changes up to tick {number}, {name}"
