"""Literals: Spark writes their values as text beside their types."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any, Final

from everview.frontends.catalyst.reading import ExpressionReader, reads
from everview.frontends.catalyst.tree import CatalystNode
from everview.frontends.catalyst.types import type_of_json
from everview.plan.typing import cast
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import DAY, DAY_TIME, YEAR_MONTH
from everview.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Decimal,
    Type,
)

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# The value of a text, for each type.
READERS: Final[dict[Type, Callable[[str], Any]]] = {
    BOOLEAN: lambda text: text == "true",
    **dict.fromkeys((TINYINT, SMALLINT, INTEGER, BIGINT, DAY, DAY_TIME, YEAR_MONTH), int),
    **dict.fromkeys((FLOAT, DOUBLE), float),
    STRING: str,
    DATE: dt.date.fromisoformat,
}


def literal_of(text: str, type_: Type) -> Expression | None:
    """The literal that a text means; None if the text does not say.

    >>> literal_of("-5", BIGINT), literal_of("[1,2]", BINARY)
    (Literal(value=-5, type=BIGINT), None)
    """
    if isinstance(type_, Decimal):
        return Literal(decimal.Decimal(text), type_)
    if type_ in (TIMESTAMP, TIMESTAMP_NTZ, TIME) and not text.lstrip("-").isdigit():
        return cast(Literal(text, STRING), type_)
    if type_ == TIMESTAMP:
        return Literal(_EPOCH + dt.timedelta(microseconds=int(text)), type_)
    if type_ == TIMESTAMP_NTZ:
        return Literal((_EPOCH + dt.timedelta(microseconds=int(text))).replace(tzinfo=None), type_)
    if type_ == TIME:
        return (
            Literal((_EPOCH + dt.timedelta(microseconds=int(text) // 1000)).time(), type_) if text.isdigit() else None
        )
    read = READERS.get(type_)
    return None if read is None else Literal(read(text), type_)


@reads("Literal")
def _literal(node: CatalystNode, reader: ExpressionReader) -> Expression:
    type_, value = type_of_json(node.fields["dataType"]), node.fields["value"]
    if value is None:
        return Literal(None, type_)
    if type_ == BINARY:
        known = reader.reading.answer(node, "hex")
        if known is not None:
            return Literal(bytes.fromhex(known), BINARY)
    made = literal_of(str(value), type_)
    if made is None:
        hint = "write it by F.array, F.struct or F.create_map of plain literals"
        raise reader.reading.refused(node, f"a literal of the type {type_} cannot be read", hint)
    return made
