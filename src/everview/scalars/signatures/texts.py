"""Signatures of functions of text, of bytes, and hashes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from everview.scalars.coercion import coerced, implicit, is_integer, mismatch
from everview.scalars.expressions import Call, Cast, Expression, Literal
from everview.scalars.kinds import VOID
from everview.scalars.signatures.rules import (
    Arguments,
    Rule,
    Signatures,
    Typed,
    alike,
    either,
    family,
    signed,
    takes,
    widest,
)
from everview.types import BIGINT, BINARY, BOOLEAN, DOUBLE, INTEGER, STRING, Array, MapType, Struct, Type


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
    a = a if isinstance(a.type, Array) or a.type == BINARY else implicit(a, STRING, name)
    return Typed((a,), a.type)


def _digest(type_: Type) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        return Typed(arguments, type_, False)

    return rule


def _attempted(rule: Rule) -> Rule:
    """The rule of a `try_` function."""

    def attempted(name: str, arguments: Arguments) -> Typed:
        typed = rule(name, arguments)
        assert isinstance(typed, Typed)
        return replace(typed, nullable=True)

    return attempted


def _instr(name: str, arguments: Arguments) -> Typed | Expression:
    if len(arguments) == 2:
        return takes(STRING, gives=INTEGER)(name, arguments)
    one = Literal(1, INTEGER)
    typed = takes(STRING, STRING, INTEGER, gives=INTEGER)(name, (*arguments, one)[:4])
    assert isinstance(typed, Typed)
    return Call("instr_from", typed.arguments, INTEGER, any(a.nullable for a in typed.arguments))


def _regexp_replace(name: str, arguments: Arguments) -> Typed | Expression:
    """From a position on: what stands before it stays."""
    text, *rest = (implicit(a, STRING, name) for a in arguments[:3])
    if len(arguments) == 3:
        return Typed((text, *rest), STRING)
    position = coerced(arguments[3], INTEGER)
    if not isinstance(position, Literal) or position.value is None or position.value < 1:
        raise mismatch(name, (arguments[3].type,), "its position is a literal from 1 on")
    nullable = any(a.nullable for a in (text, *rest))

    def part(*bounds: int) -> Expression:
        return Call("substring", (text, *(Literal(bound, INTEGER) for bound in bounds)), STRING, text.nullable)

    replaced = Call(name, (part(position.value), *rest), STRING, nullable)
    if position.value == 1:
        return replaced
    joined = Call("concat", (part(1, position.value - 1), replaced), STRING, nullable)
    size = Call("length", (text,), INTEGER, text.nullable)
    short = Call("less", (size, position), BOOLEAN, text.nullable)
    return Call("if", (short, text, joined), STRING, nullable)


def _sought(name: str, arguments: Arguments) -> Typed:
    """A third argument, the group of `regexp_instr`, changes nothing."""
    if len(arguments) == 3 and name == "regexp_count":
        raise mismatch(name, tuple(a.type for a in arguments), "it takes a text and a regular expression")
    return Typed(tuple(implicit(a, STRING, name) for a in arguments[:2]), INTEGER)


def _extract_all(name: str, arguments: Arguments) -> Typed:
    text, pattern, group = (*arguments, Literal(1, INTEGER))[:3]
    parts = (implicit(text, STRING, name), implicit(pattern, STRING, name), implicit(group, INTEGER, name))
    return Typed(parts, Array(STRING))


def _regexp_substr(name: str, arguments: Arguments) -> Expression:
    text, pattern = (implicit(a, STRING, name) for a in arguments)
    matches = Call("rlike", (text, pattern), BOOLEAN, text.nullable or pattern.nullable)
    whole = Call("regexp_extract", (text, pattern, Literal(0, INTEGER)), STRING, text.nullable or pattern.nullable)
    return Call("if", (matches, whole, Literal(None, STRING)), STRING, True)


def _elt(name: str, arguments: Arguments) -> Typed:
    place, *values = arguments
    type_ = BINARY if all(a.type == BINARY for a in values) else STRING
    typed = (
        implicit(place, INTEGER, name),
        *(implicit(_text(a) if type_ == STRING else a, type_, name) for a in values),
    )
    return Typed(typed, type_, any(a.nullable for a in typed))


def _overlay(name: str, arguments: Arguments) -> Expression:
    """What stands before the position, the replacement, and what stands behind the replaced letters."""
    text, by, position, *size = arguments
    type_ = BINARY if text.type == by.type == BINARY else STRING
    text, by, position = implicit(text, type_, name), implicit(by, type_, name), implicit(position, INTEGER, name)
    one = Literal(1, INTEGER)

    def called(function: str, type_: Type, *parts: Expression) -> Expression:
        return Call(function, parts, type_, any(p.nullable for p in parts))

    count = called("length", INTEGER, by)
    if size:
        given = implicit(size[0], INTEGER, name)
        count = called("if", INTEGER, called("less", BOOLEAN, given, Literal(0, INTEGER)), count, given)
    before = called("substring", type_, text, one, called("subtract", INTEGER, position, one))
    behind = called("substring", type_, text, called("add", INTEGER, position, count))
    return called("concat", type_, before, by, behind)


_MARKS: Final = (Literal("X", STRING), Literal("x", STRING), Literal("n", STRING), Literal(None, STRING))


def _mask(name: str, arguments: Arguments) -> Typed:
    text = implicit(arguments[0], STRING, name)
    marks = (*(coerced(a, STRING) for a in arguments[1:]), *_MARKS[len(arguments) - 1 :])
    if not all(isinstance(m, Literal) and (m.value is None or len(m.value) == 1) for m in marks):
        raise mismatch(name, tuple(a.type for a in arguments), "its marks are literals of one character, or NULL")
    return Typed((text, *marks), STRING, text.nullable)


def _decode(name: str, arguments: Arguments) -> Typed | Expression:
    """Bytes by a character set; with more arguments, ``decode(x, search, result, …, otherwise)``."""
    if len(arguments) == 2:
        return takes(BINARY, STRING, gives=STRING)(name, arguments)
    value, *rest = arguments
    values = widest(name, (*rest[1::2], rest[-1] if len(rest) % 2 else Literal(None, VOID)))
    parts: list[Expression] = []
    for search, result in zip(rest[:-1:2] if len(rest) % 2 else rest[::2], values[:-1], strict=True):
        parts += [Call("null_safe_equal", alike(name, (value, search)), BOOLEAN, False), result]
    return Call("case", (*parts, values[-1]), values[-1].type, any(v.nullable for v in values))


def _to_binary(nullable: bool | None) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        text, form = (*arguments, Literal("hex", STRING))[:2]
        if not isinstance(form, Literal) or str(form.value).lower() not in ("hex", "utf-8", "utf8", "base64"):
            raise mismatch(name, tuple(a.type for a in arguments), "its form is 'hex', 'utf-8' or 'base64'")
        return Typed((implicit(text, STRING, name), form), BINARY, nullable)

    return rule


def _hmac(name: str, arguments: Arguments) -> Typed:
    key, message = (a if a.type == BINARY else implicit(a, STRING, name) for a in arguments[:2])
    return Typed((key, message, *(implicit(a, STRING, name) for a in arguments[2:])), BINARY)


def _typeof(name: str, arguments: Arguments) -> Expression:
    return Literal(_spelled(arguments[0].type), STRING)


def _spelled(type_: Type) -> str:
    """A type as Spark writes it."""
    if isinstance(type_, Array):
        return f"array<{_spelled(type_.element)}>"
    if isinstance(type_, Struct):
        return f"struct<{','.join(f'{f.name}:{_spelled(f.type)}' for f in type_.fields)}>"
    if isinstance(type_, MapType):
        return f"map<{_spelled(type_.key)},{_spelled(type_.value)}>"
    return {"integer": "int"}.get(type_.sql.lower(), type_.sql.lower())


def _collation(name: str, arguments: Arguments) -> Expression:
    implicit(arguments[0], STRING, name)
    return Literal("SYSTEM.BUILTIN.UTF8_BINARY", STRING)


_LIKENESS: Final = ("text, text [, most]", "a distance above the most is -1", "d")
_URL: Final = "a form's encoding; what is no escape raises, or is NULL with `try_`"
_SETS: Final = "US-ASCII, ISO-8859-1, UTF-8, UTF-16, UTF-16BE, UTF-16LE, UTF-32; a letter that is not in it raises"
_FORMS: Final = "`hex`, `utf-8` or `base64`"
_UTF8: Final = "text is valid; bytes that are not have `�`, raise, or are NULL with `try_`"


def _trimmed(name: str, arguments: Arguments) -> Typed | Expression:
    """Text, also of bytes."""
    return takes(STRING, gives=STRING)(name, tuple(map(_text, arguments)))


def _all_bytes(*places: int) -> Callable[[Rule, Rule], Rule]:
    """The rule for text, or another where the arguments at these places, as far as they are given, are BINARY."""

    def chosen(of_text: Rule, of_bytes: Rule) -> Rule:
        def rule(name: str, arguments: Arguments) -> Typed | Expression:
            given = [arguments[place] for place in places if place < len(arguments)]
            return (of_bytes if all(a.type == BINARY for a in given) else of_text)(name, arguments)

        return rule

    return chosen


_TEXT: Final = takes(STRING, gives=STRING)
_TEXT_TEST: Final = takes(STRING, gives=BOOLEAN)
_PART_TEST: Final = _all_bytes(0, 1)(_TEXT_TEST, takes(BINARY, gives=BOOLEAN))
_PADDED: Final = _all_bytes(0, 2)(
    takes(STRING, INTEGER, STRING, gives=STRING), takes(BINARY, INTEGER, BINARY, gives=BINARY)
)
_PLACE: Final = (
    "text, part [, start [, occurrence]]; part, text [, start]",
    "`instr` counts a negative start from the end, and goes backwards; `locate` with a NULL start is 0; a start, or "
    "letters beyond ASCII, **d**",
)
_SUBSTRING: Final = (
    "text or bytes, position [, length]",
    "from 1; negative from the end; `right` and `BINARY` **d**",
    "a/d",
)
_LIKE: Final = "the escape, `\\` if none is given, stands before `%`, `_` and itself only"
_GROUPS: Final = "groups `$0` to `$9`; no named groups"

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
    signed(
        *("trim ltrim rtrim", 1, 2, _trimmed, "text [, characters]", "without characters, spaces only"),
        trim="btrim",
    ),
    signed(
        *("lpad rpad", 2, 3, _PADDED, "text or bytes, length [, padding]"),
        "a padding of several characters **d**; bytes are padded with zeros, **d**",
        "a/d",
    ),
    signed("substring", 2, 3, _part, *_SUBSTRING, substring="substr mid"),
    signed("left right", 2, 2, _part, *_SUBSTRING),
    signed("replace", 2, 3, _TEXT, "text, search [, replacement]", "an empty search changes nothing", "a/d"),
    signed("translate", 3, 3, _TEXT, "text, from, to", "", "d"),
    signed("concat", 0, None, _concat, "any", "also of arrays (**d**) and of `BINARY`", concat="||"),
    signed(*("concat_ws", 1, None, _concat_ws, "separator, text or arrays", "passes over NULLs; arrays **d**", "a/d")),
    signed("instr", 2, 4, _instr, *_PLACE, "a/d"),
    signed(
        *("locate", 2, 3, takes(STRING, STRING, INTEGER, gives=INTEGER), *_PLACE, "a/d"), locate="position charindex"
    ),
    signed(*("split", 2, 3, takes(STRING, STRING, INTEGER, gives=Array(STRING))), "text, regular expression [, limit]"),
    signed("reverse", 1, 1, _reverse, "text, bytes or array", "bytes and arrays **d**"),
    signed("repeat", 2, 2, takes(STRING, INTEGER, gives=STRING), "text, times"),
    signed("space", 1, 1, takes(INTEGER, gives=STRING), "times"),
    signed(
        *("starts_with ends_with contains", 2, 2, _PART_TEST, "text, part; bytes, part", "", "a/d"),
        starts_with="startswith",
        ends_with="endswith",
    ),
    signed("like ilike", 2, 3, _TEXT_TEST, "text, pattern [, escape]", _LIKE),
    signed("rlike", 2, 2, _TEXT_TEST, "text, regular expression", rlike="regexp regexp_like"),
    signed(
        *("regexp_replace", 3, 4, _regexp_replace, "text, regular expression, replacement [, literal position]"),
        _GROUPS,
    ),
    signed("regexp_count regexp_instr", 2, 3, _sought, "text, regular expression", "`regexp_instr` from 1, 0 if none"),
    signed(
        *("regexp_extract_all", 2, 3, _extract_all, "text, regular expression [, group]"),
        *("group 1 of every match, unless another is given", "d"),
    ),
    signed("regexp_substr", 2, 2, _regexp_substr, "text, regular expression", "NULL when there is no match"),
    signed(
        *("regexp_extract", 2, 3, takes(STRING, STRING, INTEGER, gives=STRING)),
        *("text, regular expression [, group]", "`''` when there is no match; no named groups"),
    ),
    signed(
        *("split_part", 3, 3, takes(STRING, STRING, INTEGER, gives=STRING), "text, separator, part"),
        *("from 1, negative from the end; `''` beyond, and 0 raises; a separator of a column **d**", "a/d"),
    ),
    signed(
        *("substring_index", 3, 3, takes(STRING, STRING, INTEGER, gives=STRING), "text, separator, count"),
        *("what stands before so many separators, or behind so many from the end", "d"),
    ),
    signed("elt", 2, None, _elt, "place, text, …", "from 1; a place beyond raises"),
    signed("find_in_set", 2, 2, takes(STRING, gives=INTEGER), "text, list with commas", "from 1, 0 if not there", "d"),
    signed("overlay", 3, 4, _overlay, "text or bytes, replacement, position [, length]", "also `PLACING … FROM … FOR`"),
    signed("mask", 1, 5, _mask, "text [, upper, lower, digit, other]", "literal marks; NULL keeps what is there", "d"),
    signed("quote", 1, 1, _TEXT, "text", "between single quotes, those inside behind a backslash"),
    signed("levenshtein", 2, 3, takes(STRING, STRING, INTEGER, gives=INTEGER), *_LIKENESS),
    signed("jaro_winkler_similarity", 2, 2, takes(STRING, gives=DOUBLE), *_LIKENESS),
    signed("soundex", 1, 1, _TEXT, "text", "", "d"),
    signed("luhn_check", 1, 1, takes(STRING, gives=BOOLEAN), "text", "", "d"),
    signed("url_encode url_decode", 1, 1, _TEXT, "text", _URL, "d"),
    signed("try_url_decode", 1, 1, takes(STRING, gives=STRING, nullable=True), "text", _URL, "d"),
    signed(
        *("parse_url try_parse_url", 2, 3, takes(STRING, gives=STRING, nullable=True), "URL, part [, key]"),
        *("`HOST`, `PATH`, `QUERY`, `REF`, `PROTOCOL`, `FILE`, `AUTHORITY`, `USERINFO`; NULL with `try_`", "d"),
    ),
    signed("typeof", 1, 1, _typeof, "any", "the name of the type, as Spark spells it"),
    signed("collation", 1, 1, _collation, "text", "there is one, by bytes of UTF-8"),
    signed("ascii", 1, 1, takes(STRING, gives=INTEGER), "text", "", "d"),
    signed("chr", 1, 1, takes(BIGINT, gives=STRING), "number", "of the number modulo 256", chr="char"),
)
BYTES: Final[Signatures] = family(
    signed("encode", 2, 2, takes(STRING, gives=BINARY), "text, character set", _SETS, "d"),
    signed("decode", 2, None, _decode, "bytes, character set", f"{_SETS}; with more arguments, a `CASE`", "d"),
    signed("to_binary", 1, 2, _to_binary(None), "text [, literal form]", _FORMS, "d"),
    signed("try_to_binary", 1, 2, _to_binary(True), "text [, literal form]", f"{_FORMS}; NULL where it fails", "d"),
    signed("to_base32", 1, 1, _bytes(STRING), "text or bytes", "", "d"),
    signed("from_base32", 1, 1, takes(STRING, gives=BINARY), "text", "passes over other characters", "d"),
    signed("is_valid_utf8", 1, 1, _text_or_bytes(BOOLEAN), "text or bytes", _UTF8, "d"),
    signed("make_valid_utf8 validate_utf8", 1, 1, _text_or_bytes(STRING), "text or bytes", _UTF8, "d"),
    signed("try_validate_utf8", 1, 1, _attempted(_text_or_bytes(STRING)), "text or bytes", _UTF8, "d"),
    signed("hmac", 2, 3, _hmac, "key, message [, algorithm]", "SHA-256 unless another is named", "d"),
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
