"""Replay Spark's list of built-in functions against our SQL, and print the share that is supported.

The list, `tests/scalars/spark_functions.json`, has every function of the pinned Spark with its group and the queries
that document it, each with its answer as Spark's shell prints it (times in UTC). ``--record`` writes the list anew from
a local Spark. A function is supported if one of its queries has Spark's answer here, or any answer if that depends on
the moment or the place, or if the query fails in Spark as it stands; one without a query, if its name is known.
``--missing`` lists the others with what is said to them, ``--examples`` every query of a supported function that has
another answer or none.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
LIST: Final = ROOT / "tests" / "scalars" / "spark_functions.json"

# Groups of functions, and names, that the share leaves aside: some sketches, XML, geography and machine learning.
ASIDE: Final = ("xml_funcs", "st_funcs", "vector_funcs")
SKETCHES: Final = re.compile(r"(tuple|approx_top_k|count_min)_\w+")
# Functions whose printed answer depends on the moment, on a place or on chance: any answer will do.
UNSTEADY: Final = (
    *("curdate", "current_catalog", "current_database", "current_date", "current_schema", "current_time"),
    *("current_timestamp", "current_timezone", "current_user", "localtime", "localtimestamp", "now", "session_user"),
    *("unix_timestamp", "user", "version"),
)


@dataclass(frozen=True)
class Example:
    """A query of Spark's documentation, and its answer as text; None if it fails in Spark."""

    query: str
    answer: str | None


@dataclass(frozen=True)
class SparkFunction:
    """A built-in function of Spark."""

    name: str
    group: str
    examples: tuple[Example, ...]

    @property
    def is_aside(self) -> bool:
        return self.group in ASIDE or SKETCHES.fullmatch(self.name) is not None


@dataclass(frozen=True)
class Replayed:
    """What came of an example: whether the answer is Spark's, and what was said instead."""

    example: Example
    agrees: bool
    said: str


def functions() -> list[SparkFunction]:
    """Give all functions of the list."""
    stored = json.loads(LIST.read_text())
    return [
        SparkFunction(name, group, tuple(Example(*example) for example in examples))
        for name, (group, examples) in stored.items()
    ]


# -- answers


def replay(function: SparkFunction, database: Any) -> list[Replayed]:
    """Give what our SQL says to each example of a function."""
    return [_replay(function, example, database) for example in function.examples]


def _replay(function: SparkFunction, example: Example, database: Any) -> Replayed:
    from everview.errors import EverviewError

    try:
        answer = database.sql(example.query)
        said = shown(answer)
    except EverviewError as error:
        return Replayed(example, False, " ".join(str(error).split()))
    agrees = example.answer is None or function.name in UNSTEADY or _alike(said, example.answer)
    return Replayed(example, agrees, said)


def is_supported(function: SparkFunction, replayed: list[Replayed]) -> bool:
    """Whether a function has Spark's answer to one of its queries; one without queries, whether its name is known."""
    from everview.frontends.sql.functions import SPECIAL
    from everview.plan.typing import is_function

    if function.examples:
        return any(r.agrees for r in replayed)
    return is_function(function.name) or function.name in SPECIAL


def _alike(ours: str, theirs: str) -> bool:
    """Whether two answers are the same: up to the last digits of floats, and the order of rows and of elements."""
    if ours == theirs or sorted(ours.splitlines()) == sorted(theirs.splitlines()):
        return True
    a, b = (sorted(re.split(r"[\s,\[\]]+", text)) for text in (ours, theirs))
    return len(a) == len(b) and all(map(_near, a, b))


def _near(a: str, b: str) -> bool:
    try:
        return a == b or ("." in b and math.isclose(float(a), float(b), rel_tol=1e-12))
    except ValueError:
        return False


def shown(answer: Any) -> str:
    """Give an answer as Spark's shell prints it: rows in lines, values between tabs."""
    from everview.types.arrow import field_of_arrow

    table = answer.to_arrow() if hasattr(answer, "to_arrow") else answer
    types = [field_of_arrow(field).type for field in table.schema]
    columns = [[_text(v, of) for v in c.to_pylist()] for of, c in zip(types, table.columns, strict=True)]
    return "\n".join("\t".join(row) for row in zip(*columns, strict=True))


