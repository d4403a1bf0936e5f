"""The types: what a column may hold, and how many words a value takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from everview.errors import SchemaError
from everview.types.names import check_names, quoted

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
    "TIME": 44,
    "TIMESTAMP": 48,
    "DURATION": 52,
    "DECIMAL": 56,
    "STRING": 64,
    "BINARY": 72,
    "SYMBOL": 80,
    "ID": 88,
    "ARRAY": 96,
    "STRUCT": 104,
    "MAP": 112,
    "VARIANT": 120,
    "ATOM": 128,
}
FIRST_INTERNED: Final = KINDS["DECIMAL"]
_ARROW: dict[Type, pa.DataType] = {}  # what `Type.arrow` has given before


class Type:
    """What a column may hold. Types are frozen values: equal when they mean the same."""

    __slots__ = ()

    @property
    def sql(self) -> str:
        """The SQL name, which `parse_type` reads back."""
        raise NotImplementedError

    @property
    def kind(self) -> int:
        """The kind of the values: their place in the order of all values, and the name space of interned codes."""
        raise NotImplementedError

    @property
    def interned(self) -> bool:
        """Whether words are codes that a dictionary maps back."""
        return False

    @property
    def ordered(self) -> bool:
        """Whether words, compared as signed integers, are in the order of the values."""
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
        known = _ARROW.get(self)
        if known is None:
            from everview.types.arrow import arrow_type

            known = _ARROW[self] = arrow_type(self)
        return known

    @property
    def not_null(self) -> NotNullType:
        """For `Schema.of`: this type, without NULL.

        >>> from everview.types import Schema
        >>> print(Schema.of(id=BIGINT.not_null))
        id BIGINT NOT NULL
        """
        return NotNullType(self)

    def __str__(self) -> str:
        return self.sql


@dataclass(frozen=True, slots=True)
class NotNullType:
    """A type whose column takes no NULL."""

    type: Type


@dataclass(frozen=True, slots=True, repr=False)
class ScalarType(Type):
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
        return self.name in ("STRING", "BINARY", "SYMBOL", "ID", "VARIANT")

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
    "TIMESTAMP_NTZ": "TIMESTAMP",
    "INTERVAL YEAR TO MONTH": "INTEGER",
    "INTERVAL DAY": "DURATION",
    "INTERVAL DAY TO SECOND": "DURATION",
}

BOOLEAN: Final = ScalarType("BOOLEAN")
TINYINT: Final = ScalarType("TINYINT")
SMALLINT: Final = ScalarType("SMALLINT")
INTEGER: Final = ScalarType("INTEGER")
BIGINT: Final = ScalarType("BIGINT")
FLOAT: Final = ScalarType("FLOAT")
DOUBLE: Final = ScalarType("DOUBLE")
DATE: Final = ScalarType("DATE")
TIMESTAMP: Final = ScalarType("TIMESTAMP")  # an instant
TIMESTAMP_NTZ: Final = ScalarType("TIMESTAMP_NTZ")  # a date and a time of day, in no zone
TIME: Final = ScalarType("TIME")  # of a day, to the microsecond
YEAR_MONTH: Final = ScalarType("INTERVAL YEAR TO MONTH")  # a number of months
DAY: Final = ScalarType("INTERVAL DAY")  # whole days: a date plus one is a date
DAY_TIME: Final = ScalarType("INTERVAL DAY TO SECOND")  # microseconds
STRING: Final = ScalarType("STRING")
BINARY: Final = ScalarType("BINARY")
SYMBOL: Final = ScalarType("SYMBOL")
ID: Final = ScalarType("ID")
ANY: Final = ScalarType("ANY")
VARIANT: Final = ScalarType("VARIANT")

INTEGERS: Final = (TINYINT, SMALLINT, INTEGER, BIGINT)  # narrowest first

INTERVALS: Final = (YEAR_MONTH, DAY, DAY_TIME)
DURATIONS: Final = (DAY, DAY_TIME)  # intervals of a fixed length

SCALARS: Final = (
    BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMP_NTZ, TIME,
    STRING, BINARY, SYMBOL, ID, ANY, VARIANT, *INTERVALS,
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
        return f"{quoted(self.name)} {self.type.sql}{_not_null(self)}"


@dataclass(frozen=True, slots=True)
class Struct(Type):
    """Rows inside a column: at most 255 named parts."""

    fields: tuple[Field, ...]

    def __init__(self, fields: Iterable[Field]) -> None:
        object.__setattr__(self, "fields", tuple(fields))
        check_names([f.name for f in self.fields], f"struct {self.sql}")
        if len(self.fields) > 255:
            raise SchemaError(f"a struct of {len(self.fields)} fields", hint="at most 255 are possible")

    @property
    def sql(self) -> str:
        parts = (f"{quoted(f.name)}: {f.type.sql}{_not_null(f)}" for f in self.fields)
        return f"STRUCT<{', '.join(parts)}>"

    @property
    def kind(self) -> int:
        return KINDS["STRUCT"]

    @property
    def interned(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class MapType(Type):
    """Maps: values by keys, each key once and never NULL, in the order in which the entries were made.

    The order is part of the value, as it is of an array of entries.

    >>> MapType(STRING, INTEGER).sql, MapType(STRING, INTEGER).entries.sql
    ('MAP<STRING, INTEGER>', 'ARRAY<STRUCT<key: STRING NOT NULL, value: INTEGER>>')
    """

    key: Type
    value: Type

    def __post_init__(self) -> None:
        if has_map(self.key):
            raise SchemaError(
                f"{self.key} as the key of a map", hint="keys are compared, and maps and variants are not"
            )

    @property
    def entry(self) -> Struct:
        """The struct of a key and its value."""
        return Struct((Field("key", self.key, nullable=False), Field("value", self.value)))

    @property
    def entries(self) -> Array:
        """The array of the entries, which Arrow holds in the same buffers."""
        return Array(self.entry)

    @property
    def sql(self) -> str:
        return f"MAP<{self.key.sql}, {self.value.sql}>"

    @property
    def kind(self) -> int:
        return KINDS["MAP"]

    @property
    def interned(self) -> bool:
        return True


COMPOSITE: Final = (Array, Struct, MapType)  # types whose values have parts


def parts_of_type(type_: Type) -> tuple[Type, ...]:
    """The types of the parts of a type's values; none if these have no parts."""
    match type_:
        case Array(element):
            return (element,)
        case Struct(fields):
            return tuple(f.type for f in fields)
        case MapType(key, value):
            return (key, value)
        case _:
            return ()


def has_map(type_: Type) -> bool:
    """Whether a type is, or has inside, a MAP or VARIANT, whose values are neither compared nor sorted."""
    return isinstance(type_, MapType) or type_ == VARIANT or any(map(has_map, parts_of_type(type_)))


def _not_null(field: Field) -> str:
    return "" if field.nullable else " NOT NULL"
