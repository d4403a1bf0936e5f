"""The events of Nexmark: of fifty, one is a person, three are auctions, and the rest are bids.

As in the generator of its authors, hot auctions, bidders and sellers get most of what happens, prices are spread over
seven powers of ten, and ids are given in the order of time. Columns are NumPy's, so a million events take a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

BEGIN = np.datetime64("2026-01-01T00:00:00", "us")
ROUND, PERSONS, AUCTIONS = 50, 1, 3  # events of a round, and how many of them are persons and auctions
HOT = 100  # one of so many ids is hot, the newest of its hundred
ACTIVE = 1_000  # persons, and a tenth as many auctions, that are still about
CHANNELS = np.array(["Google", "Facebook", "Baidu", "Apple"])
OTHER_CHANNELS = 10_000
STATES = np.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
CITIES = np.array(["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle"])
FIRST = np.array(["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"])
LAST = np.array(["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"])
EXTRAS = 1_000  # different texts


@dataclass(frozen=True, slots=True)
class Events:
    """Events of a stretch of the stream, by table."""

    person: pa.Table
    auction: pa.Table
    bid: pa.Table

    @property
    def tables(self) -> dict[str, pa.Table]:
        return {"person": self.person, "auction": self.auction, "bid": self.bid}

    @property
    def count(self) -> int:
        return sum(table.num_rows for table in self.tables.values())


def events(first: int, count: int, seed: int = 1, rate: int = 10_000) -> Events:
    """`count` events from the number `first` on, which happen at so many a second."""
    random = np.random.default_rng([seed, first])
    numbers = np.arange(first, first + count)
    place = numbers % ROUND
    persons = numbers[place < PERSONS]
    auctions = numbers[(place >= PERSONS) & (place < PERSONS + AUCTIONS)]
    bids = numbers[place >= PERSONS + AUCTIONS]
    return Events(_persons(persons, rate, random), _auctions(auctions, rate, random), _bids(bids, rate, random))


def side_input() -> pa.Table:
    """What query 13 joins."""
    return pa.table({"key": np.arange(100), "value": [f"side {key}" for key in range(100)]})


def _persons(numbers: Numbers, rate: int, random: np.random.Generator) -> pa.Table:
    size = numbers.size
    names = np.char.add(np.char.add(random.choice(FIRST, size), " "), random.choice(LAST, size))
    return pa.table(
        {
            "id": _person(numbers),
            "name": names.tolist(),
            "email_address": np.char.add(np.char.replace(names, " ", "."), "@example.org").tolist(),
            "credit_card": [f"{card:016d}" for card in random.integers(0, 10**16, size).tolist()],
            "city": random.choice(CITIES, size).tolist(),
            "state": random.choice(STATES, size).tolist(),
            "date_time": _moments(numbers, rate),
            "extra": _extras(random, size),
        }
    )


def _auctions(numbers: Numbers, rate: int, random: np.random.Generator) -> pa.Table:
    size = numbers.size
    initial = _prices(random, size)
    moments = _moments(numbers, rate)
    open_for = random.integers(1, 200, size) * (ROUND * 1_000_000 // rate)
    return pa.table(
        {
            "id": _auction(numbers),
            "item_name": [f"item {item}" for item in random.integers(0, 10_000, size).tolist()],
            "description": _extras(random, size),
            "initial_bid": initial,
            "reserve": initial + _prices(random, size),
            "date_time": moments,
            "expires": moments + open_for.astype("timedelta64[us]"),
            "seller": _some(random, _person(numbers), ACTIVE),
            "category": random.integers(10, 15, size),
            "extra": _extras(random, size),
        }
    )


def _bids(numbers: Numbers, rate: int, random: np.random.Generator) -> pa.Table:
    size = numbers.size
    moments = _moments(numbers, rate)
    channel = random.integers(0, 2 * OTHER_CHANNELS, size)
    known = channel % CHANNELS.size
    hot = channel < OTHER_CHANNELS
    paths = random.integers(0, 1_000, (3, size))
    urls = [
        f"https://www.example.org/{a}/{b}/{c}/item.htm?query=1" + ("" if plain else f"&channel_id={number}")
        for a, b, c, plain, number in zip(*paths.tolist(), hot.tolist(), channel.tolist(), strict=True)
    ]
    return pa.table(
        {
            "auction": _some(random, _auction(numbers), ACTIVE // 10),
            "bidder": _some(random, _person(numbers), ACTIVE),
            "price": _prices(random, size),
            "channel": np.where(hot, CHANNELS[known], np.char.add("channel-", channel.astype(str))).tolist(),
            "url": urls,
            "date_time": moments,
            "arrived": moments + random.integers(0, 5_000_000, size).astype("timedelta64[us]"),
            "extra": _extras(random, size),
        }
    )


def _person(numbers: Numbers) -> Numbers:
    """The newest person at each event."""
    return numbers // ROUND


def _auction(numbers: Numbers) -> Numbers:
    """The newest auction at each event, from 0 on; the first event of all has a bid on one to come."""
    return numbers // ROUND * AUCTIONS + np.clip(numbers % ROUND - PERSONS, 0, AUCTIONS - 1)


def _some(random: np.random.Generator, newest: Numbers, active: int) -> Numbers:
    """Ids: half of the time the hot one of the moment, else any of those that are about."""
    hot = newest // HOT * HOT
    any_of_them = newest - (random.random(newest.size) * np.minimum(newest + 1, active)).astype(np.int64)
    return np.where(random.random(newest.size) < 0.5, hot, any_of_them)


def _prices(random: np.random.Generator, size: int) -> Numbers:
    return np.round(10.0 ** (random.random(size) * 6) * 100).astype(np.int64)


def _moments(numbers: Numbers, rate: int) -> NDArray[np.datetime64]:
    return BEGIN + (numbers * (1_000_000 // rate)).astype("timedelta64[us]")


def _extras(random: np.random.Generator, size: int) -> list[str]:
    return [f"{'abcdefgh'[extra % 8] * (extra % 7)} {extra}" for extra in random.integers(0, EXTRAS, size).tolist()]
