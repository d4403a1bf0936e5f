"""Write docs/reference/dataframes.md: which classes of Catalyst are read into views, and the share of them.

``scripts/catalyst.py`` prints the share and the classes that are not read; ``--write`` writes the page, and a test sees
to it that it is current. The classes are those that Spark makes of the queries that document its functions
(`tests/scalars/spark_functions.json`); ``--record`` lists them anew from a local Spark.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from everview.frontends.catalyst import HANDLERS, PLANS, CatalystNode, parsed
from everview.frontends.catalyst.aggregates import HANDLED
from everview.frontends.catalyst.functions import CHANCE, FUNCTIONS, LACKING
from everview.frontends.catalyst.generators import GENERATOR_KINDS
from everview.frontends.catalyst.windows import WINDOW_KINDS

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "reference" / "dataframes.md"
EXAMPLES: Final = ROOT / "tests" / "scalars" / "spark_functions.json"
CLASSES: Final = ROOT / "tests" / "frontends" / "catalyst" / "classes.json"

# Classes that are parts of others, and read with them.
PARTS: Final = (
    *("AggregateExpression", "WindowExpression", "WindowSpecDefinition", "SpecifiedWindowFrame", "UnspecifiedFrame"),
    *(
        "UnboundedPreceding",
        "UnboundedFollowing",
        "CurrentRow",
        "SortOrder",
        "LambdaFunction",
        "WithField",
        "DropField",
    ),
    *("ListQuery", "LateralSubquery", "GeneratorOuter", "CommonExpressionDef", "PivotFirst", "TryEval"),
)
# Families of classes that are left aside: sketches, XML, geography, vectors and encryption.
ASIDE: Final = ("Sketch", "TopK", "Xml", "XPath", "ST_", "Vector", "Aes", "Theta", "Tuple", "Kll", "Hll", "CountMin")

HEAD = """# DataFrames

