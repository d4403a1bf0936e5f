"""Transactions as data: facts to add and to retract, entities to retract, attributes to declare.

A map holds facts of one entity: that of :db/id, else the one that has a unique value of the map, else a new one. Text
and negative numbers are temporary names of new entities, good for one transaction.

>>> from everview.frontends.edn.reader import read
>>> for part in parse_transaction(read('[[:db/add 1 :to 2] {:db/id "ada" :name "Ada"}]')):
...     print(part)
Add(entity=KnownEntity(value=1), attribute=':to', value=2)
Add(entity=Temporary(name='ada'), attribute=':name', value="Ada")
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from everview.errors import EdnError
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import AnyForm, KeywordForm, ListForm, MapForm, ScalarForm, SetForm, VectorForm
from everview.frontends.rules.program import NOWHERE, TextPlace
from everview.types import BIGINT, BINARY, BOOLEAN, DOUBLE, FLOAT, STRING, TIMESTAMP, Decimal, Type
from everview.types.parse import parse_type

IDENT: Final = ":db/ident"  # the attribute of keywords that name entities
VALUE_TYPES: Final[dict[str, Type]] = {
    "long": BIGINT, "ref": BIGINT, "bigint": Decimal(38, 0), "boolean": BOOLEAN, "double": DOUBLE, "float": FLOAT,
    "bigdec": Decimal(38, 10), "string": STRING, "keyword": STRING, "symbol": STRING, "uuid": STRING, "uri": STRING,
    "instant": TIMESTAMP, "bytes": BINARY,
}  # fmt: skip


# -- entities


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """An entity by its number, or the key of a row."""

    value: Any


@dataclass(frozen=True, slots=True)
class Temporary:
    """A new entity by the name that it has in this transaction."""

    name: str | int


@dataclass(frozen=True, slots=True)
class Having:
    """The entity that has a unique value: ``[:email "a@b.c"]``; or the row that has a key: ``[:track/id 7]``."""

    attribute: str
    value: Any


Entity = KnownEntity | Temporary | Having


# -- parts of a transaction


@dataclass(frozen=True, slots=True)
class Add:
    """A fact to add; its value is a form, because its meaning depends on the attribute."""

    entity: Entity
    attribute: str
    value: AnyForm | Temporary
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class Retract:
    """A fact to retract; without a value, all facts of an entity and an attribute."""

    entity: Entity
    attribute: str
    value: AnyForm | None = None
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class RetractEntity:
    """An entity to retract with all its facts."""

    entity: Entity
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class Swap:
    """``[:db/cas e :a old new]``: a new value, if the value now is the old one; nil for no value."""

    entity: Entity
    attribute: str
    old: AnyForm
    new: AnyForm
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class Declare:
    """The declaration of an attribute; None for a property that it leaves open."""

    attribute: str
    type: Type | None = None
    ref: bool = False
    many: bool | None = None
    unique: str | None = None
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


Part = Add | Retract | RetractEntity | Swap | Declare


def is_transaction(form: AnyForm) -> bool:
    """Is a form a vector of vectors and maps? No query is."""
    return isinstance(form, VectorForm | ListForm) and all(
        isinstance(item, VectorForm | MapForm | ListForm) for item in form.items
    )


def parse_transaction(form: AnyForm) -> tuple[Part, ...]:
    """Read the parts of a transaction, in order; raises `EdnError`."""
    if not is_transaction(form):
        hint = 'write a vector of facts and maps: [[:db/add 1 :to 2] {:db/id 1 :name "Ada"}]'
        raise refuse(form.place, f"{form!r} is no transaction", hint)
    assert isinstance(form, VectorForm | ListForm)
    parser = _Parser()
    return tuple(part for item in form.items for part in parser.parts(item))


class _Parser:
    def __init__(self) -> None:
        self._numbers = count(1)

    def parts(self, form: AnyForm) -> list[Part]:
        match form:
            case MapForm():
                return [_declared(form)] if _declares(form) else self._map(form)
            case VectorForm((first, *rest)) | ListForm((first, *rest)):
                return [self._command(form, str(_keyword(first, "what is to be done")), tuple(rest))]
            case _:
                raise refuse(form.place, f"{form!r} is no part of a transaction", "write [:db/add 1 :to 2], or a map")

    def _command(self, form: AnyForm, name: str, rest: tuple[AnyForm, ...]) -> Part:
        match name, rest:
            case ":db/add", (entity, attribute, value):
                return Add(entity_of(entity), _attribute(attribute), _given(value), place=form.place)
            case ":db/retract", (entity, attribute):
                return Retract(entity_of(entity), _attribute(attribute), place=form.place)
            case ":db/retract", (entity, attribute, value):
                return Retract(entity_of(entity), _attribute(attribute), _given(value), place=form.place)
            case ((":db/retractEntity" | ":db.fn/retractEntity"), (entity,)):
                return RetractEntity(entity_of(entity), place=form.place)
            case ((":db/cas" | ":db.fn/cas"), (entity, attribute, old, new)):
                return Swap(entity_of(entity), _attribute(attribute), old, _given(new), place=form.place)
            case _:
                raise _wrong(form, name, len(rest))

    def _map(self, form: MapForm) -> list[Part]:
        said = form.get(":db/id")
        entity = entity_of(said) if said is not None else Temporary(f"{form.place.line}:{next(self._numbers)}'")
        parts = list[Part]()
        for key, value in form.entries:
            name = _attribute(key)
            if name != ":db/id" and not (name == ":db/doc" and form.get(IDENT) is not None):
                parts += self._values(entity, name, value)
        if not parts:
            raise refuse(form.place, "a map of facts has no fact", 'write {:db/id 1 :name "Ada"}')
        return parts

    def _values(self, entity: Entity, name: str, value: AnyForm) -> list[Part]:
        match value:
            case MapForm():
                inner = self._map(value)
                first = inner[0]
                assert isinstance(first, Add)
                to = first.entity
                link = to if isinstance(to, Temporary) else ScalarForm(to.value, place=value.place)
                return [*inner, Add(entity, name, link, place=value.place)]
            case VectorForm((KeywordForm(), _)):
                return [Add(entity, name, value, place=value.place)]
            case VectorForm(items) | ListForm(items) | SetForm(items):
                return [part for item in items for part in self._values(entity, name, item)]
            case _:
                return [Add(entity, name, _given(value), place=value.place)]


def entity_of(form: AnyForm) -> Entity:
    """Read an entity: a number, a temporary name, or a unique value."""
    match form:
        case ScalarForm(bool() | None):
            pass
        case ScalarForm(int(number)):
            return KnownEntity(number) if number >= 0 else Temporary(number)
        case ScalarForm(str(name)):
            return Temporary(name)
        case ScalarForm(value):
            return KnownEntity(value)
        case KeywordForm(name):
            return Having(IDENT, name)
        case VectorForm((KeywordForm(attribute), (ScalarForm() | KeywordForm()) as value)):
            return Having(attribute, value.value if isinstance(value, ScalarForm) else value.name)
        case _:
            pass
    hint = 'an entity is a number, a temporary name ("ada", -1), an ident (:red) or has a value ([:email "a@b.c"])'
    raise refuse(form.place, f"{form!r} is no entity", hint)


def _given(value: AnyForm) -> AnyForm:
    if isinstance(value, ScalarForm) and value.value is None:
        raise refuse(value.place, "nil is no value: what is not there has no fact", "use :db/retract")
    return value


def _keyword(form: AnyForm, what: str) -> str:
    if isinstance(form, KeywordForm):
        return form.name
    if isinstance(form, ScalarForm) and isinstance(form.value, str) and form.value.startswith(":"):
        return form.value  # as Python data has it
    raise refuse(form.place, f"{form!r} does not say {what}", "write a keyword: :db/add, :name")


def _attribute(form: AnyForm) -> str:
    return _keyword(form, "which attribute it is")


_SHAPES: Final = {
    ":db/add": "[:db/add entity :attribute value]",
    ":db/retract": "[:db/retract entity :attribute value]",
    ":db/retractEntity": "[:db/retractEntity entity]",
    ":db/cas": "[:db/cas entity :attribute old new]",
}


def _wrong(form: AnyForm, name: str, count: int) -> EdnError:
    if name in _SHAPES:
        return refuse(form.place, f"{name} with {count} terms", f"write {_SHAPES[name]}")
    return refuse(form.place, f"{name} is nothing that a transaction does", f"there are {', '.join(_SHAPES)}")


# -- attributes


def _declares(form: MapForm) -> bool:
    """Does a map say what an attribute holds? One with an ident and nothing of that names an entity."""
    names = {key.name if isinstance(key, KeywordForm) else getattr(key, "value", None) for key, _ in form.entries}
    properties = {name for name in names if isinstance(name, str) and name.startswith(":db/")} - _OF_ENTITIES
    return bool(properties) and (IDENT in names or not properties.isdisjoint(_PROPERTIES))


_PROPERTIES: Final = (":db/valueType", ":db/cardinality", ":db/unique")
_OF_ENTITIES: Final = {":db/id", IDENT, ":db/doc"}


def _declared(form: MapForm) -> Declare:
    said = {_attribute(key): value for key, value in form.entries}
    if IDENT not in said:
        raise refuse(form.place, "an attribute without a name", "write {:db/ident :name :db/valueType …}")
    name = _attribute(said.pop(IDENT))
    said.pop(":db/doc", None)
    said.pop(":db/id", None)
    kind, type_ = _value_type(said.pop(":db/valueType", None))
    many = _one_of(said.pop(":db/cardinality", None), "cardinality", ("one", "many"))
    unique = _one_of(said.pop(":db/unique", None), "unique", ("identity", "value"))
    if said:
        hint = "of an attribute are said :db/valueType, :db/cardinality, :db/unique and :db/doc"
        raise refuse(form.place, f"{next(iter(said))} says nothing of an attribute here", hint)
    if name.startswith((":db/", ":db.")) or name[1:2] in ("*", ":"):
        raise refuse(form.place, f"{name} is no name for an attribute", "take another name space than db")
    return Declare(name, type_, kind == "ref", None if many is None else many == "many", unique, place=form.place)


def _value_type(form: AnyForm | None) -> tuple[str, Type | None]:
    if form is None:
        return "", None
    if isinstance(form, ScalarForm) and isinstance(form.value, str) and not form.value.startswith(":"):
        return "", parse_type(form.value)
    name = _keyword(form, "which type it is").removeprefix(":db.type/")
    if name not in VALUE_TYPES:
        hint = f"there are {', '.join(f':db.type/{known}' for known in VALUE_TYPES)}, and SQL types as text"
        raise refuse(form.place, f"there is no type {form!r}", hint)
    return name, VALUE_TYPES[name]


def _one_of(form: AnyForm | None, what: str, among: tuple[str, ...]) -> str | None:
    if form is None:
        return None
    name = _keyword(form, f"its {what}").removeprefix(f":db.{what}/")
    if name not in among:
        raise refuse(
            form.place, f"there is no {what} {form!r}", f"there are {', '.join(f':db.{what}/{a}' for a in among)}"
        )
    return name
