"""Statements of the door itself: parameters, transactions, COPY with the client, SUBSCRIBE and cursors of sessions.

They are told by their first words; every other statement is SQL, for the database.

>>> command_of("SET search_path TO public"), command_of("SELECT 1")
(SetParameter(name='search_path', value='public', local=False), None)
>>> command_of("SUBSCRIBE sales.totals SINCE 7")
SubscribeView(view='sales.totals', since=7)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from everview.frontends.sql.system import unquoted
from everview.serve.postgres.states import ClientError


class DoorCommand:
    """The root of the statements that are not for the database."""


@dataclass(frozen=True, slots=True)
class SetParameter(DoorCommand):
    """``SET name TO value``; None is the default. With ``LOCAL`` it holds until the transaction ends."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class ShowParameter(DoorCommand):
    """``SHOW name``, ``SHOW ALL``."""

    name: str


@dataclass(frozen=True, slots=True)
class TurnTransaction(DoorCommand):
    """``BEGIN``, ``COMMIT``, ``ROLLBACK``, in whatever words; `kind` is one of these."""

    kind: str
    read_only: bool | None = None


@dataclass(frozen=True, slots=True)
class SetTransaction(DoorCommand):
    """``SET TRANSACTION READ ONLY``, of the one that is open, or of all that begin from now on."""

    read_only: bool | None
    session: bool


