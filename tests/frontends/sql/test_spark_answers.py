"""What Spark 4.3 answered, in ANSI mode and UTC, to queries without tables: values, types, and what it refuses.

`answers/` has a file for each part of the language, a line for each query. Among the operators are sequences that were
drawn, so that their precedence is seen in the value. Rows are compared as bags, unless the query sorts.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.errors import EverviewError

HERE = Path(__file__).parent / "answers"
PARTS = sorted(path.stem for path in HERE.glob("*.jsonl"))


class Row(dict[str, Any]):
    """A struct as Spark prints it."""

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in self.items())})"


def nested(value: Any) -> Any:
    if isinstance(value, dict):
        return Row({name: nested(v) for name, v in value.items()})
    return [nested(v) for v in value] if isinstance(value, (list, tuple)) else value


def written(value: Any) -> Any:
    """A value as the files have it."""
    if value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, dt.datetime):
        return str(value.replace(tzinfo=None))
    return str(nested(value))


def types(answer: Any) -> list[str]:
    said = [f.type.sql.lower().replace("integer", "int").replace(" ", "") for f in answer.schema.fields]
    return [text.replace("notnull", "") for text in said]


def lines(name: str) -> list[str]:
    return (HERE / name).read_text().splitlines()


@pytest.mark.parametrize("part", PARTS)
def test_answers_and_types_are_those_of_spark(part: str) -> None:
    db, wrong = ev.connect(), list[str]()
    for line in lines(f"{part}.jsonl"):
        said = json.loads(line)
        text, rows = said["sql"], said["rows"]
        try:
            answer = db.sql(text)
        except EverviewError as error:
            wrong.append(f"{text}: {error}")
            continue
        found = [[written(v) for v in row] for row in answer]
        same = (
            found == rows
            if text.endswith(("ORDER BY x", "ORDER BY x DESC"))
            else Counter(map(str, found)) == Counter(map(str, rows))
        )
        wanted = [of.replace("void", "string") for of in said["types"]]  # a column of NULLs only is text
        if not same or types(answer) != wanted:
            wrong.append(f"{text}: {found} {types(answer)}, but Spark has {rows} {wanted}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_what_spark_refuses_is_refused() -> None:
    db, taken = ev.connect(), list[str]()
    for text in lines("refused.txt"):
        with contextlib.suppress(EverviewError):
            taken.append(f"{text}: {db.sql(text)}")
    assert not taken, "\n" + "\n".join(taken)
