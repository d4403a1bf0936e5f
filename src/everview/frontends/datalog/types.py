"""The types that a text may name and define, as types of columns.

``number`` and ``unsigned`` are BIGINT, so that what fits 32 bits never overflows; a ``uint64`` needs a DECIMAL. Types
by subtyping are the types they are made of. Records and tuples are structs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from everview.errors import TypeConflict, UnknownName
from everview.frontends.datalog.syntax import TypeDefined, refused
from everview.frontends.rules.faults import placed
from everview.frontends.rules.meeting import met
from everview.frontends.rules.program import TextPlace
from everview.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Decimal,
    Field,
    Struct,
    Type,
    unknown_name,
)

BUILT_IN: Final[dict[str, Type]] = {
    "number": BIGINT,
    "unsigned": BIGINT,
    "float": DOUBLE,
    "symbol": STRING,
    "string": STRING,
    "bool": BOOLEAN,
    "int8": TINYINT,
    "int16": SMALLINT,
    "int32": INTEGER,
    "int64": BIGINT,
    "uint8": SMALLINT,
    "uint16": INTEGER,
    "uint32": BIGINT,
    "uint64": Decimal(20, 0),
    **dict.fromkeys(("float32", "f32"), FLOAT),
    **dict.fromkeys(("float64", "f64"), DOUBLE),
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
    "time": TIME,
}

UNSIGNED: Final = frozenset(["unsigned", "uint8", "uint16", "uint32", "uint64"])


class Types:
    """The types that a text defines, by their full names; a name is looked up from the inside out."""

    def __init__(self, defined: Mapping[str, tuple[str, TypeDefined]]) -> None:
        self._defined = defined  # with the scope in which it stands
        self._known: dict[str, Type] = {}
        self._open: list[str] = []

    def of(self, name: str, scope: str, place: TextPlace) -> Type:
        """Look up a type by its name in a scope such as ``"a.b."``."""
        full = self._full(name, scope)
        if full is None:
            if name in BUILT_IN:
                return BUILT_IN[name]
            raise self._unknown(name, place)
        if full not in self._known:
            self._known[full] = self._made(full)
        return self._known[full]

    def is_unsigned(self, name: str, scope: str) -> bool:
        """Is the type unsigned, or are all types that it is made of?"""
        full = self._full(name, scope)
        if full is None:
            return name in UNSIGNED
        inner, defined = self._defined[full]
        return bool(defined.alternatives) and all(self.is_unsigned(n, inner) for n in defined.alternatives)

    def _full(self, name: str, scope: str) -> str | None:
        while f"{scope}{name}" not in self._defined:
            if not scope:
                return None
            scope = scope[: scope.rfind(".", 0, -1) + 1]
        return f"{scope}{name}"

    def _unknown(self, name: str, place: TextPlace) -> UnknownName:
        error = unknown_name("type", name, [*BUILT_IN, *self._defined])
        return refused(error.message, place, error.hint or "")  # pyright: ignore[reportReturnType]

    def check(self) -> None:
        """Refuse types that are wrong, whether or not a relation has them."""
        for full, (scope, defined) in self._defined.items():
            for name in (*defined.alternatives, *(of for _, of in defined.fields or ())):
                if self._full(name, scope) is None and name not in BUILT_IN:
                    raise self._unknown(name, defined.place)
            names = [name for name, _ in defined.fields or ()]
            if len(set(names)) < len(names):
                raise refused(f"record {full} has a field twice", defined.place, "name each field once")
            if defined.fields is None and not self._has_records(full):
                self.of(defined.name, scope, defined.place)

    def _has_records(self, full: str) -> bool:
        """Is a type, alone or through others, a record? One that is made of itself is refused where it is used."""
        seen, waiting = {full}, [full]
        while waiting:
            scope, defined = self._defined[waiting.pop()]
            if defined.fields is not None:
                return True
            inner = {found for name in defined.alternatives if (found := self._full(name, scope)) is not None}
            waiting += inner - seen
            seen |= inner
        return False

    def _made(self, full: str) -> Type:
        scope, defined = self._defined[full]
        if full in self._open:
            hint = "keep such lists and trees as rows of a relation" if self._has_records(full) else "name another type"
            raise refused(f"type {full} is made of itself", defined.place, hint)
        self._open.append(full)
        try:
            return self._record(defined, scope) if defined.fields is not None else self._one(defined, scope)
        finally:
            self._open.pop()

    def _record(self, defined: TypeDefined, scope: str) -> Type:
        assert defined.fields is not None
        fields = (Field(n, self.of(t, scope, defined.place), nullable=False) for n, t in defined.fields)
        return Struct(tuple(fields))

    def _one(self, defined: TypeDefined, scope: str) -> Type:
        found: Type | None = None
        for name in defined.alternatives:
            of = self.of(name, scope, defined.place)
            both = of if found is None else met(found, of)
            if both is None:
                message = f"type {defined.name} is {found} and {of}" + placed("", defined.place)
                raise TypeConflict(message, hint="a union is of types that are all numbers, or all symbols")
            found = both
        assert found is not None
        return found
