"""The figures as pictures, drawn from the raw numbers of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OURS, THEIRS = "#2a6f97", "#c08552"


def draw(raw: dict[str, Any], to: Path) -> None:
    """Write every picture that the raw numbers of the scenarios allow."""
    # Text stays text, and what changes at every drawing is left out: the same numbers give the same file.
    settings = {"svg.fonttype": "none", "svg.hashsalt": "everview", "font.family": "sans-serif"}
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, **settings})
    for name, picture, scenario in (
        ("throughput.svg", _throughput, "join_group_by"),
        ("recompute.svg", _recompute, "join_group_by"),
        ("scaling.svg", _scaling, "scaling"),
        ("tails.svg", _tails, "tails"),
        ("multiway.svg", _multiway, "multiway"),
        ("spark.svg", _spark, "spark_pipeline"),
    ):
        if scenario not in raw:
            continue
        figure, axes = plt.subplots(figsize=(6.4, 3.6))
        picture(axes, raw[scenario])
        figure.tight_layout()
        figure.savefig(to / name, metadata={"Date": None, "Creator": None})
        plt.close(figure)


def _bars(axes: Any, names: list[str], ours: list[float], theirs: list[float], peer: str) -> None:
    at = range(len(names))
    axes.bar([x - 0.2 for x in at], ours, 0.4, color=OURS, label="Everview")
    axes.bar([x + 0.2 for x in at], theirs, 0.4, color=THEIRS, label=peer)
    axes.set_xticks(list(at), names)
    axes.set_yscale("log")
    axes.legend(frameon=False)


def _throughput(axes: Any, raw: dict[str, Any]) -> None:
    runs = [found for key, found in raw.items() if key.startswith("pathway-")]
    best = [
        [found["changes"] / min(run["seconds"] for run in found[who]) for found in runs]
        for who in ("everview", "pathway")
    ]
    _bars(axes, [f"{found['per_tick']:,}" for found in runs], *best, "Pathway")
    axes.set_xlabel("changes a tick")
    axes.set_ylabel("changes a second")
    axes.set_title("Join and group by, kept up to date")


def _recompute(axes: Any, raw: dict[str, Any]) -> None:
    runs = {key.removeprefix("duckdb-"): found for key, found in raw.items() if key.startswith("duckdb-")}
    best = [
        [min(run[what] for run in found[who]) * 1e3 for found in runs.values()]
        for who, what in (("everview", "median"), ("duckdb", "seconds"))
    ]
    _bars(axes, [f"{int(count):,}" for count in runs], *best, "DuckDB, recomputing")
    axes.set_xlabel("orders")
    axes.set_ylabel("milliseconds")
    axes.set_title("Until the answer is right again after 10 changes")


def _scaling(axes: Any, raw: dict[str, Any]) -> None:
    sizes = [int(size) for size in raw["median"]]
    axes.plot(sizes, [each * 1e3 for each in raw["median"].values()], "o-", color=OURS)
    axes.set_xscale("log")
    axes.set_ylim(0, 1.2e3 * max(raw["median"].values()))
    axes.set_xlabel("orders")
    axes.set_ylabel("milliseconds")
    axes.set_title("A tick of 1,000 changes, by the size of the state")


def _tails(axes: Any, raw: dict[str, Any]) -> None:
    for (per_tick, runs), color in zip(raw.items(), (OURS, THEIRS), strict=True):
        best = min(runs, key=lambda run: run["p99.9"])
        quantiles, seconds = best["curve"]
        rarity = [100 / max(100 - q, 0.01) for q in quantiles]
        axes.plot(rarity, [each * 1e3 for each in seconds], color=color, label=f"{int(per_tick):,} changes")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([2, 10, 100, 1_000, 10_000], ["median", "p90", "p99", "p99.9", "p99.99"])
    axes.set_ylabel("milliseconds")
    axes.set_title("How long a tick takes")
    axes.legend(frameon=False)


def _multiway(axes: Any, raw: dict[str, Any]) -> None:
    """Bars by pattern: every side's best load; one that gave up has the bar of its patience, hatched."""
    loads = {key.removeprefix("load-"): found for key, found in raw.items() if key.startswith("load-")}
    sides = ["Everview", *next(iter(loads.values()))["peers"]]
    shades = [OURS, THEIRS, "#d8b48f", "#8c5a2b"]
    width = 0.8 / len(sides)
    for at, (side, shade) in enumerate(zip(sides, shades, strict=True)):
        every = [found["everview"] if side == "Everview" else found["peers"][side] for found in loads.values()]
        best = [
            min(each["gave_up"] if "gave_up" in each else each["load"]["seconds"] for each in runs) for runs in every
        ]
        places = [x - 0.4 + (at + 0.5) * width for x in range(len(loads))]
        bars = axes.bar(places, best, width, color=shade, label=side)
        for bar, runs in zip(bars, every, strict=True):
            bar.set_hatch("//" if all("gave_up" in each for each in runs) else "")
    names = [
        f"{found['everview'][0]['counts'][0]:,} {name}\nof {found['edges']:,} edges" for name, found in loads.items()
    ]
    axes.set_xticks(range(len(loads)), names)
    axes.set_yscale("log")
    axes.set_ylabel("seconds")
    axes.set_title("Load a skewed graph and count")
    axes.legend(frameon=False)


def _spark(axes: Any, raw: dict[str, Any]) -> None:
    sizes = raw["sizes"]
    counts = [int(count) for count in sizes]
    axes.plot(counts, [run["recompute"] for run in sizes.values()], "o-", color=THEIRS, label="Spark SQL, recomputing")
    epochs = [run["ticks"]["1000"]["total"] for run in sizes.values()]
    axes.plot(counts, epochs, "o-", color=OURS, label="Everview, 1,000 changes end to end")
    ticks = [run["ticks"]["1000"]["tick"] for run in sizes.values()]
    axes.plot(counts, ticks, "o--", color=OURS, label="of that, the tick")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("transfers")
    axes.set_ylabel("seconds")
    axes.legend(frameon=False)
