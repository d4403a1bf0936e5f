"""A file of SQL that is a whole pipeline: settings, sources, views and sinks, as Spark writes them.

- ``SET everview.state = 'state'``, ``SET spark.sql.shuffle.partitions = 4``: settings;
- ``CREATE TABLE name (columns) USING format OPTIONS (path '…', key 'id')``: a source;
- ``INSERT OVERWRITE DIRECTORY '…' USING format SELECT * FROM view``: a sink of snapshots;
- ``INSERT OVERWRITE table SELECT * FROM view`` and ``INSERT INTO table …``: a table with the rows, or the changes;
- everything else is left to `everview.frontends.sql.bind`, at the place where it stands.

>>> found = read_file("SET everview.state = 'here'; CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t")
>>> found.settings, found.tables["t"].columns, found.views.strip('; ')
({'everview.state': 'here'}, 'a INT', 'CREATE VIEW v AS SELECT a FROM t')
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import SqlError
from everview.frontends.sql.parse import Plain
from everview.frontends.sql.places import Source

Options = dict[str, str]

_OPENS = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.LT)
_CLOSES = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.GT)
_BETWEEN = (TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA)


@dataclass(frozen=True, slots=True)
class TableText:
    """A source: its columns as written, without a primary key, which is named beside them."""

    columns: str | None
    format: str | None
    key: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class SinkText:
    """Where a view goes: a directory or a table, and whether its changes do, or all of it."""

    view: str
    mode: str
    path: str | None = None
    table: str | None = None
    format: str | None = None
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class FileText:
    """What a file says; `views` is its text with everything else blanked out, so that places in it stay."""

    settings: dict[str, str]
    tables: dict[str, TableText]
    sinks: list[SinkText]
    views: str


def read_file(text: str) -> FileText:
    """The statements of a file, sorted by what they are for."""
    source = Source(text)
    found, views = FileText({}, {}, [], ""), text
    for tokens in _statements(source):
        words = Words(tokens, source)
        if not _taken(words, found):
            continue
        start, end = tokens[0].start, tokens[-1].end + 1
        views = views[:start] + _blank(text[start:end]) + views[end:]
    return FileText(found.settings, found.tables, found.sinks, views)


def _statements(source: Source) -> Iterator[list[Token]]:
    try:
        tokens = Plain().tokenize(source.text)
    except TokenError as error:
        hint = "is a quote, a comment or a bracket left open?"
        raise source.error("syntax error: the text breaks off", error.end or len(source.text), hint=hint) from None
    found: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            found.append(token)
        elif found:
            yield found
            found = []
    if found:
        yield found


def _blank(text: str) -> str:
    return "".join(c if c in "\r\n" else " " for c in text)


def _taken(words: Words, into: FileText) -> bool:
    """Whether a statement is not a view, and was noted."""
    if words.took("SET"):
        name, value = words.setting()
        into.settings[name] = value
    elif words.starts("CREATE", "TABLE"):
        at = words.at
        name, table = _table(words)
        if name in into.tables:
            raise words.error(f"there is a table {name} already", at, "give it another name")
        into.tables[name] = table
    elif words.took("INSERT"):
        into.sinks.append(_sink(words))
    else:
        return False
    return True


class Words:
    """The tokens of a statement, one after the other."""

    def __init__(self, tokens: Sequence[Token], source: Source) -> None:
        self._tokens, self._source, self.at = tokens, source, 0

    def _next(self) -> Token | None:
        return self._tokens[self.at] if self.at < len(self._tokens) else None

    def starts(self, *words: str) -> bool:
        """Whether these words are next."""
        following = self._tokens[self.at : self.at + len(words)]
        return [_word(token) for token in following] == list(words)

    def took(self, *words: str) -> bool:
        """Whether these words are next; they then are read."""
        found = self.starts(*words)
        self.at += len(words) if found else 0
        return found

    def took_kind(self, kind: TokenType) -> bool:
        """Whether a sign is next; it then is read."""
        token = self._next()
        found = token is not None and token.token_type == kind
        self.at += found
        return found

    def error(self, message: str, at: int | None = None, hint: str | None = None) -> SqlError:
        """An error at one of the tokens, or where reading has come to."""
        place = self.at if at is None else at
        start = self._tokens[place].start if place < len(self._tokens) else self._tokens[-1].end + 1
        return self._source.error(message, start, hint=hint)

    def expect(self, hint: str, *words: str) -> None:
        """Read these words, or raise."""
        if not self.took(*words):
            raise self.error(f"syntax error: {' '.join(words)} is missing", hint=hint)

    def end(self, hint: str) -> None:
        """Nothing is left."""
        token = self._next()
        if token is not None:
            raise self.error(f"syntax error at {token.text[:40]!r}", hint=hint)

    def name(self, hint: str) -> str:
        """A name, dotted or not: ``bank.transfer``, or a quoted one."""
        parts: list[str] = []
        while True:
            token = self._next()
            if token is None or not (token.text[:1].isalnum() or token.text[:1] == "_" or _is_quoted(token)):
                raise self.error("syntax error: a name is missing", hint=hint)
            parts.append(f"`{token.text}`" if "." in token.text else token.text)
            self.at += 1
            if not self.took_kind(TokenType.DOT):
                return ".".join(parts)

    def string(self) -> str | None:
        """A quoted text, if one is next."""
        token = self._next()
        if token is None or token.token_type != TokenType.STRING:
            return None
        self.at += 1
        return token.text

    def key(self, hint: str) -> str:
        """The name of an option: words with dots between them, or anything in quotes."""
        token = self._next()
        if token is None or token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
            return self.name(hint)
        self.at += 1
        return token.text

    def setting(self) -> tuple[str, str]:
        """``name = value``; a value that is not quoted goes to the end of the statement."""
        hint = "write SET spark.sql.shuffle.partitions = 4"
        name = self.key(hint)
        if not self.took_kind(TokenType.EQ) or self._next() is None:
            raise self.error(f"{name} is set to nothing", hint=hint)
        start = self.at
        value = self.string()
        if value is not None and self._next() is None:
            return name, value
        self.at = len(self._tokens)
        return name, self._source.text[self._tokens[start].start : self._tokens[-1].end + 1].strip()

    def bracketed(self) -> list[Token]:
        """The tokens up to the bracket that closes the one just read."""
        start, depth = self.at, 1
        while depth:
            token = self._next()
            if token is None:
                raise self.error("syntax error: a bracket is left open", start)
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            self.at += 1
        return list(self._tokens[start : self.at - 1])

    def options(self) -> Options:
        """``OPTIONS (key 'value', 'other' = 4)``, if that is next."""
        found = Options()
        if not self.took("OPTIONS"):
            return found
        hint = "write OPTIONS (path 'orders', key 'id')"
        if not self.took_kind(TokenType.L_PAREN):
            raise self.error("syntax error: options of what?", hint=hint)
        while True:
            at = self.at
            key = self.key(hint)
            if key in found:
                raise self.error(f"the option {key} is there twice", at, "leave one out")
            self.took_kind(TokenType.EQ)
            found[key] = self._value(key, hint)
            if self.took_kind(TokenType.R_PAREN):
                return found
            if not self.took_kind(TokenType.COMMA):
                raise self.error("syntax error: a comma or a bracket is missing", hint=hint)

    def _value(self, key: str, hint: str) -> str:
        token = self._next()
        if token is None or token.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            raise self.error(f"the option {key} has no value", hint=hint)
        self.at += 1
        return token.text

    def text(self, tokens: Sequence[Token]) -> str:
        """What was written from the first of these to the last."""
        return self._source.text[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def _is_quoted(token: Token) -> bool:
    return token.token_type == TokenType.IDENTIFIER


def _word(token: Token) -> str:
    return "" if _is_quoted(token) or token.token_type == TokenType.STRING else token.text.upper()


# -- sources


_TABLE = "write CREATE TABLE name (id BIGINT NOT NULL) USING parquet OPTIONS (path '…', key 'id', changes 'upsert')"


def _table(words: Words) -> tuple[str, TableText]:
    words.took("CREATE", "TABLE")
    words.took("IF", "NOT", "EXISTS")
    at, name = words.at, words.name(_TABLE)
    if "." in name:
        raise words.error(f"a source cannot be called {name}", at, "sources have one name, without a dot")
    columns, key = None, ()
    if words.took_kind(TokenType.L_PAREN):
        columns, key = _columns(words)
    form = words.name(_TABLE) if words.took("USING") else None
    options = words.options()
    if words.took("LOCATION"):
        path = words.string()
        if path is None or "path" in options:
            raise words.error(f"the table {name} has no location, or two", hint=_TABLE)
        options["path"] = path
    words.end(_TABLE)
    return name, TableText(columns, form, key, options)


def _columns(words: Words) -> tuple[str, tuple[str, ...]]:
    """The columns, and those that a PRIMARY KEY names, which are not NULL."""
    found: list[tuple[str, str]] = []
    keys: list[tuple[str, ...]] = []
    at = words.at
    for part in _parts(words.bracketed()):
        if not part:
            raise words.error("syntax error: a column is missing", at, _TABLE)
        mark = next((i for i, token in enumerate(part) if token.token_type == TokenType.PRIMARY_KEY), len(part))
        if mark == 0:
            keys.append(tuple(token.text for token in part[1:] if token.token_type not in _BETWEEN))
            continue
        found.append((part[0].text, f"{words.text(part[:mark])} {words.text(part[mark + 1 :])}".strip()))
        keys += [(part[0].text,)] if mark < len(part) else []
    if len(keys) > 1:
        raise words.error("two primary keys", at, "write PRIMARY KEY (a, b)")
    key = keys[0] if keys else ()
    return ", ".join(_not_null(text) if name in key else text for name, text in found), key


def _not_null(column: str) -> str:
    return column if "NOT NULL" in column.upper() else f"{column} NOT NULL"


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """What stands between the commas that no bracket holds."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENS) - (token.token_type in _CLOSES)
        if token.token_type == TokenType.COMMA and not depth:
            found.append([])
        else:
            found[-1].append(token)
    return found


