"""Statements of SQL as this door runs them: read in PostgreSQL's dialect, bound with their parameters, and answered.

Everything here runs in a thread of the owner, on the database or on a snapshot of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Final

import pyarrow as pa

from everview.database import Database
from everview.database.answers import Answer
from everview.database.catalog import Catalog
from everview.database.core import Core
from everview.database.frontends import ReadableDatabase
from everview.database.planned import PlannedQuery
from everview.database.snapshots import core_of
from everview.database.statements import planned_query, planned_soon, run_bound, run_planned
from everview.errors import LimitReached
from everview.frontends.sql import (
    CreateTable,
    CreateView,
    DeleteRows,
    Drop,
    Explain,
    InsertRows,
    Merge,
    Select,
    Statement,
    UpdateRows,
)
from everview.frontends.sql.bind import bind_parsed
from everview.frontends.sql.lookups import TableLookup, lookup_of
from everview.frontends.sql.names import fold
from everview.frontends.sql.parameter_types import parameter_types
from everview.frontends.sql.parameters import MARK, NOTHING_GIVEN, ParameterValues, place_of
from everview.frontends.sql.parse import Parsed, parse_one
from everview.frontends.sql.places import SqlText
from everview.frontends.sql.system import asks_system, with_system_functions, with_system_relations
from everview.scalars.expressions import Literal
from everview.serve.postgres.commands import first_word
from everview.serve.postgres.lookups import looked_up
from everview.serve.postgres.oids import as_system_type, cast_oids, oid_of, type_of_oid
from everview.serve.postgres.states import ClientError
from everview.serve.postgres.system_catalog import SystemCatalog, SystemReadable
from everview.types import STRING, Field, Schema

SystemOf = Callable[[Catalog], SystemCatalog]
# Words without which no statement asks the system catalog: most statements are not looked at any further.
_SYSTEM: Final = re.compile(
    r"\bpg_|information_schema|\bcurrent_(schema|user|database|catalog|setting|role)|session_user|\bversion\s*\(|"
    r"\breg(class|type|namespace|role|proc|oper)|\boid\b|\bxid\b|_description|format_type|to_reg|has_\w+_privilege|set_config|json_build|"
    r"getdatabaseencoding|quote_ident|inet_|array_to_string|\buser\b",
    re.IGNORECASE,
)
MOST_COLUMNS: Final = 1_664  # of a result, as in PostgreSQL
MOST_PARAMETERS: Final = 65_535  # as many as a message counts
SHORT: Final = 5_000  # characters of a text that is kept
_READING: Final = ("SELECT", "WITH", "VALUES", "EXPLAIN", "SHOW", "DESCRIBE", "TABLE")
_CHANGING: Final = ("INSERT", "UPDATE", "DELETE", "MERGE")
_KINDS: Final = ("TABLE", "VIEW", "SCHEMA", "FUNCTION", "INDEX", "MATERIALIZED")


@dataclass(frozen=True)
class RunOutcome:
    """The result of a statement: its command tag, and its rows if it gives any."""

    tag: str
    schema: Schema | None = None
    names: tuple[str, ...] = ()
    rows: pa.Table | None = None


@dataclass(frozen=True)
class SqlStatement:
    """One statement of SQL in a text, in some dialect."""

    text: str
    start: int
    piece: str
    dialect: str
    found: list[bool] = field(default_factory=list[bool], compare=False, repr=False)  # filled by the first lookup

    @cached_property
    def word(self) -> str:
        """Its first word, in capitals."""
        return first_word(self.piece)

    @cached_property
    def reads(self) -> bool:
        """Whether it only reads: WITH may stand before a change, which the guard of snapshots would refuse."""
        if self.word == "WITH":
            return re.search(r"\b(insert|update|delete|merge)\b", self.piece, re.IGNORECASE) is None
        return self.word in _READING

    @cached_property
    def gives_rows(self) -> bool:
        """Whether the statement may give rows, so that a description has to bind it."""
        return self.word in _READING or (self.word in _CHANGING and "returning" in self.piece.lower())

    @cached_property
    def may_ask_system(self) -> bool:
        """Whether its text has a name of the system catalog: then its tree has to be searched for questions to that."""
        return self.dialect == "postgresql" and _SYSTEM.search(self.piece) is not None

    @property
    def known(self) -> bool:
        """Whether it has been parsed already."""
        return "parsed" in self.__dict__

    @cached_property
    def parsed(self) -> tuple[Parsed, SqlText]:
        """Its tree, and the text to point into."""
        parsed, source = parse_one(self.text[: self.start] + self.piece, self.start, self.dialect)
        if len(getattr(parsed.tree, "selects", ())) > MOST_COLUMNS:
            hint = "ask for fewer columns"
            raise ClientError(f"target lists can have at most {MOST_COLUMNS} entries", "54011", hint=hint)
        return parsed, source

    @cached_property
    def lookup(self) -> TableLookup | None:
        """The statement as a lookup by key; None for all other statements."""
        return lookup_of(self.parsed[0].tree)

    @cached_property
    def parameters(self) -> int:
        """The number of parameters: the greatest number of a ``$n``."""
        names = [mark.name for mark in self.parsed[0].marks if mark.name.startswith(MARK)]
        for name in names:
            if not 1 <= place_of(name) <= MOST_PARAMETERS:
                hint = f"parameters are $1 to ${MOST_PARAMETERS}"
                raise ClientError(f"there is no parameter ${name[1:20]}", "42P02", hint=hint)
        return max(map(place_of, names), default=0)

    def parameter_oids(self, catalog: Catalog, given: Sequence[int]) -> list[int]:
        """The types of the parameters: as the client gives them, or else as their places demand."""
        count = max(self.parameters, len(given))
        if all(given[:count]) and len(given) >= count:
            return list(given)
        found = parameter_types(self.parsed[0].tree, lambda name: _schema_of(catalog, name))
        named = cast_oids(self.piece)
        known = [*given, *(0 for _ in range(count - len(given)))]
        return [oid or named.get(place) or oid_of(found.get(place, STRING)) for place, oid in enumerate(known, 1)]


def sql_statement(text: str, start: int, piece: str, dialect: str) -> SqlStatement:
    """A statement; short ones are kept, so that they are parsed once for all clients."""
    make = _kept_statement if len(text) <= SHORT else SqlStatement
    return make(text, start, piece, dialect)


_kept_statement = lru_cache(maxsize=2_000)(SqlStatement)


def _schema_of(catalog: Catalog, name: str) -> Schema | None:
    relations = catalog.relations
    bare = re.sub(r"^(public|default|main)\.", "", name, flags=re.IGNORECASE)
    if bare in relations:
        return relations[bare].schema
    return next((relation.schema for stored, relation in relations.items() if fold(stored) == fold(bare)), None)


def null_values(oids: Sequence[int]) -> list[Literal]:
    """NULL for each parameter, to learn the columns of a statement before its values are there."""
    return [Literal(None, type_of_oid(oid)) for oid in oids]


# -- binding


def _bound(
    core: Core, statement: SqlStatement, values: Sequence[Literal], system_of: SystemOf
) -> tuple[Statement, ReadableDatabase]:
    parsed, source = statement.parsed
    known: ReadableDatabase = ReadableDatabase(core.catalog, core=core)
    tree = parsed.tree.copy()
    if statement.may_ask_system:
        system = system_of(core.catalog)
        asks = asks_system(tree, system.facts, {fold(name) for name in core.catalog.relations})
        if asks:
            known, tree = SystemReadable(core, system), with_system_relations(tree, system.facts)
        tree = with_system_functions(tree, system.facts)
    _require_values(statement, values)
    return bind_parsed(replace(parsed, tree=tree), source, known, statement.dialect, _given(values)), known


def _require_values(statement: SqlStatement, values: Sequence[Literal]) -> None:
    if statement.parameters > len(values):
        raise ClientError(f"there is no parameter ${len(values) + 1}", "42P02", hint="give a value for each parameter")


def describe(database: Database, statement: SqlStatement, oids: Sequence[int], system_of: SystemOf) -> RunOutcome:
    """The columns that a statement would give, without running it."""
    if not statement.gives_rows:
        return RunOutcome("")
    core = core_of(database)
    try:
        with core.access.turns:
            bound, known = _bound(core, statement, null_values(oids), system_of)
    finally:
        core.files.clear()
    return _of_system(RunOutcome("", *_columns(bound)), known)


def _of_system(outcome: RunOutcome, known: ReadableDatabase) -> RunOutcome:
    """The outcome with OIDs for the large numbers of a query of the system catalog."""
    if outcome.schema is None or not isinstance(known, SystemReadable):
        return outcome
    return replace(outcome, schema=Schema(replace(f, type=as_system_type(f.type)) for f in outcome.schema.fields))


def _columns(bound: Statement) -> tuple[Schema | None, tuple[str, ...]]:
    match bound:
        case Select():
            return Schema(bound.plan.schema.fields[: len(bound.names)]), bound.names
        case Explain():
            return _PLAN, _PLAN.names
        case InsertRows() | UpdateRows() | DeleteRows() | Merge() if bound.returning is not None:
            return _columns(bound.returning)
        case _:
            return None, ()


_PLAN: Final = Schema((Field("QUERY PLAN", STRING),))


# -- running


def run(
    database: Database, statement: SqlStatement, values: Sequence[Literal], system_of: SystemOf, most: int
) -> RunOutcome:
    """Run a statement with the values of its parameters."""
    core = core_of(database)
    access = core.access
    reads = statement.reads or access.read_only
    try:
        with access.turns if reads else access.turns.writing():
            access.ready() if reads else access.ready_to_write()
            access.require_open()
            known_rows = _found(core, statement, values)
            if known_rows is not None:
                statement.found[:] = [True]
                _require_rows(len(known_rows[1]), most)
                return RunOutcome(f"SELECT {len(known_rows[1])}", known_rows[0], known_rows[0].names, known_rows[1])
            planned = _planned(core, statement, values)
            if planned is not None:
                return _outcome(planned.statement, run_planned(core, planned, _given(values)), most)
            bound, known = _bound(core, statement, values, system_of)
            result = run_bound(core, bound, known)
    finally:
        core.files.clear()
    return _of_system(_outcome(bound, result, most), known)


def run_now(database: Database, statement: SqlStatement, values: Sequence[Literal], most: int) -> RunOutcome | None:
    """Run a query that takes microseconds; None if it may take more: see `planned_soon`."""
    if not statement.known or not statement.reads:
        return None
    core = core_of(database)
    found = _found(core, statement, values) if statement.found else None  # the first may have to load compiled code
    if found is not None:
        _require_rows(len(found[1]), most)
        return RunOutcome(f"SELECT {len(found[1])}", found[0], found[0].names, found[1])
    given = _given(values)
    planned = None if statement.may_ask_system else planned_soon(core, statement.piece, statement.dialect, given)
    return None if planned is None else _outcome(planned.statement, run_planned(core, planned, given), most)


def _given(values: Sequence[Literal]) -> ParameterValues:
    return ParameterValues(tuple(values), given=True) if values else NOTHING_GIVEN


def _planned(core: Core, statement: SqlStatement, values: Sequence[Literal]) -> PlannedQuery | None:
    """The plan of a query that does not ask the system catalog; see `everview.database.planned`."""
    if not statement.reads or statement.may_ask_system or statement.word == "EXPLAIN":
        return None
    _require_values(statement, values)
    parsed, source = statement.parsed

    def bind(known: ReadableDatabase, given: ParameterValues) -> Sequence[Statement]:
        return [bind_parsed(replace(parsed, tree=parsed.tree.copy()), source, known, statement.dialect, given)]

    return planned_query(core, statement.piece, statement.dialect, _given(values), bind)


def _found(core: Core, statement: SqlStatement, values: Sequence[Literal]) -> tuple[Schema, pa.Table] | None:
    """The rows of a lookup by key, on a snapshot; None if it is none."""
    if not core.access.read_only or not statement.reads or statement.lookup is None or core.schema:
        return None
    return looked_up(core, statement.lookup, values)


def _outcome(bound: Statement, result: Any, most: int) -> RunOutcome:
    if isinstance(bound, Explain):
        lines = pa.table({"QUERY PLAN": pa.array(str(result).split("\n"), pa.string())})
        return RunOutcome("EXPLAIN", _PLAN, _PLAN.names, lines)
    if not isinstance(result, Answer):
        return RunOutcome(tag_of(bound, result if isinstance(result, int) else 0))
    _require_rows(len(result), most)
    _, names = _columns(bound)
    return RunOutcome(tag_of(bound, len(result)), result.schema, names or result.names, result.to_arrow())


def _require_rows(count: int, most: int) -> None:
    if count > most:
        raise LimitReached(f"the answer has {count:,} rows, and {most:,} are allowed", hint="ask for fewer: LIMIT")


def tag_of(bound: Statement, count: int) -> str:
    """The command tag of a statement: its words, and how many rows it gave or changed."""
    match bound:
        case Select():
            return f"SELECT {count}"
        case InsertRows():
            return f"INSERT 0 {count}"
        case UpdateRows():
            return f"UPDATE {count}"
        case DeleteRows():
            return "TRUNCATE TABLE" if first_word(bound.text) == "TRUNCATE" else f"DELETE {count}"
        case Merge():
            word = first_word(bound.text)
            return f"INSERT 0 {count}" if word == "INSERT" else f"{word if word in _CHANGING else 'MERGE'} {count}"
        case CreateView(_, _, _, materialized):
            return "CREATE MATERIALIZED VIEW" if materialized else "CREATE VIEW"
        case CreateTable():
            return "CREATE TABLE"
        case Drop(_, kind):
            return " ".join(["DROP", *re.findall(r"(?i)^\s*DROP\s+(MATERIALIZED)", bound.text), kind]).upper()
        case _:
            words = [word for word in re.findall(r"[A-Za-z]+", bound.text.upper()) if word not in ("OR", "REPLACE")]
            return " ".join(words[:2]) if len(words) > 1 and words[1] in _KINDS else words[0]
