"""Every aggregate beside its meaning: a plain function of a group's rows, each with its weight."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Row = tuple[Any, ...]
Group = Counter[Row]  # rows and their weights, of either sign
Meaning = Callable[[Group], Any]

SCHEMA = (
    "g STRING, x BIGINT, y DOUBLE, w DECIMAL(30,4), m DECIMAL(9,2) NOT NULL, "
    "z STRING, b BOOLEAN, at INTEGER NOT NULL, i INTEGER"
)
NAMES = [column.split()[0] for column in SCHEMA.replace("(30,4)", "").replace("(9,2)", "").split(", ")]


def weighed(rows: Group, *names: str) -> Counter[Row]:
    """The weights of some columns' values."""
    found: Counter[Row] = Counter()
    for row, weight in rows.items():
        found[tuple(row[NAMES.index(name)] for name in names)] += weight
    return found


def values(rows: Group, name: str) -> list[tuple[Any, int]]:
    """A column's values and weights, but for NULL and for what cancels."""
    return [(value, w) for (value,), w in weighed(rows, name).items() if value is not None and w]


def rank(value: Any) -> Any:
    """NULL first, then values in order: text by its bytes, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, str):
        return 1, value.encode()
    if isinstance(value, float):
        return 1, math.isnan(value), 0 if math.isnan(value) else value
    return 1, value


def in_order(rows: Group, order: Sequence[str], *names: str, distinct: bool = False, keep: bool = False) -> list[Row]:
    """The values of some columns, by ``column`` or ``column desc`` and then by themselves, as often as they weigh."""
    orders = [*(item.split() for item in order), *([name] for name in names)]
    columns = [*(item[0] for item in orders), *names]
    entries = [(row, 1 if distinct else w) for row, w in weighed(rows, *columns).items() if w > 0]
    for at in reversed(range(len(orders))):
        direction = " ".join(orders[at][1:])
        last = "nulls last" in direction or ("desc" in direction and "nulls first" not in direction)
        entries.sort(key=lambda e, at=at: rank(e[0][at]), reverse="desc" in direction)
        entries.sort(key=lambda e, at=at, last=last: (e[0][at] is None) == last)
    found = [row[len(orders) :] for row, w in entries for _ in range(w)]
    return found if keep else [row for row in found if None not in row]


def ordered(*order: str, of: str, distinct: bool = False, keep: bool = False) -> Callable[[Group], list[Any]]:
    return lambda rows: [value for (value,) in in_order(rows, order, of, distinct=distinct, keep=keep)]


# -- added up


def count_distinct(*names: str) -> Meaning:
    return lambda rows: sum(w > 0 and None not in row for row, w in weighed(rows, *names).items())


def total(name: str, distinct: bool = False) -> Meaning:
    def meaning(rows: Group) -> Any:
        found = values(rows, name)
        if distinct:
            found = [(value, 1) for value, w in found if w > 0]
        return sum(value * w for value, w in found) if sum(w for _, w in found) else None

    return meaning


def average(name: str, distinct: bool) -> Meaning:
    def meaning(rows: Group) -> Any:
        found = [(value, 1 if distinct else w) for value, w in values(rows, name) if w > 0 or not distinct]
        n = sum(w for _, w in found)
        return quotient(sum(Fraction(value) * w for value, w in found) / n) if n else None

    return meaning


def quotient(x: Fraction) -> float:
    try:
        return x.numerator / x.denominator
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def variance(name: str, lost: int, distinct: bool = False) -> Callable[[Group], Fraction | float | None]:
    """Exact; NaN if a value is not finite."""

    def meaning(rows: Group) -> Fraction | float | None:
        found = [(value, 1 if distinct else w) for value, w in values(rows, name) if w > 0 or not distinct]
        n = sum(w for _, w in found)
        if n <= lost:
            return None
        if any(isinstance(value, float) and not math.isfinite(value) for value, _ in found):
            return math.nan
        sums = sum(Fraction(value) * w for value, w in found)
        squares = sum(Fraction(value) ** 2 * w for value, w in found)
        return (n * squares - sums**2) / (n * (n - lost))

    return meaning


def rounded(exact: Callable[[Group], Fraction | float | None]) -> Meaning:
    def meaning(rows: Group) -> float | None:
        found = exact(rows)
        return quotient(found) if isinstance(found, Fraction) else found

    return meaning


def root(exact: Callable[[Group], Fraction | float | None]) -> Meaning:
    """Within the last bit: see `close`."""

    def meaning(rows: Group) -> float | None:
        found = exact(rows)
        if not isinstance(found, Fraction):
            return found
        return square_root(found) if found >= 0 else math.nan

    return meaning


def square_root(x: Fraction) -> float:
    """Of any size: the square of the result need not be a float."""
    shift = 2 * ((x.denominator.bit_length() - x.numerator.bit_length()) // 2 + 80)
    scaled = math.isqrt(int(x * Fraction(2) ** shift))
    return quotient(Fraction(scaled) / Fraction(2) ** (shift // 2))


def truth(name: str, all_of: bool) -> Meaning:
    def meaning(rows: Group) -> bool | None:
        there = {value for value, w in values(rows, name) if w > 0}
        return (False not in there if all_of else True in there) if there else None

    return meaning


def bitwise(name: str, is_one: Callable[[int, int], bool]) -> Meaning:
    """Every bit by how often it is one among so many values."""

    def meaning(rows: Group) -> int | None:
        found = values(rows, name)
        n = sum(w for _, w in found)
        bits = [is_one(sum(w for value, w in found if value >> bit & 1), n) for bit in range(64)]
        whole = sum(one << bit for bit, one in enumerate(bits))
        return None if n == 0 else whole - 2**64 * bits[63]

    return meaning


# -- in order


def percentile(listed: Callable[[Group], list[Any]], fraction: float) -> Meaning:
    def meaning(rows: Group) -> float | None:
        found = [float(value) for value in listed(rows)]
        if not found:
            return None
        place = fraction * (len(found) - 1)
        low, high = math.floor(place), math.ceil(place)
        a, b = found[low], found[high]
        return a if low == high or a == b else (high - place) * a + (place - low) * b

    return meaning


def discrete(listed: Callable[[Group], list[Any]], fraction: float) -> Meaning:
    def meaning(rows: Group) -> Any:
        found = listed(rows)
        return found[max(1, math.ceil(fraction * len(found))) - 1] if found else None

    return meaning


def mode(listed: Callable[[Group], list[Any]]) -> Meaning:
    """The most frequent, and of several the first."""

    def meaning(rows: Group) -> Any:
        found = listed(rows)
        return max(dict.fromkeys(found), key=found.count, default=None)

    return meaning


def end(listed: Callable[[Group], list[Any]], at: int) -> Meaning:
    return lambda rows: (listed(rows) or [None])[at]


def joined(listed: Callable[[Group], list[str]], separator: str) -> Meaning:
    return lambda rows: separator.join(found) if (found := listed(rows)) else None


# -- users' own


def longest_text(texts: pa.ListArray) -> pa.Array:
    """Vectorised: how long the longest text of each group is."""
    owners, lengths = pc.list_parent_indices(texts), pc.utf8_length(texts.flatten())
    found = pa.table({"owner": owners, "length": lengths}).group_by("owner").aggregate([("length", "max")])
    lookup = dict(zip(found["owner"].to_pylist(), found["length_max"].to_pylist(), strict=True))
    return pa.array([lookup.get(at) for at in range(len(texts))], pa.int64())


def dot(xs: list[int | None], ats: list[int]) -> int:
    return sum((x or 0) % 1000 * at for x, at in zip(xs, ats, strict=True))


def dot_of(rows: Group) -> int:
    xs = in_order(rows, ["at desc"], "x", "at", keep=True)
    return dot([x for x, _ in xs], [at for _, at in xs])


# name: what is written, and what it means
CALLS: dict[str, tuple[Any, Meaning]] = {
    "n": ("count", lambda rows: sum(rows.values())),
    "nx": (("count", "x"), lambda rows: sum(w for _, w in values(rows, "x"))),
    "dx": (("count distinct", "x"), count_distinct("x")),
    "dz": (("count distinct", "z"), count_distinct("z")),
    "dg": (("count distinct", "g"), count_distinct("g")),
    "dxz": (("count distinct", ["x", "z"]), count_distinct("x", "z")),
    "sx": (("sum", "x"), total("x")),
    "sdx": (("sum distinct", "x"), total("x", distinct=True)),
    "sdm": (("sum distinct", "m"), total("m", distinct=True)),
    "adx": (("avg distinct", "x"), average("x", distinct=True)),
    "ax": (("avg", "x"), average("x", distinct=False)),
    "vx": (("variance", "x"), rounded(variance("x", 1))),
    "vy": (("variance", "y"), rounded(variance("y", 1))),
    "vpy": (("variance pop", "y"), rounded(variance("y", 0))),
    "vw": (("variance", "w"), rounded(variance("w", 1))),
    "vm": (("variance pop", "m"), rounded(variance("m", 0))),
    "vdy": (("variance distinct", "y"), rounded(variance("y", 1, distinct=True))),
    "sty": (("stddev", "y"), root(variance("y", 1))),
    "stw": (("stddev pop", "w"), root(variance("w", 0))),
    "cov": (("covariance", ["y", "y"]), rounded(variance("y", 1))),
    "covp": (("covariance pop", ["y", "y"]), rounded(variance("y", 0))),
    "ba": (("bit_and", "x"), bitwise("x", lambda ones, n: ones == n)),
    "bo": (("bit_or", "i"), bitwise("i", lambda ones, n: ones > 0)),
    "bx": (("bit_xor", "x"), bitwise("x", lambda ones, n: ones % 2 == 1)),
    "tried": (("try sum", "i"), total("i")),
    "sti": (("stddev samp", "i"), root(variance("i", 1))),
    "all": (("bool_and", "b"), truth("b", True)),
    "any": (("any", "b"), truth("b", False)),
    "least": (("min", "z"), end(ordered("z", of="z"), 0)),
    "most": (("max", "y"), end(ordered("y", of="y"), -1)),
    "xs": (("array", "x"), ordered("x", of="x")),
    "xs_at": (("array", "x", {"order": ["at desc"]}), ordered("at desc", of="x")),
    "xs_all": (("array", "x", {"order": "x desc", "nulls": "keep"}), ordered("x desc", of="x", keep=True)),
    "ys": (("array distinct", "y"), ordered("y", of="y", distinct=True)),
    "zs": (("array", "z", {"order": ["z desc"]}), ordered("z desc", of="z")),
    "ws": (("array", "w"), ordered("w", of="w")),
    "bs": (("array", "b", {"order": [("i", "desc nulls first"), "z"]}), ordered("i desc nulls first", "z", of="b")),
    "text": (("string", "z", {"separator": ", ", "order": ["at"]}), joined(ordered("at", of="z"), ", ")),
    "text_d": (("string distinct", "z", {"order": ["z desc"]}), joined(ordered("z desc", of="z", distinct=True), "")),
    "mx": (("median", "x"), percentile(ordered(of="x"), 0.5)),
    "my": (("median distinct", "y"), percentile(ordered(of="y", distinct=True), 0.5)),
    "pw": (("percentile", "w", 0.9), percentile(ordered(of="w"), 0.9)),
    "pm": (("percentile", "m", 0.31, {"order": "m desc"}), percentile(ordered("m desc", of="m"), 0.31)),
    "pdx": (("percentile discrete", "x", 0.07), discrete(ordered(of="x"), 0.07)),
    "pdz": (("percentile discrete", "z", 0.5, {"order": ["z desc"]}), discrete(ordered("z desc", of="z"), 0.5)),
    "qx": (("quantile", "x", 0.31), discrete(ordered(of="x"), 0.31)),
    "qm": (("quantile", "m", 0.5, {"order": "m desc"}), discrete(ordered("m desc", of="m"), 0.5)),
    "often": (("mode", "x"), mode(ordered(of="x"))),
    "often_z": (("mode", "z", {"order": "z desc"}), mode(ordered("z desc", of="z"))),
    "fx": (("first", "x", {"order": ["at"]}), end(ordered("at", of="x", keep=True), 0)),
    "lz": (
        ("last", "z", {"order": ["i nulls last", "at desc"]}),
        end(ordered("i nulls last", "at desc", of="z", keep=True), -1),
    ),
    "lx": (("last", "x", {"order": ["z"], "nulls": "skip"}), end(ordered("z", of="x"), -1)),
    "fm": (("first", "m", {"order": ["m desc"]}), end(ordered("m desc", of="m"), 0)),
    "longest": (
        (longest_text, "z", {"type": "BIGINT", "nulls": "skip"}),
        lambda rows: max(map(len, ordered(of="z")(rows)), default=None),
    ),
    "dot": ((dot, ["x", "at"], {"type": "BIGINT NOT NULL", "order": "at desc", "by_group": True}), dot_of),
}


def expected(rows: Group, by: Sequence[str], names: Sequence[str]) -> dict[Row, Row]:
    """What the aggregates of all groups are: a row for every group whose weights sum to more than zero."""
    groups: dict[Row, Group] = {}
    for row, w in rows.items():
        if w:
            groups.setdefault(tuple(row[NAMES.index(name)] for name in by), Counter())[row] = w
    return {
        key: tuple(CALLS[name][1](group) for name in names) for key, group in groups.items() if sum(group.values()) > 0
    }


def close(found: Any, wanted: Any) -> bool:
    """The same value; of floats the last bit may differ, and NaN is itself."""
    if isinstance(found, float) and isinstance(wanted, float | int | Decimal):
        wanted = float(wanted)
        if math.isnan(wanted) or math.isnan(found):
            return math.isnan(wanted) and math.isnan(found)
        return found == wanted or abs(found - wanted) <= math.ulp(wanted)
    if isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(map(close, found, wanted))
    return found == wanted
