"""PostgreSQL's own spellings: the dialect ``postgresql``, as clients of PostgreSQL write their statements.

sqlglot's dialect ``postgres`` reads the words; here trees get the form that the binder knows. ``timestamp`` is a moment
in no zone, ``jsonb`` a variant, ``numeric`` without digits DECIMAL(38,10), and a column without a name is called as
PostgreSQL calls it.

>>> from everview.frontends.sql.parse import parse
>>> (statement,), _ = parse("SELECT count(*), $1::int4, 'a' || E'\\\\n' COLLATE \\"C\\"", "postgresql")
>>> statement.tree.named_selects
['count', 'int4', '?column?']
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects import Postgres
from sqlglot.tokenizer_core import Token, TokenType

D = exp.DataType.Type
_DOLLAR_PARAMETER: Final = re.compile(r"\$\d")
_OPERATORS: Final[dict[str, Callable[[Any, Any], exp.Expr]]] = {
    "~": lambda a, b: exp.RegexpLike(this=a, expression=b),
    "!~": lambda a, b: exp.Not(this=exp.RegexpLike(this=a, expression=b)),
    "~*": lambda a, b: exp.RegexpILike(this=a, expression=b),
    "!~*": lambda a, b: exp.Not(this=exp.RegexpILike(this=a, expression=b)),
    "=": lambda a, b: exp.EQ(this=a, expression=b),
    "<>": lambda a, b: exp.NEQ(this=a, expression=b),
    "<": lambda a, b: exp.LT(this=a, expression=b),
    ">": lambda a, b: exp.GT(this=a, expression=b),
    "+": lambda a, b: exp.Add(this=a, expression=b),
    "-": lambda a, b: exp.Sub(this=a, expression=b),
    "||": lambda a, b: exp.DPipe(this=a, expression=b),
    "~~": lambda a, b: exp.Like(this=a, expression=b),
    "!~~": lambda a, b: exp.Not(this=exp.Like(this=a, expression=b)),
}
_TYPES: Final = {
    D.TIMESTAMP: D.TIMESTAMPNTZ, D.JSON: D.VARIANT, D.JSONB: D.VARIANT, D.NAME: D.TEXT, D.UUID: D.TEXT,
}  # fmt: skip
_NAMED_TYPES: Final = {  # of pg_catalog, by the names that no keyword has
    "char": "text", "name": "text", "bpchar": "text", "cstring": "text", "unknown": "text", "citext": "text",
    "information_schema.sql_identifier": "text", "sql_identifier": "text", "character_data": "text",
    "cardinal_number": "int", "yes_or_no": "text",
}  # fmt: skip
_TYPE_NAMES: Final = {
    D.INT: "int4", D.BIGINT: "int8", D.SMALLINT: "int2", D.DOUBLE: "float8", D.FLOAT: "float4", D.BOOLEAN: "bool",
    D.DECIMAL: "numeric", D.VARBINARY: "bytea", D.TIMESTAMPTZ: "timestamptz", D.TIMESTAMPNTZ: "timestamp",
    D.VARCHAR: "varchar", D.CHAR: "bpchar", D.VARIANT: "jsonb",
}  # fmt: skip


class Postgresql(Postgres):
    """PostgreSQL's dialect with ``$1`` as a parameter wherever it stands."""

    named = True  # columns without a name are called as PostgreSQL calls them


class _WithoutDollarQuotes(Postgres.Tokenizer):
    """The tokenizer of texts with parameters: sqlglot takes ``$1,$`` for the mark of a quoted text."""

    HEREDOC_STRINGS = []  # noqa: RUF012
    SINGLE_TOKENS = {**Postgres.Tokenizer.SINGLE_TOKENS, "$": TokenType.PARAMETER}  # noqa: RUF012


class PostgresqlParameters(Postgresql):
    """The dialect of texts with ``$1``, in which ``$$`` quotes nothing."""

    Tokenizer = _WithoutDollarQuotes


class _Unnamed(Postgresql):
    """The dialect ``postgres``: as ``postgresql``, with columns named as in every other dialect."""

    named = False


class _UnnamedParameters(PostgresqlParameters):
    """The dialect ``postgres`` of texts with ``$1``."""

    named = False


def postgresql_dialect(text: str, *, named: bool = True) -> Postgresql:
    """The dialect that reads a text; columns without a name are called as PostgreSQL calls them, if `named`."""
    if _DOLLAR_PARAMETER.search(text):
        return PostgresqlParameters() if named else _UnnamedParameters()
    return Postgresql() if named else _Unnamed()


