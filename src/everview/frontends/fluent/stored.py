"""Queries stored as JSON, in which every clause is an object under the name of its kind.

>>> from everview.frontends.fluent.clauses import Clauses
>>> from everview.frontends.fluent.conditions import col
>>> text = to_text(Clauses("track", "t", where=(col("rating") > 3,)))
>>> print(text)
{"Clauses": {"relation": "track", "alias": "t",
 "where": [{"Compare": {"column": "rating", "operator": ">", "value": 3}}]}}
>>> from_text(text).where
(ColumnTest(column='rating', operator='>', value=3),)
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from everview.errors import QueryError, shown
from everview.frontends.fluent.agg import Agg
from everview.frontends.fluent.clauses import Clauses, Joined, PartnerQuery, RelatedQuery, Selected
from everview.frontends.fluent.conditions import And, Col, ColumnTest, NotCondition, Or
from everview.types import Id, Symbol, Variant

# The names under which clauses are written: state directories hold them, so they outlive the names of the classes.
CLASSES: dict[str, type] = {
    "Clauses": Clauses,
    "Joined": Joined,
    "Asked": PartnerQuery,
    "Related": RelatedQuery,
    "Selected": Selected,
    "Agg": Agg,
    "Compare": ColumnTest,
    "And": And,
    "Or": Or,
    "Not": NotCondition,
    "Col": Col,
}
WRITTEN = {clause: name for name, clause in CLASSES.items()}
# Values that JSON has no form for: how they are written, and read.
WRITERS: dict[type, Callable[[Any], str]] = {
    dt.datetime: dt.datetime.isoformat,
    dt.date: dt.date.isoformat,
    decimal.Decimal: str,
    bytes: bytes.hex,
    float: repr,
    Symbol: lambda value: value.name,
    Id: lambda value: value.raw.hex(),
    Variant: lambda value: value.raw.hex(),
}
READERS: dict[str, Callable[[str], Any]] = {
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "Decimal": decimal.Decimal,
    "bytes": bytes.fromhex,
    "float": float,
    "Symbol": Symbol,
    "Id": lambda text: Id(bytes.fromhex(text)),
    "Variant": lambda text: Variant(bytes.fromhex(text)),
}


def to_text(query: Clauses) -> str:
    """The query as JSON."""
    return json.dumps(encoded(query), ensure_ascii=False)


def from_text(text: str) -> Clauses:
    """The query of a text that `to_text` has written."""
    return decoded(json.loads(text))


def encoded(value: Any) -> Any:
    """A value of a query in terms of JSON."""
    if _is_plain(value):
        return value
    if (written := WRITTEN.get(type(value))) is not None:
        said = {f.name: getattr(value, f.name) for f in fields(value) if not _is_default(getattr(value, f.name), f)}
        return {written: {name: encoded(part) for name, part in said.items()}}
    if isinstance(value, Mapping):
        return {"row": [[name, encoded(part)] for name, part in value.items()]}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [encoded(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
    write = WRITERS.get(type(value))
    if write is None:
        raise QueryError(f"{shown(value)} cannot be in a query", hint="give a plain value: text, number, date, bytes")
    return {type(value).__name__: write(value)}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))


def _is_default(value: Any, field: Any) -> bool:
    return value is field.default or (field.default == () and value == ())


def decoded(said: Any) -> Any:
    """A value that `encoded` has written."""
    if isinstance(said, list):
        return tuple(decoded(part) for part in said)  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(said, dict):
        return said
    ((kind, inner),) = said.items()  # pyright: ignore[reportUnknownVariableType]
    if kind == "row":
        return {name: decoded(part) for name, part in inner}  # pyright: ignore[reportUnknownVariableType]
    if kind in CLASSES:
        return CLASSES[kind](**{name: decoded(part) for name, part in inner.items()})  # pyright: ignore[reportUnknownVariableType]
    return READERS[kind](inner)
