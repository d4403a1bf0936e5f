"""How much of everything is measured: in full, or quickly to see that it all works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes in rows, streams as (changes a tick, ticks before the clock starts, ticks)."""

    orders: int
    many_orders: int
    few_orders: int
    streams: tuple[tuple[int, int, int], ...]
    recompute_ticks: int
    scaling_ticks: int
    tail_ticks: int
    trace_rows: int
    durable_ticks: int
    starts: int
    rounds: int
    threads: tuple[int, ...]  # that Pathway gets; which is better differs
    transfers: tuple[int, ...]  # of a pipeline on Spark
    main_transfers: int
    loaded: int  # transfers of a first load
    lives: tuple[int, int]  # transfers of two states that live on
    texts: tuple[int, int]  # different texts of two states
    cluster_changes: int
    tpch: float  # the scale factor
    tpch_ticks: int
    one_row_ticks: int


FULL = Scale(
    orders=1_000_000,
    many_orders=10_000_000,
    few_orders=100_000,
    streams=((10, 500, 2_000), (1_000, 100, 500), (100_000, 4, 10)),
    recompute_ticks=20,
    scaling_ticks=500,
    tail_ticks=10_000,
    trace_rows=10_000_000,
    durable_ticks=2_000,
    starts=7,
    rounds=2,
    threads=(1, 2),
    transfers=(1_000_000, 3_000_000, 10_000_000, 30_000_000),
    main_transfers=10_000_000,
    loaded=20_000_000,
    lives=(10_000_000, 40_000_000),
    texts=(5_000_000, 20_000_000),
    cluster_changes=4_000_000,
    tpch=1,
    tpch_ticks=10,
    one_row_ticks=20_000,
)

QUICK = Scale(
    orders=100_000,
    many_orders=1_000_000,
    few_orders=10_000,
    streams=((10, 100, 200), (1_000, 20, 50), (10_000, 2, 5)),
    recompute_ticks=5,
    scaling_ticks=100,
    tail_ticks=500,
    trace_rows=1_000_000,
    durable_ticks=200,
    starts=3,
    rounds=1,
    threads=(2,),
    transfers=(100_000, 300_000),
    main_transfers=300_000,
    loaded=300_000,
    lives=(100_000, 400_000),
    texts=(50_000, 200_000),
    cluster_changes=200_000,
    tpch=0.01,
    tpch_ticks=5,
    one_row_ticks=2_000,
)
