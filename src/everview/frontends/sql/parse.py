"""Parse text to syntax trees, by sqlglot, in Spark's dialect or in another.

In Spark's dialect a function keeps the name that was written, since the plan names functions as Spark does; in
other dialects sqlglot gives functions its own names, and `functions.py` finds Spark's spelling of them.

>>> [statement.text for statement in parse("SELECT 1; SELECT 'a;b' ;")[0]]
['SELECT 1', "SELECT 'a;b'"]
"""

from __future__ import annotations

import logging
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.dialects import Dialect
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import SqlError
from everview.frontends.sql.dialect import OfPostgresql, Plain, tokens_as_spark
from everview.frontends.sql.parameters import ParameterMark, marks_of, numbered, parameter_name
from everview.frontends.sql.places import SqlText
from everview.frontends.sql.slips import Slip, find_slip, read_all_the_same
from everview.later import Later
from everview.types import unknown_name

if TYPE_CHECKING:
    from everview.frontends.sql.interval_tokens import whole_intervals
    from everview.frontends.sql.postgresql import as_bindable, as_readable, postgresql_dialect
    from everview.frontends.sql.unclosed import left_open
else:  # few texts are PostgreSQL's, or have mistakes
    whole_intervals = Later("everview.frontends.sql.interval_tokens", "whole_intervals")
    as_bindable = Later("everview.frontends.sql.postgresql", "as_bindable")
    as_readable = Later("everview.frontends.sql.postgresql", "as_readable")
    postgresql_dialect = Later("everview.frontends.sql.postgresql", "postgresql_dialect")
    left_open = Later("everview.frontends.sql.unclosed", "left_open")

_TOKEN = re.compile(r"<Token .*?text: (.*?), line: .*?>", re.DOTALL)
_MISSING = re.compile(r"required keyword: '(\w+)' missing for <class '.*\.(\w+)'>", re.IGNORECASE)
_OPTION = (
    r"\s*(?:(?:ANALYZE|VERBOSE|COSTS|SETTINGS|BUFFERS|WAL|TIMING|SUMMARY|GENERIC_PLAN)\b(?:\s+\w+)?"
    r"|FORMAT\s+(?P<form>\w+))\s*"
)
_EXPLAIN = re.compile(
    r"EXPLAIN(?:\s+(?:EXTENDED|FORMATTED|COST|CODEGEN|ANALYZE|VERBOSE)\b)*"
    rf"(?:\s*\({_OPTION}(?:,{_OPTION.replace('?P<form>', '?P<last>')})*\))?",
    re.IGNORECASE,
)
_CLOSE = {"'": "close it; inside of a text it is doubled: 'O''Brien'"}
_INNER = ("plain", "postgresqlparameters", "_unnamed", "_unnamedparameters")  # dialects that nobody names
POSTGRESQL = "postgresql"  # the dialect of clients of PostgreSQL
_OPENS = (TokenType.COMMA, TokenType.L_PAREN, TokenType.SELECT)
_CLOSES = (TokenType.R_PAREN, TokenType.FROM, TokenType.WHERE)


@dataclass(frozen=True)
class Parsed:
    """One statement: its tree, its text, and whether it is only to be explained."""

    tree: exp.Expr
    text: str
    explain: bool = False
    start: int = 0  # where it stands in the whole text
    marks: tuple[ParameterMark, ...] = ()  # of its parameters


