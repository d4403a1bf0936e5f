"""Values that nobody expects: what the doors of the library are tried with."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

Factory = Callable[[], Any]  # made anew each time: some can be used only once


class Own(Exception):
    """Raised by an object of the user's, in the user's own code; it may come through as it is."""


class Raising:
    """An object that raises whatever it is asked, by some of its methods."""

    def __init_subclass__(cls, methods: str = "") -> None:
        def refuse(*_: Any, **__: Any) -> Any:
            raise Own("asked what it does not answer")

        for name in methods.split():
            setattr(cls, f"__{name}__", refuse)


class RaisesOnEq(Raising, methods="eq ne"):
    __hash__ = object.__hash__


class RaisesOnHash(Raising, methods="hash"):
    pass


class RaisesOnIter(Raising, methods="iter len getitem"):
    pass


class RaisesOnRepr(Raising, methods="repr str"):
    pass


class RaisesOnBool(Raising, methods="bool"):
    pass


class RaisesOnCall(Raising, methods="call"):
    pass


class RaisesAlways(Raising, methods="eq ne hash iter len getitem repr str bool call contains float int index"):
    pass


class Anything:
    """A class that is made of anything."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


def raising() -> Iterator[Any]:
    """A generator that raises after its first value."""
    yield (1, "a")
    raise Own("asked for the second row")


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def endless() -> list[Any]:
    """A list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


class Stranger(pa.ExtensionType):
    """An Arrow type that nobody knows."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "stranger")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> Stranger:
        return cls()


def _plain() -> dict[str, Any]:
    return {
        "None": None,
        "True": True,
        "-1": -1,
        "0": 0,
        "3": 3,
        "2**63": 2**63,
        "10**400": 10**400,
        "1.5": 1.5,
        "nan": float("nan"),
        "inf": float("inf"),
        "complex": 1j,
        "bytes": b"\xff\x00",
        "bytearray": bytearray(b"ab"),
        "memoryview": memoryview(b"ab"),
        "empty text": "",
        "blank text": " \n\t",
        "text": "abc",
        "lone surrogate": "a\ud800",
        "NUL in text": "a\0b",
        "long text": "x" * 20_000,
        "quotes": "`\"'\\",
        "parentheses": "(" * 2_000,
        "other script": "日本\u202e",
        "Decimal NaN": decimal.Decimal("NaN"),
        "Decimal 1e400": decimal.Decimal("1e400"),
        "Decimal sNaN": decimal.Decimal("sNaN"),
        "Fraction": fractions.Fraction(1, 3),
        "first date": dt.date.min,
        "last moment": dt.datetime.max,
        "moment with zone": dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14))),
        "last moment with zone": dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=14))),
        "time": dt.time(1, 2),
        "timedelta": dt.timedelta.max,
        "UUID": uuid.UUID(int=1),
        "range": range(3),
        "set": {1, "a"},
        "empty list": [],
        "list of empty list": [[]],
        "list of empty tuple": [()],
        "list of None": [None],
        "list of text": ["a"],
        "list of numbers": [1, 2],
        "short row": [(1,)],
        "long row": [tuple(range(40))],
        "pairs": [((1, "a"), 1)],
        "pair without weight": [((1, "a"), None)],
        "pair of huge weight": [((1, "a"), 2**63)],
        "triple": [(1, 2, 3)],
        "empty dict": {},
        "dict": {"a": 1},
        "dict of table": {"bag": [((1, "a"), 1)]},
        "dict of no table": {"nope": [((1,), 1)]},
        "dict of numbers": {1: 2},
        "dict of lists": {"bag": [1, 2]},
        "dict of None": {"bag": None},
        "list of dicts": [{"id": 1}],
        "list of strange dicts": [{"nope": 1}, {1: 2}],
        "dict and tuple": [{"n": 1, "s": "a"}, (1, "a")],
        "tuple and dict": [(1, "a"), {"n": 1, "s": "a"}],
        "list of sets": [{1, 2}],
        "class": Anything,
        "module": np,
        "function": lambda *_: None,
        "function that raises": _raise,
        "Ellipsis": ...,
        "NotImplemented": NotImplemented,
        "exception": ValueError("x"),
        "np.int64": np.int64(3),
        "np.uint64": np.uint64(2**64 - 1),
        "np.float32": np.float32("nan"),
        "np.bool": np.bool_(True),
        "np.str": np.str_("a"),
        "np.bytes": np.bytes_(b"a"),
        "np.void": np.void(b"a"),
        "NaT": np.datetime64("NaT"),
        "datetime64[Y]": np.datetime64("-290000", "Y"),
        "datetime64[ns]": np.datetime64("2020-01-01T00:00:00.000000001", "ns"),
        "timedelta64": np.timedelta64(1, "M"),
        "array": np.array([1, 2]),
        "array of objects": np.array([None, object()], object),
        "array of complex": np.array([1j]),
        "array 0-d": np.array(1),
        "array 2-d": np.array([[1, 2], [3, 4]]),
        "array of records": np.array([(1, b"a")], [("n", "i4"), ("s", "S1")]),
        "array masked": np.ma.masked_array([1, 2], [True, False]),
        "pd.NA": pd.NA,
        "pd.NaT": pd.NaT,
        "pd.Timestamp": pd.Timestamp("2020-01-01 00:00:00.000000001"),
        "pd.Period": pd.Period("2020-01"),
        "pd.Interval": pd.Interval(0, 1),
        "pd.Series": pd.Series([1, 2], name="n"),
        "pl.Series": pl.Series("n", [1, 2]),
        "pl.LazyFrame": pl.LazyFrame({"n": [1]}),
        "pa.scalar": pa.scalar(1),
        "pa.array": pa.array([1, 2]),
        "pa.schema": pa.schema([("n", pa.int64())]),
    }


