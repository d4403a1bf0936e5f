"""A file of SQL that is a whole pipeline: settings, sources, views and sinks, as Spark writes them.

- ``SET everview.state = 'state'``, ``SET spark.sql.shuffle.partitions = 4``: settings;
- ``CREATE TABLE name (columns) USING format OPTIONS (path '…', key 'id')``: a source;
- ``INSERT OVERWRITE DIRECTORY '…' USING format SELECT * FROM view``: a sink of snapshots;
- ``INSERT OVERWRITE table SELECT * FROM view`` and ``INSERT INTO table …``: a table with the rows, or the changes;
- ``INSERT INTO TOPIC 'name' OPTIONS (mode 'upsert', key 'id', …) SELECT * FROM view``: a Kafka topic;
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
from everview.frontends.sql.places import SqlText

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
    """The target of a view: a directory, a table or a topic, and whether it gets the changes or the whole view."""

    view: str
    mode: str
    path: str | None = None
    table: str | None = None
    format: str | None = None
    options: Options = field(default_factory=Options)
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class FileText:
    """The parsed file; `views` is its text with all other statements blanked out, so that places in it stay."""

    settings: dict[str, str]
    tables: dict[str, TableText]
    sinks: list[SinkText]
    views: str


def read_file(text: str) -> FileText:
    """The statements of a file, sorted by what they are for."""
    source = SqlText(text)
    file, views = FileText({}, {}, [], ""), text
    for tokens in _statements(source):
        words = TokenReader(tokens, source)
        if not _taken(words, file):
            continue
        start, end = tokens[0].start, tokens[-1].end + 1
        views = views[:start] + _blank(text[start:end]) + views[end:]
    return FileText(file.settings, file.tables, file.sinks, views)


def _statements(source: SqlText) -> Iterator[list[Token]]:
    try:
        tokens = Plain().tokenize(source.text)
    except TokenError as error:
        hint = "is a quote, a comment or a bracket left open?"
        raise source.error("syntax error: the text breaks off", error.end or len(source.text), hint=hint) from None
    statement: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


def _blank(text: str) -> str:
    return "".join(c if c in "\r\n" else " " for c in text)


def _taken(words: TokenReader, into: FileText) -> bool:
    """Note a setting, a source or a sink; False for any other statement."""
    if words.took("SET"):
        name, value = words.setting()
        into.settings[name] = value
    elif words.starts("CREATE", "TABLE"):
        start = words.position
        name, table = _table(words)
        if name in into.tables:
            raise words.error(f"there is a table {name} already", start, "give it another name")
        into.tables[name] = table
    elif words.took("INSERT"):
        into.sinks.append(_sink(words))
    else:
        return False
    return True


class TokenReader:
    """The tokens of a statement, one after the other."""

    def __init__(self, tokens: Sequence[Token], source: SqlText) -> None:
        self._tokens, self._source, self.position = tokens, source, 0

    def _next(self) -> Token | None:
        return self._tokens[self.position] if self.position < len(self._tokens) else None

    def starts(self, *words: str) -> bool:
        """Whether these words are next."""
        following = self._tokens[self.position : self.position + len(words)]
        return [_word(token) for token in following] == list(words)

    def took(self, *words: str) -> bool:
        """Read these words if they are next, and tell whether they were."""
        next_ = self.starts(*words)
        self.position += len(words) if next_ else 0
        return next_

    def took_kind(self, kind: TokenType) -> bool:
        """Read a sign if it is next, and tell whether it was."""
        token = self._next()
        next_ = token is not None and token.token_type == kind
        self.position += next_
        return next_

    def error(self, message: str, token: int | None = None, hint: str | None = None) -> SqlError:
        """An error at a token, by default the next one to read."""
        place = self.position if token is None else token
        start = self._tokens[place].start if place < len(self._tokens) else self._tokens[-1].end + 1
        return self._source.error(message, start, hint=hint)

    def expect(self, hint: str, *words: str) -> None:
        """Read these words, or raise."""
        if not self.took(*words):
            raise self.error(f"syntax error: {' '.join(words)} is missing", hint=hint)

    def end(self, hint: str) -> None:
        """Raise if any token is left."""
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
            self.position += 1
            if not self.took_kind(TokenType.DOT):
                return ".".join(parts)

    def string(self) -> str | None:
        """A quoted text, if one is next."""
        token = self._next()
        if token is None or token.token_type != TokenType.STRING:
            return None
        self.position += 1
        return token.text

    def key(self, hint: str) -> str:
        """The name of an option: words with dots between them, or anything in quotes."""
        token = self._next()
        if token is None or token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
            return self.name(hint)
        self.position += 1
        return token.text

    def setting(self) -> tuple[str, str]:
        """``name = value``; a value that is not quoted goes to the end of the statement."""
        hint = "write SET spark.sql.shuffle.partitions = 4"
        name = self.key(hint)
        if not self.took_kind(TokenType.EQ) or self._next() is None:
            raise self.error(f"{name} is set to nothing", hint=hint)
        start = self.position
        value = self.string()
        if value is not None and self._next() is None:
            return name, value
        self.position = len(self._tokens)
        return name, self._source.text[self._tokens[start].start : self._tokens[-1].end + 1].strip()

    def bracketed(self) -> list[Token]:
        """The tokens up to the bracket that closes the one just read."""
        start, depth = self.position, 1
        while depth:
            token = self._next()
            if token is None:
                raise self.error("syntax error: a bracket is left open", start)
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            self.position += 1
        return list(self._tokens[start : self.position - 1])

    def options(self) -> Options:
        """``OPTIONS (key 'value', 'other' = 4)``, if that is next."""
        options = Options()
        if not self.took("OPTIONS"):
            return options
        hint = "write OPTIONS (path 'orders', key 'id')"
        if not self.took_kind(TokenType.L_PAREN):
            raise self.error("syntax error: options of what?", hint=hint)
        while True:
            start = self.position
            key = self.key(hint)
            if key in options:
                raise self.error(f"the option {key} is there twice", start, "leave one out")
            self.took_kind(TokenType.EQ)
            options[key] = self._value(key, hint)
            if self.took_kind(TokenType.R_PAREN):
                return options
            if not self.took_kind(TokenType.COMMA):
                raise self.error("syntax error: a comma or a bracket is missing", hint=hint)

    def _value(self, key: str, hint: str) -> str:
        token = self._next()
        if token is None or token.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            raise self.error(f"the option {key} has no value", hint=hint)
        self.position += 1
        return token.text

    def text(self, tokens: Sequence[Token]) -> str:
        """The text from the first of these tokens to the last."""
        return self._source.text[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def _is_quoted(token: Token) -> bool:
    return token.token_type == TokenType.IDENTIFIER


def _word(token: Token) -> str:
    return "" if _is_quoted(token) or token.token_type == TokenType.STRING else token.text.upper()


# -- sources


_TABLE = "write CREATE TABLE name (id BIGINT NOT NULL) USING parquet OPTIONS (path '…', key 'id', changes 'upsert')"


def _table(words: TokenReader) -> tuple[str, TableText]:
    words.took("CREATE", "TABLE")
    words.took("IF", "NOT", "EXISTS")
    start, name = words.position, words.name(_TABLE)
    if "." in name:
        raise words.error(f"a source cannot be called {name}", start, "sources have one name, without a dot")
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


def _columns(words: TokenReader) -> tuple[str, tuple[str, ...]]:
    """The columns as text, and the names of the primary key's columns, which are not NULL."""
    columns: list[tuple[str, str]] = []
    keys: list[tuple[str, ...]] = []
    start = words.position
    for part in _parts(words.bracketed()):
        if not part:
            raise words.error("syntax error: a column is missing", start, _TABLE)
        mark = next((i for i, token in enumerate(part) if token.token_type == TokenType.PRIMARY_KEY), len(part))
        if mark == 0:
            keys.append(tuple(token.text for token in part[1:] if token.token_type not in _BETWEEN))
            continue
        columns.append((part[0].text, f"{words.text(part[:mark])} {words.text(part[mark + 1 :])}".strip()))
        keys += [(part[0].text,)] if mark < len(part) else []
    if len(keys) > 1:
        raise words.error("two primary keys", start, "write PRIMARY KEY (a, b)")
    key = keys[0] if keys else ()
    return ", ".join(_not_null(text) if name in key else text for name, text in columns), key


