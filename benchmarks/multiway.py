"""Multiway joins: triangles and 4-cliques of a skewed graph, loaded, counted and kept up to date, beside peers.

A load runs from an Arrow table of edges to the count, with all indexes that the side builds. Everyone's code has run
before on a small graph, where that makes a difference. Each side's best round counts, and of a round its median tick.
Ours runs in one thread, DuckDB, Ladybug and Spark on all cores. Pathway joins two by two, and is measured on a graph
whose intermediate results it can hold; the ratio is that of the same graph. A side that takes too long is said to have
given up, and its ratio is then at least what is shown.

A hub's edges change: what each delta query proposes is held against its AGM bound, from the sizes of its relations,
and against the sum of the bounds of what is left of the query once a changed edge is put in, which is sharper.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from agm import agm
from figures import AtMost, Findings
from isolate import PEERS, answer, measured
from scale import FULL, QUICK, Scale
from skewed import HUB_DEGREE, Pattern, Stream, atoms, binary, hub_stream, stream

PER_TICK = 100
MANY = 1_000
PATIENCE = 300  # seconds that a peer gets; one that has given up is not asked again
WARMING = 200  # edges of the graph that is loaded first
PATTERNS: tuple[Pattern, ...] = ("triangles", "cliques")
PEER_SCRIPTS = {
    "DuckDB": ("peers/duckdb_patterns.py", PEERS, {"per_tick": 0, "ticks": 0}),
    "Ladybug (Kùzu)": ("peers/ladybug_patterns.py", PEERS, {}),
    "Spark SQL": ("peers/spark_patterns.py", None, {}),
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Edges of the graph for each pattern, of the graph that Pathway can hold, and how many ticks they get."""

    triangles: int
    cliques: int
    pathway: dict[Pattern, int]
    hub: int
    ticks: int
    many_ticks: int
    recomputes: int
    threads: tuple[int, ...]  # of Pathway


SIZES = {
    FULL: Sizes(1_000_000, 1_000_000, {"triangles": 50_000, "cliques": 10_000}, 1_000_000, 100, 50, 5, (1, 2)),
    QUICK: Sizes(20_000, 5_000, {"triangles": 5_000, "cliques": 1_000}, 20_000, 10, 5, 2, (2,)),
}


# -- measured in a process of its own


def measure(part: str, **parameters: Any) -> dict[str, Any]:
    return {"load": load_of, "ticks": ticks_of, "hub": hub_of}[part](**parameters)


def view(pattern: Pattern) -> Any:
    from everview.circuit import Circuit
    from everview.multiway import Atom, join
    from everview.runtimes.embedded import Embedded

    circuit = Circuit()
    edge = circuit.source("edge", "src BIGINT NOT NULL, dst BIGINT NOT NULL")
    join([Atom(edge, atom) for atom in atoms(pattern)], select=()).aggregate(n="count").sink("found")
    return Embedded(circuit)


def loaded(pattern: Pattern, edges: np.ndarray) -> tuple[Any, float, float]:
    """The view of these edges, and what loading it took, by the clock and in CPU time."""
    run, table = view(pattern), _table(np.column_stack([edges, np.ones(len(edges), np.int64)]))
    began, worked = time.perf_counter(), time.process_time()
    run.tick({"edge": table})["found"].to_arrow()
    return run, time.perf_counter() - began, time.process_time() - worked


def load_of(pattern: Pattern, edges: int) -> dict[str, Any]:
    """Load a graph and count; and what is kept for that."""
    _touch(pattern)
    run, seconds, cpu = loaded(pattern, stream(edges).start)
    return {"load": {"seconds": seconds, "cpu": cpu}, "counts": [_count(run)], "kept": _kept(run)}


def ticks_of(pattern: Pattern, edges: int, per_tick: int, ticks: int) -> dict[str, Any]:
    _touch(pattern)
    given = stream(edges, per_tick, ticks)
    run, seconds, cpu = loaded(pattern, given.start)
    counts, taken = [_count(run)], list[float]()
    for delta in given.ticks:
        taken.append(_ticked(run, delta))
        counts.append(_count(run))
    load = {"seconds": seconds, "cpu": cpu}
    return {"load": load, "tick": _summary(taken), "counts": counts, "kept": _kept(run)}