def parse(text: str, dialect: str = "spark") -> tuple[list[Parsed], SqlText]:
    """The statements of a text, and the text to point into."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SqlError(f"SQL is text, not {type(text).__name__}", hint='write db.sql("SELECT …")')
    source, reader = SqlText(text), _dialect(dialect, text)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise source.error("the text is not Unicode", error.start, hint="it holds half of a surrogate pair") from None
    with _quiet():
        return [_statement(*statement, source, reader) for statement in _statements(source, reader)], source


def pieces(text: str, dialect: str) -> list[tuple[int, str]]:
    """Where each statement of a text begins, and its text; nothing but quotes, comments and semicolons is looked at.

    >>> pieces("SET a = ';'; SELECT 1;", "postgresql")
    [(0, "SET a = ';'"), (13, 'SELECT 1')]
    """
    source, statements, first = SqlText(text), list[tuple[int, str]](), None
    tokens = _tokenized(text, source, _dialect(dialect, text))
    for before, token in zip([None, *tokens], [*tokens, None], strict=True):
        if token is not None and token.token_type != TokenType.SEMICOLON:
            first = token if first is None else first
        elif first is not None and before is not None:
            statements.append((first.start, text[first.start : before.end + 1]))
            first = None
    return statements


@lru_cache(maxsize=1000)
def query_of_view(text: str, dialect: str, columns: str) -> str:
    """The query of a CREATE VIEW statement, with the statement's column names if there are any; other texts unchanged.

    >>> query_of_view("CREATE OR REPLACE VIEW `an AS` (a, b) COMMENT 'AS' AS SELECT 1, 2", "spark", "a, b")
    'SELECT * FROM (SELECT 1, 2) AS q(a, b)'
    """
    depth, named = 0, False
    tokens = _tokenized(text, SqlText(text), _dialect(dialect, text))
    for token in tokens if tokens and tokens[0].token_type == TokenType.CREATE else ():
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        named = named or depth > 0
        if token.token_type == TokenType.ALIAS and depth == 0:
            query = text[token.end + 1 :].strip().rstrip(";")
            return f"SELECT * FROM ({query}) AS q({columns})" if named else query
    return text


def parse_one(text: str, start: int, dialect: str) -> tuple[Parsed, SqlText]:
    """The statement that begins at a place of a text, and the text to point into."""
    blank = re.sub(r"[^\n]", " ", text[:start])
    statements, source = parse(blank + text[start:], dialect)
    if len(statements) != 1:
        raise source.error("one statement is expected", start, hint="separate statements by semicolons")
    return statements[0], SqlText(text)


def parse_expression(text: str) -> exp.Expr:
    """One scalar expression in Spark's dialect."""
    select = f"SELECT {text}"
    (tree,) = Plain().parser().parse(tokens_as_spark(Plain().tokenize(select), select), select)
    assert isinstance(tree, exp.Select)
    return tree.expressions[0]


def identifiers_replaced(text: str, others: Mapping[str, str]) -> str:
    """The text of an expression in Spark's dialect with other names in place of some quoted ones.

    >>> identifiers_replaced("`a`.`b` = '`a`'", {"a": "c"})
    "`c`.`b` = '`a`'"
    """
    made, end = list[str](), 0
    for token in Plain().tokenize(text):
        if token.token_type == TokenType.IDENTIFIER and token.text in others:
            made += [text[end : token.start], "`", others[token.text].replace("`", "``"), "`"]
            end = token.end + 1
    return "".join((*made, text[end:]))


def stored_expression(text: str) -> exp.Expr:
    """The tree of a stored scalar expression, without places for errors to point at: its first text is not at hand."""
    tree = parse_expression(text)
    for node in tree.walk():
        node.meta.pop("start", None)
    return tree


def _dialect(name: str, text: str = "") -> Dialect:
    if name.lower() in ("spark", "databricks", ""):
        return Plain()
    if name.lower() in ("postgres", POSTGRESQL):
        return postgresql_dialect(text, named=name.lower() == POSTGRESQL)
    if name.lower() not in Dialect.classes:
        raise unknown_name("dialect", name, sorted({*Dialect.classes, POSTGRESQL} - {"", *_INNER}))
    return Dialect.get_or_raise(name.lower())


def _statements(source: SqlText, dialect: Dialect) -> Iterator[tuple[list[Token], bool]]:
    """The tokens of each statement, and whether it is explained."""
    tokens, explained = _tokens(source, dialect)
    statement: list[Token] = []
    for token in [*tokens, None]:
        if token is not None and token.token_type != TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            _check_commas(statement, source)
            _check_numbers(statement, source)
            if isinstance(dialect, Plain) and (slip := read_all_the_same(statement, source.text)) is not None:
                raise _told(slip, source)
            yield statement, any(start < statement[0].start for start in explained)
            explained = [start for start in explained if start > statement[-1].end]
            statement = []
    if explained:
        raise source.error("syntax error: EXPLAIN of what?", explained[0], hint="write EXPLAIN SELECT …")


def _tokens(source: SqlText, dialect: Dialect) -> tuple[list[Token], list[int]]:
    """All tokens, without the words that ask to explain; and where those stood.

    sqlglot does not look into what is explained, so the words are blanked out.
    """
    text, explained = source.text, list[int]()
    while True:
        tokens = _tokenized(text, source, dialect)
        place = next((i for i in range(len(tokens)) if _asks_to_explain(tokens, i)), None)
        if place is None:
            return tokens, explained
        start = tokens[place].start
        words = _EXPLAIN.match(text, start)
        assert words is not None, "an EXPLAIN token says EXPLAIN"
        form = words["form"] or words["last"] or "text"
        if form.lower() != "text":
            raise source.error(
                f"EXPLAIN in the format {form.upper()} is not supported", start, hint="it is told as text"
            )
        text = text[:start] + re.sub(r"[^\n]", " ", words[0]) + text[words.end() :]
        explained.append(start)


