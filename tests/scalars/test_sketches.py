"""Sketches: what is kept and told of drawn values is what the format says, word by word, and parts make the whole."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from everview.codes.columns import from_python
from everview.errors import ArithmeticFailure
from everview.oracle.scalars import value_of
from everview.plan.typing import call, literal
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Column, Expression
from everview.types import Field, Type, parse_type

LONGS, DOUBLES, FLOATS = map(parse_type, ("array<bigint>", "array<double>", "array<float>"))
SIZES = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 40, 41, 90, 200, 700)


def column(at: int, of: Type) -> Column:
    return Column(at, f"c{at}", of)


def drawn(of: Type, seed: int) -> list[list[Any] | None]:
    """Lists of numbers: few and many, all alike and all different, with NULL."""
    rng = random.Random(seed)
    rows: list[list[Any] | None] = [None, [None]]
    for size in SIZES:
        span = rng.choice([2, 50, 2**64])
        found: list[Any] = [rng.randrange(span) - span // 2 for _ in range(size)]
        if of != LONGS:
            found = [x / 8 % 2**20 if span > 2 else rng.choice([0.0, -0.0, float("nan"), 1.5]) for x in found]
        rows.append([*found, None] if rng.random() < 0.5 else found)
    rng.shuffle(rows)
    return rows


def checked(found: Expression, types: list[Type], columns: list[list[Any]]) -> list[Any]:
    """The values of an expression, which are what it means."""
    arrays = [from_python(Field("c", of), values) for of, values in zip(types, columns, strict=True)]
    (array,) = Evaluate((found,))(*arrays)
    rows = zip(*(a.to_pylist() for a in arrays), strict=True)
    assert array.to_pylist() == [value_of(found, row) for row in rows], str(found)
    return array.to_pylist()


def hll(at: int, lg: int) -> Expression:
    return call("hll_of", column(at, LONGS), literal(lg))


def theta(at: int, lg: int) -> Expression:
    return call("theta_of", column(at, LONGS), literal(lg))


def kll(of: Type, at: int, k: int) -> Expression:
    return call("kll_of", column(at, of), literal(k))


DIFFERENT = call("hll_union", hll(0, 5), hll(1, 7), literal(True))
SETS = {
    "hll": call("hll_union", hll(0, 4), hll(1, 4)),
    "hll of different sizes": DIFFERENT,
    "hll of three": call("hll_union_of", call("array", hll(0, 6), DIFFERENT, hll(1, 8)), literal(True)),
    "union": call("theta_union", theta(0, 4), theta(1, 5), literal(4)),
    "intersection": call("theta_intersection", theta(0, 4), theta(1, 5)),
    "difference": call("theta_difference", theta(0, 5), theta(1, 4)),
    "union of three": call("theta_union_of", call("array", theta(0, 4), theta(1, 4), theta(0, 6)), literal(4)),
    "intersection of three": call("theta_intersection_of", call("array", theta(0, 4), theta(1, 4), theta(0, 6))),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(2))
def test_sketches_of_sets_are_what_they_mean(name: str, seed: int) -> None:
    columns, types = [drawn(LONGS, seed), drawn(LONGS, seed + 10)], [LONGS, LONGS]
    checked(SETS[name], types, columns)
    told = "hll_sketch_estimate" if name.startswith("hll") else "theta_sketch_estimate"
    checked(call(told, SETS[name]), types, columns)


KINDS = {"bigint": LONGS, "double": DOUBLES, "float": FLOATS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_sketches_of_quantiles_are_what_they_mean(kind: str, seed: int) -> None:
    of = KINDS[kind]
    columns, types = [drawn(of, seed), drawn(of, seed + 10)], [of, of]
    merged = call(f"kll_sketch_merge_{kind}", kll(of, 0, 8), kll(of, 1, 16))
    several = call(f"kll_merge_of_{kind}", call("array", merged, kll(of, 0, 9), merged), literal(10))
    shares = call("array", *map(literal, (0.0, 0.1, 0.5, 0.99, 1.0)))
    asked = call("array", *(literal(x) for x in ((-3, 0, 5) if of == LONGS else (-2.5, 0.0, 1.5))))
    for sketch in (kll(of, 0, 8), merged, several):
        checked(sketch, types, columns)
        checked(call(f"kll_sketch_get_n_{kind}", sketch), types, columns)
        checked(call(f"kll_sketch_get_quantile_{kind}", sketch, shares), types, columns)
        checked(call(f"kll_sketch_get_rank_{kind}", sketch, asked), types, columns)
        checked(call(f"kll_sketch_to_string_{kind}", sketch), types, columns)


@pytest.mark.parametrize("seed", range(2))
def test_the_union_of_parts_is_the_sketch_of_the_whole(seed: int) -> None:
    parts = [drawn(LONGS, seed), drawn(LONGS, seed + 10)]
    whole = [None if None in pair else [x for part in pair for x in part or ()] for pair in zip(*parts, strict=True)]
    for sketch, union, sizes in ((hll, "hll_union", (4, 5, 7)), (theta, "theta_union", (4, 6))):
        for lg in sizes:
            rest = (literal(lg),) if union == "theta_union" else ()
            joined = checked(call(union, sketch(0, lg), sketch(1, lg), *rest), [LONGS, LONGS], parts)
            assert joined == checked(sketch(0, lg), [LONGS], [whole])
    assert checked(DIFFERENT, [LONGS, LONGS], parts) == checked(hll(0, 5), [LONGS], [whole])


def test_few_numbers_are_kept_as_they_are_and_merged_so() -> None:
    parts = [[[3, 1, 2]], [[2, 9]]]
    merged = call("kll_sketch_merge_bigint", kll(LONGS, 0, 8), kll(LONGS, 1, 8))
    assert checked(merged, [LONGS, LONGS], parts) == checked(kll(LONGS, 0, 8), [LONGS], [[[3, 1, 2, 2, 9]]])


# -- how far estimates are off


def numbers(count: int) -> list[int]:
    return [n * 0x9E3779B97F4A7C15 % 2**64 - 2**63 for n in range(count)]


@pytest.mark.parametrize("lg", [6, 9, 12])
def test_estimates_of_sets_are_as_near_as_is_said(lg: int) -> None:
    """Over sets of many sizes the relative error is that of the literature: 1.04 / sqrt(m), and 1 / sqrt(m)."""
    rng = random.Random(lg)
    counts = [round(2 ** (e / 2)) for e in range(4, 30)]
    lists = [[rng.getrandbits(64) - 2**63 for _ in range(n)] for n in counts]
    arrays = from_python(Field("c", LONGS), lists)
    for told, sketch, bound in (
        ("hll_sketch_estimate", hll(0, lg), 1.04 / 2 ** (lg / 2)),
        ("theta_sketch_estimate", theta(0, lg), 1 / 2 ** (lg / 2)),
    ):
        found = Evaluate((call(told, sketch),))(arrays)[0].to_pylist()
        errors = [(f - n) / n for f, n in zip(found, counts, strict=True)]
        assert max(map(abs, errors)) < 4 * bound, (told, errors)
        assert (sum(e * e for e in errors) / len(errors)) ** 0.5 < 1.5 * bound, (told, errors)


@pytest.mark.parametrize("k", [8, 50, 200])
def test_ranks_are_as_near_as_is_said(k: int) -> None:
    """A sketch of numbers is off by less than 1 / k, one of many sketches by a few times that."""
    rng = random.Random(k)
    n, parts = 5000, 16
    values = [rng.randrange(10**6) for _ in range(n)]
    ranked = sorted(values)
    lists = from_python(Field("c", LONGS), [values])
    split = [from_python(Field("c", LONGS), [values[at::parts]]) for at in range(parts)]
    one = kll(LONGS, 0, k)
    chain = kll(LONGS, 0, k)
    for at in range(1, parts):
        chain = call("kll_sketch_merge_bigint", chain, kll(LONGS, at, k))
    together = call("kll_merge_of_bigint", call("array", *(kll(LONGS, i, k) for i in range(parts))), literal(0))
    shares = [i / 40 for i in range(41)]
    asked = call("array", *map(literal, shares))
    for sketch, arrays, bound in ((one, [lists], 1 / k), (chain, split, 4 / k), (together, split, 4 / k)):
        (found,) = Evaluate((call("kll_sketch_get_quantile_bigint", sketch, asked),))(*arrays)[0].to_pylist()
        off = [abs(ranked.index(value) / n - share) for value, share in zip(found, shares, strict=True)]
        assert max(off) <= bound + 2 / n, (off, bound)


# -- what is no sketch

GOOD = value_of(call("theta_of", column(0, LONGS), literal(4)), ([1, 2, 3],))
FOREIGN = [b"", b"x", b"\x02\x01\x07\x0c\x03\x08\x00\x05" * 3, GOOD[:-8] + b"\0" * 8, GOOD[:-3], b"EVSK\x02" + GOOD[5:]]
TELLING = ["hll_sketch_estimate", "theta_sketch_estimate", *(f"kll_sketch_get_n_{kind}" for kind in KINDS)]


@pytest.mark.parametrize("raw", FOREIGN)
@pytest.mark.parametrize("name", TELLING)
def test_bytes_that_are_no_sketch_are_refused(name: str, raw: bytes) -> None:
    of = parse_type("binary")
    array = from_python(Field("c", of), [None, raw])
    with pytest.raises(ArithmeticFailure, match=r"the bytes are no .* sketch of Everview") as refused:
        Evaluate((call(name, column(0, of)),))(array)
    assert "those of DataSketches" in (refused.value.hint or "")
    with pytest.raises(ArithmeticFailure):
        value_of(call(name, column(0, of)), (raw,))


def outcome(evaluate: Callable[..., Any], *arguments: Any) -> Any:
    try:
        found = evaluate(*arguments)
    except ArithmeticFailure:
        return "refused"
    return found[0][0].as_py() if arguments else found


def test_damaged_sketches_are_refused_by_both_or_read_alike() -> None:
    rng, of = random.Random(5), parse_type("binary")
    made = [
        *(value_of(hll(0, lg), (numbers(n),)) for lg, n in ((4, 5), (4, 30))),
        *(value_of(theta(0, 4), (numbers(n),)) for n in (0, 10, 40)),
        *(value_of(kll(LONGS, 0, 8), (numbers(n),)) for n in (0, 5, 100)),
    ]
    tried = [(raw, at, rng.randrange(256)) for raw in made for at in rng.sample(range(len(raw)), min(len(raw), 16))]
    for raw, at, octet in tried:
        damaged = raw[:at] + bytes([octet]) + raw[at + 1 :]
        for name in TELLING:
            found = call(name, column(0, of))
            array = from_python(Field("c", of), [damaged])
            meant = outcome(partial(value_of, found, (damaged,)))
            assert outcome(Evaluate((found,)), array) == meant, (name, damaged)
