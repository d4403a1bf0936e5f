"""Declarations of attributes: types and cardinalities are those of their tables, the rest is a table of its own.

``db/attributes`` has a row for each attribute that refers to entities, or whose values are unique; ``db/ids`` the
greatest number that an entity has had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from everview.database.catalog import Catalog
from everview.database.definitions import TableDefinition
from everview.database.edn import attributes_of, fact_table, with_read_anew
from everview.errors import EdnError
from everview.frontends.edn.attributes import EdnAttribute
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import KeywordForm, ScalarForm
from everview.frontends.edn.infer import type_of_value
from everview.frontends.edn.transaction import IDENT, Add, Declare, Part, Retract, Swap, Temporary
from everview.types import BIGINT, STRING, Type

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.database.transaction import OpenTransaction

ATTRIBUTES: Final = TableDefinition.of("db/attributes", "name STRING, ref BOOLEAN, uniqueness STRING", key="name")
IDS: Final = TableDefinition.of("db/ids", "id BIGINT, last BIGINT", key="id")


@dataclass(frozen=True)
class Said:
    """The declaration of an attribute, apart from the types of its table."""

    ref: bool = False
    unique: str | None = None


def said_of(db: Core) -> dict[str, Said]:
    """The declarations of all attributes, by name."""
    if ATTRIBUTES.name not in db.catalog.tables:
        return {}
    return {name: Said(ref, unique) for (name, ref, unique), _ in db.holdings.contents_now(ATTRIBUTES.name)}


@dataclass(frozen=True)
class Making:
    """A catalog with the attributes that a transaction needs, the names that are new, and all declarations."""

    catalog: Catalog
    anew: tuple[str, ...]
    said: Mapping[str, Said]
    before: Mapping[str, Said]  # what was said of them until now


def making(db: Core, parts: Iterable[Part]) -> Making:
    """The attributes that a transaction declares, or is the first to have facts of; raises `EdnError`."""
    wanted = _Wanted(db)
    for part in parts:
        match part:
            case Declare():
                wanted.declare(part)
            case Add():
                wanted.add(part)
            case Retract() | Swap():
                wanted.find(part.attribute, part)
            case _:
                pass
    return wanted.making()


class _Wanted:
    def __init__(self, db: Core) -> None:
        self._db = db
        self._attributes = attributes_of(db.catalog)
        self._types: dict[str, Type | None] = {}  # of attributes whose table is to be made
        self._many: dict[str, bool] = {}
        self._before = said_of(db)
        self._said = dict(self._before)
        self._numbers = False  # whether entities are numbered

    def declare(self, part: Declare) -> None:
        name = part.attribute
        known = self._attributes.find(name)
        if known is not None and not known.is_fact:
            hint = "what it holds, and how often, is said by the table"
            raise refuse(part.place, f"{name} is an attribute of a table already", hint)
        if known is None and not self._attributes.may_be_new(name):
            raise self._unknown(name, part)
        self._take_type(part, known)
        self._take_cardinality(part, known)
        before = self._said.get(name, Said())
        self._said[name] = Said(before.ref or part.ref, part.unique or before.unique)

    def _take_type(self, part: Declare, known: EdnAttribute | None) -> None:
        name = part.attribute
        before = self._types.get(name) or (known.value if known is not None else None)
        if before is not None and part.type not in (None, before):
            raise refuse(part.place, f"the values of {name} are {before}, not {part.type}", "a type does not change")
        if known is None or known.value is None:
            self._types[name] = part.type or before

    def _take_cardinality(self, part: Declare, known: EdnAttribute | None) -> None:
        name = part.attribute
        if part.many is None:
            return
        if known is not None and (len(self._db.catalog.tables[name].key) == 2) != part.many:
            if len(self._db.holdings.contents_now(name)):
                hint = "declare the cardinality of an attribute before its first fact"
                raise refuse(part.place, f"{name} has facts, and its cardinality does not change", hint)
            self._types.setdefault(name, known.value)
        self._many[name] = part.many

    def add(self, part: Add) -> None:
        name, value = part.attribute, part.value
        if name == IDENT:
            self._take_ident(part)
        known = self.find(name, part)
        self._numbers = self._numbers or known is None or known.is_fact
        if known is not None and not (known.is_fact and known.value is None):
            return
        if self._types.get(name) is not None:
            return
        if isinstance(value, Temporary):
            self._types[name] = BIGINT
            self._said[name] = Said(True, self._said.get(name, Said()).unique)
        elif isinstance(value, ScalarForm | KeywordForm):
            self._types[name] = type_of_value(value.value if isinstance(value, ScalarForm) else value.name)
        else:
            hint = "declare it: {:db/ident " + name + " :db/valueType :db.type/ref}"
            raise refuse(part.place, f"{value!r} is no value of a new attribute {name}", hint)

    def _take_ident(self, part: Add) -> None:
        """Make the attribute of idents, which are keywords, one for an entity, and unique."""
        value = part.value
        text = value.name if isinstance(value, KeywordForm) else getattr(value, "value", None)
        if not isinstance(text, str) or not text.startswith(":") or text.startswith((":db/", ":db.")):
            hint = "an ident is a keyword of another name space than db: {:db/ident :color/red}"
            raise refuse(part.place, f"{value!r} is no ident", hint)
        if self._attributes.find(IDENT) is None:
            self._types[IDENT], self._many[IDENT] = STRING, False
            self._said[IDENT] = Said(False, "identity")

    def find(self, name: str, part: Add | Retract | Swap) -> EdnAttribute | None:
        """An attribute that exists or is to be made; raises `EdnError` for one that cannot be made."""
        try:
            known = self._attributes.find(name)
        except EdnError as error:
            raise refuse(part.place, error.message, error.hint or "") from None
        is_new = isinstance(part, Add) and self._attributes.may_be_new(name)
        if known is None and name not in self._types and not is_new:
            raise self._unknown(name, part)
        return known

    def _unknown(self, name: str, part: Add | Retract | Swap | Declare) -> EdnError:
        if name.startswith((":db/", ":db.", ":*", "::")):
            return refuse(part.place, f"{name} is no name for an attribute", "take another name space than db")
        error = self._attributes.unknown(name)
        return refuse(part.place, error.message, error.hint or "")

    def making(self) -> Making:
        catalog = self._db.catalog
        made = dict[str, TableDefinition]()
        for name, type_ in self._types.items():
            known = catalog.tables.get(name)
            if known is None:
                catalog.require_free("attribute", name)
            many = self._many.get(name, known is None or len(known.key) == 2)
            made[name] = fact_table(name, type_ or (None if known is None else known.schema.types[1]), many=many)
        made = {name: table for name, table in made.items() if catalog.tables.get(name) != table}
        if any(said != Said() for said in self._said.values()) and ATTRIBUTES.name not in catalog.tables:
            made[ATTRIBUTES.name] = ATTRIBUTES
        if self._numbers and IDS.name not in catalog.tables:
            made[IDS.name] = IDS
        if not made:
            return Making(catalog, (), self._said, self._before)
        replaced = [name for name in made if name in catalog.tables]
        whole, anew = with_read_anew(replace(catalog, tables={**catalog.tables, **made}), set(made))
        return Making(whole, (*replaced, *anew), self._said, self._before)


def store(tx: OpenTransaction, said: Mapping[str, Said], before: Mapping[str, Said]) -> None:
    """Store the declarations that are new."""
    rows: list[dict[str, Any]] = [
        {"name": name, "ref": one.ref, "uniqueness": one.unique}
        for name, one in said.items()
        if one != before.get(name, Said())
    ]
    if rows:
        tx.upsert(ATTRIBUTES.name, rows)