def _tokenized(text: str, source: SqlText, dialect: Dialect) -> list[Token]:
    try:
        tokens = dialect.tokenize(text)
        if isinstance(dialect, OfPostgresql):
            tokens = as_readable(tokens)
        elif isinstance(dialect, Plain):
            tokens = tokens_as_spark(tokens, text)
        if any(token.token_type == TokenType.INTERVAL for token in tokens):
            return whole_intervals(tokens, source)
        return tokens
    except TokenError as error:
        for start, what in left_open(text):
            raise source.error(
                f"syntax error: the {what} is not closed", start, hint=_CLOSE.get(what[-1], "close it")
            ) from None
        hint = "is a quote, a comment or a bracket left open?"
        raise source.error("syntax error: the text breaks off", error.end or len(source.text), hint=hint) from None


def _asks_to_explain(tokens: list[Token], place: int) -> bool:
    first = place == 0 or tokens[place - 1].token_type == TokenType.SEMICOLON
    token = tokens[place]
    return first and token.token_type != TokenType.IDENTIFIER and token.text.upper() == "EXPLAIN"


def _check_commas(tokens: list[Token], source: SqlText) -> None:
    """Refuse empty items between commas, which sqlglot ignores."""
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.token_type != TokenType.COMMA:
            continue
        if before is None or before.token_type in _OPENS or after is None or after.token_type in _CLOSES:
            hint = "take out the comma, or write what belongs there"
            raise source.error("syntax error: something is missing beside the comma", token.start, hint=hint)


def _check_numbers(tokens: list[Token], source: SqlText) -> None:
    """Refuse numbers whose exponent is missing, which sqlglot takes as they are."""
    for token in tokens:
        if token.token_type == TokenType.NUMBER and token.text[-1:] in ("e", "E"):
            message = f"syntax error: the number {token.text[:20]} has no exponent"
            raise source.error(message, token.start, hint="write 1e10 for a DOUBLE; names begin with a letter")


def _statement(tokens: list[Token], explain: bool, source: SqlText, dialect: Dialect) -> Parsed:
    text = source.text[tokens[0].start : tokens[-1].end + 1]
    tokens = numbered(tokens)
    tree = _tree(tokens, source, dialect)
    kinds = (exp.Placeholder, exp.Parameter)
    names = (
        {parameter_name(node.name) for node in tree.find_all(*kinds)} if _may_have_parameters(tokens) else set[str]()
    )
    return Parsed(tree, text, explain, tokens[0].start, marks_of(tokens, names))


def _may_have_parameters(tokens: list[Token]) -> bool:
    return any(token.token_type in (TokenType.COLON, TokenType.PARAMETER) for token in tokens)


def _tree(tokens: list[Token], source: SqlText, dialect: Dialect) -> exp.Expr:
    words = [token.text.upper() for token in tokens[:3]]
    if words[:2] == ["START", "TRANSACTION"] and len(tokens) == 2:
        return exp.Transaction()
    if words[:1] == ["TABLE"] and len(tokens) > 1:
        tokens = [*_everything_from(tokens[0]), *tokens[1:]]
    if _describes_column(tokens):
        return exp.Command(this="DESCRIBE")
    tokens = _plain_ends(tokens, source)
    pipe = next((token for token in tokens if token.token_type == TokenType.PIPE_GT), None)
    if pipe is not None and not isinstance(dialect, Plain):
        raise source.error("pipes are read in Spark's dialect only", pipe.start, hint="write the query as a SELECT")
    parser: Any = dialect.parser(error_level=ErrorLevel.IMMEDIATE, error_message_context=len(source.text) + 1)
    try:
        trees = parser.parse(tokens, source.text)
        if isinstance(dialect, OfPostgresql) and len(trees) == 1 and trees[0] is not None:
            return as_bindable(trees[0], named=dialect.named)
    except ParseError as error:
        raise _syntax_error(error, source, tokens) from None
    except RecursionError:
        hint = "name the inner parts in a WITH clause, or in views"
        raise source.error("the statement is nested too deeply", tokens[0].start, hint=hint) from None
    except SqlglotError as error:
        raise source.error(f"syntax error: {error}", tokens[0].start) from None
    if len(trees) != 1 or trees[0] is None:
        raise source.error("syntax error: this is no statement", tokens[0].start)
    return trees[0]


