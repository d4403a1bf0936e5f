"""Transactions of facts: one tick, all of it or nothing.

Facts are a set: to add what is there, or to retract what is not, changes nothing. The parts of a transaction count one
after the other. New attributes are made before, and taken back should the transaction fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from everview.database.eav.changes import FactChanges
from everview.database.eav.declared import IDS, Making, Said, making, store
from everview.database.eav.entities import Numbers
from everview.database.eav.rows import RowChanges
from everview.database.edn import attributes_of
from everview.database.tentative import Tentative
from everview.errors import EdnError, TransactionError
from everview.frontends.edn.attributes import Fact, KeyedColumn, Pair
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import AnyForm, KeywordForm, ScalarForm, VectorForm
from everview.frontends.edn.transaction import (
    Add,
    Declare,
    Entity,
    Having,
    KnownEntity,
    Part,
    Retract,
    RetractEntity,
    Swap,
    Temporary,
    entity_of,
    parse_transaction,
)
from everview.frontends.rules.program import TextPlace
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.database.transaction import OpenTransaction

Name = str | int


@dataclass(frozen=True)
class Transacted:
    """The outcome of a transaction: the numbers of the entities that it names, and the changes of all views."""

    tempids: Mapping[Name, int] = field(default_factory=dict[Name, int])
    changes: Mapping[str, Batch] = field(default_factory=dict[str, Batch], repr=False)


def transact(db: Core, form: AnyForm) -> Transacted:
    """Transact facts as one tick; inside of another transaction they count when that ends."""
    parts = parse_transaction(form)
    with db.still:
        made, before = making(db, parts), db.catalog
        if made.catalog is before:
            return _transacted(db, made, parts)

        def undo() -> None:
            if db.catalog is made.catalog:
                with db.definitions.changing():
                    db.definitions.redefine(before, made.anew)

        with Tentative(db, undo):
            with db.definitions.changing():
                db.definitions.redefine(made.catalog, made.anew)
            return _transacted(db, made, parts)


def _transacted(db: Core, made: Making, parts: Sequence[Part]) -> Transacted:
    with db.transactions.block() as tx:
        tempids = _Transacting(db, tx, made, parts).run()
    return Transacted(tempids, tx.changes)


class _Transacting:
    """A transaction of facts under way: turns its parts into changes of tables."""

    def __init__(self, db: Core, tx: OpenTransaction, made: Making, parts: Sequence[Part]) -> None:
        self._db, self._tx, self._parts = db, tx, parts
        self._attributes = attributes_of(db.catalog)
        self._before, self._said = made.before, made.said
        self._facts: dict[str, FactChanges] = {}
        self._rows: dict[str, RowChanges] = {}
        self._numbers = Numbers(tx, self._fact_tables(), kept=IDS.name in db.catalog.tables)
        self._named: dict[Name, int] = {}
        self._of_name: dict[Name, list[Add]] = {}  # what is said of temporary names
        for part in parts:
            if isinstance(part, Add) and isinstance(part.entity, Temporary):
                self._of_name.setdefault(part.entity.name, []).append(part)

    def run(self) -> dict[Name, int]:
        store(self._tx, self._said, self._before)
        for part in self._parts:
            self._do(part)
        for changes in (*self._facts.values(), *self._rows.values()):
            changes.flush()
        self._numbers.flush()
        return {name: number for name, number in self._named.items() if not str(name).endswith("'")}

    def _fact_tables(self) -> list[str]:
        return [fact.name for fact in self._attributes.facts()]

    def _do(self, part: Part) -> None:
        match part:
            case Add():
                self._add(part)
            case Retract():
                self._retract(part)
            case RetractEntity():
                self._retract_entity(part)
            case Swap():
                self._swap(part)
            case Declare():
                pass

    # -- what attributes are

    def _means(self, name: str) -> Fact | Pair | KeyedColumn:
        attribute = self._attributes.find(name)
        assert attribute is not None and attribute.means is not None, "attributes were made before"
        return attribute.means

    def _changes(self, name: str, place: TextPlace) -> FactChanges:
        """The changes of an attribute whose facts are the rows of a table of two columns."""
        if name not in self._facts:
            means = self._means(name)
            assert not isinstance(means, KeyedColumn)
            table = self._db.catalog.tables.get(means.relation)
            if table is None:
                raise refuse(place, f"{name} is a view, and views change with their tables", "transact facts of those")
            if table.key not in (table.schema.names, table.schema.names[:1]):
                hint = f"make it with PRIMARY KEY ({', '.join(table.schema.names)}), or change it by rows"
                raise refuse(place, f"{name}: table {table.name} is no set of facts: it has no such key", hint)
            unique = self._said.get(name, Said()).unique is not None
            self._facts[name] = FactChanges(name, table, self._tx, unique=unique)
        return self._facts[name]

    def _row_changes(self, table: str) -> RowChanges:
        if table not in self._rows:
            self._rows[table] = RowChanges(self._db.catalog.tables[table], self._tx)
        return self._rows[table]

    # -- entities

    def _entity(self, entity: Entity, place: TextPlace) -> int:
        """The number of an entity of facts."""
        match entity:
            case Temporary(name):
                if name not in self._named:
                    self._named[name] = self._same(name) or self._numbers.new()
                return self._named[name]
            case KnownEntity(value):
                if isinstance(value, bool) or not isinstance(value, int):
                    raise refuse(place, f"{ScalarForm(value)!r} is no entity", "entities of facts are whole numbers")
                return value
            case Having(attribute, value):
                return self._owner(attribute, value, place)

    def _same(self, name: Name) -> int | None:
        """The entity that already has a unique value that this transaction gives to a temporary name."""
        for part in self._of_name.get(name, ()):
            if self._said.get(part.attribute, Said()).unique == "identity":
                changes = self._changes(part.attribute, part.place)
                owner = changes.owner(changes.fitting(_plain(part.value, part), part.place))
                if owner is not None:
                    return owner
        return None

    def _owner(self, attribute: str, value: Any, place: TextPlace) -> int:
        if self._said.get(attribute, Said()).unique is None:
            hint = "declare it: {:db/ident " + attribute + " :db/unique :db.unique/identity}"
            raise refuse(place, f"{attribute} is not unique, so nothing is looked up by it", hint)
        changes = self._changes(attribute, place)
        owner = changes.owner(changes.fitting(value, place))
        if owner is None:
            raise refuse(place, f"no entity has {attribute} {ScalarForm(value)!r}", "add it first")
        return owner

    def _key(self, entity: Entity, means: KeyedColumn, place: TextPlace) -> Any:
        """The key of a row: what stands for the entity, or the value that the transaction gives its key column."""
        match entity:
            case KnownEntity(value):
                return value
            case Having(attribute, value):
                own = self._attributes.find(attribute)
                if own is not None and own.means == KeyedColumn(means.relation, means.key, means.key):
                    return value
                raise refuse(place, f"{attribute} is not the key of {means.relation}", f"write its {means.key}")
            case Temporary(name):
                for part in self._of_name.get(name, ()):
                    if self._means(part.attribute) == KeyedColumn(means.relation, means.key, means.key):
                        return _plain(part.value, part)
                if str(name).endswith("'"):
                    hint = f"add :{means.relation}/{means.key}"
                    raise refuse(place, f"a row of {means.relation} has a key, which the map does not say", hint)
                return name

    # -- parts

    def _add(self, part: Add) -> None:
        means = self._means(part.attribute)
        if isinstance(means, KeyedColumn):
            key = self._key(part.entity, means, part.place)
            self._row_changes(means.relation).set(key, means.column, _plain(part.value, part), part.place)
            return
        changes = self._changes(part.attribute, part.place)
        entity = self._subject(part.entity, means, changes, part.place)
        value = changes.fitting(self._value(part.attribute, part.value, part), part.place)
        if isinstance(means, Fact):
            self._numbers.see(entity)
            if self._said.get(part.attribute, Said()).ref:
                self._numbers.see(value)
        changes.add(entity, value, part.place)

    def _subject(self, entity: Entity, means: Fact | Pair, changes: FactChanges, place: TextPlace) -> Any:
        """The entity of a fact; of a table of two columns, what stands there."""
        if isinstance(means, Pair) and not isinstance(entity, Having):
            return changes.entity(entity.value if isinstance(entity, KnownEntity) else entity.name, place)
        return changes.entity(self._entity(entity, place), place)

    def _value(self, attribute: str, value: AnyForm | Temporary, part: Add | Retract | Swap) -> Any:
        if isinstance(value, Temporary):
            if not self._said.get(attribute, Said()).ref:
                hint = "declare it: {:db/ident " + attribute + " :db/valueType :db.type/ref}"
                raise refuse(part.place, f"{attribute} holds values, and a map is an entity", hint)
            return self._entity(value, part.place)
        if self._said.get(attribute, Said()).ref:
            return self._entity(self._used(entity_of(value), part.place), part.place)
        return _plain(value, part)

    def _used(self, entity: Entity, place: TextPlace) -> Entity:
        """An entity that is referred to; a temporary name must be that of an entity with facts."""
        if not isinstance(entity, Temporary) or entity.name in self._named:
            return entity
        if entity.name not in self._of_name:
            hint = "add a fact of it in the same transaction"
            raise refuse(place, f"nothing is said of the entity {ScalarForm(entity.name)!r}", hint)
        return entity

    def _retract(self, part: Retract) -> None:
        means = self._means(part.attribute)
        if isinstance(means, KeyedColumn):
            key = self._key(part.entity, means, part.place)
            value = None if part.value is None else _plain(part.value, part)
            self._row_changes(means.relation).unset(key, means.column, value, part.place)
            return
        changes = self._changes(part.attribute, part.place)
        subject = part.entity if isinstance(means, Pair) else self._used(part.entity, part.place)
        entity = self._subject(subject, means, changes, part.place)
        if part.value is None:
            changes.retract_all(entity)
        else:
            changes.retract(entity, changes.fitting(self._value(part.attribute, part.value, part), part.place))

    def _retract_entity(self, part: RetractEntity) -> None:
        """Retract all facts of an entity and all references to it; or a row, if the row's key names the entity."""
        if isinstance(part.entity, Having):
            own = self._attributes.find(part.entity.attribute)
            if own is not None and isinstance(own.means, KeyedColumn):
                self._key(part.entity, own.means, part.place)
                self._row_changes(own.means.relation).remove(part.entity.value, part.place)
                return
        entity = self._entity(self._used(part.entity, part.place), part.place)
        for fact in self._attributes.facts():
            changes = self._changes(fact.name, part.place)
            changes.retract_all(entity)
            if self._said.get(fact.name, Said()).ref:
                changes.retract_value(entity)

    def _swap(self, part: Swap) -> None:
        """Replace a value, which must be there, by another."""
        old = None if part.old == ScalarForm(None) else self._value(part.attribute, part.old, part)
        means = self._means(part.attribute)
        if isinstance(means, KeyedColumn):
            held = self._row_changes(means.relation).value(self._key(part.entity, means, part.place), means.column)
        else:
            changes = self._changes(part.attribute, part.place)
            if changes.many:
                hint = "declare it with :db.cardinality/one"
                raise refuse(
                    part.place, f":db/cas is of attributes with one value, and {part.attribute} has many", hint
                )
            held = next(iter(changes.values(self._subject(part.entity, means, changes, part.place))), None)
        if held != old:
            place = f"{part.place.line}:{part.place.column}: " if part.place.line else ""
            raise TransactionError(
                f"{place}:db/cas: {part.attribute} is {ScalarForm(held)!r}, not {ScalarForm(old)!r}",
                hint="read it again",
            )
        self._add(Add(part.entity, part.attribute, part.new, place=part.place))


def _plain(value: AnyForm | Temporary, part: Add | Retract | Swap) -> Any:
    match value:
        case ScalarForm(found):
            return found
        case KeywordForm(name):
            return name
        case VectorForm():
            raise _no_value(part, f"{value!r} is no single value")
        case _:
            raise _no_value(part, f"{value!r} is no value")


def _no_value(part: Add | Retract | Swap, message: str) -> EdnError:
    return refuse(part.place, f"{part.attribute}: {message}", "give a number, text, a truth value or a moment")
