"""Tables of the reference that are made from the registries, between `<!-- table: name -->` and `<!-- end -->`.

`PYTHONPATH=src:tests .venv/bin/python tests/reference/tables.py` writes them into the pages anew, for when a registry
was changed on purpose; read the difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from everview.frontends.frame.functions import OTHERWISE, OWN, TAKES
from everview.frontends.sql.spark_names import LACKING
from everview.operators.aggregate.registry import AGGREGATES, COMPUTED, AggregateFunction, ComputedAggregate, Law
from everview.scalars.signatures import KINDS, FunctionSignature

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
TABLE = re.compile(r"(?<=<!-- table: )([\w ]+)( -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)
SAME_AS_SPARK = "as in Spark"


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = ["".join(f"| {cell} " if cell else "| " for cell in cells) + "|\n" for cells in (heads, *rows)]
    return "".join([lines[0], "|---" * len(heads) + "|\n", *lines[1:]])


def code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


# -- what circuits compute


def computed_calls(head: str, *laws: Law) -> str:
    """Calls of `Stream.aggregate`, those with the same values and results together."""
    together: dict[tuple[tuple[str, str], ...], list[ComputedAggregate]] = {}
    for line in COMPUTED:
        if line.law in laws:
            together.setdefault(line.says, []).append(line)
    rows: list[tuple[str, ...]] = []
    for says, lines in together.items():
        calls = ", ".join(map(_call, lines))
        rows += [(calls if at == 0 else "", *row) for at, row in enumerate(says)]
    return table(("call", head, "result"), rows)


def _call(line: ComputedAggregate) -> str:
    written = line.written or f'`("{line.name}", x{", 0.9" if line.fraction else ""})`'
    return ", or ".join([written, *(f'`"{name}"`' for name in line.also)])


# -- what languages call it


def calls_of_sql() -> str:
    """Calls of SQL, those that give the same together."""
    together: dict[str, list[AggregateFunction]] = {}
    for line in AGGREGATES:
        if line.sql:
            together.setdefault(line.says or SAME_AS_SPARK, []).append(line)
    return table(("aggregate", "gives"), ((", ".join(map(_sql, lines)), says) for says, lines in together.items()))


def _sql(line: AggregateFunction) -> str:
    written = line.written or f"`{line.name}(x)`"
    others = [name for name in line.sql.split() if f"`{name}(" not in written]
    return ", ".join([written, *([code(others)] if others else [])])


def names() -> str:
    """Every aggregate, its names in the languages, and its properties."""
    heads = ("SQL", "EDN", "Datalog", "PomoLogic, PomoRA", "fluent", "computed as", "law", "over windows", "of no rows")
    laws = {line.name: line.law for line in COMPUTED}
    rows = (
        (
            *(code(str(named).split()) for named in (line.sql, line.edn, line.datalog, line.pomologic, line.fluent)),
            f"`{line.computed}`",
            laws[line.computed],
            "yes" if line.over_windows else "",
            {None: "NULL", (): "`[]`"}.get(line.of_nothing, f"`{line.of_nothing}`"),
        )
        for line in AGGREGATES
        if line.computed and line.sql
    )
    return table(heads, rows)


# -- scalar functions


def functions(signatures: Mapping[str, FunctionSignature]) -> str:
    """Scalar functions of a kind with their other names, those of which the same is said together."""
    together: dict[tuple[str, ...], list[str]] = {}
    for name, line in signatures.items():
        if line.arguments:
            said = (line.arguments, line.note, line.how)
            together.setdefault(said, []).extend(filter(str.isidentifier, (name, *line.also)))
    rows = ((" ".join(f"`{name}`" for name in names), *said) for said, names in together.items())
    return table(("function", "arguments", "notes", "how"), rows)


def lacking() -> str:
    """Functions that Spark has and Everview has not, by what to do instead."""
    return table(("function", "instead"), ((code(group.names.split()), group.hint) for group in LACKING))


def functions_of_frames() -> str:
    """The functions of frames that are no functions of SQL."""
    others = sorted({*OWN, *OTHERWISE})
    return f"{code(f'F.{name}' for name in others)}.\n"


def values_of_frames() -> str:
    """The functions that take texts for values, with their parameters."""
    rows = [(f"`{name}`", code(p.replace("!", "=") for p in TAKES[name])) for name in sorted(TAKES)]
    return table(("function", "parameters"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "linear aggregates": lambda: computed_calls("of", "linear"),
    "ordered aggregates": lambda: computed_calls("is", "end", "ordered", "collected"),
    "aggregates of SQL": calls_of_sql,
    "names of aggregates": names,
    "functions that are lacking": lacking,
    "functions of frames": functions_of_frames,
    "values of frames": values_of_frames,
    **{f"functions of {kind}": partial(functions, found) for kind, found in KINDS.items() if kind != "operators"},
}


def pages() -> list[Path]:
    """The pages that have such tables."""
    return [page for page in sorted(REFERENCE.glob("*.md")) if TABLE.search(page.read_text())]


def anew(text: str) -> str:
    """A page with its tables made again."""
    return TABLE.sub(lambda found: f"{found[1]}{found[2]}\n{TABLES[found[1]]()}\n", text)


if __name__ == "__main__":
    for written in pages():
        written.write_text(anew(written.read_text()))
