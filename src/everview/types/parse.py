"""Reading types and columns as SQL writes them."""

from __future__ import annotations

import re

from everview.errors import SchemaError
from everview.types.atoms import HOST_ATOMS, Atom
from everview.types.kinds import Array, Decimal, Field, MapType, Struct, Type
from everview.types.names import unknown_name
from everview.types.spellings import CONSTRUCTORS, SPANS, SPELLINGS

_TOKEN = re.compile(r'\s*(?:(\w+)|`((?:[^`]|``)+)`|"((?:[^"]|"")+)"|([<>(),:]))')


def parse_type(text: str) -> Type:
    """A type from its SQL or Spark name.

    >>> print(parse_type("struct<x: int, tags: array<string>>"))
    STRUCT<x: INTEGER, tags: ARRAY<STRING>>
    """
    parser = TypeParser(text)
    type_ = parser.type()
    parser.end()
    return type_


class TypeParser:
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
        fields: list[Field] = []
        while self.at < len(self.tokens):
            if fields:
                self.expect(",")
            fields.append(self.field())
        return fields

    def field(self) -> Field:
        name, quoted = self.next("a column name")
        if not quoted and not re.match(r"\w", name):
            raise self.error(name)
        self.accept(":")
        type_ = self.type()
        if self.accept("NOT"):
            self.expect("NULL")
            return Field(name, type_, nullable=False)
        self.accept("NULL")
        return Field(name, type_)

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
        if name == "INTERVAL":
            return self.interval()
        if name == "MAP":
            return self.map()
        if name in CONSTRUCTORS:
            numbers = self.numbers()
            return Decimal(*numbers) if numbers else Decimal(10, 0)
        if word in HOST_ATOMS:
            return Atom(word)
        if name not in SPELLINGS:
            raise unknown_name("type", word, [*SPELLINGS, *CONSTRUCTORS, *HOST_ATOMS])
        if name == "DOUBLE":
            self.accept("PRECISION")
        if name in ("VARCHAR", "CHAR", "VARBINARY"):
            self.numbers()
        if name == "TIME" and (digits := self.numbers()) not in ([], [6]):
            raise self.error(str(digits[0]), "6")
        return SPELLINGS[name]

    def interval(self) -> Type:
        """The units after INTERVAL: ``YEAR TO MONTH``, ``DAY TO SECOND``, or others of one kind."""
        units = self.next("units, as in INTERVAL DAY TO SECOND")[0].upper()
        if self.accept("TO"):
            units += f" TO {self.next('a unit')[0].upper()}"
        if units not in SPANS:
            raise self.error(units, "units, as in INTERVAL DAY TO SECOND or INTERVAL YEAR TO MONTH")
        return SPANS[units]

    def map(self) -> Type:
        self.expect("<")
        key = self.type()
        self.expect(",")
        value = self.type()
        self.expect(">")
        return MapType(key, value)

    def struct(self) -> Type:
        self.expect("<")
        fields: list[Field] = []
        while not self.accept(">"):
            if fields:
                self.expect(",")
            fields.append(self.field())
        return Struct(fields)

    def numbers(self) -> list[int]:
        given: list[int] = []
        if self.accept("("):
            while not self.accept(")"):
                if given:
                    self.expect(",")
                word, _ = self.next("a number")
                if not word.isdigit() or len(given) == 2:
                    raise self.error(word)
                given.append(int(word))
        return given

    def accept(self, token: str) -> bool:
        if self.at >= len(self.tokens):
            return False
        word, quoted = self.tokens[self.at]
        accepted = word.upper() == token and not quoted
        self.at += accepted
        return accepted

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

    def error(self, given: str, expected: str | None = None) -> SchemaError:
        hint = 'write columns as in "id BIGINT NOT NULL, tags ARRAY<STRING>"'
        wanted = f", expected {expected}" if expected else ""
        return SchemaError(f"cannot read {given!r} in {self.text!r}{wanted}", hint=hint)