def hub_of(edges: int, per_tick: int, ticks: int) -> dict[str, Any]:
    """Ticks of changes to a hub's edges, and what each delta query proposes for them."""
    _touch("triangles")
    given = hub_stream(edges, per_tick, ticks)
    run, *_ = loaded("triangles", given.start)
    seconds = [_ticked(run, delta) for delta in given.ticks]
    return {"tick": _summary(seconds), "queries": proposed_of(given), "counts": [_count(run)]}


def proposed_of(given: Stream) -> list[list[dict[str, float]]]:
    """Tick by tick and query by query: the bounds, and how much is proposed, counted where queries run by steps."""
    from everview.runtimes import state

    bounds, found = Bounds(given), list[list[dict[str, float]]]()
    with patch.object(state, "is_compilable", lambda _: False), Proposals() as proposals:
        run, *_ = loaded("triangles", given.start)
        proposals.taken()
        for delta in given.ticks:
            _ticked(run, delta)
            found.append(
                [each | {"proposed": n} for each, n in zip(bounds.after(delta), proposals.taken(), strict=True)]
            )
    return found


class Proposals:
    """Counts what every delta query proposes, while it is entered."""

    def __init__(self) -> None:
        self._made: list[Any] = []

    def __enter__(self) -> Proposals:
        from everview.operators import multijoin

        made, self._usual = self._made, multijoin.Extending

        class Counted(self._usual):
            def __init__(self, *given: Any, **named: Any) -> None:
                super().__init__(*given, **named)
                made.append(self)

        multijoin.Extending = Counted
        return self

    def __exit__(self, *_: object) -> None:
        from everview.operators import multijoin

        multijoin.Extending = self._usual

    def taken(self) -> list[int]:
        """Since it was last asked, query by query."""
        found = [each.proposed for each in self._made]
        self._made.clear()
        return found


class Bounds:
    """The AGM bounds of the delta queries of triangles, tick by tick."""

    def __init__(self, given: Stream) -> None:
        self._edges = {(a, b) for a, b in given.start.tolist()}
        nodes = int(max(given.start.max(), *(delta[:, :2].max() for delta in given.ticks))) + 1
        self._degrees = [np.bincount(given.start[:, side], minlength=nodes) for side in (0, 1)]

    def after(self, delta: np.ndarray) -> list[dict[str, float]]:
        """For each query: its seeds, its bound, and that of what each seed leaves of it, summed up.

        The atoms before the seed are read with the changes of the tick, those after it without.
        """
        before, old = len(self._edges), [each.copy() for each in self._degrees]
        for a, b, weight in delta.tolist():
            (self._edges.add if weight > 0 else self._edges.remove)((a, b))
            self._degrees[0][a] += weight
            self._degrees[1][b] += weight
        after, pattern = len(self._edges), atoms("triangles")
        found: list[dict[str, float]] = []
        for seed, bound in enumerate(pattern):
            sizes = [len(delta) if at == seed else after if at < seed else before for at in range(len(pattern))]
            left = []
            for at, atom in enumerate(pattern):
                if at != seed:
                    (place,) = (side for side in (0, 1) if atom[side] in bound)
                    degrees = self._degrees if at < seed else old
                    left.append(degrees[place][delta[:, bound.index(atom[place])]])
            found.append(
                {"seeds": len(delta), "bound": agm(pattern, sizes), "residual": float(np.minimum(*left).sum())}
            )
        return found


def _touch(pattern: Pattern) -> None:
    """What is slow once: a small graph, and a few changes to it."""
    small = stream(WARMING, 10, 3)
    run, *_ = loaded(pattern, small.start)
    for delta in small.ticks:
        _ticked(run, delta)


def _ticked(run: Any, delta: np.ndarray) -> float:
    table = _table(delta)
    began = time.perf_counter()
    run.tick({"edge": table})["found"].to_arrow()
    return time.perf_counter() - began


def _count(run: Any) -> int:
    return sum(run.view("found").to_arrow()["n"].to_pylist())


def _kept(run: Any) -> dict[str, int]:
    """The rows of all traces at rest."""
    for trace, _, _ in run.state:
        trace.past.compact()
    rows = [len(trace.past) for trace, _, _ in run.state]
    return {"rows": sum(rows), "traces": len(rows), "bytes": sum(trace.past.nbytes for trace, _, _ in run.state)}


