"""Changes of the facts of one attribute, gathered before they are made: the last change of a fact counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from everview.codes.coerce import Unfit, coerce
from everview.database.definitions import TableDefinition
from everview.database.transaction import OpenTransaction
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import ScalarForm
from everview.frontends.edn.patterns import fits
from everview.frontends.rules.program import TextPlace
from everview.types import BIGINT, BOOLEAN, STRING, Type

Value = Any
_PLAIN: Final[dict[type, Type]] = {int: BIGINT, str: STRING, bool: BOOLEAN}  # held as they are


class FactChanges:
    """Facts of an attribute to be added and to be retracted; its table is keyed by entity, or by entity and value.

    If entities have one value each, an added fact replaces the entity's row, so the old value need not be known.
    """

    def __init__(self, attribute: str, table: TableDefinition, tx: OpenTransaction, *, unique: bool = False) -> None:
        self.attribute = attribute
        self._table, self._tx = table, tx
        self._value = table.schema.names[1]
        self._types = table.schema.types
        self.many = len(table.key) == 2
        self._facts: dict[Value, dict[Value, bool]] = {}  # by entity, whether a value is to be there
        self._unique = unique
        self._owners: dict[Value, Value] | None = None

    def fitting(self, value: Value, place: TextPlace) -> Value:
        """A value in the type of the attribute's values; raises `EdnError` if it does not fit."""
        return fitting(value, self._types[1], f"the values of {self.attribute}", place)

    def entity(self, value: Value, place: TextPlace) -> Value:
        """An entity in the type of the attribute's entities; raises `EdnError` if it does not fit."""
        return fitting(value, self._types[0], f"the entities of {self.attribute}", place)

    def add(self, entity: Value, value: Value, place: TextPlace) -> None:
        if self._unique:
            self._take(entity, value, place)
        if self.many:
            self._facts.setdefault(entity, {})[value] = True
        else:
            self._facts[entity] = {value: True}

    def retract(self, entity: Value, value: Value) -> None:
        if self.many or value in self.values(entity):
            self._drop(entity, value)

    def retract_all(self, entity: Value) -> None:
        """Retract all facts of an entity."""
        for value in self.values(entity):
            self._drop(entity, value)

    def retract_value(self, value: Value) -> None:
        """Retract all facts with a value."""
        for entity, held in self._all():
            if held == value:
                self._drop(entity, held)

    def values(self, entity: Value) -> list[Value]:
        """The values of an entity after the changes so far."""
        said = self._facts.get(entity, {})
        added = [value for value, there in said.items() if there]
        if not self.many and entity in self._facts:
            return added
        stored = [row[self._value] for row in self._tx.rows_with(self._table.name, [(entity,)])]
        return [*(value for value in stored if value not in said), *added]

    def owner(self, value: Value) -> Value | None:
        """The entity that has a unique value, if there is one."""
        return self._by_value().get(value)

    def flush(self) -> None:
        """Make the changes."""
        pairs = [(entity, value, there) for entity, said in self._facts.items() for value, there in said.items()]
        there = [(entity, value) for entity, value, there in pairs if there]
        gone = [(entity, value) for entity, value, there in pairs if not there]
        if not self.many:
            gone = [(entity,) for entity, said in self._facts.items() if not any(said.values())]
        if gone:
            self._tx.delete(self._table.name, gone)
        if there:
            self._tx.upsert(self._table.name, there)

    # -- inside

    def _drop(self, entity: Value, value: Value) -> None:
        self._facts.setdefault(entity, {})[value] = False
        if self._owners is not None:
            self._owners.pop(value, None)

    def _all(self) -> Iterable[tuple[Value, Value]]:
        """All facts after the changes so far."""
        for (entity, value), _ in self._tx.contents_of(self._table.name):
            if value not in self._facts.get(entity, {}) and (self.many or entity not in self._facts):
                yield entity, value
        for entity, said in list(self._facts.items()):
            yield from [(entity, value) for value, there in said.items() if there]

    def _by_value(self) -> dict[Value, Value]:
        if self._owners is None:
            self._owners = {value: entity for entity, value in self._all()}
        return self._owners

    def _take(self, entity: Value, value: Value, place: TextPlace) -> None:
        owners = self._by_value()
        if owners.get(value, entity) != entity:
            message = f"{self.attribute} {ScalarForm(value)!r} is of entity {owners[value]}, and unique"
            raise refuse(place, message, f"retract it there, or write to entity {owners[value]}")
        if not self.many:
            self.retract_all(entity)
        owners[value] = entity


def fitting(value: Value, type_: Type, what: str, place: TextPlace) -> Value:
    """A value in a type; raises `EdnError` if it does not fit."""
    if _PLAIN.get(type(value)) == type_ and (type_ != BIGINT or -(1 << 63) <= value < 1 << 63):
        return value
    if fits(value, type_):
        try:
            coerced = coerce(type_, value)
        except Unfit as unfit:
            raise refuse(place, f"{what} are {type_}: {unfit.message}", unfit.hint) from None
        return coerced
    raise refuse(place, f"{what} are {type_}, and {ScalarForm(value)!r} is none", "give such a value")
