"""Types, fields and schemas: what a column may hold, and how many 64-bit words it takes.

Everything inside is rows of int64 words. A type says how its values become words:

- **fixed** types (integers, floats, DECIMAL, DATE, TIMESTAMP) are coded reversibly, and the order of the
  codes is the order of the values (`Type.ordered`);
- **interned** types (STRING, BINARY, SYMBOL, ID, ARRAY, STRUCT, registered atoms) are coded by a 64-bit hash
  which a dictionary maps back; `Type.kind` is the name space of that hash;
- ANY is two words: the kind of the value, and a word of that kind.

NULL is `NULL_WORD` in every word of a column, except in a nullable BIGINT, which needs all 64 bits for its
values and so carries a flag word before them: NULL is ``(0, 0)``, a value ``(1, value)``.

>>> schema = Schema.parse("id BIGINT NOT NULL, owner STRING, amount DECIMAL(12,2)")
>>> schema.names, schema.width
(('id', 'owner', 'amount'), 3)
>>> schema == Schema.of(id=BIGINT.not_null, owner=STRING, amount=Decimal(12, 2))
True
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, total_ordering
from typing import TYPE_CHECKING, Any, Final

from everview.errors import SchemaError, UnknownName

if TYPE_CHECKING:
    import pyarrow as pa

NULL_WORD: Final = -(2**63)

# The kind of a value: its place in the total order of all values, the tag byte of its canonical encoding, the
# tag word of an ANY column and, from DECIMAL on, the name space of its codes in the dictionary. Stored: never
# renumber. Gaps leave room. A registered atom's kind is a hash of its name, far above these.
KINDS: Final[Mapping[str, int]] = {
    "NULL": 0,
    "BOOLEAN": 16,
    "INTEGER": 24,
    "FLOAT": 32,
    "DATE": 40,
    "TIMESTAMP": 48,
    "DECIMAL": 56,
    "STRING": 64,
    "BINARY": 72,
    "SYMBOL": 80,
    "ID": 88,
    "ARRAY": 96,
    "STRUCT": 104,
    "MAP": 112,
    "ATOM": 128,
}
FIRST_INTERNED: Final = KINDS["DECIMAL"]


class Type:
    """What a column may hold. Types are frozen values: equal when they mean the same."""

    __slots__ = ()

    @property
    def sql(self) -> str:
        """The SQL name, which `parse_type` reads back."""
        raise NotImplementedError

    @property
    def kind(self) -> int:
        """Where its values stand among all values, and the name space of their interned codes."""
        raise NotImplementedError

    @property
    def interned(self) -> bool:
        """Are its words codes that a dictionary maps back?"""
        return False

    @property
    def ordered(self) -> bool:
        """Is the order of its words, compared as signed integers, the order of its values?"""
        return not self.interned

    def words(self, nullable: bool = True) -> int:
        """How many words a value takes."""
        return 1

    def null_words(self) -> tuple[int, ...]:
        """The words of NULL in a nullable column."""
        return (NULL_WORD,) * self.words(nullable=True)

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type that a column of this type has outside."""
        return _arrow_type(self)

    @property
    def not_null(self) -> NotNull:
        """For `Schema.of`: this type, without NULL.

        >>> print(Schema.of(id=BIGINT.not_null))
        id BIGINT NOT NULL
        """
        return NotNull(self)

    def __str__(self) -> str:
        return self.sql


@dataclass(frozen=True, slots=True)
class NotNull:
    """A type whose column takes no NULL."""

    type: Type


@dataclass(frozen=True, slots=True, repr=False)
class Scalar(Type):
    """A type without parameters; use the constants below."""

    name: str

    @property
    def sql(self) -> str:
        return self.name

    @property
    def kind(self) -> int:
        return KINDS[_SCALAR_KINDS.get(self.name, self.name)]

    @property
    def interned(self) -> bool:
        return self.name in ("STRING", "BINARY", "SYMBOL", "ID")

    @property
    def ordered(self) -> bool:
        return not self.interned and self.name != "ANY"

    def words(self, nullable: bool = True) -> int:
        return 2 if self.name == "ANY" or (self.name == "BIGINT" and nullable) else 1

    def null_words(self) -> tuple[int, ...]:
        return (0, 0) if self.name == "BIGINT" else (NULL_WORD,) * self.words()

    def __repr__(self) -> str:
        return self.name