def _summary(taken: list[float]) -> dict[str, float]:
    return {"median": median(taken), "least": min(taken), "sum": sum(taken)}


def _table(delta: np.ndarray) -> pa.Table:
    return pa.table([np.ascontiguousarray(column) for column in delta.T], names=["src", "dst", "_weight"])


# -- the findings


def findings(scale: Scale) -> Findings:
    found, sizes = Findings("Multiway joins"), SIZES[scale]
    for pattern, edges in (("triangles", sizes.triangles), ("cliques", sizes.cliques)):
        _loads(found, pattern, edges, scale.rounds)
        _beside_pathway(found, pattern, sizes, scale.rounds)
    for pattern, edges in (("triangles", sizes.triangles), ("cliques", sizes.cliques)):
        _beside_recomputing(found, pattern, edges, sizes, scale.rounds)
    _throughput(found, sizes, scale.rounds)
    _hub(found, sizes)
    _state(found, sizes)
    return found


def _loads(found: Findings, pattern: Pattern, edges: int, rounds: int) -> None:
    ours, theirs = [], {name: [] for name in PEER_SCRIPTS}
    for _ in range(rounds):
        ours.append(measured("multiway.py", part="load", pattern=pattern, edges=edges))
        for name, (script, python, options) in PEER_SCRIPTS.items():
            if theirs[name] and _gave_up(theirs[name]):
                continue
            given = options | {"pattern": pattern, "edges": edges, "limit": PATIENCE}
            theirs[name].append(measured(script, python, **given) if python else measured(script, **given))
    _agree([*ours, *(run for runs in theirs.values() for run in runs)])
    ours_best = _least(ours)
    title = f"{ours[0]['counts'][0]:,} {pattern} of {edges:,} edges"
    found.add(f"{title}: Everview, load and count", ours_best, "s")
    for name, runs in theirs.items():
        best = _least(runs)
        what = "gave up after" if _gave_up(runs) else "load and count"
        found.add(f"{pattern}: {name}, {what}", best, "s")
        least = ", at least" if _gave_up(runs) else ""
        found.add(f"{pattern}: {name} / Everview{least}", best / ours_best, "times")
    found.raw[f"load-{pattern}"] = {"everview": ours, "peers": theirs, "edges": edges}


def _beside_pathway(found: Findings, pattern: Pattern, sizes: Sizes, rounds: int) -> None:
    edges = sizes.pathway[pattern]
    given = {"pattern": pattern, "edges": edges, "per_tick": PER_TICK, "ticks": sizes.ticks}
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(measured("multiway.py", part="ticks", **given))
        for threads in sizes.threads if not theirs or not _gave_up(theirs) else ():
            theirs.append(measured("peers/pathway_patterns.py", PEERS, threads=threads, limit=PATIENCE, **given))
    _agree(ours + theirs)
    name = f"{pattern} of {edges:,} edges"
    found.raw[f"pathway-{pattern}"] = {"everview": ours, "pathway": theirs} | given
    found.add(f"{name}: Everview, load and count", _least(ours), "s")
    found.add(f"{name}: Pathway, {'gave up after' if _gave_up(theirs) else 'load and count'}", _least(theirs), "s")
    found.add(f"{name}: Pathway / Everview, load and count", _least(theirs) / _least(ours), "times")
    finished = [run for run in theirs if "gave_up" not in run]
    if finished:
        ticks = [min(run["tick"]["median"] for run in runs) for runs in (finished, ours)]
        found.add(f"{name}: Pathway / Everview, a tick of {PER_TICK} changes", ticks[0] / ticks[1], "times")


