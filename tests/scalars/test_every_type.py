"""Every function over every combination of types that it takes: it gives columns, or says what is wrong."""

from __future__ import annotations

from itertools import product

import pytest

from everview.codes import decode, encode_pairs
from everview.codes.dictionary import Dictionary
from everview.errors import EverviewError
from everview.plan.typing import call
from everview.runtimes.embedded.drawn import drawn_rows
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Column
from everview.scalars.signatures import SIGNATURES
from everview.types import Schema

SCHEMA = Schema.parse(
    "a BOOLEAN, b TINYINT, c INTEGER, d BIGINT, e DOUBLE, f FLOAT, g DATE, h TIMESTAMP, i STRING, j BINARY,"
    " k DECIMAL(10,2), l DECIMAL(38,4), m ARRAY<INT>, n ARRAY<STRING>, o STRUCT<x: INT, y: STRING>,"
    " p MAP<STRING, INT>, q VARIANT"
)
COLUMNS = [Column(at, f.name, f.type, f.nullable) for at, f in enumerate(SCHEMA.fields)]
FEW = [COLUMNS[at] for at in (2, 4, 6, 8, 12)]  # of which there are triples


@pytest.fixture(scope="module")
def values() -> list[object]:
    dictionary = Dictionary()
    rows = encode_pairs(SCHEMA, drawn_rows(SCHEMA), dictionary)
    return [column.combine_chunks() for column in decode(SCHEMA, rows[:, :-1], dictionary).columns]


@pytest.mark.parametrize("letter", sorted({name[0] for name in SIGNATURES}))
def test_functions_of_columns(letter: str, values: list[object]) -> None:
    combinations = [c for count in range(4) for c in product(COLUMNS if count < 3 else FEW, repeat=count)]
    for name in (name for name in SIGNATURES if name.startswith(letter)):
        for arguments in combinations:
            try:
                made = call(name, *arguments)
                Evaluate((made,))(*values)
            except EverviewError:
                continue
