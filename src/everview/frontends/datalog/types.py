"""The types that a text may name and define, as types of columns.

``number`` and ``unsigned`` are BIGINT, so that what fits 32 bits never overflows; a ``uint64`` needs a DECIMAL. Types
by subtyping are the types they are made of. Records and tuples are structs. Values of types with branches, and records
that may hold themselves, have no bound on their depth: they are kept as the text that Soufflé prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from everview.errors import TypeConflict, UnknownName
from everview.frontends.datalog.syntax import TypeDefined, refused
from everview.frontends.rules.faults import placed
from everview.frontends.rules.meeting import met
from everview.frontends.rules.program import NIL, RECORDS, StructKind, TermKind, TermName, TermType, TextPlace
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

TERM_FIELDS: Final = (TINYINT, SMALLINT, INTEGER, BIGINT, DOUBLE, STRING, BOOLEAN, DATE)

UNSIGNED: Final = frozenset(["unsigned", "uint8", "uint16", "uint32", "uint64"])


class Types:
    """The types that a text defines, by their full names; a name is looked up from the inside out."""

    def __init__(self, defined: Mapping[str, tuple[str, TypeDefined]]) -> None:
        self._defined = defined  # with the scope in which it stands
        self._known: dict[str, Type] = {}
        self._open: list[str] = []
        self._terms: dict[str, TermType] = {}

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
            inner = [*(defined.fields or ()), *(field for _, fields in defined.branches for field in fields)]
            for name in (*defined.alternatives, *(type_name for _, type_name in inner)):
                if self._full(name, scope) is None and name not in BUILT_IN:
                    raise self._unknown(name, defined.place)
            for what, fields in ((f"record {full}", defined.fields or ()), *defined.branches):
                if len(dict(fields)) < len(fields):
                    raise refused(f"{what} has a field twice", defined.place, "name each field once")
            if self.is_term(full):
                self.term(full)
            elif defined.fields is None and not self._has_records(full):
                self.of(defined.name, scope, defined.place)
        self._check_branches()

    def _check_branches(self) -> None:
        """Refuse two branches of one name in the same scope: the name alone tells which type is meant."""
        known: dict[tuple[str, str], str] = {}
        for full, (scope, defined) in self._defined.items():
            for name, _ in defined.branches:
                if (scope, name) in known:
                    message = f"{name} is a branch of {known[scope, name]} and of {full}"
                    message = f"type {full} has branch {name} twice" if known[scope, name] == full else message
                    raise refused(message, defined.place, "give each branch a name of its own")
                known[scope, name] = full

    # -- what is kept as text

    def is_term(self, full: str) -> bool:
        """Has a type branches, or is it a record that may hold itself?"""
        _, defined = self._defined[full]
        return bool(defined.branches) or (defined.fields is not None and full in self._inside(full))

    def _inside(self, full: str) -> set[str]:
        """The types of the text that values of a type may hold."""
        inside, waiting = set[str](), [full]
        while waiting:
            scope, defined = self._defined[waiting.pop()]
            fields = [*(defined.fields or ()), *(field for _, fields in defined.branches for field in fields)]
            named = {
                self._full(name, scope) for name in (*defined.alternatives, *(type_name for _, type_name in fields))
            }
            new = {name for name in named if name is not None} - inside
            inside |= new
            waiting += new
        return inside

    def _holds_term(self, full: str | None) -> bool:
        return full is not None and any(map(self.is_term, {full, *self._inside(full)}))

    def kind(self, name: str, scope: str, place: TextPlace) -> TermKind:
        """The kind of a type by its name in a scope."""
        full = self._full(name, scope)
        if full is None or not self._holds_term(full):
            return self.of(name, scope, place)
        if self.is_term(full):
            return TermName(full)
        inner, defined = self._defined[full]
        if defined.fields is not None:
            return StructKind(tuple((n, self.kind(type_name, inner, defined.place)) for n, type_name in defined.fields))
        if len(defined.alternatives) > 1:
            hint = "give it branches of its own, one for each: .type T = A {a: …} | B {b: …}"
            raise refused(f"type {full} is a union of records or of types with branches", defined.place, hint)
        alias = next(iter(defined.alternatives))
        return self.kind(alias, inner, defined.place)

    def term(self, full: str) -> TermType:
        """The branches of a type whose values are kept as text."""
        if full not in self._terms:
            scope, defined = self._defined[full]
            branches = defined.branches or ((RECORDS, defined.fields or ()), (NIL, ()))
            made = tuple(
                (name, tuple(self._field(full, type_name, scope, defined.place) for _, type_name in fields))
                for name, fields in branches
            )
            self._terms[full] = TermType(full, made)
        return self._terms[full]

    def _field(self, full: str, name: str, scope: str, place: TextPlace) -> TermKind:
        """The kind of a field inside of a value that is kept as text, where plain records have fields, too."""
        kind = self.kind(name, scope, place)
        kind = _as_kind(kind) if isinstance(kind, Struct) else kind
        for part in _plain_parts(kind):
            if part not in TERM_FIELDS:
                hint = "such fields are numbers of at most 64 bits, floats, symbols, truth values and dates"
                raise refused(f"type {full} may hold itself or has branches, and a field of type {part}", place, hint)
        return kind

    def terms_of(self, kinds: Iterable[TermKind]) -> tuple[TermType, ...]:
        """All types that some kinds name, alone or through others."""
        term_types: dict[str, TermType] = {}
        waiting = list(kinds)
        while waiting:
            match waiting.pop():
                case TermName(name) if name not in term_types:
                    term_types[name] = self.term(name)
                    waiting += [kind for _, kinds in term_types[name].branches for kind in kinds]
                case StructKind(fields):
                    waiting += [kind for _, kind in fields]
                case _:
                    pass
        return tuple(term_types[name] for name in sorted(term_types))

    def _has_records(self, full: str) -> bool:
        """Is a type, alone or through others, a record? One that is made of itself is refused where it is used."""
        seen, waiting = {full}, [full]
        while waiting:
            scope, defined = self._defined[waiting.pop()]
            if defined.fields is not None:
                return True
            inner = {named for name in defined.alternatives if (named := self._full(name, scope)) is not None}
            waiting += inner - seen
            seen |= inner
        return False

    def _made(self, full: str) -> Type:
        scope, defined = self._defined[full]
        if self.is_term(full):
            return STRING
        if full in self._open:
            raise refused(f"type {full} is made of itself", defined.place, "name another type")
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
        if len(defined.alternatives) > 1 and self._holds_term(self._full(defined.name, scope)):
            self.kind(defined.name, scope, defined.place)  # refuses it
        common: Type | None = None
        for name in defined.alternatives:
            type_ = self.of(name, scope, defined.place)
            both = type_ if common is None else met(common, type_)
            if both is None:
                message = f"type {defined.name} is {common} and {type_}" + placed("", defined.place)
                raise TypeConflict(message, hint="a union is of types that are all numbers, or all symbols")
            common = both
        assert common is not None
        return common


def _as_kind(struct: Struct) -> StructKind:
    return StructKind(
        tuple((f.name, _as_kind(f.type) if isinstance(f.type, Struct) else f.type) for f in struct.fields)
    )


def _plain_parts(kind: TermKind) -> Iterator[Type]:
    match kind:
        case TermName():
            pass
        case StructKind(fields):
            for _, inner in fields:
                yield from _plain_parts(inner)
        case _:
            yield kind