def _text(value: Any, type_: Any, inside: bool = False) -> str:
    from everview.oracle.scalar_casts import cast_value
    from everview.oracle.scalar_variants import written
    from everview.types import BINARY, DAY_TIME, INTERVALS, STRING, VARIANT, Array, MapType, Struct, Variant

    if value is None:
        return "null" if inside else "NULL"
    if isinstance(type_, Array):
        return "[" + ",".join(_text(v, type_.element, True) for v in value) + "]"
    if isinstance(type_, Struct):
        parts = value.values() if isinstance(value, dict) else value
        fields = zip(type_.fields, parts, strict=True)
        return "{" + ",".join(f'"{f.name}":{_text(v, f.type, True)}' for f, v in fields) + "}"
    if isinstance(type_, MapType):
        pairs = (f"{_text(k, type_.key, True)}:{_text(v, type_.value, True)}" for k, v in value)
        return "{" + ",".join(pairs) + "}"
    if type_ == VARIANT:
        return written(Variant(value).value)
    if type_ == BINARY and isinstance(value, bytes):
        return value.decode(errors="replace")
    text = value if type_ == STRING else cast_value(value, type_, STRING)
    if type_ in INTERVALS:  # of which the shell shows what stands in quotes, and nine digits
        text = text.split("'")[1] + ("" if type_ != DAY_TIME else "." * ("." not in text))
        text = text if type_ != DAY_TIME else text.partition(".")[0] + "." + text.partition(".")[2].ljust(9, "0")
    return f'"{text}"' if inside and type_ == STRING else str(text)


# -- the list


def record() -> None:
    """Write the list from a local Spark."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    catalog: Any = spark._jsparkSession.sessionState().catalog()  # pyright: ignore
    identifier: Any = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier  # pyright: ignore
    lines: list[str] = []
    for (name,) in sorted(spark.sql("SHOW ALL FUNCTIONS").collect()):
        known = catalog.lookupFunctionInfo(identifier(name))
        queries = _queries(known.getExamples())
        examples = [[query, _answer(query, spark)] for query in queries]
        lines.append(f"{json.dumps(name)}: {json.dumps([known.getGroup(), examples], ensure_ascii=False)}")
    LIST.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    spark.stop()


def _answer(query: str, spark: Any) -> str | None:
    """Give Spark's answer to a query, as its shell prints it; None if the query fails there."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        plan = spark.sql(query)._jdf.queryExecution().executedPlan()
        lines = spark._jvm.org.apache.spark.sql.execution.HiveResult.hiveResultString(plan)
        return "\n".join(lines.apply(at) for at in range(lines.size()))
    except (PySparkException, Py4JError):
        return None


def _queries(documented: str) -> Iterator[str]:
    """Give the queries of a documentation: each stands after ``>``, up to a semicolon."""
    for part in re.split(r"^\s*> ", documented, flags=re.MULTILINE)[1:]:
        query = " ".join(part.partition(";\n")[0].split())
        if not query.startswith("SET "):
            yield query


# -- the report


def main() -> None:
    import everview as ev

    if "--record" in sys.argv:
        record()
        return
    counted = [function for function in functions() if not function.is_aside]
    database = ev.connect()
    replayed = {function: replay(function, database) for function in counted}
    missing = [function for function, said in replayed.items() if not is_supported(function, said)]
    examples = [(function, r) for function, said in replayed.items() for r in said]
    for function in missing if "--missing" in sys.argv else ():
        said = [*replayed[function], Replayed(Example("", ""), False, "no example")][0].said
        print(f"{function.group:18} {function.name:26} {said[:140]}")
    for function, r in examples if "--examples" in sys.argv else ():
        if not r.agrees and function not in missing:
            print(f"{r.example.query}\n    Spark: {r.example.answer}\n    here:  {r.said[:200]}")
    supported = len(replayed) - len(missing)
    agreeing = sum(r.agrees for _, r in examples)
    print(f"functions: {supported} of {len(replayed)}, {supported / len(replayed):.1%}")
    print(f"examples:  {agreeing} of {len(examples)}, {agreeing / len(examples):.1%}")


if __name__ == "__main__":
    main()