def _describes_column(tokens: list[Token]) -> bool:
    """Whether a statement is ``DESCRIBE [TABLE] t column``, which sqlglot does not read."""
    words = [token.text.upper() for token in tokens]
    rest = words[2:] if words[1:2] == ["TABLE"] else words[1:]
    names = [rest[0], *rest[2:]] if rest[1:2] == ["."] else rest
    if words[:1] != ["DESCRIBE"] or len(names) != (3 if rest[1:2] == ["."] else 2):
        return False
    return rest[0] not in _DESCRIBED and all(name.isidentifier() for name in names)


_DESCRIBED = (
    *("FUNCTION", "SCHEMA", "DATABASE", "NAMESPACE", "QUERY", "HISTORY", "FORMATTED", "EXTENDED", "DETAIL", "VIEW"),
    *("SELECT", "TABLE", "WITH", "VALUES", "FROM"),
)


def _plain_ends(tokens: list[Token], source: SqlText) -> list[Token]:
    """The tokens with ends that sqlglot reads: an empty text for ``COMMENT … IS NULL``, nothing for ``WITH DATA``."""
    words = [token.text.upper() for token in tokens]
    if words[:2] == ["COMMENT", "ON"] and words[-2:] == ["IS", "NULL"]:
        null = tokens[-1]
        return [*tokens[:-1], Token(TokenType.STRING, "", null.line, null.col, null.start, null.end, [])]
    for at, token in enumerate(tokens[:-1]):
        if words[at] == "JSON_TABLE" and words[at + 1] == "(" and token.token_type != TokenType.IDENTIFIER:
            hint = "write LATERAL inline(from_json(j, 'ARRAY<STRUCT<a: INT>>')), which makes the same rows"
            raise source.error("JSON_TABLE is not supported", token.start, hint=hint)
    if words[:1] in (["INSERT"], ["MERGE"]) and "EVOLUTION" in words:
        at = words.index("EVOLUTION")
        if words[at - 2 : at] == ["WITH", "SCHEMA"]:
            hint = "a change of rows adds no columns: write ALTER TABLE t ADD COLUMN before it"
            raise source.error("WITH SCHEMA EVOLUTION is not supported", tokens[at - 2].start, hint=hint)
    if words[:1] == ["CREATE"] and words[-3:] == ["WITH", "NO", "DATA"]:
        hint = "create the table with its columns, or leave it out: a view has the rows of its query"
        raise source.error("WITH NO DATA is not supported", tokens[-3].start, hint=hint)
    is_data = words[:1] == ["CREATE"] and words[-2:] == ["WITH", "DATA"]
    return tokens[:-2] if is_data else tokens


def _everything_from(table: Token) -> list[Token]:
    """``SELECT * FROM`` in place of TABLE, which means it at the beginning of a statement."""
    kinds = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
    return [Token(kind, text, table.line, table.col, table.start, table.end, []) for kind, text in kinds]


def _syntax_error(error: ParseError, source: SqlText, tokens: list[Token]) -> SqlError:
    reported: dict[str, Any] = error.errors[0] if error.errors else {}
    offset = len(reported["start_context"]) if reported.get("start_context") is not None else 0
    slip = find_slip(tokens, offset, source.text)
    if slip is not None:
        return _told(slip, source)
    near, said = (reported.get("highlight") or "")[:40], _said(reported.get("description") or str(error), source.text)
    place = f"syntax error at {near!r}" if near else "syntax error"
    return source.error(
        f"{place}: {said}" if said else place, offset, hint="docs/reference/sql-clauses.md shows what can be written"
    )


def _said(message: str, text: str) -> str:
    """The parser's message without the names of its own classes."""
    message = _TOKEN.sub(lambda m: repr(m[1]), message).replace("'SENTINEL'", "the end")
    missing = _MISSING.search(message)
    if missing is not None:
        return f"{missing[2].upper()} is not complete" if missing[2].upper() in text.upper() else ""
    if "<class" in message or "nvalid expression" in message:
        return ""
    return message[:1].lower() + message[1:] if message[1:2].islower() else message


def _told(slip: Slip, source: SqlText) -> SqlError:
    return source.error(slip.message, slip.offset, hint=slip.hint)


def slip_in(text: str, start: int, dialect: str, source: SqlText) -> SqlError | None:
    """The error for a statement that was not recognized because of a slip in its first words; None if there is none."""
    with _quiet():
        slip = find_slip(_dialect(dialect, text).tokenize(text), 0, text)
    if slip is None:
        return None
    return source.error(slip.message, start + slip.offset, hint=slip.hint)


@contextmanager
def _quiet() -> Generator[None]:
    """Keep sqlglot from logging statements that it does not know: they raise errors instead."""
    log = logging.getLogger("sqlglot")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