def _beside_recomputing(found: Findings, pattern: Pattern, edges: int, sizes: Sizes, rounds: int) -> None:
    ours, theirs = [], [run for run in found.raw[f"load-{pattern}"]["peers"]["DuckDB"] if "gave_up" in run]
    given = {"pattern": pattern, "edges": edges, "per_tick": PER_TICK}
    for _ in range(rounds):
        ours.append(measured("multiway.py", part="ticks", ticks=sizes.ticks, **given))
        if not theirs or not _gave_up(theirs):
            # The same ticks, of which it gets fewer: it takes about the same for each.
            some = {"ticks": sizes.ticks, "first": sizes.recomputes, "limit": (1 + sizes.recomputes) * PATIENCE}
            theirs.append(measured("peers/duckdb_patterns.py", PEERS, **some, **given))
    _agree(ours + theirs)
    found.raw[f"recompute-{pattern}"] = {"everview": ours, "duckdb": theirs, "edges": edges}
    tick = min(run["tick"]["median"] for run in ours)
    name = f"{pattern} of {edges:,} edges, {PER_TICK} changes a tick"
    found.add(f"{name}: Everview, a tick", tick * 1e3, "ms")
    if _gave_up(theirs):
        found.add(f"{name}: DuckDB gave up after", theirs[0]["gave_up"], "s")
        return
    query = min(run["tick"]["least"] for run in theirs if "gave_up" not in run)
    found.add(f"{name}: DuckDB, the query alone", query * 1e3, "ms")
    found.add(f"{name}: DuckDB / Everview", query / tick, "times")


def _throughput(found: Findings, sizes: Sizes, rounds: int) -> None:
    given = {"pattern": "triangles", "edges": sizes.triangles, "per_tick": MANY, "ticks": sizes.many_ticks}
    runs = [measured("multiway.py", part="ticks", **given) for _ in range(rounds)]
    _agree(runs)
    rate = MANY * sizes.many_ticks / min(run["tick"]["sum"] for run in runs)
    found.add(f"triangles of {sizes.triangles:,} edges, {MANY:,} changes a tick: Everview", rate, "changes/s")
    found.raw["throughput"] = {"runs": runs} | given


def _hub(found: Findings, sizes: Sizes) -> None:
    run = measured("multiway.py", part="hub", edges=sizes.hub, per_tick=PER_TICK, ticks=sizes.ticks)
    name = f"a hub of degree {HUB_DEGREE:,}, {PER_TICK} of its edges changed a tick"
    found.add(f"{name}: a tick", run["tick"]["median"] * 1e3, "ms")
    for number, atom in enumerate(atoms("triangles")):
        ticks = [queries[number] for queries in run["queries"]]
        query = f"a hub, the query of Δ({', '.join(atom)})"
        found.add(f"{query}: proposals a tick", median(each["proposed"] for each in ticks), "")
        found.add(f"{query}: its AGM bound", median(each["bound"] for each in ticks), "")
        worst = max(each["proposed"] / each["bound"] for each in ticks)
        found.add(f"{query}: proposals / AGM bound, at most", worst, "times", AtMost(1))
        sharp = max((each["proposed"] / each["residual"] for each in ticks if each["residual"]), default=0.0)
        found.add(f"{query}: proposals / sum of the seeds' bounds, at most", sharp, "times")
    proposed = sum(median(queries[number]["proposed"] for queries in run["queries"]) for number in range(3))
    found.add("a hub: paths that a binary plan makes / proposals", PER_TICK * HUB_DEGREE / proposed, "times")
    found.raw["hub"] = run


def _state(found: Findings, sizes: Sizes) -> None:
    for pattern, edges in (("triangles", sizes.triangles), ("cliques", sizes.cliques)):
        kept = found.raw[f"load-{pattern}"]["everview"][0]["kept"]
        found.add(f"{pattern}: rows kept in {kept['traces']} traces / edges", kept["rows"] / edges, "times")
    paths = binary(stream(sizes.triangles).start)
    least = min((paths[two], two) for two in ("ab, bc", "ab, ac", "ac, bc"))
    found.add(f"the smallest join of two atoms ({least[1]}) / edges", least[0] / sizes.triangles, "times")
    found.add("the squares of all degrees, summed up / edges", paths["any two"] / sizes.triangles, "times")
    found.raw["state"] = {"binary": paths, "sizes": asdict(sizes)}


def _gave_up(runs: list[dict[str, Any]]) -> bool:
    return all("gave_up" in run for run in runs)


def _least(runs: list[dict[str, Any]]) -> float:
    return min(run["gave_up"] if "gave_up" in run else run["load"]["seconds"] for run in runs)


def _agree(runs: list[dict[str, Any]]) -> None:
    """Everyone must have counted the same after every tick, or the times mean nothing."""
    counts = [run["counts"] for run in runs if "gave_up" not in run]
    for several in counts:
        shared = min(len(several), len(counts[0]))
        assert several[:shared] == counts[0][:shared], f"the counts differ: {counts}"


if __name__ == "__main__":
    answer(measure)
