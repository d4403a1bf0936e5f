"""Programs over words: what a projection or a filter computes, as code that a kernel runs on rows of words.

An `Assembler` puts a program together, an instruction at a time; equal instructions are written once. The meaning of
the instructions is in `everview.kernels.word_code`. A program that meets a row for which it has no result, or is not
sure of it, gives None: then the caller evaluates the same rows on Arrow columns, which raises what is to be raised.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from everview.codes import encode_pairs
from everview.codes.dictionary import Dictionary
from everview.kernels import word_code as op
from everview.kernels.words import word_rows
from everview.types import ANY, BIGINT, NULL_WORD, Decimal, Field, Schema, Type
from everview.types.kinds import FIRST_INTERNED
from everview.types.words import Matrix, Words

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
LOADS = (op.LOAD, op.LOAD_PLAIN, op.LOAD_FLAGGED, op.LOAD_SECOND)
Store = tuple[int, ...]  # a line that writes words of a result
FEW = 4096  # rows, below which a result may hold on to room that it does not need


class NotInWords(Exception):
    """Raised where words alone do not suffice; the message says why, for `explain`."""


@dataclass(frozen=True, slots=True)
class GivenWord:
    """A value and its word; the word of a text is the dictionary's, by the kind of the type and the text's bytes."""

    value: Any
    word: int = 0
    kind: int = 0
    text: bytes = b""

    def code(self, dictionary: Dictionary) -> int:
        """The word of the value."""
        return dictionary.intern_values(self.kind, [self.text])[0] if self.kind else self.word


_GIVEN: Final[ContextVar[Sequence[GivenWord]]] = ContextVar("given")


@contextmanager
def giving(words: Sequence[GivenWord]) -> Generator[None]:
    """Give values, by their numbers, to the programs that run within a block.

    >>> with giving([GivenWord(7, word=7)]):
    ...     given_value(0)
    7
    """
    token = _GIVEN.set(words)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def given_word(number: int) -> GivenWord:
    """The value with a number, as it has been given."""
    return _GIVEN.get()[number]


def given_value(number: int) -> Any:
    """The value with a number, in Python."""
    return _GIVEN.get()[number].value


@dataclass(frozen=True, slots=True)
class InternedConstant:
    """A constant whose word the dictionary knows."""

    place: int
    kind: int
    value: bytes

    def code(self, dictionary: Dictionary) -> int:
        """Its word."""
        return dictionary.intern_values(self.kind, [self.value])[0]


@dataclass(frozen=True, slots=True)
class GivenConstant:
    """A constant of one run: the value with this number, see `giving`."""

    place: int
    number: int

    def code(self, dictionary: Dictionary) -> int:
        """Its word."""
        return given_word(self.number).code(dictionary)


@dataclass(frozen=True, slots=True, eq=False)
class WordProgram:
    """Code, and its constants; those that are interned get their words from the dictionary of each step."""

    code: Words
    fixed: Words
    interned: tuple[InternedConstant | GivenConstant, ...] = ()
    searched: tuple[slice, ...] = ()  # constants that must be in order, some of them interned
    width: int = 0  # words of a result's row, without the weight
    filters: bool = False  # rows that are kept stay as they are
    _bound: list[tuple[list[int], Words]] = field(default_factory=list[tuple[list[int], Words]], compare=False)

    @property
    def is_given(self) -> bool:
        """Whether some constants are those of one run."""
        return any(isinstance(one, GivenConstant) for one in self.interned)

    def constants(self, dictionary: Dictionary) -> Words:
        """All constants as words. A dictionary may forget, so the words of interned ones are asked for every time."""
        if not self.interned:
            return self.fixed
        codes = [one.code(dictionary) for one in self.interned]
        for known, words in self._bound[:1]:  # as it is now: other threads may run the same program
            if known == codes:
                return words
        words = self.fixed.copy()
        words[[one.place for one in self.interned]] = codes
        for part in self.searched:
            words[part].sort()
        self._bound[:] = [(codes, words)]
        return words

    def over(self, columns: Words) -> WordProgram:
        """This program for wider rows: ``columns`` are the words that it reads, in order.

        Words of one field stand in a row there as here.
        """
        code = self.code.copy()
        for line in range(op.HEAD, int(code[op.AFTER_VALUES]), op.STRIDE):
            if code[line] in LOADS:
                code[line + 2] = columns[code[line + 2]]
        stores = [(op.KEEP, to, int(columns[word]), 1) for to, word in self._kept()]
        return self._storing(code, [*stores, *self._stored()], self.width)

    def picking(self, columns: Words) -> WordProgram | None:
        """The program that writes these words of the result, in this order; None if one is left out that may fail."""
        kept = dict(self._kept())
        stored = {line[1]: line for line in self._stored()}
        seconds = {to + 1 for to, line in stored.items() if line[0] == op.STORE_FLAGGED}
        wanted = columns.tolist()
        if not {*stored} <= {*wanted} or not {*wanted} <= {*kept, *stored, *seconds}:
            return None
        stores = [
            (op.KEEP, to, kept[word], 1) if word in kept else (stored[word][0], to, *stored[word][2:])
            for to, word in enumerate(wanted)
            if word not in seconds
        ]
        return self._storing(self.code, stores, len(wanted))

    def _kept(self) -> list[tuple[int, int]]:
        """Words of the result that are those of the source as they are: (word of the result, word of the source)."""
        lines = (line for line in self._lines() if line[0] == op.KEEP)
        return [(to + k, word + k) for _, to, word, count in lines for k in range(count)]

    def _stored(self) -> list[Store]:
        """The lines that write words which were computed."""
        return [line for line in self._lines() if line[0] != op.KEEP]

    def _lines(self) -> list[Store]:
        first, last = int(self.code[op.AFTER_VALUES]), int(self.code[op.AFTER_STORES])
        return [tuple(self.code[line : line + 4].tolist()) for line in range(first, last, op.STRIDE)]

    def _storing(self, code: Words, stores: Sequence[Store], width: int) -> WordProgram:
        """The program with other lines that write its result."""
        head, runs = code[: code[op.AFTER_VALUES]].copy(), _in_runs(stores)
        lines = np.zeros((len(runs), op.STRIDE), np.int64)
        for line, run in zip(lines, runs, strict=True):
            line[: len(run)] = run
        head[op.AFTER_STORES] = head.size + lines.size
        return replace(self, code=np.concatenate([head, lines.ravel()]), width=width, filters=False, _bound=[])

    def run(self, delta: Matrix, dictionary: Dictionary) -> Matrix | None:
        """The rows that come of a delta, each with its weight; None where some row has no result."""
        rows = delta.shape[0]
        out = np.empty((rows, self.width + 1), np.int64)
        count = word_rows(delta, self.code, self.constants(dictionary), out)
        if count < 0:
            return None
        if count == rows:
            return delta if self.filters else out
        return out[:count] if 2 * count > rows or rows < FEW else out[:count].copy()


@runtime_checkable
class InWords(Protocol):
    """A function of columns that words alone may suffice for."""

    def projection_in_words(
        self, source: Schema, keep: tuple[int, ...], arguments: tuple[int, ...], out: Schema
    ) -> WordProgram | str:
        """The program that keeps some fields and adds what the function computes of others; or why there is none."""
        ...

    def predicate_in_words(self, source: Schema, arguments: tuple[int, ...]) -> WordProgram | str:
        """The program of a filter; or why there is none."""
        ...


class ProgramMemo:
    """The word program that an operator compiled last, and the function it is of; not sent to other processes."""

    def __init__(self) -> None:
        self._last: tuple[Any, WordProgram | str] | None = None

    def of(self, function: Any, made: Callable[[InWords], WordProgram | str]) -> WordProgram | str:
        """The program of a function, or why there is none."""
        last = self._last  # once: other threads may run the same operator
        if last is not None and last[0] is function:
            return last[1]
        program = made(function) if isinstance(function, InWords) else "a function of users"
        self._last = (function, program)
        return program

    def __reduce__(self) -> tuple[Any, ...]:
        return ProgramMemo, ()


class Assembler:
    """A program in the making. Values are slots, by number; a DECIMAL of two words is the first of two slots."""

    def __init__(self) -> None:
        self._slots = 0
        self._constants: list[int] = []
        self._interned: list[InternedConstant | GivenConstant] = []
        self._searched: list[slice] = []
        self._places: dict[Any, int] = {}
        self._given: list[tuple[int, ...]] = []  # instructions that do not depend on rows
        self._values: list[tuple[int, ...]] = []
        self._stores: list[tuple[int, ...]] = []
        self._made: dict[tuple[int, ...], int] = {}

    # -- constants

    def values(self, schema: Schema, values: Sequence[Any]) -> int:
        """The place of the first word of a row of constants; an error if one is not of its field's type."""
        scratch = Dictionary()
        encoded = encode_pairs(schema, [(tuple(values), 1)], scratch)[0, :-1].tolist()
        place = len(self._constants)
        for kind, word in zip(_kinds(schema, encoded), encoded, strict=True):
            if kind:
                (value,) = scratch.lookup_values(kind, [word])
                self._interned.append(InternedConstant(len(self._constants), kind, value))
            self._constants.append(word)
        return place

    def words(self, *words: int) -> int:
        """The place of the first of some constants that stand in a row."""
        return self._placed(words, lambda: self._constants.extend(words))

    def interned(self, kind: int, values: Sequence[bytes]) -> int:
        """The place of the first of some interned constants that stand in a row."""

        def add() -> None:
            for value in values:
                self._interned.append(InternedConstant(len(self._constants), kind, value))
                self._constants.append(0)

        return self._placed((kind, *values), add)

    def given(self, number: int) -> int:
        """The place of a constant of one word that each run is given."""

        def add() -> None:
            self._interned.append(GivenConstant(len(self._constants), number))
            self._constants.append(0)

        return self._placed(("given", number), add)

    def _placed(self, key: Any, add: Callable[[], None]) -> int:
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self._constants)
            add()
        return place

    def constant(self, *words: int) -> int:
        """A value that is the same for all rows; of two words, a DECIMAL."""
        return self.at(self.words(*words), len(words))

    def at(self, place: int, width: int = 1) -> int:
        """The value of the constant at a place."""
        return self._emitted(self._given, [(op.CONSTANT, place + k) for k in range(width)])

    def null(self, width: int = 1) -> int:
        return self._emitted(self._given, [(op.MISSING, k) for k in range(width)])

    def among(self, value: int, place: int, count: int) -> int:
        """Whether a value is one of the constants from a place on, which nothing else reads."""
        part = slice(place, place + count)
        self._constants[part] = sorted(self._constants[part])
        self._searched.append(part)
        return self.emit(op.IN, value, place, count)

    # -- instructions

    def emit(self, operation: int, *operands: int) -> int:
        """The slot of an instruction's result."""
        return self._emitted(self._values, [(operation, *operands)])

    def emit_wide(self, operation: int, *operands: int) -> int:
        """The first of the two slots that one instruction fills."""
        return self._emitted(self._values, [(operation, *operands)], 2)

    def emit_both(self, first: tuple[int, ...], second: tuple[int, ...]) -> int:
        """The first of two slots, which two instructions fill."""
        return self._emitted(self._values, [first, second])

    def _emitted(self, section: list[tuple[int, ...]], instructions: list[tuple[int, ...]], width: int = 0) -> int:
        key = tuple(number for instruction in instructions for number in (len(instruction), *instruction))
        slot = self._made.get(key)
        if slot is None:
            slot = self._made[key] = self._slots
            self._slots += width or len(instructions)
            section += [(i[0], slot + k, *i[1:]) for k, i in enumerate(instructions)]
        return slot

    def load(self, schema: Schema, place: int) -> int:
        """The value of a field."""
        field_, column = schema.fields[place], schema.words(place).start
        if field_.type == ANY:
            raise NotInWords("a value of type ANY")
        if is_wide(field_.type):
            return self.emit_both((op.LOAD, column), (op.LOAD_SECOND, column))
        if field_.type != BIGINT:
            return self.emit(op.LOAD, column)
        return self.emit(op.LOAD_FLAGGED if field_.nullable else op.LOAD_PLAIN, column)

    def keep(self, column: int, source: Sequence[int]) -> None:
        """Write words of the source as they are, from this word of the result on."""
        kept = [(op.KEEP, there, word, 1) for there, word in enumerate(source, start=column)]
        self._stores = _in_runs([*self._stores, *kept])

    def store_word(self, column: int, slot: int) -> None:
        """Write a word as it is."""
        self._stores.append((op.STORE_WORD, column, slot, 1))

    def store(self, column: int, field_: Field, slot: int) -> None:
        """Write a value to the result's row, from this word on."""
        allowed = int(field_.nullable)
        if field_.type == BIGINT:
            self._stores.append((op.STORE_FLAGGED if allowed else op.STORE_PLAIN, column, slot, allowed))
            return
        self._stores.append((op.STORE, column, slot, allowed))
        if is_wide(field_.type):
            self._stores.append((op.STORE_WORD, column + 1, slot + 1, allowed))

    # -- the whole

    def projection(self, width: int, verdict: int = -1) -> WordProgram:
        """The program that writes the columns noted by `keep` and `store`: one row for each row given.

        With a verdict, the slot of a truth value, there is none for the rows for which that is not true.
        """
        sections = (self._given, self._values, self._stores)
        ends = accumulate((op.STRIDE * len(section) for section in sections), initial=op.HEAD)
        code = [self._slots, *list(ends)[1:], verdict]
        for section in sections:
            for instruction in section:
                code += [*instruction, *[0] * (op.STRIDE - len(instruction))]
        constants = np.array(self._constants, np.int64)
        return WordProgram(np.array(code, np.int64), constants, tuple(self._interned), tuple(self._searched), width)

    def predicate(self, schema: Schema, verdict: int) -> WordProgram:
        """The program that gives back, as they are, the rows for which the value in this slot is true."""
        self.keep(0, range(schema.width))
        return replace(self.projection(schema.width, verdict), filters=True)


