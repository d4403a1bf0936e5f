"""The total order of values, as seed and errata have it."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codes.strategies import atoms
from everview.codes import atom_key
from everview.codes.order import PRECEDENCE
from everview.errors import SchemaError, WrongType
from everview.types import Id, Symbol

ASCENDING = [
    None,
    False,
    True,
    -(2**63),
    -1,
    0,
    1,
    2**63 - 1,
    -math.inf,
    -1.5,
    0.0,
    5e-324,
    1.0,
    math.inf,
    math.nan,
    dt.date(1815, 12, 10),
    dt.date(2026, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    decimal.Decimal("-1e30"),
    decimal.Decimal("-0.5"),
    decimal.Decimal(0),
    decimal.Decimal("0.001"),
    decimal.Decimal("12"),
    decimal.Decimal("12.5"),
    "",
    "\0",
    "a",
    "a\0",
    "aa",
    "b",
    "ß",
    "\uffff",
    "\U0001f600",
    b"",
    b"\0",
    b"\xff",
    Symbol("a"),
    Symbol("b"),
    Id("a"),
    Id(b"\xff"),
    [],
    [None],
    [None, 1],
    [1],
    [1, None],
    [1, 2],
    [2],
    {},
    {"a": 1},
    {"a": 1, "b": 0},
    {"a": 2},
    {"b": 0},
]


def test_ascending():
    shuffled = random.Random(1).sample(ASCENDING, len(ASCENDING))
    assert str(sorted(shuffled, key=atom_key)) == str(ASCENDING)


def test_equality_is_by_type_and_value():
    assert atom_key(1) != atom_key(1.0) != atom_key(True) != atom_key("1")
    assert atom_key(0.0) == atom_key(-0.0)
    assert atom_key(math.nan) == atom_key(float("nan"))
    assert atom_key([1]) == atom_key((1,))
    assert atom_key({"a": 1, "b": 2}) == atom_key({"b": 2, "a": 1})


@given(st.lists(atoms, max_size=8), st.permutations(PRECEDENCE))
def test_a_host_may_fix_another_precedence(found, precedence):
    ordered = sorted(found, key=lambda v: atom_key(v, precedence))
    ranks = [atom_key(v, precedence)[0] for v in ordered]
    assert ranks == sorted(ranks)


def test_what_has_no_place():
    with pytest.raises(WrongType, match="has no place"):
        atom_key(object())
    with pytest.raises(SchemaError, match="is no order of types"):
        atom_key(1, ("INTEGER", "INTEGER"))
    with pytest.raises(SchemaError, match="is no order of types"):
        atom_key(1, ("NUMBER",))