def _not_null(column: str) -> str:
    return column if "NOT NULL" in column.upper() else f"{column} NOT NULL"


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens between commas that stand in no brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENS) - (token.token_type in _CLOSES)
        if token.token_type == TokenType.COMMA and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


# -- sinks


_SINK = "write INSERT OVERWRITE DIRECTORY 'out' USING parquet SELECT * FROM view"


def _sink(words: TokenReader) -> SinkText:
    """Read a sink: the statement after its INSERT."""
    mode = "snapshot" if words.took("OVERWRITE") else "changes"
    if mode == "changes":
        words.expect(_SINK, "INTO")
    if mode == "snapshot" and (words.took("LOCAL", "DIRECTORY") or words.took("DIRECTORY")):
        return _directory(words)
    topic = _topic(words) if mode == "changes" else None
    if topic is not None:
        options = words.options()
        return SinkText(_view(words), options.pop("mode", mode), options=options, topic=topic)
    words.took("TABLE")
    table = words.name(_SINK)
    form = words.name(_SINK) if words.took("USING") else None
    options = words.options()
    return SinkText(_view(words), mode, None, table, form, options)


def _topic(words: TokenReader) -> str | None:
    """``TOPIC 'name'``, if that is next; a table may be called topic."""
    start = words.position
    if words.took("TOPIC") and (name := words.string()) is not None:
        return name
    words.position = start
    return None


def _directory(words: TokenReader) -> SinkText:
    path = words.string()
    words.expect(_SINK, "USING")
    form = words.name(_SINK)
    options = words.options()
    given = options.pop("path", None)
    if (path is None) == (given is None):
        raise words.error("a sink has no directory, or two", hint=_SINK)
    mode = options.pop("mode", "snapshot")
    return SinkText(_view(words), mode, given if path is None else path, None, form, options)


def _view(words: TokenReader) -> str:
    """``SELECT * FROM view`` or ``TABLE view``: a view as it is."""
    hint = "make what is to be written a view of its own, and write SELECT * FROM view"
    if not words.took("TABLE"):
        words.expect(hint, "SELECT", "*", "FROM")
    view = words.name(hint)
    words.end(hint)
    return view
