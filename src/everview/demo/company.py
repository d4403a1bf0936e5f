"""A payments company whose history, step by step, is written as change files: the same for the same seed.

Every source has a directory of parquet files, each written under a name that readers ignore and then renamed, so
that a stream of files sees a file whole or not at all. Every row carries ``seq``, the step it belongs to, and a step
touches a key at most once: the row with the largest ``seq`` is what is true of a key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Integers = NDArray[np.int64]

COUNTRIES: Final = ("DE", "FR", "GB", "US", "NL", "CH", "SE", "PL", "ES", "IT", "AE", "SG")
RATES: Final = {
    "EUR": 1_000_000, "USD": 920_000, "GBP": 1_170_000, "CHF": 1_050_000, "SEK": 88_000, "PLN": 232_000,
}  # fmt: skip
# Euros for one unit of a currency, in millionths; amounts are in hundredths.
LARGE: Final = 10_000  # from here on a transfer passes suspicion on
START: Final = np.datetime64("2026-01-01T00:00:00", "s")
DAYS: Final = 30  # of which there are transfers and quotes at first; every step is an hour after that

# What the files hold, and what of it is a row of the source.
FILES: Final = {
    "account": "id BIGINT, country STRING, op STRING, seq BIGINT",
    "transfer": "id BIGINT, src BIGINT, dst BIGINT, amount DECIMAL(14,2), currency STRING, at TIMESTAMP, seq BIGINT",
    "rate": "currency STRING, to_eur DECIMAL(12,6), seq BIGINT",
    "quote": "id BIGINT, currency STRING, since TIMESTAMP, to_eur DECIMAL(12,6), seq BIGINT",
    "sanction": "account BIGINT, op STRING, seq BIGINT",
}
ROWS: Final = {
    "account": "id BIGINT NOT NULL, country STRING NOT NULL",
    "transfer": "id BIGINT NOT NULL, src BIGINT NOT NULL, dst BIGINT NOT NULL, amount DECIMAL(14,2) NOT NULL, "
    "currency STRING NOT NULL, at TIMESTAMP NOT NULL",
    "rate": "currency STRING NOT NULL, to_eur DECIMAL(12,6) NOT NULL",
    "quote": "id BIGINT NOT NULL, currency STRING NOT NULL, since TIMESTAMP NOT NULL, to_eur DECIMAL(12,6) NOT NULL",
    "sanction": "account BIGINT NOT NULL",
}
KEYS: Final = {"account": "id", "transfer": "id", "rate": "currency", "quote": "id", "sanction": "account"}

_PER_ACCOUNT = 10  # transfers
_SHARE_LARGE = 0.07  # so that an account passes on to fewer than one other, and suspicion dies out
_SANCTIONED = 500  # one account in so many
_RINGS = 5  # that pass large sums round, until a transfer of the oldest turns out to be an ordinary one
_AMOUNT = pa.decimal128(14, 2)
_RATE = pa.decimal128(12, 6)
_MOMENT = pa.timestamp("us", "UTC")
_HOUR = 3600  # seconds


class Company:
    """The company as it is now; `load` writes its first rows, `step` the changes that come next."""

    def __init__(self, directory: Path, transfers: int, seed: int = 1) -> None:
        self.directory = directory
        self.seq = 0
        self._rng = np.random.default_rng(seed)
        self._home = self._countries(max(transfers // _PER_ACCOUNT, 20))
        self._open = np.ones(len(self._home), np.bool_)
        self._rates = dict(RATES)
        self._hidden: list[Path] = []
        self._sanctioned: list[int] = []
        self._rings: list[Integers] = []  # transfers, three a ring
        self._src, self._dst, self._currency = self._parties(transfers)
        self._at = np.sort(self._rng.integers(24 * _HOUR * DAYS, size=transfers))  # seconds since the start
        self._quoted = np.repeat(np.arange(len(RATES)), DAYS)
        self._since = np.tile(24 * _HOUR * np.arange(DAYS), len(RATES))
        self._quotes = self._values(self._quoted)
        for source in FILES:
            (directory / source).mkdir(parents=True, exist_ok=True)

    @property
    def accounts(self) -> int:
        return len(self._home)

    @property
    def transfers(self) -> int:
        return len(self._src)

    @property
    def sanctioned(self) -> int:
        return len(self._sanctioned)

    def load(self) -> None:
        """Write the rows that are there before anything changes."""
        everyone = np.arange(self.accounts)
        self._write("account", self._account_rows(everyone, "c"))
        self._write("rate", self._rate_rows(list(self._rates)))
        self._write("quote", self._quote_rows(np.arange(len(self._quoted))))
        first = self._rng.choice(self.accounts, max(self.accounts // _SANCTIONED, 3), replace=False)
        self._sanctioned = [int(account) for account in first]
        self._write("sanction", self._sanction_rows(self._sanctioned, "c"))
        self._write("transfer", self._transfer_rows(np.arange(self.transfers)))
        self._publish()

    def step(self, changes: int) -> dict[str, int]:
        """Write one step of about so many changes, and return how many each source has."""
        self.seq += 1
        written = {"transfer": self._transfer(changes), "account": self._move(max(changes // 50, 2))}
        if self.seq % 5 == 0:
            written["rate"] = self._revalue()
            written["quote"] = self._quote()
        if self.seq % 2 == 0:
            written["sanction"] = self._sanction()
        self._publish()
        return written

    # -- what can happen

    def _transfer(self, n: int) -> int:
        """Write new transfers, three of which make a ring, and one in twenty that corrects an earlier amount."""
        corrected = np.union1d(self._rng.choice(self.transfers, n // 20, replace=False), self._broken())
        first = self.transfers
        src, dst, currency = self._parties(n - len(corrected))
        src[-3:] = self._rng.choice(self.accounts, 3, replace=False)
        dst[-3:] = np.roll(src[-3:], -1)
        self._rings.append(first + len(src) - 3 + np.arange(3))
        self._src, self._dst = np.concatenate([self._src, src]), np.concatenate([self._dst, dst])
        self._currency = np.concatenate([self._currency, currency])
        self._at = np.concatenate([self._at, self._now() + self._rng.integers(_HOUR, size=len(src))])
        self._write("transfer", self._transfer_rows(np.concatenate([corrected, np.arange(first, self.transfers)])))
        return n

    def _broken(self) -> Integers:
        """A transfer of the oldest ring, once there are many rings; the ring counts as broken from now on."""
        return self._rings.pop(0)[:1] if len(self._rings) == _RINGS else np.empty(0, np.int64)

    def _move(self, n: int) -> int:
        """Write accounts that move to another country; one in ten is closed instead."""
        chosen = self._rng.choice(np.flatnonzero(self._open), n, replace=False)
        closed, moved = chosen[: n // 10], chosen[n // 10 :]
        self._home[moved] = self._countries(len(moved))
        self._open[closed] = False
        rows = [self._account_rows(moved, "u"), self._account_rows(closed, "d")]
        self._write("account", {name: pa.concat_arrays([r[name] for r in rows]) for name in rows[0]})
        return n

    def _revalue(self) -> int:
        """Move the rate of one currency by up to one percent against the euro."""
        currency = list(self._rates)[1 + int(self._rng.integers(len(self._rates) - 1))]
        self._rates[currency] += int(self._rates[currency] * self._rng.uniform(-0.01, 0.01))
        self._write("rate", self._rate_rows([currency]))
        return 1

    def _quote(self) -> int:
        """Quote every currency anew, and correct one quote of an earlier day."""
        corrected = self._rng.integers(len(self._quoted), size=1)
        new = np.arange(len(self._quoted), len(self._quoted) + len(RATES))
        self._quoted = np.concatenate([self._quoted, np.arange(len(RATES))])
        self._since = np.concatenate([self._since, np.full(len(RATES), self._now())])
        self._quotes = np.concatenate([self._quotes, np.array(list(self._rates.values()))])
        self._quotes[corrected] = self._values(self._quoted[corrected])
        chosen = np.concatenate([corrected, new])
        self._write("quote", self._quote_rows(chosen))
        return len(chosen)

    def _sanction(self) -> int:
        """Put an account on the list of sanctions; every third time, take off the one that was longest on it."""
        if self.seq % 3 == 0:
            self._write("sanction", self._sanction_rows([self._sanctioned.pop(0)], "d"))
            return 1
        new = int(self._rng.integers(self.accounts))
        if new in self._sanctioned:
            return 0
        self._sanctioned.append(new)
        self._write("sanction", self._sanction_rows([new], "c"))
        return 1

    # -- rows

    def _countries(self, n: int) -> Integers:
        return (len(COUNTRIES) * self._rng.random(n) ** 1.5).astype(np.int64)

    def _parties(self, n: int) -> tuple[Integers, Integers, Integers]:
        """Payers, payees and currencies of transfers; some accounts pay far more often than others."""
        src = (self.accounts * self._rng.random(n) ** 3).astype(np.int64)
        currency = (len(RATES) * self._rng.random(n) ** 2).astype(np.int64)
        return src, self._rng.integers(self.accounts, size=n), currency

    def _values(self, currencies: Integers) -> Integers:
        """Values of currencies, near to their first ones."""
        worth = np.array(list(RATES.values()))[currencies]
        moved = (worth * self._rng.uniform(-0.02, 0.02, len(currencies))).astype(np.int64)
        return np.where(currencies == 0, worth, worth + moved)

    def _now(self) -> int:
        """The hour of this step, in seconds since the start."""
        return _HOUR * (24 * DAYS + self.seq)

    def _amounts(self, ids: Integers) -> Integers:
        """Amounts of transfers in hundredths: most are small; a few, and those of rings, are large."""
        n = len(ids)
        small = 1 + self._rng.exponential(25_000, n).astype(np.int64) % (100 * LARGE - 1)
        large = self._rng.integers(100 * LARGE, 1000 * LARGE, n)
        ring = np.isin(ids, np.array(self._rings, np.int64).ravel())
        return np.where(ring | (self._rng.random(n) < _SHARE_LARGE), large, small)

    def _transfer_rows(self, ids: Integers) -> dict[str, Any]:
        return {
            "id": pa.array(ids),
            "src": pa.array(self._src[ids]),
            "dst": pa.array(self._dst[ids]),
            "amount": decimals(self._amounts(ids), _AMOUNT),
            "currency": pa.array(list(RATES)).take(self._currency[ids]),
            "at": moments(self._at[ids]),
        }

    def _account_rows(self, ids: Integers, op: str) -> dict[str, Any]:
        country = pa.array(COUNTRIES).take(self._home[ids])
        return {"id": pa.array(ids), "country": country, "op": pa.array([op] * len(ids), pa.string())}

    def _rate_rows(self, currencies: list[str]) -> dict[str, Any]:
        millionths = np.array([self._rates[c] for c in currencies], np.int64)
        return {"currency": pa.array(currencies), "to_eur": decimals(millionths, _RATE)}

    def _quote_rows(self, ids: Integers) -> dict[str, Any]:
        currency = pa.array(list(RATES)).take(self._quoted[ids])
        worth = decimals(self._quotes[ids], _RATE)
        return {"id": pa.array(ids), "currency": currency, "since": moments(self._since[ids]), "to_eur": worth}

    def _sanction_rows(self, accounts: list[int], op: str) -> dict[str, Any]:
        return {"account": pa.array(accounts, pa.int64()), "op": pa.array([op] * len(accounts))}

    def _write(self, source: str, columns: Mapping[str, Any]) -> None:
        """Write a file of changes, hidden until the whole step is published."""
        rows = len(next(iter(columns.values())))
        table = pa.table({**columns, "seq": pa.array(np.full(rows, self.seq, np.int64))})
        hidden = self.directory / source / f"_{self.seq:06d}.parquet"
        pq.write_table(table, hidden)
        self._hidden.append(hidden)

    def _publish(self) -> None:
        """Let the files of a step appear, one right after the other, so that most often one epoch takes them all."""
        for hidden in self._hidden:
            os.replace(hidden, hidden.with_name(hidden.name.removeprefix("_")))
        self._hidden.clear()


def moments(seconds: Integers) -> pa.Array[Any]:
    """Seconds since the start as times.

    >>> print(*moments(np.array([90])).to_pylist())
    2026-01-01 00:01:30+00:00
    """
    return pa.array((START + seconds).astype("datetime64[us]")).cast(_MOMENT)


def decimals(units: Integers, type_: pa.Decimal128Type[Any, Any]) -> pa.Array[Any]:
    """Whole numbers of the last digit as decimals.

    >>> decimals(np.array([150, -1]), pa.decimal128(14, 2)).to_pylist()
    [Decimal('1.50'), Decimal('-0.01')]
    """
    words = np.stack([units, units >> 63], axis=1).tobytes()
    return pa.Array.from_buffers(type_, len(units), [None, pa.py_buffer(words)])
