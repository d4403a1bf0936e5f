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

from everview.frontends.sql.dialect import OfPostgresql
from everview.frontends.sql.postgresql_arrays import array_elements
from everview.frontends.sql.postgresql_bytes import written_bytes
from everview.frontends.sql.postgresql_generators import side_by_side
from everview.frontends.sql.postgresql_quoting import formatted, quoted_identifier, quoted_literal, quoted_text

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


class _PlainFunctions(Postgres.Parser):
    """The parser that leaves patterns of moments as they are written, which sqlglot reads in part."""

    FUNCTIONS = {  # noqa: RUF012
        name: build
        for name, build in Postgres.Parser.FUNCTIONS.items()
        if name not in ("TO_CHAR", "TO_DATE", "TO_TIMESTAMP")
    }


class Postgresql(Postgres, OfPostgresql):
    """PostgreSQL's dialect with ``$1`` as a parameter wherever it stands."""

    Parser = _PlainFunctions


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


def as_readable(tokens: list[Token]) -> list[Token]:
    """The tokens as sqlglot reads them: ``oid[]`` as an array of BIGINT, a keyword behind AS or a dot as a name."""
    read = list(tokens)
    for place, (token, after) in enumerate(pairwise(tokens)):
        named = token.token_type == TokenType.ALIAS and _ends_column(tokens[place + 2 : place + 3])
        if _is_keyword(after) and (named or token.token_type == TokenType.DOT):
            read[place + 1] = _retyped(after, TokenType.VAR, after.text)
        if token.token_type == TokenType.OBJECT_IDENTIFIER and after.token_type == TokenType.L_BRACKET:
            kind, text = (TokenType.TEXT, "TEXT") if token.text.lower() == "name" else (TokenType.BIGINT, "BIGINT")
            read[place] = _retyped(token, kind, text)
    return read


def _is_keyword(token: Token) -> bool:
    """Whether sqlglot reads a word as no name."""
    return token.token_type not in Postgresql.Parser.ID_VAR_TOKENS and token.text.isidentifier()


def _ends_column(after: list[Token]) -> bool:
    """Whether a word behind AS is the name of a column, by what follows: as in ``a AS select, b AS where FROM t``."""
    return bool(after) and after[0].token_type in (TokenType.COMMA, TokenType.FROM)


def _retyped(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


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
    if isinstance(node.this, exp.Identifier) and node.this.name.lower() in _SYSTEM_SCHEMAS:
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
    elif kind == D.INTERVAL and not isinstance(node.parent, exp.Cast):
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


_SYSTEM_SCHEMAS: Final = ("pg_catalog", "information_schema")
REGISTERED: Final = ("regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regoper")
SYSTEM_NUMBERS: Final = ("oid", "xid", "cid", "xid8")


def _table(node: exp.Table) -> exp.Expr:
    """A relation by ``database.schema.name``, of which there is one database; a function of FROM by its whole name."""
    node.set("only", None)
    if isinstance(node.this, exp.Func) and node.db.lower() in _SYSTEM_SCHEMAS:
        node.set("db", None)
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


def _cast(node: exp.Cast) -> exp.Expr:
    """``'{a,"b c",NULL}'::text[]``: an array that is written as text is one of its elements, each with the type.

    ``'\\xff00'::bytea`` is bytes.
    """
    to, written = node.to, node.this
    if isinstance(written, exp.Literal) and written.is_string and to.is_type(D.VARBINARY):
        return written_bytes(written)
    if not (isinstance(written, exp.Literal) and written.is_string and to.is_type(D.ARRAY) and to.expressions):
        return node
    try:
        elements = array_elements(written.name)
    except ValueError:  # what the cast says then
        return node
    values = [exp.null() if each is None else exp.Literal.string(each) for each in elements]
    node.set("this", exp.Array(expressions=[exp.cast(value, to.expressions[0].copy()) for value in values]))
    return node


def _is_not(node: exp.Is) -> exp.Expr:
    """``x IS NOT NULL``, which sqlglot marks on the node in this dialect."""
    if not node.args.get("negate"):
        return node
    node.set("negate", None)
    return exp.Not(this=node)


def _array_of(node: exp.Expr | None, kind: type[exp.Expr]) -> exp.Expr | None:
    """The array inside of ANY or ALL, which may be written as text; None if it is a query."""
    if isinstance(node, exp.Anonymous) and node.name.lower() == kind.key and len(node.expressions) == 1:
        inside = node.expressions[0]
    elif isinstance(node, kind):
        inside = node.this
    else:
        return None
    while isinstance(inside, exp.Paren):
        inside = inside.this
    if isinstance(inside, exp.Literal) and inside.is_string:
        return _array_of_words(inside)
    return None if isinstance(inside, (exp.Query, exp.Tuple)) else inside


def _array_of_words(written: exp.Literal) -> exp.Expr:
    """``'{1,2}'`` or ``'{a,b}'`` where no type is said: numbers if all are, else texts."""
    try:
        words = array_elements(written.name)
    except ValueError:
        return written
    numbers = all(word is None or _NUMBER.fullmatch(word) for word in words)
    make = exp.Literal.number if numbers else exp.Literal.string
    return exp.Array(expressions=[exp.null() if word is None else make(word) for word in words])


_NUMBER: Final = re.compile(r"-?\d+")


def _named_function(node: exp.Anonymous) -> exp.Expr:
    """A function that sqlglot does not know, in terms of others."""
    rewrite = _FUNCTIONS.get(node.name.lower())
    return node if rewrite is None or not node.expressions else rewrite(node.expressions[0])


def _upper_bound(array: exp.Expr) -> exp.Expr:
    """The last subscript of an array; NULL if it is empty."""
    size = exp.Anonymous(this="size", expressions=[array])
    return exp.Anonymous(this="nullif", expressions=[size, exp.Literal.number(0)])


def _lower_bound(array: exp.Expr) -> exp.Expr:
    """The first subscript of an array; NULL if it is empty."""
    is_empty = exp.Is(this=_upper_bound(array), expression=exp.null())
    return exp.Case(ifs=[exp.If(this=is_empty, true=exp.null())], default=exp.Literal.number(1))


_FUNCTIONS: Final[dict[str, Callable[[exp.Expr], exp.Expr]]] = {
    "array_upper": _upper_bound,
    "array_lower": _lower_bound,
    "quote_ident": quoted_identifier,
    "quote_literal": quoted_text,
    "quote_nullable": quoted_literal,
}


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


_REWRITES: Final[dict[type[exp.Expr], Callable[[Any], exp.Expr]]] = {
    exp.ByteString: _byte_string,
    exp.Cast: _cast,
    exp.Format: formatted,
    exp.Anonymous: _named_function,
    exp.Collate: lambda node: node.this,
    exp.Operator: _operator,
    exp.RegexpILike: _regexp_without_case,
    exp.Dot: _qualified,
    exp.DataType: _data_type,
    exp.Table: _table,
    exp.Select: side_by_side,
    exp.Is: _is_not,
    exp.EQ: _among,
    exp.NEQ: _not_among,
    exp.PrimaryKeyColumnConstraint: _without_index,
    exp.PrimaryKey: _without_index,
    exp.UniqueColumnConstraint: _without_index,
    exp.ExplodingGenerateSeries: _series,
}
