"""Signatures of functions of text, of bytes, and hashes."""

from __future__ import annotations

from typing import Final

from everview.scalars.coercion import implicit, is_integer
from everview.scalars.expressions import Cast, Expression
from everview.scalars.signatures.rules import Arguments, Rule, Signatures, Typed, either, family, signed, takes
from everview.types import BIGINT, BINARY, BOOLEAN, INTEGER, STRING, Array, Type


def _concat(name: str, arguments: Arguments) -> Typed | Expression:
    if arguments and all(a.type == BINARY for a in arguments):
        return Typed(arguments, BINARY)
    if any(isinstance(a.type, Array) for a in arguments):
        return either(name, arguments)
    return takes(STRING, gives=STRING)(name, tuple(_text(a) for a in arguments)) if arguments else Typed((), STRING)


def _text(argument: Expression) -> Expression:
    return Cast(argument, STRING) if argument.type == BINARY else argument


def _concat_ws(name: str, arguments: Arguments) -> Typed:
    words = [implicit(a, Array(STRING) if isinstance(a.type, Array) else STRING, name) for a in arguments[1:]]
    separator = implicit(arguments[0], STRING, name)
    return Typed((separator, *words), STRING, separator.nullable)


def _text_or_bytes(gives: Type | None) -> Rule:
    """The rule for BINARY as it is and all else as text; the result has the same type, or a given one."""

    def rule(name: str, arguments: Arguments) -> Typed:
        a = arguments[0] if arguments[0].type == BINARY else implicit(arguments[0], STRING, name)
        return Typed((a, *arguments[1:]), gives or a.type)

    return rule


def _part(name: str, arguments: Arguments) -> Typed:
    first = arguments[0] if arguments[0].type == BINARY else implicit(arguments[0], STRING, name)
    return Typed((first, *(implicit(a, INTEGER, name) for a in arguments[1:])), first.type)


def _bytes(gives: Type, nullable: bool | None = None) -> Rule:
    """The rule for bytes, or text in place of its UTF-8 bytes."""

    def rule(name: str, arguments: Arguments) -> Typed:
        first = arguments[0] if arguments[0].type == BINARY else implicit(arguments[0], STRING, name)
        return Typed((first, *(implicit(a, INTEGER, name) for a in arguments[1:])), gives, nullable)

    return rule