def _in_runs(stores: Sequence[Store]) -> list[Store]:
    """The lines, but words that stand in a row, there and here, are copied by one."""
    lines: list[Store] = []
    for line in stores:
        last = lines[-1] if lines else (0, 0, 0, 0)
        if line[0] == last[0] == op.KEEP and (last[1] + last[3], last[2] + last[3]) == line[1:3]:
            lines[-1] = (*last[:3], last[3] + line[3])
        else:
            lines.append(line)
    return lines


def _kinds(schema: Schema, words: list[int]) -> list[int]:
    """For each word of a row its kind if it is interned, else 0."""
    kinds: list[int] = []
    for field_, part in zip(schema.fields, schema.slices, strict=True):
        first = words[part.start]
        if field_.type == ANY:
            kinds += [0, first if first >= FIRST_INTERNED else 0]
        elif field_.type.interned and first != NULL_WORD:
            kinds.append(field_.type.kind)
        else:
            kinds += [0] * field_.words
    return kinds


def is_wide(type_: Type) -> bool:
    """Whether a value takes two slots."""
    return isinstance(type_, Decimal) and type_.words() == 2


def two_words(value: int) -> tuple[int, int]:
    """The words of a DECIMAL of more than 18 digits, without its point.

    >>> two_words(-1)
    (-1, 9223372036854775807)
    """
    return value >> 64, (value & ((1 << 64) - 1)) + NULL_WORD