_SCALAR_KINDS = {
    "TINYINT": "INTEGER",
    "SMALLINT": "INTEGER",
    "BIGINT": "INTEGER",
    "DOUBLE": "FLOAT",
    "ANY": "NULL",
}

BOOLEAN: Final = Scalar("BOOLEAN")
TINYINT: Final = Scalar("TINYINT")
SMALLINT: Final = Scalar("SMALLINT")
INTEGER: Final = Scalar("INTEGER")
BIGINT: Final = Scalar("BIGINT")
FLOAT: Final = Scalar("FLOAT")
DOUBLE: Final = Scalar("DOUBLE")
DATE: Final = Scalar("DATE")
TIMESTAMP: Final = Scalar("TIMESTAMP")
STRING: Final = Scalar("STRING")
BINARY: Final = Scalar("BINARY")
SYMBOL: Final = Scalar("SYMBOL")
ID: Final = Scalar("ID")
ANY: Final = Scalar("ANY")

SCALARS: Final = (
    BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, FLOAT, DOUBLE, DATE, TIMESTAMP,
    STRING, BINARY, SYMBOL, ID, ANY,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decimal(Type):
    """Exact numbers of at most `precision` digits, `scale` after the point; above 18, two words.

    >>> Decimal(12, 2).words(), Decimal(38, 10).words()
    (1, 2)
    """

    precision: int
    scale: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= 38 or not 0 <= self.scale <= self.precision:
            hint = "DECIMAL(p, s) has 1 to 38 digits, 0 to p of them after the point"
            raise SchemaError(f"there is no {self.sql}", hint=hint)

    @property
    def sql(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"

    @property
    def kind(self) -> int:
        return KINDS["DECIMAL"]

    def words(self, nullable: bool = True) -> int:
        return 1 if self.precision <= 18 else 2


@dataclass(frozen=True, slots=True)
class Array(Type):
    """Sequences of one element type; an element may be NULL."""

    element: Type

    @property
    def sql(self) -> str:
        return f"ARRAY<{self.element.sql}>"

    @property
    def kind(self) -> int:
        return KINDS["ARRAY"]

    @property
    def interned(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Field:
    """A named column, or a named part of a struct."""

    name: str
    type: Type
    nullable: bool = True

    @property
    def words(self) -> int:
        """How many words it takes in a row."""
        return self.type.words(self.nullable)

    def __str__(self) -> str:
        return f"{_quoted(self.name)} {self.type.sql}{_not_null(self)}"


@dataclass(frozen=True, slots=True)
class Struct(Type):
    """Rows inside a column: at most 255 named parts."""

    fields: tuple[Field, ...]

    def __init__(self, fields: Iterable[Field]) -> None:
        object.__setattr__(self, "fields", tuple(fields))
        _check_names([f.name for f in self.fields], f"struct {self.sql}")
        if len(self.fields) > 255:
            raise SchemaError(f"a struct of {len(self.fields)} fields", hint="at most 255 are possible")

    @property
    def sql(self) -> str:
        parts = (f"{_quoted(f.name)}: {f.type.sql}{_not_null(f)}" for f in self.fields)
        return f"STRUCT<{', '.join(parts)}>"

    @property
    def kind(self) -> int:
        return KINDS["STRUCT"]

    @property
    def interned(self) -> bool:
        return True


# -- values that Python has no type for ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Symbol:
    """A name as a value: ``Symbol("a")`` is not ``"a"``."""

    name: str

    def __repr__(self) -> str:
        return f"Symbol({self.name!r})"


@total_ordering
@dataclass(frozen=True, slots=True, init=False)
class Id:
    """An opaque identity, ordered by its bytes; text stands for its UTF-8 bytes.

    >>> Id("n1") == Id(b"n1"), Id("n1") == "n1"
    (True, False)
    """

    raw: bytes

    def __init__(self, value: str | bytes) -> None:
        object.__setattr__(self, "raw", value.encode() if isinstance(value, str) else bytes(value))

    def __lt__(self, other: object) -> bool:
        return self.raw < other.raw if isinstance(other, Id) else NotImplemented

    def __str__(self) -> str:
        return self.raw.decode(errors="backslashreplace")

    def __repr__(self) -> str:
        try:
            return f"Id({self.raw.decode()!r})"
        except UnicodeDecodeError:
            return f"Id({self.raw!r})"


# -- atoms that the host registers --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Atom(Type):
    """A type of the host's own, made by `register_atom`; ordered by its bytes."""

    name: str

    @property
    def sql(self) -> str:
        return self.name

    @property
    def kind(self) -> int:
        return _atom_kind(self.name)

    @property
    def interned(self) -> bool:
        return True

    @property
    def host(self) -> HostAtom:
        """The class and the functions it was registered with."""
        try:
            return _HOST_ATOMS[self.name]
        except KeyError:
            hint = "call register_atom before using its values"
            raise UnknownName(f"atom type {self.name} is not registered", hint=hint) from None


@dataclass(frozen=True, slots=True)
class HostAtom:
    """How values of a registered atom become bytes and back: ``from_bytes(to_bytes(v)) == v``."""

    type: Atom
    python: type
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]


_HOST_ATOMS: dict[str, HostAtom] = {}
_ATOM_OF_CLASS: dict[type, HostAtom] = {}
_ATOM_OF_KIND: dict[int, HostAtom] = {}


def register_atom(
    name: str, python: type, to_bytes: Callable[[Any], bytes], from_bytes: Callable[[bytes], Any]
) -> Atom:
    """A new atom type, whose values are instances of `python`, equal and ordered as their bytes are.

    >>> import uuid
    >>> UUID = register_atom("UUID", uuid.UUID, lambda u: u.bytes, lambda b: uuid.UUID(bytes=b))
    >>> print(Schema.parse("key UUID NOT NULL, note STRING"))
    key UUID NOT NULL, note STRING
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", name) or name.upper() in (*_SPELLINGS, *_CONSTRUCTORS):
        raise SchemaError(f"{name!r} cannot name an atom type", hint="choose a word that is no SQL type")
    if name in _HOST_ATOMS and _qualified(_HOST_ATOMS[name].python) != _qualified(python):
        taken = _qualified(_HOST_ATOMS[name].python)
        raise SchemaError(f"atom type {name} is already {taken}", hint="register it under another name")
    host = HostAtom(Atom(name), python, to_bytes, from_bytes)
    twin = _ATOM_OF_KIND.get(host.type.kind)
    assert twin is None or twin.type == host.type, "two atom names of one kind"
    _HOST_ATOMS[name] = _ATOM_OF_CLASS[python] = _ATOM_OF_KIND[host.type.kind] = host
    return host.type


def atom_of_class(python: type) -> HostAtom | None:
    """The atom registered for this class or for one it inherits from."""
    return next((_ATOM_OF_CLASS[c] for c in python.__mro__ if c in _ATOM_OF_CLASS), None)


def atom_of_kind(kind: int) -> HostAtom:
    """The atom whose values carry this kind."""
    try:
        return _ATOM_OF_KIND[kind]
    except KeyError:
        hint = "call register_atom before reading its values"
        raise UnknownName("a value of an atom type that is not registered", hint=hint) from None


def _qualified(python: type) -> str:
    return f"{python.__module__}.{python.__qualname__}"


@cache
def _atom_kind(name: str) -> int:
    """A stable 63-bit number far above `KINDS`."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) >> 1 | 1 << 40


# -- schemas ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Schema:
    """The columns of a relation, in order, with unique names."""

    fields: tuple[Field, ...]
    names: tuple[str, ...] = field(compare=False)
    width: int = field(compare=False)  # words of a row, without the weight
    slices: tuple[slice, ...] = field(compare=False)  # the words of each column
    _hash: int = field(compare=False)

    def __init__(self, fields: Iterable[Field] = ()) -> None:
        fields = tuple(fields)
        _check_names([f.name for f in fields], "a schema")
        starts = [0]
        for f in fields:
            starts.append(starts[-1] + f.words)
        init = object.__setattr__
        init(self, "fields", fields)
        init(self, "names", tuple(f.name for f in fields))
        init(self, "width", starts[-1])
        init(self, "slices", tuple(map(slice, starts[:-1], starts[1:])))
        init(self, "_hash", hash(fields))

    @staticmethod
    def of(**types: Type | NotNull) -> Schema:
        """A schema from names and types: ``Schema.of(id=BIGINT.not_null, owner=STRING)``."""
        return Schema(
            Field(name, t.type, nullable=False) if isinstance(t, NotNull) else Field(name, t)
            for name, t in types.items()
        )

    @staticmethod
    def parse(text: str) -> Schema:
        """A schema from SQL: ``Schema.parse("id BIGINT NOT NULL, tags ARRAY<STRING>")``."""
        return Schema(_Parser(text).columns())

    @staticmethod
    def from_arrow(schema: pa.Schema) -> Schema:
        """The schema that holds what an Arrow table of that schema holds."""
        return Schema(_field_of_arrow(f) for f in schema)

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of its tables; types that Arrow lacks are noted in the fields' metadata."""
        return _arrow_schema(self)

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of the columns."""
        return tuple(f.type for f in self.fields)

    def words(self, column: int) -> slice:
        """Which words of a row hold a column."""
        return self.slices[column]

    def index(self, name: str) -> int:
        """The position of a column.

        >>> Schema.of(id=BIGINT, owner=STRING).index("onwer")
        Traceback (most recent call last):
        everview.errors.UnknownName: column "onwer" does not exist
          hint: did you mean "owner"? available: id, owner
        """
        try:
            return self.names.index(name)
        except ValueError:
            raise unknown_name("column", name, self.names) from None

    def select(self, names: Iterable[str]) -> Schema:
        """Only these columns, in this order."""
        return Schema(self.fields[self.index(name)] for name in names)

    def rename(self, names: Mapping[str, str]) -> Schema:
        """Columns under new names: ``schema.rename({"old": "new"})``."""
        for old in names:
            self.index(old)
        return Schema(Field(names.get(f.name, f.name), f.type, f.nullable) for f in self.fields)

    def __add__(self, other: Schema) -> Schema:
        return Schema(self.fields + other.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, column: int | str) -> Field:
        return self.fields[self.index(column) if isinstance(column, str) else column]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Schema], tuple[tuple[Field, ...]]]:
        return Schema, (self.fields,)  # hashes of text differ between processes

    def __str__(self) -> str:
        return ", ".join(map(str, self.fields))

    def __repr__(self) -> str:
        return f"Schema({str(self)!r})"

    def _repr_html_(self) -> str:
        from html import escape

        cells = "".join(
            f"<tr><td>{escape(f.name)}</td><td>{escape(f.type.sql)}{_not_null(f)}</td></tr>" for f in self.fields
        )
        return f"<table><thead><tr><th>column</th><th>type</th></tr></thead><tbody>{cells}</tbody></table>"


def unknown_name(what: str, name: str, available: Iterable[str]) -> UnknownName:
    """The error for a name that does not exist, with the nearest that does."""
    from difflib import get_close_matches

    available = list(available)
    folded = {n.lower(): n for n in available}
    near = get_close_matches(name.lower(), folded, n=1)
    guess = f'did you mean "{folded[near[0]]}"? ' if near else ""
    return UnknownName(f'{what} "{name}" does not exist', hint=f"{guess}available: {', '.join(available)}")


def _check_names(names: list[str], where: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(f"{where} names {', '.join(twice)} twice", hint="rename one: names are unique")


def _not_null(found: Field) -> str:
    return "" if found.nullable else " NOT NULL"


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"


# -- reading SQL --------------------------------------------------------------------------------------------

_SPELLINGS: Final[Mapping[str, Scalar]] = {t.name: t for t in SCALARS} | {
    "BOOL": BOOLEAN,
    "BYTE": TINYINT,
    "INT1": TINYINT,
    "SHORT": SMALLINT,
    "INT2": SMALLINT,
    "INT": INTEGER,
    "INT4": INTEGER,
    "LONG": BIGINT,
    "INT8": BIGINT,
    "REAL": FLOAT,
    "FLOAT4": FLOAT,
    "FLOAT8": DOUBLE,
    "DATETIME": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "CHAR": STRING,
    "BYTEA": BINARY,
    "BLOB": BINARY,
    "VARBINARY": BINARY,
}

_CONSTRUCTORS: Final = ("DECIMAL", "NUMERIC", "DEC", "ARRAY", "STRUCT")

_TOKEN = re.compile(r'\s*(?:(\w+)|`((?:[^`]|``)+)`|"((?:[^"]|"")+)"|([<>(),:]))')


def parse_type(text: str) -> Type:
    """A type from its SQL or Spark name.

    >>> print(parse_type("struct<x: int, tags: array<string>>"))
    STRUCT<x: INTEGER, tags: ARRAY<STRING>>
    """
    parser = _Parser(text)
    found = parser.type()
    parser.end()
    return found


class _Parser:
    """Recursive descent over ``name type [NOT NULL], …``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, bool]] = []  # the token, and whether it was quoted
        self.at = 0
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise self.error(text[position:].strip()[0])
            word, tick, quote, mark = match.groups()
            plain = word or mark
            self.tokens.append((plain, False) if plain else ((tick or "").replace("``", "`") or quote, True))
            position = match.end()

    def columns(self) -> list[Field]:
        found: list[Field] = []
        while self.at < len(self.tokens):
            if found:
                self.expect(",")
            found.append(self.field())
        return found

    def field(self) -> Field:
        name, quoted = self.next("a column name")
        if not quoted and not re.match(r"\w", name):
            raise self.error(name)
        self.accept(":")
        found = self.type()
        if self.accept("NOT"):
            self.expect("NULL")
            return Field(name, found, nullable=False)
        self.accept("NULL")
        return Field(name, found)

    def type(self) -> Type:
        word, _ = self.next("a type")
        name = word.upper()
        if name == "ARRAY":
            self.expect("<")
            element = self.type()
            self.expect(">")
            return Array(element)
        if name == "STRUCT":
            return self.struct()
        if name in _CONSTRUCTORS:
            numbers = self.numbers()
            return Decimal(*numbers) if numbers else Decimal(10, 0)
        if word in _HOST_ATOMS:
            return Atom(word)
        if name not in _SPELLINGS:
            raise unknown_name("type", word, [*_SPELLINGS, *_CONSTRUCTORS, *_HOST_ATOMS])
        if name == "DOUBLE":
            self.accept("PRECISION")
        if name in ("VARCHAR", "CHAR", "VARBINARY"):
            self.numbers()
        return _SPELLINGS[name]

    def struct(self) -> Type:
        self.expect("<")
        fields: list[Field] = []
        while not self.accept(">"):
            if fields:
                self.expect(",")
            fields.append(self.field())
        return Struct(fields)

    def numbers(self) -> list[int]:
        found: list[int] = []
        if self.accept("("):
            while not self.accept(")"):
                if found:
                    self.expect(",")
                word, _ = self.next("a number")
                if not word.isdigit() or len(found) == 2:
                    raise self.error(word)
                found.append(int(word))
        return found

    def accept(self, token: str) -> bool:
        if self.at >= len(self.tokens):
            return False
        word, quoted = self.tokens[self.at]
        found = word.upper() == token and not quoted
        self.at += found
        return found

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.error(self.tokens[self.at][0] if self.at < len(self.tokens) else "the end", token)

    def next(self, what: str) -> tuple[str, bool]:
        if self.at >= len(self.tokens):
            raise self.error("the end", what)
        self.at += 1
        return self.tokens[self.at - 1]

    def end(self) -> None:
        if self.at < len(self.tokens):
            raise self.error(self.tokens[self.at][0], "the end")

    def error(self, found: str, expected: str | None = None) -> SchemaError:
        hint = 'write columns as in "id BIGINT NOT NULL, tags ARRAY<STRING>"'
        wanted = f", expected {expected}" if expected else ""
        return SchemaError(f"cannot read {found!r} in {self.text!r}{wanted}", hint=hint)


