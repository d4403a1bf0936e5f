"""What the passes make of plans: where conditions end up, what is joined at once, how subqueries are read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from everview.errors import ArithmeticFailure, FunctionError
from everview.multiway import Statistics
from everview.optimize import optimize
from everview.optimize.columns import prune_columns
from everview.optimize.joins import arrange_joins
from everview.optimize.predicates import push_predicates
from everview.optimize.share import share_parts
from everview.optimize.simplify import fold_constants
from everview.optimize.subqueries import decorrelate
from everview.plan.conditions import conjunction
from everview.plan.node import Plan, walk
from everview.plan.nodes import Aggregate, Distinct, Filter, Join, Multiway, Project, Scan, Top, Union, Values, Window
from everview.plan.tree import explain
from everview.plan.typing import call, literal
from everview.runtimes.embedded import Embedded
from everview.scalars.expressions import AggregateCall, Cast, Exists, Expression, Literal, Outer, Scalar, WindowCall
from everview.types import BIGINT, INTEGER, Schema
from lowering.drawn import TABLES
from scalars.agreeing import circuit_of

T, U, E = (Scan(name, TABLES[name]) for name in ("t", "u", "e"))
COUNT = AggregateCall("count", (), False, None, (), BIGINT, False)


def product(*relations: Plan) -> Plan:
    found = relations[0]
    for relation in relations[1:]:
        found = Join(found, relation, "inner")
    return found


def where(plan: Plan, pairs: Sequence[tuple[int, int]]) -> Filter:
    predicate = conjunction(call("equal", plan.column(a), plan.column(b)) for a, b in pairs)
    assert predicate is not None
    return Filter(plan, predicate)


def of_kind(plan: Plan, kind: type) -> list[Plan]:
    return [part for part in walk(plan) if isinstance(part, kind)]


# -- conditions


def test_a_condition_goes_to_the_side_it_reads() -> None:
    both = Join(T, U, "inner")
    joined = Join(T, U, "inner", call("equal", both.column(0), both.column(3)))
    plan = Filter(
        joined, call("and", call("less", both.column(1), literal(2)), call("less", both.column(4), literal(1)))
    )
    assert explain(push_predicates(plan)) == (
        "Join inner on a = a_2\n  Filter b < 2\n    Scan t\n  Filter d < 1\n    Scan u"
    )


def test_a_condition_that_may_fail_stays_above_a_join() -> None:
    both = Join(T, U, "inner")
    joined = Join(T, U, "inner", call("equal", both.column(0), both.column(3)))
    fails = call("less", Cast(both.column(2), INTEGER), literal(2))
    assert isinstance(push_predicates(Filter(joined, fails)), Filter)


def test_a_condition_on_groups_goes_below_an_aggregate() -> None:
    made = Aggregate(T, (T.column(0),), (COUNT,), ("a", "n"))
    plan = Filter(made, call("and", call("less", made.column(0), literal(2)), call("less", made.column(1), literal(3))))
    filters = [str(part.predicate) for part in walk(push_predicates(plan)) if isinstance(part, Filter)]
    assert filters == ["n < 3L", "a < 2L"]


def test_all_groups_together_keep_their_row() -> None:
    """A condition on an aggregate without groups is not one on its rows."""
    made = Aggregate(T, (), (COUNT,), ("n",))
    plan = Filter(made, call("equal", made.column(0), literal(0)))
    assert push_predicates(plan) == plan


@pytest.mark.parametrize(("kind", "becomes"), [("left", "inner"), ("full", "right")])
def test_an_outer_join_whose_padding_is_refused(kind: str, becomes: str) -> None:
    joined = Join(T, U, kind, call("equal", T.column(0), Join(T, U, "inner").column(3)))  # type: ignore[arg-type]
    plan = Filter(joined, call("greater", joined.column(4), literal(0)))
    (found,) = of_kind(push_predicates(plan), Join)
    assert isinstance(found, Join)
    assert found.kind == becomes


def test_a_decided_condition_leaves_nothing() -> None:
    plan = Filter(T, call("equal", call("add", literal(1), literal(1)), literal(3)))
    assert fold_constants(plan) == Values((), T.schema)
    assert fold_constants(Filter(T, call("less", literal(1), literal(2)))) == T


# -- columns


def test_only_columns_that_are_read_are_kept() -> None:
    both = Join(T, U, "inner")
    joined = Join(T, U, "inner", call("equal", both.column(0), both.column(3)))
    plan = Project(joined, (joined.column(4),), ("d",))
    narrowed = [part.schema.names for part in of_kind(prune_columns(plan), Project)]
    assert ("a",) in narrowed


def test_places_need_all_columns() -> None:
    """Ties are broken by all columns, so none is left out below."""
    plan = Project(Top(T, ((T.column(1), "asc"),), 1), (T.column(1),), ("b",))
    (top,) = of_kind(prune_columns(plan), Top)
    assert len(top.schema) == 3


def test_windows_keep_what_tells_places_apart() -> None:
    """Rows of one place are equal in all that is read, so which of them comes first does not show."""
    before = WindowCall("lag", (T.column(1),), (T.column(0),), ((T.column(1), "asc"),), None, T.column(1).type, True)
    window = Window(T, (before,), ("before",))
    narrow = prune_columns(Project(window, (window.column(1), window.column(3)), ("b", "before")))
    assert [part.input.schema.names for part in of_kind(narrow, Window)] == [("a", "b")]
    wide = prune_columns(Project(window, (window.column(2), window.column(3)), ("c", "before")))
    assert [part.input.schema.names for part in of_kind(wide, Window)] == [("a", "b", "c")]


# -- joins


def test_a_cycle_is_joined_at_once() -> None:
    plan = where(product(E, E, E), [(1, 2), (3, 4), (5, 0)])
    (found,) = of_kind(optimize(plan), Multiway)
    assert isinstance(found, Multiway)
    assert len(found.shared) == 3


def test_a_star_is_joined_at_once() -> None:
    assert of_kind(optimize(where(product(E, E, E), [(0, 2), (2, 4)])), Multiway)


def test_a_chain_is_joined_in_turn() -> None:
    assert not of_kind(optimize(where(product(E, E, E), [(1, 2), (3, 4)])), Multiway)


def test_no_product_where_conditions_tie_relations() -> None:
    """t and u have nothing in common but e."""
    plan = where(product(T, U, E), [(1, 5), (4, 6)])
    joins = of_kind(optimize(plan), Join)
    assert joins
    assert all(isinstance(j, Join) and j.condition is not None for j in joins)


def test_the_smallest_comes_first() -> None:
    plan = push_predicates(where(product(T, U, E), [(1, 5), (4, 6)]))
    sizes = {"t": 1_000, "u": 10, "e": 100}
    statistics = {name: Statistics(n, (n,) * len(TABLES[name])) for name, n in sizes.items()}
    found = arrange_joins(plan, statistics)
    assert [part.relation for part in walk(found) if isinstance(part, Scan)] == ["u", "e", "t"]


# -- subqueries


def outer(plan: Plan, at: int) -> Outer:
    field = plan.schema.fields[at]
    return Outer(at, 1, field.name, field.type, field.nullable)


def correlated(condition: Expression) -> Filter:
    return Filter(U, condition)


def test_exists_is_a_semijoin_on_its_own_condition() -> None:
    query = correlated(call("and", call("equal", U.column(0), outer(T, 0)), call("less", U.column(1), outer(T, 1))))
    plan = decorrelate(Filter(T, Exists(query)))
    assert isinstance(plan, Join)
    assert (plan.kind, plan.left, plan.right) == ("semi", T, U)


def test_a_correlated_aggregate_is_one_by_the_key() -> None:
    query = Aggregate(correlated(call("equal", U.column(0), outer(T, 0))), (), (COUNT,), ("n",))
    plan = decorrelate(Project(T, (T.column(0), Scalar(query)), ("a", "n")))
    assert not of_kind(plan, Distinct)
    (grouped,) = of_kind(plan, Aggregate)
    assert isinstance(grouped, Aggregate)
    assert len(grouped.groups) == 1


def test_any_other_is_computed_for_the_distinct_values_around() -> None:
    query = Aggregate(correlated(call("less", U.column(1), outer(T, 1))), (), (COUNT,), ("n",))
    assert of_kind(decorrelate(Project(T, (T.column(0), Scalar(query)), ("a", "n"))), Distinct)


@pytest.mark.parametrize("change", [decorrelate, optimize])
def test_a_value_of_several_rows_fails_the_tick(change) -> None:
    query = Project(correlated(call("equal", U.column(0), outer(T, 0))), (U.column(1),), ("d",))
    run = Embedded(circuit_of(change(Project(T, (T.column(0), Scalar(query)), ("a", "d")))))
    run.tick({"t": [((1, 1, "p"), 1)], "u": [((1, 2), 1)]})
    assert list(run.view("view").contents()) == [((1, 2), 1)]
    with pytest.raises((ArithmeticFailure, FunctionError), match="gave several rows"):
        run.tick({"u": [((1, 3), 1)]})
    assert list(run.view("view").contents()) == [((1, 2), 1)]


# -- sharing


def test_equal_parts_become_one() -> None:
    one, other = (Aggregate(Scan("t", Schema(T.schema.fields)), (), (COUNT,), ("n",)) for _ in range(2))
    assert one is not other
    found = share_parts(Union((one, other)))
    assert found.inputs[0] is found.inputs[1]


def test_literals_are_of_their_types() -> None:
    assert Literal(1, INTEGER) != Literal(1, BIGINT)
