"""``read_csv('prices.csv', delimiter => ';')``, `read_parquet` and `read_json` in FROM: the rows of files, once.

The catalog reads the files; here the arguments become values. Options have the names of `everview.sources.Files`, and
those that other systems use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from sqlglot import exp

from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.names import Scope
from everview.scalars.evaluate import fold
from everview.scalars.expressions import Literal

FILE_FUNCTIONS: Final = {
    "read_csv": "csv",
    "read_csv_auto": "csv",
    "readcsv": "csv",
    "read_parquet": "parquet",
    "readparquet": "parquet",
    "read_json": "json",
    "read_json_auto": "json",
    "read_ndjson": "json",
}
# Options as other systems name them, and as `everview.sources.Files` does.
SPELLINGS: Final = {
    "delim": "delimiter",
    "sep": "delimiter",
    "decimal_separator": "decimal",
    "decimal_point": "decimal",
    "thousands_separator": "thousands",
    "nullstr": "nulls",
    "null": "nulls",
    "nullvalue": "nulls",
    "quotechar": "quote",
    "charset": "encoding",
    "dateformat": "date_format",
    "timestampformat": "timestamp_format",
    "columns": "schema",
}


def is_file_function(node: exp.Expr) -> bool:
    """Whether a node is a call that reads files."""
    return isinstance(node, exp.Func) and _name(node) in FILE_FUNCTIONS


def file_rows(node: exp.Expr, context: QueryContext) -> Bound:
    """The rows of the files that a call names."""
    name, arguments = _name(node), _arguments(node)
    options = {
        _option(argument): _value(argument.expression, name, context) for argument in arguments if _named(argument)
    }
    written = [argument for argument in arguments if not _named(argument)]
    if len(written) != 1:
        raise context.error(f"{name} of what?", node, f"write {name}('path'), with options as in delimiter => ';'")
    paths = _value(written[0], name, context)
    paths = [paths] if isinstance(paths, str) else paths
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        raise context.error(f"{name} reads paths, which are texts", written[0], f"write {name}('path')")
    plan = context.catalog.files(FILE_FUNCTIONS[name], paths, options)
    return Bound(plan, plan.schema.names)


def in_a_view(node: exp.Expr, context: QueryContext) -> None:
    """Refuse a call that reads files anywhere in the definition of a view."""
    call = next(filter(is_file_function, node.walk()), None)
    if call is not None:
        name = _name(call)
        hint = (
            f"a view follows tables: CREATE TABLE t AS SELECT * FROM {name}(…), and the view over t; "
            "in Python, db.attach('t', Files(path)) follows the files"
        )
        raise context.unsupported(f"{name} in a view", call, hint)


def constant(node: exp.Expr, where: str, context: QueryContext) -> Any:
    """The value of an expression that is written down."""
    value = fold(expression(node, Site(context, Scope(), where)))
    if not isinstance(value, Literal):
        raise context.error(f"{where} with {node.sql('spark')[:60]}, which is no constant", node, "write the value")
    return value.value


def _value(node: exp.Expr, where: str, context: QueryContext) -> Any:
    """A constant; in brackets or `array(…)`, a list of them."""
    if isinstance(node, (exp.Array, exp.Tuple)) or (isinstance(node, exp.Anonymous) and node.name.lower() == "array"):
        return [constant(each, where, context) for each in node.expressions]
    return constant(node, where, context)


def _name(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.key


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    first: Iterable[Any] = (
        () if isinstance(node, exp.Anonymous) or not isinstance(node.this, exp.Expr) else (node.this,)
    )
    return [*first, *node.expressions]


def _named(argument: exp.Expr) -> bool:
    return isinstance(argument, (exp.Kwarg, exp.PropertyEQ, exp.EQ))


def _option(argument: exp.Expr) -> str:
    name = str(argument.this.name).lower()
    return SPELLINGS.get(name, name)