# -- Arrow --------------------------------------------------------------------------------------------------

_ARROW_NAMES: Final[Mapping[str, str]] = {
    "BOOLEAN": "bool_",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "DATE": "date32",
    "STRING": "string",
    "SYMBOL": "string",
}
_NOTE: Final = b"everview"


@cache
def _arrow_type(found: Type) -> pa.DataType:
    import pyarrow as pa

    match found:
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element):
            return pa.list_(_arrow_field(Field("element", element)))
        case Struct(fields):
            return pa.struct([_arrow_field(f) for f in fields])
        case Scalar("TIMESTAMP"):
            return pa.timestamp("us", "UTC")
        case Scalar(name) if name in _ARROW_NAMES:
            return getattr(pa, _ARROW_NAMES[name])()
        case _:
            return pa.binary()


@cache
def _arrow_schema(schema: Schema) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([_arrow_field(f) for f in schema.fields])


def _arrow_field(found: Field) -> pa.Field[Any]:
    """Symbols, IDs, ANY and atoms look like text or bytes to Arrow: the metadata says what they are."""
    import pyarrow as pa

    plain = found.type not in (SYMBOL, ID, ANY) and not isinstance(found.type, Atom)
    note = None if plain else {_NOTE: found.type.sql.encode()}
    return pa.field(found.name, found.type.arrow, nullable=found.nullable, metadata=note)


