"""Z-sets: collections and changes as one kind of value, which adds.

A Z-set gives every element an integer weight: 1 is "there once", 2 "there twice", -1 "take one away". A
table is a Z-set, a change of a table is a Z-set, and the table after the change is their sum.
"""

from __future__ import annotations

from itertools import accumulate

from everview import Batch, IndexedZSet, ZSet
from everview.errors import WeightOverflow


def show(what: str, value: object) -> None:
    print(f"{what:<34} {value}")


def a_group() -> None:
    """Changes add in any order, and every change has an opposite that undoes it."""
    table = ZSet({"apple": 2, "pear": 1})
    change = ZSet({"apple": -1, "plum": 1})
    show("table", table)
    show("change", change)
    show("table + change", table + change)
    assert table + change == ZSet({"apple": 1, "pear": 1, "plum": 1})
    assert table + change == change + table
    assert (table + change) - change == table
    assert table - table == ZSet(), "nothing has weight zero"


def linear_operators() -> None:
    """``f(a + b) == f(a) + f(b)``: such an f needs to see nothing but the change."""
    table, change = ZSet({1: 1, 2: 1, -2: 1}), ZSet({-1: 1, 2: -1})
    show("squares of the change", change.map(lambda x: x * x))
    assert (table + change).map(abs) == table.map(abs) + change.map(abs)

    def even(x: int) -> bool:
        return x % 2 == 0

    assert (table + change).filter(even) == table.filter(even) + change.filter(even)


def bilinear_joins() -> None:
    """A join is linear in each side, so its change is three small joins, never the whole one again."""
    owners = IndexedZSet({1: {"Ada": 1}, 2: {"Bob": 1}})
    amounts = IndexedZSet({1: {50: 1, 70: 1}})
    new_owner = IndexedZSet({3: {"Cleo": 1}})
    new_amounts = IndexedZSet({1: {50: -1}, 3: {90: 1}})

    def join(left: IndexedZSet, right: IndexedZSet) -> ZSet:
        return left.join(right, lambda key, owner, amount: (owner, amount))

    change = join(new_owner, amounts) + join(owners, new_amounts) + join(new_owner, new_amounts)
    show("change of the join", change)
    assert change == ZSet({("Ada", 50): -1, ("Cleo", 90): 1})
    assert join(owners + new_owner, amounts + new_amounts) == join(owners, amounts) + change


def distinct_is_neither() -> None:
    """Whether an element counts depends on all its weight, so distinct must look at what was there before."""
    before, change = ZSet({"a": 2, "b": 1}), ZSet({"a": -1, "b": -1, "c": 3})
    show("change of distinct", (before + change).distinct() - before.distinct())
    assert (before + change).distinct() != before.distinct() + change.distinct()
    assert (before + change).distinct() - before.distinct() == ZSet({"b": -1, "c": 1})


def integrals_and_derivatives() -> None:
    """A stream has one Z-set a tick. Its integral is the running sum; the derivative takes it back."""
    changes = [ZSet({"a": 1}), ZSet({"b": 2}), ZSet({"a": -1})]
    contents = list(accumulate(changes))
    show("changes", changes)
    show("contents", contents)
    assert contents == [ZSet({"a": 1}), ZSet({"a": 1, "b": 2}), ZSet({"b": 2})]
    befores = [ZSet(), *contents[:-1]]
    assert [now - before for before, now in zip(befores, contents, strict=True)] == changes


def values_have_types() -> None:
    """An element is its type and its value: Python's ``True == 1 == 1.0`` is three elements here."""
    mixed = ZSet.of([(True, 1), (1, 1), (1.0, 1), (float("nan"), 1), (float("nan"), -1)])
    show("three ones, and no NaN", mixed)
    assert len(mixed) == 3


def weights_are_checked() -> None:
    """Weights have 64 bits, and leaving them is an error."""
    try:
        ZSet({"a": 2**62}) * 4
    except WeightOverflow as error:
        show("too heavy", error.message)
    else:
        raise AssertionError("a weight wrapped around")


def as_batches() -> None:
    """What circuits work on means the same: a batch is a Z-set of rows, as a sorted matrix of words."""
    schema = "fruit STRING NOT NULL, crates BIGINT NOT NULL"
    batch = Batch.of(schema, [(("apple", 3), 1), (("pear", 1), 2), (("apple", 3), -1)])
    show("a batch", list(batch))
    show("its words, the weight last", batch.rows.tolist())
    assert batch.to_zset() == ZSet({("pear", 1): 2})
    assert len(batch + -batch) == 0


if __name__ == "__main__":
    a_group()
    linear_operators()
    bilinear_joins()
    distinct_is_neither()
    integrals_and_derivatives()
    values_have_types()
    weights_are_checked()
    as_batches()