def _hex(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    if a.type != BINARY:
        a = implicit(a, BIGINT if is_integer(a.type) else STRING, name)
    return Typed((a,), STRING)


def _reverse(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    a = a if isinstance(a.type, Array) else implicit(a, STRING, name)
    return Typed((a,), a.type)


def _digest(type_: Type) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        return Typed(arguments, type_, False)

    return rule


_TEXT: Final = takes(STRING, gives=STRING)
_TEXT_TEST: Final = takes(STRING, gives=BOOLEAN)
_PADDED: Final = takes(STRING, INTEGER, STRING, gives=STRING)
_PLACE: Final = (
    "text, part; part, text [, start]",
    "`locate` with a NULL start is 0; a start, or letters beyond ASCII, **d**",
)
_SUBSTRING: Final = (
    "text or bytes, position [, length]",
    "from 1; negative from the end; `right` and `BINARY` **d**",
    "a/d",
)
_LIKE: Final = "the escape, `\\` if none is given, stands before `%`, `_` and itself only"
_GROUPS: Final = "groups `$0` to `$9`; no named groups; no position argument"

TEXTS: Final[Signatures] = family(
    signed(
        *("upper lower", 1, 1, _TEXT, "text", "full case mapping (`ß` is `SS`) by Python's version of Unicode", "a/d"),
        upper="ucase",
        lower="lcase",
    ),
    signed("initcap", 1, 1, _TEXT, "text", "words end at spaces", "d"),
    signed(
        *("length", 1, 1, _text_or_bytes(INTEGER), "text or bytes", "code points; bytes of `BINARY`"),
        length="char_length character_length len",
    ),
    signed("octet_length bit_length", 1, 1, _text_or_bytes(INTEGER), "text or bytes"),
    signed(*("trim ltrim rtrim", 1, 2, _TEXT, "text [, characters]", "without characters, spaces only"), trim="btrim"),
    signed(
        *("lpad rpad", 2, 3, _PADDED, "text, length [, padding]"),
        "a padding of several characters **d**; not on `BINARY`",
        "a/d",
    ),
    signed("substring", 2, 3, _part, *_SUBSTRING, substring="substr mid"),
    signed("left right", 2, 2, _part, *_SUBSTRING),
    signed("replace", 2, 3, _TEXT, "text, search [, replacement]", "an empty search changes nothing", "a/d"),
    signed("translate", 3, 3, _TEXT, "text, from, to", "", "d"),
    signed("concat", 0, None, _concat, "any", "also of arrays (**d**) and of `BINARY`", concat="||"),
    signed(*("concat_ws", 1, None, _concat_ws, "separator, text or arrays", "passes over NULLs; arrays **d**", "a/d")),
    signed("instr", 2, 2, takes(STRING, gives=INTEGER), *_PLACE, "a/d"),
    signed(
        *("locate", 2, 3, takes(STRING, STRING, INTEGER, gives=INTEGER), *_PLACE, "a/d"), locate="position charindex"
    ),
    signed(*("split", 2, 3, takes(STRING, STRING, INTEGER, gives=Array(STRING))), "text, regular expression [, limit]"),
    signed("reverse", 1, 1, _reverse, "text or array", "arrays **d**"),
    signed("repeat", 2, 2, takes(STRING, INTEGER, gives=STRING), "text, times"),
    signed("space", 1, 1, takes(INTEGER, gives=STRING), "times"),
    signed(
        *("starts_with ends_with contains", 2, 2, _TEXT_TEST, "text, part", "not on `BINARY`", "a/d"),
        starts_with="startswith",
        ends_with="endswith",
    ),
    signed("like ilike", 2, 3, _TEXT_TEST, "text, pattern [, escape]", _LIKE),
    signed("rlike", 2, 2, _TEXT_TEST, "text, regular expression", rlike="regexp regexp_like"),
    signed("regexp_replace", 3, 3, _TEXT, "text, regular expression, replacement", _GROUPS),
    signed(
        *("regexp_extract", 2, 3, takes(STRING, STRING, INTEGER, gives=STRING)),
        *("text, regular expression [, group]", "`''` when there is no match; no named groups"),
    ),
    signed("ascii", 1, 1, takes(STRING, gives=INTEGER), "text", "", "d"),
    signed("chr", 1, 1, takes(BIGINT, gives=STRING), "number", "of the number modulo 256", chr="char"),
)
BYTES: Final[Signatures] = family(
    signed("md5 sha1", 1, 1, _bytes(STRING), "text or bytes", "", "d", sha1="sha"),
    signed("crc32", 1, 1, _bytes(BIGINT), "text or bytes", "", "d"),
    signed(
        *("sha2", 2, 2, _bytes(STRING, nullable=True), "text or bytes, bits"),
        *("0, 224, 256, 384, 512; else NULL", "d"),
    ),
    signed("hex", 1, 1, _hex, "integer, text or bytes", "", "d"),
    signed(
        *("unhex unbase64", 1, 1, takes(STRING, gives=BINARY, nullable=True), "text"),
        *("NULL where it is none; `unbase64` passes over other characters", "d"),
    ),
    signed("base64", 1, 1, _bytes(STRING), "text or bytes", "one line", "d"),
    signed(
        *("xxhash64", 1, None, _digest(BIGINT), "any, not intervals"), *("bit for bit those of Spark; never NULL", "d")
    ),
    signed(
        *("hash", 1, None, _digest(INTEGER), "any, not intervals"), *("bit for bit those of Spark; never NULL", "d")
    ),
)
