"""Parts of definitions as data in a state directory: defaults, values of parameters, constraints."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from everview.errors import DefinitionError, shown
from everview.scalars.expressions import Literal, Now
from everview.scalars.kinds import VOID
from everview.types import parse_type

if TYPE_CHECKING:
    from everview.frontends.sql.constraints import TableConstraint

_PLAIN = (bool, int, float, str, type(None))
_READERS: dict[str, Callable[[str], Any]] = {
    "date": dt.date.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
    "time": dt.time.fromisoformat,
    "timedelta": lambda text: dt.timedelta(microseconds=int(text)),
    "Decimal": decimal.Decimal,
    "bytes": bytes.fromhex,
}


def value_to_json(value: Any) -> Any:
    """A value as data; refuses what is no plain value."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Now):
        return {"now": value.kind}
    if isinstance(value, (tuple, list)):
        return {"list": [value_to_json(part) for part in value]}
    kind = type(value).__name__
    if kind not in _READERS:
        raise DefinitionError(
            f"{shown(value)} cannot be a default", hint="give a plain value: text, number, date, bytes"
        )
    if isinstance(value, dt.timedelta):
        return {kind: str(value // dt.timedelta(microseconds=1))}
    return {kind: value.hex() if isinstance(value, bytes) else str(value)}


def value_from_json(said: Any) -> Any:
    """The value that `value_to_json` has made data of."""
    if not isinstance(said, dict):
        return said
    ((kind, text),) = said.items()
    if kind == "now":
        return Now(text)
    if kind == "list":
        return tuple(value_from_json(part) for part in text)
    return _READERS[kind](text)


def literal_to_json(value: Literal) -> dict[str, Any]:
    """A literal as data: its type and its value."""
    return {"type": value.type.sql, "value": value_to_json(value.value)}


def literal_from_json(said: dict[str, Any]) -> Literal:
    """The literal that `literal_to_json` has made data of.

    >>> literal_from_json(literal_to_json(Literal(decimal.Decimal("1.50"), parse_type("DECIMAL(3,2)"))))
    Literal(value=Decimal('1.50'), type=Decimal(precision=3, scale=2))
    """
    type_ = VOID if said["type"] == VOID.sql else parse_type(said["type"])
    return Literal(value_from_json(said["value"]), type_)


def _constraints() -> dict[str, type[TableConstraint]]:
    """The kinds of constraints, by the words that data has for them."""
    from everview.frontends.sql.constraints import CheckRows, ForeignKey, UniqueColumns

    return {"check": CheckRows, "unique": UniqueColumns, "foreign key": ForeignKey}


def constraint_to_json(constraint: TableConstraint) -> dict[str, Any]:
    """A constraint of a table as data."""
    kind = next(word for word, class_ in _constraints().items() if isinstance(constraint, class_))
    fields = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(constraint).items()}
    return {"kind": kind, **fields}


def constraint_from_json(said: dict[str, Any]) -> TableConstraint:
    """The constraint that `constraint_to_json` has made data of.

    >>> from everview.frontends.sql.constraints import UniqueColumns
    >>> constraint_from_json(constraint_to_json(UniqueColumns("u", ("a", "b"))))
    UniqueColumns(name='u', columns=('a', 'b'))
    """
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in said.items() if name != "kind"
    }
    return _constraints()[said["kind"]](**fields)