A DataFrame that is made of `p.frame(name)` becomes a view by [`p.define`](pipeline.md#defining). It is read as Spark
has analysed it: every cast, type and default that Spark put in is taken over, with the session's time zone. Spark must
be in ANSI mode, which is its default. [A how-to](../how-to/dataframes.md) shows it at work.

The page is made by `scripts/catalyst.py --write`.

- A DataFrame without `p.frame`, such as `spark.range` or `createDataFrame` of a list, is a constant of the view, of up
  to 10,000 rows. What is read from files or tables is to be a source.
- The order of rows is kept only for a limit. Where Spark may choose among rows (`limit` and `row_number` with ties,
  `dropDuplicates` of some columns, `first`, `collect_list`), the view chooses by value, so that it does not depend on
  the order of arrival; `verify` then asks the oracle in place of Spark.
- `verify` computes all other views by Spark: the same DataFrame, over the rows that the sources hold.
- A DataFrame that cannot be read is refused. `p.define(…, otherwise="recompute")` lets Spark compute it in full after
  every epoch; the difference to before is the view's change, in an epoch of its own. `explain`, `progress` and a logged
  warning say so.
- On a [session of Spark Connect](../how-to/run-on-a-cluster.md#on-spark-connect), DataFrames are read from their
  messages, by a JVM beside the program.
- Functions of yours (`F.udf`, with and without Arrow, `F.pandas_udf`, `F.arrow_udf`, their iterator forms, grouped
  aggregates, and what `spark.udf.register` made known) are called for the rows that change, as Spark's workers call
  them, with Spark's conversions of NULL and of results. They must be deterministic: one that is declared otherwise is
  refused. A state knows a function by its name and the digest of its code and of the values it refers to, so a changed
  one is a changed definition; no code is stored. A pandas function gets rows with NULLs among whole numbers or truth
  values in other batches than rows without, so that its result for a row does not depend on the rows beside it.
"""


def covered(kind: str, replaced: list[str]) -> bool:
    """Whether a class of expressions is read, itself or by what Spark replaces it by."""
    if kind in FUNCTIONS or kind in HANDLERS or kind in HANDLED:
        return True
    if kind in (*WINDOW_KINDS, *GENERATOR_KINDS, *PARTS):
        return True
    return bool(replaced) and all(covered(part, []) for part in replaced)


def classes() -> dict[str, dict[str, list[str]]]:
    """Give the classes of expressions, each with functions that use it and what Spark replaces it by."""
    return {kind: said for kind, said in json.loads(CLASSES.read_text()).items() if kind not in PLANS}


def share() -> tuple[list[str], list[str], list[str]]:
    """Give the classes that are read, those that are not, and those that are left aside."""
    known = classes()
    read = [kind for kind, said in known.items() if covered(kind, said["replaced"])]
    rest = [kind for kind in known if kind not in read]
    aside = [kind for kind in rest if any(family in kind for family in ASIDE)]
    return read, [kind for kind in rest if kind not in aside], aside


def page() -> str:
    """Give the page as it should be."""
    read, missing, aside = share()
    known = classes()
    nodes = ", ".join(f"`{node}`" for node in sorted(PLANS))
    lines = [HEAD, "## Nodes of plans", "", f"{nodes}.", "", "## Expressions", ""]
    lines += [
        f"{_percent(read, missing)}; left aside are {len(aside)} of sketches, XML, geography, vectors, encryption.",
        "",
    ]
    lines += ["| Catalyst | of | here |", "|---|---|---|"]
    for kind in sorted(read):
        names = ", ".join(f"`{name}`" for name in known[kind]["functions"][:3])
        lines.append(f"| `{kind}` | {names} | {_here(kind)} |")
    lines += ["", "## Not read", "", "| Catalyst | instead |", "|---|---|"]
    lines += [f"| `{kind}` | {_instead(kind)} |" for kind in sorted(missing)]
    return "\n".join(lines) + "\n"


def _percent(read: list[str], missing: list[str]) -> str:
    every = len(read) + len(missing)
    return f"{len(read)} of {every} classes of Catalyst's expressions are read, {100 * len(read) / every:.1f}%"


def _here(kind: str) -> str:
    if kind in FUNCTIONS:
        return f"`{FUNCTIONS[kind]}`"
    if kind in HANDLED:
        return "an aggregate"
    if kind in WINDOW_KINDS:
        return "a window function"
    if kind in GENERATOR_KINDS:
        return "a generator"
    return "" if kind in HANDLERS or kind in PARTS else "as Spark replaces it"


def _instead(kind: str) -> str:
    if kind in CHANCE:
        return "different every time: store the value in a source"
    return LACKING.get(kind, "")


# -- recording


def record(spark: Any) -> None:
    """List the classes of expressions anew."""
    known: dict[str, dict[str, list[str]]] = {}
    for name, (_, examples) in json.loads(EXAMPLES.read_text()).items():
        for query, _answer in examples:
            try:
                tree = parsed(spark.sql(query.rstrip(";"))._jdf.queryExecution().analyzed().toJSON())
            except Exception:  # noqa: BLE001, an example that this Spark refuses
                continue
            for node in _expressions(tree):
                said = known.setdefault(node.kind, {"functions": [], "replaced": []})
                if name not in said["functions"] and len(said["functions"]) < 4:
                    said["functions"].append(name)
                if "replacement" in node.fields:
                    parts = {part.kind for part in node.at("replacement").walk()}
                    said["replaced"] = sorted({*said["replaced"], *parts})
    CLASSES.write_text(json.dumps(dict(sorted(known.items())), separators=(",", ":")) + "\n")


def _expressions(plan: CatalystNode) -> Iterator[CatalystNode]:
    """The expressions of a plan; its children are plans."""
    for child in plan.children:
        yield from _expressions(child)
    for value in plan.fields:
        for tree in plan.all(value) if isinstance(plan.fields[value], CatalystNode | list) else ():
            for one in tree if isinstance(tree, list) else [tree]:
                if isinstance(one, CatalystNode):
                    yield from _within(one)


def _within(expression: CatalystNode) -> Iterator[CatalystNode]:
    yield expression
    for child in expression.children:
        yield from _within(child)
    for value in expression.fields.values():
        if isinstance(value, CatalystNode):
            yield from _expressions(value) if value.kind in PLANS else _within(value)


if __name__ == "__main__":
    if "--record" in sys.argv:
        from everview.spark import session

        record(session("local[1]"))
    if "--write" in sys.argv:
        PAGE.write_text(page())
    read, missing, aside = share()
    print(f"{_percent(read, missing)} ({len(aside)} left aside)")
    print("not read:", ", ".join(sorted(missing)))
