"""Recursion: reachability and closure kept up to date, beside Pathway's `iterate` and beside computing them anew.

The times are those of code that has run before, on a small graph; the figure for a first load has what that
took. A load is one tick of all edges. Each side's best round counts, and of a round its median tick; the same by
CPU time is less shaken by whatever else the machine does. Pathway's load runs from the first edge sent to the
last change received; it gets each edge by a call, so there is a figure without the sending, too.
"""

from __future__ import annotations

import gc
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from figures import AtLeast, AtMost, Findings
from graphs import PAUSE, ROOT, Graph, Stream, digest, expected, stream
from isolate import PEERS, answer, measured
from scale import FULL, QUICK, Scale

from everview.circuit import Circuit
from everview.runtimes.embedded import Embedded

PER_TICK = 10
CHURN = 0.0005  # of the edges, a tick
PATIENCE = 120  # seconds that Pathway gets
PYDBSP = 0.354  # seconds that pydbsp's own benchmark gives for the closure of its graph of 1,009 edges
EARLY = 100  # ticks after which memory is looked at first
SMALL = {name: Graph(name, 30, 40, 30) for name in ("reachability", "closure")}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The graphs, how many ticks they get, and how many the graph whose memory is watched gets."""

    reachability: Graph
    closure: Graph
    closures: Graph
    ticks: int
    recomputes: int
    memory_ticks: int
    threads: tuple[int, ...]  # of Pathway; which is better differs from machine to machine


SIZES = {
    FULL: Sizes(
        reachability=Graph("reachability", 50_000, 200_000, 50_000),
        closure=Graph("closure", 290, 1_009, 290),
        closures=Graph("closure", 5_800, 20_180, 290),
        ticks=50,
        recomputes=5,
        memory_ticks=10_000,
        threads=(1, 2),
    ),
    QUICK: Sizes(
        reachability=Graph("reachability", 5_000, 20_000, 5_000),
        closure=Graph("closure", 290, 1_009, 290),
        closures=Graph("closure", 1_160, 4_036, 290),
        ticks=10,
        recomputes=2,
        memory_ticks=200,
        threads=(1,),
    ),
}


# -- the views


def reachability() -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")
    root = circuit.source("root", "node BIGINT NOT NULL")
    loop = circuit.child("reached")
    reached, again = loop.feedback(root.schema)
    onward = reached.join(loop.enter(edge), ("node", "a"), select=["right.b as node"])
    every = (loop.enter(root) + onward).distinct()
    again(every)
    loop.leave(every).sink("found")
    return circuit


def closure() -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")
    loop = circuit.child("paths")
    inner = loop.enter(edge)
    path, again = loop.feedback(edge.schema)
    paths = (inner + path.join(inner, ("b", "a"), select=["left.a", "right.b"])).distinct()
    again(paths)
    loop.leave(paths).sink("found")
    return circuit


def loaded(graph: Graph, edges: np.ndarray) -> tuple[Embedded, float, float]:
    """The view over these edges, and what loading it took, by the clock and in CPU time."""
    run = Embedded(reachability() if graph.asked == "reachability" else closure())
    weighted = np.column_stack([edges, np.ones(len(edges), np.int64)])
    changes: dict[str, Any] = {"edge": _table(weighted)}
    if graph.asked == "reachability":
        changes["root"] = [((ROOT,), 1)]
    return run, *_timed(run, changes)


def _timed(run: Embedded, changes: dict[str, Any]) -> tuple[float, float]:
    began, worked = time.perf_counter(), time.process_time()
    run.tick(changes)["found"].to_arrow()
    return time.perf_counter() - began, time.process_time() - worked


def _paused(run: Embedded, changes: dict[str, Any]) -> tuple[float, float]:
    time.sleep(PAUSE)
    return _timed(run, changes)


def _table(delta: np.ndarray) -> pa.Table:
    return pa.table([pa.array(column) for column in delta.T], names=["a", "b", "_weight"])


# -- the measures, each in a process of its own


def measure(part: str, **parameters: Any) -> dict[str, Any]:
    return {"ticks": ticks_of, "memory": memory_of}[part](**parameters)


def ticks_of(graph: dict[str, Any], per_tick: int, ticks: int, recomputes: int) -> dict[str, Any]:
    """Load a graph, change it tick by tick, and load what it has become anew."""
    asked = Graph(**graph)
    first = _touch(asked)
    given = stream(asked, per_tick, ticks)
    run, *load = loaded(asked, given.start)
    taken = np.array([_paused(run, {"edge": _table(delta)}) for delta in given.ticks])
    anew = np.array([loaded(asked, given.end)[1:] for _ in range(recomputes)]).reshape(-1, 2)
    return {
        "first": first,
        "load": dict(zip(("seconds", "cpu"), load, strict=True)),
        "tick": _summary(taken),
        "recompute": _summary(anew) if recomputes else None,
        "digest": _contents(run),
    }


def _touch(graph: Graph) -> float:
    """How long the first load of a process takes beyond its work: a small graph, and a few changes to it."""
    small = stream(SMALL[graph.asked], 4, 4)
    run, seconds, _ = loaded(graph, small.start)
    for delta in small.ticks:
        run.tick({"edge": _table(delta)})
    return seconds


def _summary(taken: np.ndarray) -> dict[str, float]:
    seconds, cpu = taken.T.tolist()
    return {"median": median(seconds), "least": min(seconds), "cpu": median(cpu), "sum": sum(seconds)}


def _contents(run: Embedded) -> list[int]:
    found: Any = run.view("found").to_arrow()
    return digest(np.column_stack([found[name].to_numpy() for name in run.view("found").schema.names]))


def memory_of(nodes: int, edges: int, ticks: int) -> dict[str, Any]:
    """Delete an edge and put it back, again and again: the bytes of the traces at rest, and of the process."""
    given = stream(Graph("closure", nodes, edges, nodes), 0, 0)
    run, *_ = loaded(Graph("closure", nodes, edges, nodes), given.start)
    facts = len(run.view("found").to_arrow())
    seen: dict[str, dict[str, int]] = {}
    for at in range(1, ticks + 1):
        edge = given.start[(at - 1) // 2 % edges]
        run.tick({"edge": _table(np.array([[*edge, -1 if at % 2 else 1]]))})
        if at in (EARLY, ticks):
            seen[str(at)] = _bytes(run)
    assert len(run.view("found").to_arrow()) == facts, "the data should be what they were"
    return {"facts": facts, "seen": seen, "early": seen[str(EARLY)], "late": seen[str(ticks)]}


def _bytes(run: Embedded) -> dict[str, int]:
    for trace, _, _ in run.state:
        trace.past.settle()
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return {"traces": sum(trace.past.nbytes for trace, _, _ in run.state), "resident": resident}


# -- the findings


def findings(scale: Scale) -> Findings:
    found, sizes = Findings("Recursion"), SIZES[scale]
    for graph in (sizes.reachability, sizes.closure):
        _beside_pathway(found, graph, sizes, scale.rounds)
    for graph in (sizes.reachability, sizes.closure, sizes.closures):
        _beside_recomputing(found, graph, sizes, scale.rounds)
    _memory(found, sizes)
    return found


def _beside_pathway(found: Findings, graph: Graph, sizes: Sizes, rounds: int) -> None:
    given = {"graph": asdict(graph), "per_tick": PER_TICK, "ticks": sizes.ticks}
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(measured("recursion.py", part="ticks", recomputes=0, **given))
        for threads in sizes.threads:
            theirs.append(measured("peers/pathway_recursion.py", PEERS, threads=threads, limit=PATIENCE, **given))
    finished = [run for run in theirs if "gave_up" not in run]
    edges = stream(graph, PER_TICK, sizes.ticks)
    _agree(ours + finished, graph, edges)
    name = _name(graph, edges)
    found.raw[f"pathway-{graph.asked}"] = {"everview": ours, "pathway": theirs} | given
    found.add(f"{name}: Everview, load", _least(ours, "load", "seconds"), "s")
    if graph.asked == "closure":
        found.add("pydbsp's published closure of 1,009 edges, for reference", PYDBSP, "s")
    found.add(
        f"{graph.asked}: Everview, the first load of a process, of 40 edges", min(run["first"] for run in ours), "s"
    )
    found.add(f"{graph.asked}: Everview, a tick of {PER_TICK} changes", _least(ours, "tick", "median") * 1e3, "ms")
    if not finished:
        found.add(f"{graph.asked}: Pathway gave up after", PATIENCE, "s")
        return
    found.add(f"{graph.asked}: Pathway, load", _least(finished, "load", "seconds"), "s")
    found.add(f"{graph.asked}: Pathway, a tick of {PER_TICK} changes", _least(finished, "tick", "median") * 1e3, "ms")
    for what, key, target in (
        ("load", ("load", "seconds"), AtLeast(5)),
        ("load by CPU time", ("load", "cpu"), None),
        (f"a tick of {PER_TICK} changes", ("tick", "median"), AtLeast(1)),
        (f"a tick of {PER_TICK} changes by CPU time", ("tick", "cpu"), None),
    ):
        ratio = _least(finished, *key) / _least(ours, *key)
        found.add(f"{graph.asked}: Pathway / Everview, {what}", ratio, "times", target)
    ratio = _least(finished, "load", "after_sending") / _least(ours, "load", "seconds")
    found.add(f"{graph.asked}: Pathway, after the last edge was sent / Everview, load", ratio, "times")


def _beside_recomputing(found: Findings, graph: Graph, sizes: Sizes, rounds: int) -> None:
    per_tick = max(1, round(CHURN * graph.edges))
    given = {"graph": asdict(graph), "per_tick": per_tick, "ticks": sizes.ticks}
    runs = [measured("recursion.py", part="ticks", recomputes=sizes.recomputes, **given) for _ in range(rounds)]
    edges = stream(graph, per_tick, sizes.ticks)
    _agree(runs, graph, edges)
    name = f"{_name(graph, edges)}, {per_tick} changed a tick"
    found.add(f"{name}: a tick", _least(runs, "tick", "median") * 1e3, "ms")
    found.add(f"{name}: anew", _least(runs, "recompute", "median") * 1e3, "ms")
    for what, key, target in (("", "median", AtLeast(20)), (", by CPU time", "cpu", None)):
        ratio = _least(runs, "recompute", key) / _least(runs, "tick", key)
        found.add(f"{name}: anew / a tick{what}", ratio, "times", target)
    found.raw[f"churn-{graph.asked}-{graph.edges}"] = {"runs": runs} | given


def _memory(found: Findings, sizes: Sizes) -> None:
    run = measured("recursion.py", part="memory", nodes=30, edges=60, ticks=sizes.memory_ticks)
    name = f"closure of 60 edges, {run['facts']:,} facts"
    for at, seen in run["seen"].items():
        found.add(f"{name}: traces at rest after {int(at):,} ticks", seen["traces"], "bytes")
        found.add(f"{name}: the process after {int(at):,} ticks", seen["resident"] / 2**20, "MiB")
    for what, key, target in (("traces", "traces", AtMost(1.1)), ("the process", "resident", AtMost(1.1))):
        found.add(f"{name}: {what}, late / early", run["late"][key] / run["early"][key], "times", target)
    found.raw["memory"] = run


def _name(graph: Graph, given: Stream) -> str:
    """The graph as it is loaded."""
    facts = f"{expected(graph, given.start)[0]:,} {'reached' if graph.asked == 'reachability' else 'facts'}"
    return f"{graph.asked}, {graph.edges:,} edges, {graph.nodes:,} nodes, {facts}"


def _least(runs: list[dict[str, Any]], what: str, key: str) -> float:
    return min(run[what][key] for run in runs)


def _agree(runs: list[dict[str, Any]], graph: Graph, given: Stream) -> None:
    """Everyone must have arrived at the same view, or the times mean nothing."""
    wanted = expected(graph, given.end)
    assert all(run["digest"] == wanted for run in runs), f"the views differ: {graph}, {wanted}"


if __name__ == "__main__":
    answer(measure)