@dataclass(frozen=True, slots=True)
class TurnSavepoint(DoorCommand):
    """``SAVEPOINT name``, ``RELEASE name``, ``ROLLBACK TO name``; `kind` is the first word."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class SubscribeView(DoorCommand):
    """``SUBSCRIBE [TO] view [SINCE epoch]``: the rows of a view and then its changes, without end."""

    view: str
    since: int | None = None


@dataclass(frozen=True, slots=True)
class CopyOut(DoorCommand):
    """``COPY rows TO STDOUT``; `query` is the text of the rows, and begins at `start` of the statement."""

    query: str
    start: int
    options: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class CopyIn(DoorCommand):
    """``COPY table (columns) FROM STDIN``."""

    table: str
    columns: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class CloseAll(DoorCommand):
    """``DISCARD ALL``, ``DEALLOCATE ALL``, ``RESET ALL``: the parts of a session that go back to their beginning."""

    tag: str
    settings: bool = False
    statements: bool = False


@dataclass(frozen=True, slots=True)
class DropStatement(DoorCommand):
    """``DEALLOCATE name``."""

    name: str


@dataclass(frozen=True, slots=True)
class DeclareCursor(DoorCommand):
    """``DECLARE name CURSOR [WITH HOLD] FOR query``; ``hold`` lets it outlive its transaction."""

    name: str
    query: str
    hold: bool = False


@dataclass(frozen=True, slots=True)
class FetchCursor(DoorCommand):
    """``FETCH 10 FROM name``, or ``MOVE``, which skips rows; ``count`` is None for all that are left."""

    name: str
    count: int | None = None
    moving: bool = False


@dataclass(frozen=True, slots=True)
class CloseCursor(DoorCommand):
    """``CLOSE name``; without a name it is all of them."""

    name: str | None


@dataclass(frozen=True, slots=True)
class DoNothing(DoorCommand):
    """A statement without anything to do, such as ``REFRESH MATERIALIZED VIEW``; the answer is its tag."""

    tag: str


_NAME: Final = r'((?:"(?:[^"]|"")+"|[\w$]+)(?:\.(?:"(?:[^"]|"")+"|[\w$]+))*)'
_SET: Final = re.compile(
    rf"SET\s+(?:(?:SESSION|LOCAL)\s+)?(TIME\s+ZONE|NAMES|{_NAME})\s*(?:\bTO\b|=|\s)\s*(.+)", re.I | re.S
)
_TRANSACTION: Final = re.compile(
    r"(?:SET\s+(?:SESSION\s+CHARACTERISTICS\s+AS\s+)?(?:LOCAL\s+)?TRANSACTION\b.*)", re.I | re.S
)
_ACCESS: Final = re.compile(r"\bREAD\s+(ONLY|WRITE)\b", re.I)
_SHOW: Final = re.compile(
    rf"SHOW\s+(TIME\s+ZONE|TRANSACTION\s+ISOLATION\s+LEVEL|SESSION\s+AUTHORIZATION|{_NAME})", re.I
)
_RESET: Final = re.compile(rf"RESET\s+(TIME\s+ZONE|SESSION\s+AUTHORIZATION|{_NAME})", re.I)
_LEVELS: Final = r"SERIALIZABLE|REPEATABLE\s+READ|READ\s+COMMITTED|READ\s+UNCOMMITTED"
_BEGIN: Final = re.compile(
    r"(?:BEGIN(?:\s+(?:WORK|TRANSACTION))?|START\s+TRANSACTION)(?:(?:\s*,\s*|\s+)"
    rf"(?:ISOLATION\s+LEVEL\s+(?:{_LEVELS})|READ\s+WRITE|READ\s+ONLY|(?:NOT\s+)?DEFERRABLE))*",
    re.I,
)
_LEVEL: Final = re.compile(rf"ISOLATION\s+LEVEL\s+({_LEVELS})", re.I)
_END: Final = re.compile(r"(COMMIT|END|ROLLBACK|ABORT)(?:\s+(?:WORK|TRANSACTION))?(?:\s+AND\s+NO\s+CHAIN)?", re.I)
_SAVE: Final = re.compile(
    rf"(SAVEPOINT|RELEASE(?:\s+SAVEPOINT)?|ROLLBACK(?:\s+(?:WORK|TRANSACTION))?\s+TO(?:\s+SAVEPOINT)?)\s+{_NAME}", re.I
)
_DECLARE: Final = re.compile(
    rf"DECLARE\s+{_NAME}(?:\s+(?:ASENSITIVE|INSENSITIVE|NO\s+SCROLL))*\s+CURSOR(?:\s+(WITH|WITHOUT)\s+HOLD)?\s+FOR\s+(.*)",
    re.I | re.S,
)
_FETCH: Final = re.compile(
    rf"(FETCH|MOVE)(?:\s+NEXT)?(?:\s+FORWARD)?(?:\s+(\d{{1,9}}|ALL))?(?:\s+(?:FROM|IN))?\s+{_NAME}", re.I
)
_SUBSCRIBE: Final = re.compile(rf"SUBSCRIBE\s+(?:TO\s+)?{_NAME}(?:\s+SINCE\s+(\d{{1,18}}))?", re.I)
_COPY_QUERY: Final = re.compile(r"COPY\s*\((.*)\)\s*TO\s+STDOUT\b(.*)", re.I | re.S)
_COPY_OUT: Final = re.compile(rf"COPY\s+{_NAME}\s*(\([^)]*\))?\s+TO\s+STDOUT\b(.*)", re.I | re.S)
_COPY_IN: Final = re.compile(rf"COPY\s+{_NAME}\s*(\([^)]*\))?\s+FROM\s+STDIN\b(.*)", re.I | re.S)
_OPTION: Final = re.compile(r"(\w+)(?:\s+('(?:[^']|'')*'|E'(?:[^'\\]|\\.)*'|[\w.-]+|\*|\([^)]*\)))?", re.I)
_SHOWN: Final = (
    "TABLES",
    "VIEWS",
    "COLUMNS",
    "FUNCTIONS",
    "SCHEMAS",
    "DATABASES",
    "CREATE",
    "MATERIALIZED",
    "NAMESPACES",
)


def first_word(text: str) -> str:
    """The first word of a statement, in capitals."""
    match = re.match(r"[\s(]*([A-Za-z]+)", text)
    return match[1].upper() if match else ""


def command_of(piece: str) -> DoorCommand | None:
    """The command that a statement is; None if it is for the database."""
    read = _READERS.get(first_word(piece))
    return None if read is None else read(piece.strip())


def _refused(what: str, hint: str) -> ClientError:
    return ClientError(f"{what} is not supported", "0A000", hint=hint)


def _set(text: str) -> DoorCommand:
    if _TRANSACTION.fullmatch(text):
        return SetTransaction(_read_only(text), re.match(r"SET\s+SESSION", text, re.I) is not None)
    match = _SET.fullmatch(text)
    if match is None:
        raise ClientError("syntax error: SET of what?", "42601", hint="write SET name TO value")
    name = re.sub(r"\s+", " ", match[1]).lower()
    value = match[3].strip()
    local = re.match(r"SET\s+LOCAL\b", text, re.I) is not None
    return SetParameter(name, None if value.upper() == "DEFAULT" else _values(value), local)


def _values(written: str) -> str:
    """The value of a parameter without quotes; several, with commas between them."""
    parts = [part.strip() for part in re.split(r",(?=(?:[^']*'[^']*')*[^']*$)", written)]
    return ", ".join(_unquoted(part) for part in parts)


def _unquoted(part: str) -> str:
    if len(part) > 1 and part[0] == part[-1] == "'":
        return part[1:-1].replace("''", "'")
    return part


def _show(text: str) -> DoorCommand | None:
    match = _SHOW.fullmatch(text)
    if match is None or first_word(text[4:]) in _SHOWN:
        return None
    name = re.sub(r"\s+", " ", match[1]).lower()
    return ShowParameter({"transaction isolation level": "transaction_isolation"}.get(name, name))


def _reset(text: str) -> DoorCommand:
    match = _RESET.fullmatch(text)
    if match is None:
        raise ClientError("syntax error: RESET of what?", "42601", hint="write RESET ALL")
    name = re.sub(r"\s+", " ", match[1]).lower()
    return CloseAll("RESET", settings=True) if name == "all" else SetParameter(name, None)


def _begin(text: str) -> DoorCommand:
    if _BEGIN.fullmatch(text) is None:
        raise ClientError("syntax error in BEGIN", "42601", hint="write BEGIN")
    return TurnTransaction("BEGIN", _read_only(text))


def _read_only(text: str) -> bool | None:
    """Whether a transaction is to change nothing, as its modes say; refuses levels of isolation that there are not."""
    for level in _LEVEL.findall(text):
        if " ".join(level.upper().split()) not in ("READ COMMITTED", "READ UNCOMMITTED"):
            raise _refused(f"the isolation level {level.upper()}", "every transaction is READ COMMITTED")
    said = _ACCESS.findall(text)
    return said[-1].upper() == "ONLY" if said else None


def _end(text: str) -> DoorCommand:
    if _SAVE.fullmatch(text) is not None:
        return _savepoint(text)
    match = _END.fullmatch(text)
    if match is None:
        raise _refused("this way to end a transaction", "there are COMMIT and ROLLBACK, of the whole transaction")
    return TurnTransaction("COMMIT" if match[1].upper() in ("COMMIT", "END") else "ROLLBACK")


def _savepoint(text: str) -> DoorCommand:
    match = _SAVE.fullmatch(text)
    if match is None:
        raise ClientError("syntax error: a savepoint of which name?", "42601", hint="write SAVEPOINT name")
    return TurnSavepoint(match[1].split()[0].upper(), unquoted(match[2]))


def _subscribe(text: str) -> DoorCommand:
    match = _SUBSCRIBE.fullmatch(text)
    if match is None:
        raise ClientError("syntax error in SUBSCRIBE", "42601", hint="write SUBSCRIBE view, or SUBSCRIBE view SINCE 7")
    return SubscribeView(_relation(match[1]), None if match[2] is None else int(match[2]))


def _relation(written: str) -> str:
    """The name of a relation, without the default schema."""
    return re.sub(r"^(public|default|main)\.", "", unquoted(written))


def _copy(text: str) -> DoorCommand | None:
    match = _COPY_QUERY.fullmatch(text)
    if match is not None:
        return CopyOut(match[1], match.start(1), _options(match[2]))
    match = _COPY_OUT.fullmatch(text)
    if match is not None:
        columns = (match[2] or "*").strip("()")
        return CopyOut(f"SELECT {columns} FROM {match[1]}", 0, _options(match[3]))
    match = _COPY_IN.fullmatch(text)
    if match is not None:
        columns = tuple(unquoted(c) for c in (match[2] or "").strip("()").split(",") if c.strip())
        return CopyIn(_relation(match[1]), columns, _options(match[3]))
    return None


def _options(text: str) -> dict[str, str]:
    """The options of COPY: ``WITH (FORMAT csv, HEADER)``, or the older ``CSV HEADER``."""
    said = re.sub(r"^\s*(?:WITH\b)?\s*", "", text.strip(), flags=re.I)
    bracketed = said.startswith("(") and said.endswith(")")
    given: dict[str, str] = {}
    if bracketed:
        for name, value in _OPTION.findall(said[1:-1]):
            given[name.lower()] = _option_value(value) if value else "true"
    elif said:
        for name, value in re.findall(r"(\w+)(?:\s+(?:AS\s+)?(E?'(?:[^']|'')*'))?", said):
            if name.upper() in ("CSV", "BINARY"):
                given["format"] = name.lower()
            else:
                given[name.lower()] = _option_value(value) if value else "true"
    unknown = [
        name for name in given if name not in ("format", "header", "delimiter", "null", "quote", "escape", "encoding")
    ]
    if unknown:
        raise _refused(
            f"the option {unknown[0].upper()} of COPY", "there are FORMAT, HEADER, DELIMITER, NULL and QUOTE"
        )
    if given.get("format", "text").lower() not in ("text", "csv", "binary"):
        raise _refused(f"COPY in the format {given['format']}", "there are text, csv and binary")
    return given


def _option_value(value: str) -> str:
    if value[:1] in "eE" and value[1:2] == "'":
        return value[2:-1].replace("\\t", "\t").replace("\\n", "\n").replace("\\\\", "\\")
    return _unquoted(value)


def _discard(text: str) -> DoorCommand:
    word = first_word(text[7:])
    return CloseAll(f"DISCARD {word}", settings=word == "ALL", statements=word in ("ALL", "PLANS"))


def _deallocate(text: str) -> DoorCommand:
    name = re.sub(r"^DEALLOCATE\s+(PREPARE\s+)?", "", text, flags=re.I).strip()
    return CloseAll("DEALLOCATE ALL", statements=True) if name.upper() == "ALL" else DropStatement(unquoted(name))


def _declare(text: str) -> DoorCommand:
    match = _DECLARE.fullmatch(text)
    if match is None:
        raise _refused("this kind of cursor", "write DECLARE name CURSOR FOR SELECT …, and read it forwards")
    return DeclareCursor(unquoted(match[1]), match[3], hold=(match[2] or "").upper() == "WITH")


def _fetch(text: str) -> DoorCommand:
    match = _FETCH.fullmatch(text)
    if match is None:
        raise _refused("this way to move a cursor", "write FETCH 10 FROM name, or FETCH ALL FROM name")
    count = None if (match[2] or "").upper() == "ALL" else int(match[2] or 1)
    return FetchCursor(unquoted(match[3]), count, match[1].upper() == "MOVE")


def _close(text: str) -> DoorCommand:
    name = text[5:].strip()
    return CloseCursor(None if name.upper() == "ALL" else unquoted(name))


def _nothing(tag: str) -> Callable[[str], DoorCommand]:
    return lambda text: DoNothing(tag)


def _refresh(text: str) -> DoorCommand | None:
    return DoNothing("REFRESH MATERIALIZED VIEW") if re.match(r"REFRESH\s+MATERIALIZED\s+VIEW\b", text, re.I) else None


_READERS: Final[Mapping[str, Callable[[str], DoorCommand | None]]] = {
    "SET": _set,
    "SHOW": _show,
    "RESET": _reset,
    "BEGIN": _begin,
    "START": _begin,
    "COMMIT": _end,
    "END": _end,
    "ROLLBACK": _end,
    "ABORT": _end,
    "SAVEPOINT": _savepoint,
    "RELEASE": _savepoint,
    "SUBSCRIBE": _subscribe,
    "COPY": _copy,
    "DISCARD": _discard,
    "DEALLOCATE": _deallocate,
    "DECLARE": _declare,
    "FETCH": _fetch,
    "MOVE": _fetch,
    "CLOSE": _close,
    "UNLISTEN": _nothing("UNLISTEN"),
    "REFRESH": _refresh,
}