# -- sinks


_SINK = "write INSERT OVERWRITE DIRECTORY 'out' USING parquet SELECT * FROM view"


def _sink(words: Words) -> SinkText:
    """The statement after its INSERT."""
    mode = "snapshot" if words.took("OVERWRITE") else "changes"
    if mode == "changes":
        words.expect(_SINK, "INTO")
    if mode == "snapshot" and (words.took("LOCAL", "DIRECTORY") or words.took("DIRECTORY")):
        return _directory(words)
    words.took("TABLE")
    table = words.name(_SINK)
    form = words.name(_SINK) if words.took("USING") else None
    options = words.options()
    return SinkText(_view(words), mode, None, table, form, options)


def _directory(words: Words) -> SinkText:
    path = words.string()
    words.expect(_SINK, "USING")
    form = words.name(_SINK)
    options = words.options()
    given = options.pop("path", None)
    if (path is None) == (given is None):
        raise words.error("a sink has no directory, or two", hint=_SINK)
    mode = options.pop("mode", "snapshot")
    return SinkText(_view(words), mode, given if path is None else path, None, form, options)


def _view(words: Words) -> str:
    """``SELECT * FROM view`` or ``TABLE view``: a view as it is."""
    hint = "make what is to be written a view of its own, and write SELECT * FROM view"
    if not words.took("TABLE"):
        words.expect(hint, "SELECT", "*", "FROM")
    view = words.name(hint)
    words.end(hint)
    return view