def _raise(*_: Any, **__: Any) -> Any:
    raise Own("called")


def _made() -> dict[str, Factory]:
    return {
        "object": object,
        "generator": lambda: ((n, "a") for n in range(2)),
        "generator that raises": raising,
        "map": lambda: map(str, [1, 2]),
        "deep list": lambda: nested(5_000),
        "endless list": endless,
        **{cls.__name__: cls for cls in Raising.__subclasses__()},
    }


@cache
def columns() -> dict[str, Factory]:
    """One column of two values, of each Arrow type that there is, and some of pandas' and Polars'."""
    dates = [dt.date(2020, 1, 1), None]
    arrow: dict[str, Factory] = {
        "dictionary": lambda: pa.array(["a", None]).dictionary_encode(),
        "dictionary of numbers": lambda: pa.array([1, 2]).dictionary_encode(),
        "run ends": lambda: pa.RunEndEncodedArray.from_arrays([1, 2], pa.array([1, 2])),
        "large_string": lambda: pa.array(["a", None], pa.large_string()),
        "string_view": lambda: pa.array(["a", None], pa.string_view()),
        "binary_view": lambda: pa.array([b"a", None], pa.binary_view()),
        "large_binary": lambda: pa.array([b"\xff", None], pa.large_binary()),
        "fixed binary": lambda: pa.array([b"ab", None], pa.binary(2)),
        "decimal256": lambda: pa.array([decimal.Decimal(10**60), None], pa.decimal256(70, 2)),
        "decimal32": lambda: pa.array([decimal.Decimal("1.5"), None], pa.decimal32(5, 2)),
        "decimal128": lambda: pa.array([decimal.Decimal("1.55"), None], pa.decimal128(38, 10)),
        "float16": lambda: pa.array([np.float16(1.5), None], pa.float16()),
        "float32": lambda: pa.array([1.1, None], pa.float32()),
        "uint64": lambda: pa.array([2**64 - 1, None], pa.uint64()),
        "int8": lambda: pa.array([-128, None], pa.int8()),
        "bool": lambda: pa.array([True, None]),
        "null": lambda: pa.nulls(2),
        "duration": lambda: pa.array([1, None], pa.duration("ns")),
        "time32": lambda: pa.array([1, None], pa.time32("s")),
        "time64": lambda: pa.array([1, None], pa.time64("ns")),
        "date64": lambda: pa.array(dates, pa.date64()),
        "date32": lambda: pa.array([2**31 - 1, -(2**31)], pa.date32()),
        "timestamp s": lambda: pa.array([2**62, None], pa.timestamp("s")),
        "timestamp ns": lambda: pa.array([1, None], pa.timestamp("ns", "Europe/Berlin")),
        "timestamp of no zone": lambda: pa.array([1, None], pa.timestamp("us", "No/Where")),
        "interval": lambda: pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
        "union": lambda: pa.UnionArray.from_sparse(
            pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]
        ),
        "dense union": lambda: pa.UnionArray.from_dense(
            pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["b"])]
        ),
        "extension": lambda: pa.ExtensionArray.from_storage(Stranger(), pa.array([1, 2])),
        "map": lambda: pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        "list": lambda: pa.array([[1, 2], None]),
        "list of lists": lambda: pa.array([[[1], None], None]),
        "large_list": lambda: pa.array([[1], None], pa.large_list(pa.int64())),
        "list_view": lambda: pa.array([[1], None], pa.list_view(pa.int64())),
        "fixed list": lambda: pa.array([[1, 2], None], pa.list_(pa.int64(), 2)),
        "list of union": lambda: pa.ListArray.from_arrays([0, 1, 2], columns()["union"]()),
        "struct": lambda: pa.array([{"x": 1, "y": "a"}, None]),
        "struct of nothing": lambda: pa.array([{}, None], pa.struct([])),
        "text that is none": lambda: pa.Array.from_buffers(
            pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xff\xfe")]
        ),
        "text": lambda: pa.array(["a", "1"]),
        "numbers": lambda: pa.array([1, 2]),
    }
    pandas: dict[str, Factory] = {
        "pd mixed": lambda: pd.Series([1, "a"]),
        "pd objects": lambda: pd.Series([object(), None]),
        "pd lists": lambda: pd.Series([[1], ["a"]]),
        "pd dicts": lambda: pd.Series([{"x": 1}, {1: "x"}]),
        "pd category": lambda: pd.Series(["a", None], dtype="category"),
        "pd category of intervals": lambda: pd.cut(pd.Series([1, 2]), 2),
        "pd period": lambda: pd.Series(pd.period_range("2020", periods=2, freq="Y")),
        "pd interval": lambda: pd.Series(pd.interval_range(0, 2)),
        "pd sparse": lambda: pd.Series([1, 2], dtype="Sparse[int]"),
        "pd string": lambda: pd.Series(["a", None], dtype="string"),
        "pd Int64": lambda: pd.Series([1, None], dtype="Int64"),
        "pd UInt64": lambda: pd.Series([2**64 - 1, None], dtype="UInt64"),
        "pd boolean": lambda: pd.Series([True, None], dtype="boolean"),
        "pd complex": lambda: pd.Series([1j, 2]),
        "pd zone": lambda: pd.Series(pd.to_datetime(["2020-01-01", None]).tz_localize("Asia/Kolkata")),
        "pd timedelta": lambda: pd.Series(pd.to_timedelta([1, 2])),
        "pd bytes and text": lambda: pd.Series([b"a", "a"]),
        "pd huge ints": lambda: pd.Series([10**30, 1]),
        "pd dates out of range": lambda: pd.Series([dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1)]),
        "pd surrogates": lambda: pd.Series(["\ud800", "a"], dtype=object),
    }
    polars: dict[str, Factory] = {
        "pl categorical": lambda: pl.Series(["a", None], dtype=pl.Categorical),
        "pl enum": lambda: pl.Series(["a", None], dtype=pl.Enum(["a"])),
        "pl object": lambda: pl.Series([object(), None], dtype=pl.Object),
        "pl int128": lambda: pl.Series([2**100, None], dtype=pl.Int128),
        "pl decimal": lambda: pl.Series([decimal.Decimal("1.5"), None]),
        "pl duration": lambda: pl.Series([dt.timedelta(1), None]),
        "pl time": lambda: pl.Series([dt.time(1), None]),
        "pl datetime": lambda: pl.Series([dt.datetime(2020, 1, 1), None], dtype=pl.Datetime("ns", "UTC")),
        "pl list": lambda: pl.Series([[1], None]),
        "pl array": lambda: pl.Series([[1], [2]], dtype=pl.Array(pl.Int64, 1)),
        "pl struct": lambda: pl.Series([{"x": 1}, None]),
        "pl null": lambda: pl.Series([None, None]),
        "pl binary": lambda: pl.Series([b"a", None]),
        "pl uint8": lambda: pl.Series([1, None], dtype=pl.UInt8),
    }
    return {**arrow, **pandas, **polars}