def _field_of_arrow(found: pa.Field[Any]) -> Field:
    note = (found.metadata or {}).get(_NOTE)
    noted = parse_type(note.decode()) if note else _type_of_arrow(found.type, found.name)
    return Field(found.name, noted, found.nullable)


def type_of_arrow(found: pa.DataType) -> Type:
    """The narrowest type that holds every value of an Arrow type."""
    return _type_of_arrow(found, "?")


def _type_of_arrow(found: Any, name: str) -> Type:
    import pyarrow.types as at

    if at.is_dictionary(found) or at.is_run_end_encoded(found):
        return _type_of_arrow(found.value_type, name)
    if at.is_decimal(found):
        return _decimal_of_arrow(found.precision, found.scale)
    if at.is_map(found):
        key = Field("key", _field_of_arrow(found.key_field).type, nullable=False)
        return Array(Struct((key, Field("value", _field_of_arrow(found.item_field).type))))
    if any(getattr(at, test)(found) for test in _ARROW_LISTS):
        return Array(_field_of_arrow(found.value_field).type)
    if at.is_struct(found):
        return Struct(_field_of_arrow(found.field(i)) for i in range(found.num_fields))
    for test, answer in _ARROW_TESTS:
        if getattr(at, test)(found):
            return answer
    hint = "cast it first to a number, text, a date or a timestamp"
    raise SchemaError(f'column "{name}" has Arrow type {found}, which no type here holds', hint=hint)