def with_arrays_of_oids(tokens: list[Token]) -> list[Token]:
    """The tokens with ``oid[]`` as an array of BIGINT: sqlglot reads no arrays of such types."""
    read = list(tokens)
    for place, (token, after) in enumerate(pairwise(tokens)):
        if token.token_type == TokenType.OBJECT_IDENTIFIER and after.token_type == TokenType.L_BRACKET:
            kind, text = (TokenType.TEXT, "TEXT") if token.text.lower() == "name" else (TokenType.BIGINT, "BIGINT")
            read[place] = Token(kind, text, token.line, token.col, token.start, token.end, token.comments)
    return read


def as_bindable(tree: exp.Expr, *, named: bool = True) -> exp.Expr:
    """A tree of PostgreSQL's dialect in the form that the binder knows; parts keep their places in the text.

    Columns without a name have the one that PostgreSQL gives them, if they are to be `named`.
    """
    return upwards(_with_names(tree) if named else tree, _rewritten)


def upwards(tree: exp.Expr, rewrite: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The tree with every node rewritten, the inner ones first; a new node has the place of the old one in the text."""
    for node in reversed(list(tree.walk(bfs=False))):
        parent, key, index = node.parent, node.arg_key, node.index
        made = rewrite(node)
        if made is node:
            continue
        made.meta.update({name: value for name, value in node.meta.items() if name not in made.meta})
        if node is tree or parent is None or key is None:
            tree = made
        else:
            parent.set(key, made, index)
    return tree


def _rewritten(node: exp.Expr) -> exp.Expr:
    rewrite = _REWRITES.get(type(node))
    return node if rewrite is None else rewrite(node)


# -- names of columns


def _with_names(tree: exp.Expr) -> exp.Expr:
    """The tree with the names that PostgreSQL gives to columns without one, in every SELECT and RETURNING."""
    for select in tree.find_all(exp.Select, exp.Returning):
        if select.find_ancestor(exp.Exists, exp.In) is None:
            select.set("expressions", [_named(column) for column in select.expressions])
    return tree


def _named(column: exp.Expr) -> exp.Expr:
    if isinstance(column, (exp.Alias, exp.Aliases, exp.Column, exp.Star)) or column.is_star:
        return column
    if isinstance(column, (exp.Unnest, exp.Explode, exp.ExplodingGenerateSeries)):
        return column
    named = exp.Alias(this=column, alias=exp.to_identifier(_column_name(column), quoted=True))
    named.meta.update(column.meta)
    return named


def _column_name(node: exp.Expr) -> str:
    """The name of a result's column: the name of its function, column or cast."""
    match node:
        case exp.Paren() | exp.Collate() | exp.Window() | exp.Filter() | exp.WithinGroup():
            return _column_name(node.this)
        case exp.Cast():
            inner = _column_name(node.this)
            return _type_name(node.to) if inner == "?column?" else inner
        case exp.Column() | exp.Alias():
            return node.output_name
        case exp.Subquery():
            return _column_name(node.unnest())
        case exp.Select():
            return next((each.output_name or _column_name(each) for each in node.expressions), "")
        case exp.Dot():
            return _column_name(node.expression)
        case exp.Identifier():
            return node.name
        case exp.Case() | exp.Exists() | exp.Array():
            return node.key
        case exp.Boolean():
            return "bool"
        case exp.Anonymous():
            return node.name.lower()
        case exp.Connector() | exp.Binary() | exp.Unary() | exp.In() | exp.Between() | exp.Interval():
            return "?column?"
        case exp.Func():
            return _FUNCTION_NAMES.get(node.key, node.sql_name().lower())
        case _:
            return "?column?"


_FUNCTION_NAMES: Final = {
    "currenttimestamp": "now", "currentdate": "current_date", "currentuser": "current_user", "groupconcat":
    "string_agg", "arrayagg": "array_agg", "currentschema": "current_schema", "currentdatabase": "current_database",
    "timestamptrunc": "date_trunc", "arraysize": "array_length", "currentversion": "version",
}  # fmt: skip


def _type_name(to: exp.Expr) -> str:
    if isinstance(to, exp.ObjectIdentifier) or not isinstance(to, exp.DataType):
        return str(to.this).lower()
    if to.this == D.USERDEFINED:
        return to.args["kind"].name.lower() if to.args.get("kind") is not None else "?column?"
    return _TYPE_NAMES.get(to.this) or str(to.this.value).lower()


# -- parts


def _byte_string(node: exp.ByteString) -> exp.Expr:
    """``E'a\\n'``, a text with escapes."""
    return exp.Literal.string(node.this)


def _operator(node: exp.Operator) -> exp.Expr:
    """``a OPERATOR(pg_catalog.~) b``."""
    name = str(node.args["operator"]).rpartition(".")[2] if "." in str(node.args["operator"]) else node.args["operator"]
    made = _OPERATORS.get(str(name).strip())
    return node if made is None else upwards(made(node.this, node.expression), _rewritten)


def _regexp_without_case(node: exp.RegexpILike) -> exp.Expr:
    pattern = node.expression
    if isinstance(pattern, exp.Literal):
        return exp.RegexpLike(this=node.this, expression=exp.Literal.string(f"(?i){pattern.name}"))
    return exp.RegexpLike(this=node.this, expression=exp.DPipe(this=exp.Literal.string("(?i)"), expression=pattern))


def _qualified(node: exp.Dot) -> exp.Expr:
    """``pg_catalog.f(x)``, a function by its whole name."""
    if isinstance(node.this, exp.Identifier) and node.this.name.lower() == "pg_catalog":
        inner = node.expression
        if isinstance(inner, exp.Anonymous):
            made = exp.func(inner.name, *inner.expressions, dialect="postgres")
            made.parent = node.parent
            return _rewritten(made)
        if isinstance(inner, exp.Func):
            return inner
    return node


def _data_type(node: exp.DataType) -> exp.Expr:
    kind = node.this
    if kind in _TYPES:
        node.set("this", _TYPES[kind])
        node.set("expressions", [])
    elif kind == D.DECIMAL and not node.expressions:
        digits = [exp.DataTypeParam(this=exp.Literal.number(n)) for n in (38, 10)]
        node.set("expressions", digits)
    elif kind == D.DECIMAL and len(node.expressions) == 1:
        node.append("expressions", exp.DataTypeParam(this=exp.Literal.number(0)))
    elif kind in (D.TIMESTAMPTZ, D.TIME):
        node.set("expressions", [])
    elif kind == D.INTERVAL:
        days, seconds = exp.Var(this="DAY"), exp.Var(this="SECOND")
        node.set("this", exp.Interval(unit=exp.IntervalSpan(this=days, expression=seconds)))
    elif kind == D.USERDEFINED and node.args.get("kind") is not None:
        return _named_type(node)
    return node


def _named_type(node: exp.DataType) -> exp.Expr:
    """A type by a name that sqlglot does not know, as ``pg_catalog.int4`` or ``"char"``."""
    named = node.args["kind"]
    name = (named.expression.name if isinstance(named, exp.Dot) else named.name).lower()
    if name in REGISTERED or name in SYSTEM_NUMBERS:
        return exp.ObjectIdentifier(this=name.upper())
    if name in _NAMED_TYPES:
        return exp.DataType.build(_NAMED_TYPES[name])
    try:
        built = exp.DataType.build(name, dialect="postgres")
    except Exception:  # noqa: BLE001, whatever sqlglot makes of a name
        return node
    return built if built.this == D.USERDEFINED else _rewritten(built)


REGISTERED: Final = ("regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regoper")
SYSTEM_NUMBERS: Final = ("oid", "xid", "cid", "xid8")


def _table(node: exp.Table) -> exp.Expr:
    """A relation by ``database.schema.name``, of which there is one database."""
    node.set("only", None)
    catalog = node.args.get("catalog")
    if catalog is not None and isinstance(node.this, exp.Identifier):
        node.set("catalog", None)
    return node


def _among(node: exp.EQ) -> exp.Expr:
    """``x = ANY(array)``."""
    array = _array_of(node.expression, exp.Any)
    return node if array is None else exp.Anonymous(this="array_contains", expressions=[array, node.this])


def _not_among(node: exp.NEQ) -> exp.Expr:
    """``x <> ALL(array)``."""
    array = _array_of(node.expression, exp.All)
    if array is None:
        return node
    return exp.Not(this=exp.Anonymous(this="array_contains", expressions=[array, node.this]))


def _is_not(node: exp.Is) -> exp.Expr:
    """``x IS NOT NULL``, which sqlglot marks on the node in this dialect."""
    if not node.args.get("negate"):
        return node
    node.set("negate", None)
    return exp.Not(this=node)


def _array_of(node: exp.Expr | None, kind: type[exp.Expr]) -> exp.Expr | None:
    """The array inside of ANY or ALL; None if it is a query."""
    if not isinstance(node, kind):
        return None
    inside = node.this
    while isinstance(inside, exp.Paren):
        inside = inside.this
    return None if isinstance(inside, (exp.Query, exp.Tuple)) else inside


def _without_index(node: exp.Expr) -> exp.Expr:
    """A key without what PostgreSQL says of its index, where nothing is said."""
    include = node.args.get("include")
    if include is not None and not any(include.args.values()):
        node.set("include", None)
    return node


def _series(node: exp.ExplodingGenerateSeries) -> exp.Expr:
    """``generate_series(a, b)``: rows in FROM, and each value a row in SELECT."""
    given = [part for part in (node.args.get("start"), node.args.get("end"), node.args.get("step")) if part is not None]
    if isinstance(node.parent, exp.Table):
        return exp.Anonymous(this="generate_series", expressions=given)
    return exp.Anonymous(this="explode", expressions=[exp.Anonymous(this="generate_series", expressions=given)])


def _subscripts(array: exp.Expr) -> exp.Expr:
    """The numbers from 1 to the size of an array; none for an empty one."""
    size = exp.Anonymous(this="size", expressions=[array.copy()])
    numbers = exp.Anonymous(
        this="sequence", expressions=[exp.Literal.number(1), exp.Add(this=size, expression=exp.Literal.number(1))]
    )
    return exp.Anonymous(this="slice", expressions=[numbers, exp.Literal.number(1), size.copy()])


def _generated_array(node: exp.Expr) -> exp.Expr | None:
    """The array whose elements a function of SELECT gives as rows; None for every other function."""
    inner = node.this if isinstance(node, exp.Alias) else node
    if isinstance(inner, (exp.Explode, exp.Unnest)):
        return inner.this if isinstance(inner, exp.Explode) else inner.expressions[0]
    if isinstance(inner, exp.Anonymous) and inner.name.lower() == "generate_subscripts" and inner.expressions:
        return _subscripts(inner.expressions[0])
    return None


def _side_by_side(node: exp.Select) -> exp.Expr:
    """Functions that give rows in one SELECT go side by side, so they are one function of several arrays in FROM."""
    arrays = {place: array for place, e in enumerate(node.expressions) if (array := _generated_array(e)) is not None}
    plain = [e for e in node.expressions if isinstance(e.this, exp.Explode) or isinstance(e, exp.Explode)]
    if not arrays or (len(arrays) == 1 and plain):
        return node
    columns = {place: f"generated {place}" for place in arrays}
    zipped = exp.Anonymous(this="arrays_zip", expressions=[array.copy() for array in arrays.values()])
    alias = exp.TableAlias(
        this=exp.to_identifier("generated", quoted=True),
        columns=[exp.to_identifier(name, quoted=True) for name in columns.values()],
    )
    inline = exp.Anonymous(this="inline", expressions=[zipped])
    node.append("laterals", exp.Lateral(this=inline, view=True, outer=False, alias=alias))
    for place, name in columns.items():
        given = node.expressions[place]
        shown = given.alias or (given.name.lower() if isinstance(given, exp.Anonymous) else "unnest")
        column = exp.column(exp.to_identifier(name, quoted=True), table="generated", quoted=True)
        given.replace(exp.Alias(this=column, alias=exp.to_identifier(shown, quoted=True)))
    return node


_REWRITES: Final[dict[type[exp.Expr], Callable[[Any], exp.Expr]]] = {
    exp.ByteString: _byte_string,
    exp.Collate: lambda node: node.this,
    exp.Operator: _operator,
    exp.RegexpILike: _regexp_without_case,
    exp.Dot: _qualified,
    exp.DataType: _data_type,
    exp.Table: _table,
    exp.Select: _side_by_side,
    exp.Is: _is_not,
    exp.EQ: _among,
    exp.NEQ: _not_among,
    exp.PrimaryKeyColumnConstraint: _without_index,
    exp.PrimaryKey: _without_index,
    exp.UniqueColumnConstraint: _without_index,
    exp.ExplodingGenerateSeries: _series,
}