def frame(name: str, column: str, ids: tuple[int, int] | None = None) -> Any:
    """A table or frame with one hostile column, and perhaps two keys before it."""
    made = columns()[name]()
    keys = {} if ids is None else {"id": list(ids)}
    if isinstance(made, pd.Series):
        return pd.DataFrame({**keys, column: made})
    if isinstance(made, pl.Series):
        return pl.DataFrame({**keys, column: made})
    return pa.table({**keys, column: made})


@cache
def values() -> dict[str, Factory]:
    """All of them by name, frames included."""
    found: dict[str, Factory] = {name: (lambda value=value: value) for name, value in _plain().items()}
    found |= _made()
    for name in columns():
        found[f"frame of {name}"] = lambda name=name: frame(name, "n")
    found["frame without columns"] = pd.DataFrame
    found["frame of one name twice"] = lambda: pd.DataFrame([[1, 2]], columns=["n", "n"])
    found["frame of numbers as names"] = lambda: pd.DataFrame([[1, 2]])
    found["table of one name twice"] = lambda: pa.table([pa.array([1]), pa.array([2])], names=["n", "n"])
    found["frame with weights of text"] = lambda: pa.table({"n": [1], "_weight": ["a"]})
    found["frame without a weight"] = lambda: pa.table({"n": [1], "_weight": pa.nulls(1)})
    return found