def _decimal_of_arrow(precision: int, scale: int) -> Decimal:
    """Arrow allows a negative scale, and more digits after the point than in all."""
    whole, scale = max(precision - scale, 0), max(scale, 0)
    return Decimal(max(whole + scale, 1), scale)


_ARROW_LISTS: Final = (
    "is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view",
)  # fmt: skip

_ARROW_TESTS: Final[tuple[tuple[str, Type], ...]] = (
    ("is_boolean", BOOLEAN),
    ("is_int8", TINYINT),
    ("is_int16", SMALLINT),
    ("is_uint8", SMALLINT),
    ("is_int32", INTEGER),
    ("is_uint16", INTEGER),
    ("is_int64", BIGINT),
    ("is_uint32", BIGINT),
    ("is_uint64", Decimal(20, 0)),
    ("is_float16", FLOAT),
    ("is_float32", FLOAT),
    ("is_float64", DOUBLE),
    ("is_date", DATE),
    ("is_timestamp", TIMESTAMP),
    ("is_string", STRING),
    ("is_large_string", STRING),
    ("is_string_view", STRING),
    ("is_binary", BINARY),
    ("is_large_binary", BINARY),
    ("is_binary_view", BINARY),
    ("is_fixed_size_binary", BINARY),
    ("is_null", ANY),
)
