"""Reference Z-sets: the group laws, linearity, and what counts as the same element."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from collections import namedtuple
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import SchemaError, WeightOverflow, WrongType
from everview.types import Id, Symbol
from everview.zset import ZSet
from everview.zset.elements import identity, position

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-2, 2)
    | st.just(math.nan)
    | st.sampled_from([0.0, -0.0, 1.0, math.inf])
    | st.text("ab", max_size=2)
    | st.binary(max_size=1)
    | st.sampled_from([Decimal(1), Decimal("NaN"), Symbol("a"), Id("a"), dt.date(2026, 1, 1)])
    | st.sampled_from([dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)])
)
elements = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2).map(tuple), max_leaves=4)
entries = st.lists(st.tuples(elements, st.integers(-3, 3)), max_size=12)
zsets = entries.map(ZSet.of)
small = st.lists(st.tuples(st.integers(-4, 4), st.integers(-3, 3)), max_size=12).map(ZSet.of)


@given(zsets, zsets, zsets)
def test_z_sets_are_a_commutative_group(a: ZSet, b: ZSet, c: ZSet) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + ZSet() == a
    assert a + -a == ZSet()
    assert a - b == a + -b
    assert (a + b) - b == a
    assert ZSet() - a == -a


@given(zsets, zsets, st.integers(-9, 9), st.integers(-9, 9))
def test_z_sets_are_a_module(a: ZSet, b: ZSet, n: int, m: int) -> None:
    assert (a + b) * n == a * n + b * n
    assert a * (n + m) == a * n + a * m
    assert (a * n) * m == a * (n * m)
    assert a * 1 == a
    assert a * 0 == ZSet()
    assert n * a == a * n


@given(entries, st.randoms(use_true_random=False))
def test_a_z_set_does_not_depend_on_the_order_of_its_entries(pairs, rng) -> None:
    a, b = ZSet.of(pairs), ZSet.of(rng.sample(pairs, len(pairs)))
    assert a == b
    assert hash(a) == hash(b)
    assert list(map(identity, a)) == list(map(identity, b))


@given(zsets)
def test_a_z_set_is_consolidated(a: ZSet) -> None:
    assert all(weight != 0 for _, weight in a)
    assert len({identity(element) for element, _ in a}) == len(a) == len(list(a))
    assert all(a[element] == weight and element in a for element, weight in a)
    assert ZSet.of(a) == a
    assert pickle.loads(pickle.dumps(a)) == a


@given(small, small)
def test_linear_operators(a: ZSet, b: ZSet) -> None:
    for f in (
        lambda z: z.map(abs),
        lambda z: z.filter(lambda x: x > 0),
        lambda z: z.flat_map(lambda x: range(abs(x))),
        lambda z: -z,
        lambda z: z.equi_join(b),
    ):
        assert f(a + b) == f(a) + f(b)


@given(small)
def test_distinct_and_positive(a: ZSet) -> None:
    assert a.distinct() == ZSet.of((x, 1) for x in range(-4, 5) if a[x] > 0)
    assert a.distinct().distinct() == a.distinct() == a.positive().distinct()
    assert a.positive() - (-a).positive() == a


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        (1.0, True),
        (1, Decimal(1)),
        (1.0, Decimal(1)),
        ("a", b"a"),
        ("a", Symbol("a")),
        (Symbol("a"), Id("a")),
        ((1,), (True,)),
        ((1,), (1.0,)),
        (((0, "x"),), ((False, "x"),)),
        ((1,), [1]),
        (frozenset([1]), frozenset([True])),
        ({"k": 1}, {"k": 1.0}),
        (1, (1,)),
        ((), None),
        ((bool, True), True),
        (dt.date(2026, 1, 1), dt.datetime(2026, 1, 1)),
    ],
)
def test_different_elements(left, right) -> None:
    assert len(ZSet.of([(left, 1), (right, 1)])) == 2
    assert right not in ZSet.of([(left, 1)])
    assert position(left) != position(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (math.nan, float("nan")),
        (0.0, -0.0),
        ((1, (math.nan, 0.0)), (1, (float("nan"), -0.0))),
        (Decimal("NaN"), Decimal("NaN")),
        (Decimal("1.0"), Decimal("1.00")),
        ([1, math.nan], [1, math.nan]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.int64(1), 1),
        (np.float64(0.5), 0.5),
        (np.bool_(True), True),
        (namedtuple("Row", "a b")(1, 2), (1, 2)),
    ],
)
def test_same_elements(left, right) -> None:
    assert ZSet.of([(left, 1), (right, -1)]) == ZSet({})
    assert position(left) == position(right)


def test_elements_must_be_hashable_values() -> None:
    with pytest.raises(WrongType, match="hint: elements are immutable"):
        ZSet.of([({1, 2}, 1)])


@given(st.lists(elements, max_size=8))
def test_the_order_of_elements_is_total(values) -> None:
    backwards = values[::-1]
    assert list(map(identity, sorted(values, key=position))) == list(map(identity, sorted(backwards, key=position)))


def test_the_order_of_elements() -> None:
    mixed = [
        "b",
        math.nan,
        2,
        False,
        None,
        "a",
        1.5,
        (2, "a"),
        (1, "b"),
        -1,
        b"z",
        Id("i"),
        Symbol("s"),
        True,
    ]
    assert [repr(element) for element, _ in ZSet.of((x, 1) for x in mixed)] == [
        "None", "False", "True", "-1", "2", "1.5", "nan", "'a'", "'b'", "Symbol('s')", "Id('i')", "b'z'",
        "(1, 'b')", "(2, 'a')",
    ]  # fmt: skip


def test_weights_stay_in_64_bits() -> None:
    most = 2**63 - 1
    assert ZSet({"a": most})["a"] == most
    assert ZSet.of([("a", most), ("a", 1), ("a", -1)])["a"] == most  # only the sum counts
    for beyond in (
        lambda: ZSet({"a": most + 1}),
        lambda: ZSet({"a": most}) + ZSet({"a": 1}),
        lambda: ZSet({"a": -most}) - ZSet({"a": 2}),
        lambda: ZSet({"a": most}) * 2,
        lambda: -ZSet({"a": -most - 1}),
        lambda: ZSet({1: most, -1: most}).map(abs),
        lambda: ZSet({"a": 2**32}).equi_join(ZSet({"a": 2**31})),
    ):
        with pytest.raises(WeightOverflow):
            beyond()


def test_weights_are_integers() -> None:
    assert type(ZSet.of([("a", np.int64(2))])["a"]) is int
    with pytest.raises(WeightOverflow):
        ZSet.of([("a", np.int64(2**63 - 1)), ("a", np.int64(2**63 - 1))])
    with pytest.raises(WrongType):
        ZSet.of([("a", 0.5), ("a", -0.5)])


def test_a_z_set_is_frozen() -> None:
    a = ZSet({"a": 1})
    for name in ("_entries", "other"):
        with pytest.raises(AttributeError):
            setattr(a, name, {})
    with pytest.raises(TypeError):
        a["a"] = 2  # type: ignore[index]


def test_sums_and_comparisons_with_others() -> None:
    assert sum([ZSet({"a": 1}), ZSet({"a": 2})], ZSet()) == ZSet({"a": 3})
    assert ZSet({"a": 1}) != {"a": 1}
    assert not ZSet()
    with pytest.raises(TypeError):
        ZSet() + 1  # type: ignore[operator]


def test_display() -> None:
    assert repr(ZSet({"b": -1, "a": 1})) == "ZSet({'a': 1, 'b': -1})"
    html = ZSet({"<script>": 1})._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    long = ZSet.of((i, 1) for i in range(1000))._repr_html_()
    assert "… and 950 more" in long
    assert long.count("<tr>") == 51


def test_a_z_set_is_a_trie_of_one_level() -> None:
    a = ZSet({"a": 2})
    assert a.get_by_prefix(()) is a
    assert a.as_zset_view() is a
    with pytest.raises(SchemaError):
        a.get_by_prefix(("a",))


def test_plus_and_minus_of_the_notes() -> None:
    a, b = ZSet({0: 1, 1: 1, 2: 2, 3: 1}), ZSet({0: 1, 1: -1, 2: 1})
    assert a + b == ZSet({0: 2, 2: 3, 3: 1})
    assert a - b == ZSet({1: 2, 2: 1, 3: 1})
