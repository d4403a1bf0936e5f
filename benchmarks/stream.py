"""The input that every measure and every peer reads: orders, customers, and ticks of changes to the orders.

Made once with a fixed seed and kept in `benchmarks/data`. Half of a tick's changes delete an order that is
there, half insert a new one, so the number of orders stays what it was. Files are column-major: a column is
contiguous, and Arrow and NumPy map it without a copy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
SEED = 20_240
CUSTOMERS = 100_000
COUNTRIES = 200
CENTS = 100_000

ORDER = ("id", "customer", "amount")
CUSTOMER = ("id", "country")
CHANGE = (*ORDER, "_weight")


def customers() -> np.ndarray:
    """Columns id, country."""
    return _kept(f"customers-{CUSTOMERS}", _customers)


def orders(count: int) -> np.ndarray:
    """Columns id, customer, amount."""
    return _kept(f"orders-{count}", lambda: _orders(_generator(count), 0, count))


def changes(count: int, per_tick: int, ticks: int) -> np.ndarray:
    """Columns id, customer, amount, weight of `ticks` times `per_tick` changes to `count` orders."""
    return _kept(f"changes-{count}-{per_tick}x{ticks}", lambda: _changes(count, per_tick, ticks))


def digest(country: np.ndarray, total: np.ndarray, n: np.ndarray) -> int:
    """One number for the contents of the view, so that all who maintain it can be compared."""
    return sum(int(c) * 31 + int(t) * 7 + int(k) for c, t, k in zip(country, total, n, strict=True))


def expected(count: int, per_tick: int, ticks: int) -> int:
    """The digest of the view after the last tick, computed from scratch."""
    deltas = changes(count, per_tick, ticks)
    start = orders(count)
    customer = np.concatenate([start[1], deltas[1]])
    amount = np.concatenate([start[2], deltas[2]])
    weight = np.concatenate([np.ones(count, np.int64), deltas[3]])
    country = customers()[1][customer]
    total, n = np.zeros(COUNTRIES, np.int64), np.zeros(COUNTRIES, np.int64)
    np.add.at(total, country, weight * amount)
    np.add.at(n, country, weight)
    present = np.flatnonzero(n)
    return digest(present, total[present], n[present])


def _kept(name: str, make) -> np.ndarray:
    path = DATA / f"{name}.npy"
    if not path.exists():
        DATA.mkdir(exist_ok=True)
        unfinished = DATA / f"{name}.tmp.npy"
        np.save(unfinished, np.ascontiguousarray(make()))
        unfinished.rename(path)
    return np.load(path, mmap_mode="r")


def _generator(*salt: int) -> np.random.Generator:
    return np.random.default_rng([SEED, *salt])


def _customers() -> np.ndarray:
    return np.stack([np.arange(CUSTOMERS), _generator().integers(0, COUNTRIES, CUSTOMERS)])


def _orders(random: np.random.Generator, first: int, count: int) -> np.ndarray:
    return np.stack(
        [
            np.arange(first, first + count),
            random.integers(0, CUSTOMERS, count),
            random.integers(1, CENTS, count),
        ]
    )


def _changes(count: int, per_tick: int, ticks: int) -> np.ndarray:
    """Every tick replaces the orders in some random slots: the old one goes, a new one comes."""
    random = _generator(count, per_tick, ticks)
    half = per_tick // 2
    live = np.array(orders(count))
    fresh = _orders(random, count, half * ticks)
    out = np.empty((4, ticks, per_tick), np.int64)
    out[3, :, :half], out[3, :, half:] = -1, 1
    for tick in range(ticks):
        slots = random.choice(count, half, replace=False)
        new = fresh[:, tick * half : (tick + 1) * half]
        out[:3, tick, :half] = live[:, slots]
        out[:3, tick, half:] = new
        live[:, slots] = new
    return out.reshape(4, -1)
