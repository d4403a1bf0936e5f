"""Where a tick runs: by cost, with a reason, corrected by what it took, and as one says if one says."""

from __future__ import annotations

from everview.runtimes.spark.placement import MANY, MOST, TRIED, Cost, Placement


def test_small_ones_run_on_the_driver_and_large_ones_on_the_cluster() -> None:
    placement = Placement()
    assert placement.tick(1_000).where == "driver"
    assert placement.tick(3_000_000).where == "cluster"
    assert placement.tick(MOST + 1).where == "cluster"
    assert "1,000 rows: about" in placement.tick(1_000).reason
    assert "ms on the driver" in placement.tick(1_000).reason
    assert placement.iteration(10).where == "driver"


def test_a_place_that_is_asked_for() -> None:
    for place in ("driver", "cluster"):
        placement = Placement(place)
        for decision in (placement.tick(1), placement.tick(10**9), placement.iteration(1)):
            assert (decision.where, decision.reason) == (place, f"{place} was asked for")
    assert Placement("cluster").limit == 0
    assert Placement("cluster").unfetched().reason == "cluster was asked for"


def test_what_is_fetched_to_find_out_is_bounded() -> None:
    placement = Placement()
    assert 0 < placement.limit <= TRIED
    placement.driver.row = 10 * placement.cluster.row
    even = placement.limit
    assert abs(placement.driver.of(even) - placement.cluster.of(even)) < 0.01
    placement.cluster.fixed = 0.0
    assert placement.limit == 0
    placement.driver.row = placement.cluster.row
    assert placement.limit == TRIED


def test_costs_are_learned() -> None:
    cost = Cost(1.0, 1e-6)
    cost.learn(10, 100.0)  # the first one is about loading code
    assert (cost.fixed, cost.row) == (1.0, 1e-6)
    for _ in range(40):
        cost.learn(10, 0.5)
        cost.learn(10 * MANY, 2.5)
    assert abs(cost.of(10) - 0.5) < 0.01
    assert abs(cost.of(10 * MANY) - 2.5) < 0.1


def test_a_slow_cluster_is_left_alone() -> None:
    placement = Placement()
    before = placement.tick(2_000_000).where
    for _ in range(20):
        placement.cluster.learn(100, 60.0)
    assert (before, placement.tick(2_000_000).where) == ("cluster", "driver")


def test_fetching_counts_for_many_rows_only() -> None:
    placement = Placement()
    placement.learn_driver(10, 5.0, 0.01)
    for _ in range(20):
        placement.learn_driver(10, 5.0, 0.01)
    assert placement.driver.fixed < 0.02
    assert "tick on the driver" in placement.table()


def test_the_first_measurement_of_many_rows_is_about_loading_code_too() -> None:
    cost = Cost(1.0, 1e-6)
    cost.learn(10, 100.0)
    cost.learn(MANY, 100.0)
    assert (cost.fixed, cost.row) == (1.0, 1e-6)
    cost.learn(MANY, 100.0)
    assert cost.row > 1e-4


def test_a_busy_machine_does_not_drive_rows_to_a_cluster_that_was_never_measured() -> None:
    placement = Placement()
    for _ in range(20):
        placement.learn_driver(100_000, 0.6, 0.4)  # five times as slow as is believed at first
    assert placement.limit > 100_000
    for _ in range(20):
        placement.cluster.learn(100_000, 0.62)  # the cluster is fast all the same
    assert placement.limit < 100_000


def test_rows_that_cost_the_driver_nothing_for_long_do_not_end_learning() -> None:
    placement = Placement()
    for _ in range(3_000):
        placement.learn_driver(MANY, 0.0, 0.001)  # less than a tick is believed to cost: a row would cost nothing
    for _ in range(20):
        placement.learn_driver(MANY, 0.0, 1.0)
    assert placement.cluster.row > 1e-6
