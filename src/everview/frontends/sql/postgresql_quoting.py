"""Texts of SQL that PostgreSQL's functions put together: ``format``, ``quote_ident``, ``quote_literal``."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from sqlglot import exp
from sqlglot.dialects import Postgres
from sqlglot.tokenizer_core import TokenType


@cache
def keywords() -> dict[str, bool]:
    """The keywords of the dialect in small letters, each with whether a name has to be quoted to be one."""
    words = {word.lower(): kind for word, kind in Postgres.Tokenizer.KEYWORDS.items() if word.isidentifier()}
    names = Postgres.Parser.ID_VAR_TOKENS
    return {word: kind not in names and kind != TokenType.VAR for word, kind in words.items()}


def formatted(node: exp.Format) -> exp.Expr:
    """``format('%I.%s', a, b)``: the text with values in their places, as names, literals or texts."""
    template = node.this
    if not isinstance(template, exp.Literal) or not _PLAIN_FORMAT.fullmatch(template.name):
        return node
    values, parts = iter(node.expressions), list[exp.Expr]()
    for said, kind in _FORMAT.findall(template.name):
        if not kind:
            parts.append(exp.Literal.string(said.replace("%%", "%")))
            continue
        value = next(values, None)
        if value is None:
            return node
        parts.append(_FORMATTED[kind](value))
    made = parts[0] if parts else exp.Literal.string("")
    for part in parts[1:]:
        made = exp.DPipe(this=made, expression=part)
    return made


_FORMAT: Final = re.compile(r"((?:[^%]|%%)+)|%([sIL])", re.DOTALL)
_PLAIN_FORMAT: Final = re.compile(r"(?:[^%]|%[%sIL])*", re.DOTALL)  # without places and widths, as %1$s and %10s have


def _text_or_empty(value: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=exp.cast(value, "text"), expressions=[exp.Literal.string("")])


def quoted_identifier(value: exp.Expr) -> exp.Expr:
    """``quote_ident(x)``: a name in quotes, unless it is a plain word that is not reserved."""
    name = exp.cast(value, "text")
    reserved = exp.Array(expressions=[exp.Literal.string(word) for word, taken in keywords().items() if taken])
    plain = exp.RegexpLike(this=name.copy(), expression=exp.Literal.string("^[a-z_][a-z0-9_]*$"))
    is_reserved = exp.Anonymous(this="array_contains", expressions=[reserved, name.copy()])
    return exp.Case(
        ifs=[exp.If(this=exp.and_(plain, exp.Not(this=is_reserved)), true=name.copy())], default=_in_quotes(name, '"')
    )


def quoted_literal(value: exp.Expr) -> exp.Expr:
    """A value as a literal of SQL; NULL as the word."""
    return exp.Coalesce(this=quoted_text(value), expressions=[exp.Literal.string("NULL")])


def quoted_text(value: exp.Expr) -> exp.Expr:
    """``quote_literal(x)``: a value as a literal of SQL; NULL for NULL. One with backslashes has them doubled."""
    text = exp.cast(value, "text")
    one, two = exp.Literal.string("\\"), exp.Literal.string("\\\\")
    escaped = exp.Anonymous(this="replace", expressions=[text.copy(), one, two])
    with_mark = exp.DPipe(this=exp.Literal.string("E"), expression=_in_quotes(escaped, "'"))
    has_any = exp.GT(this=exp.StrPosition(this=text.copy(), substr=one.copy()), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=has_any, true=with_mark)], default=_in_quotes(text, "'"))


def _in_quotes(text: exp.Expr, mark: str) -> exp.Expr:
    """A text between quotation marks, those in it doubled."""
    one, two = exp.Literal.string(mark), exp.Literal.string(mark * 2)
    doubled = exp.Anonymous(this="replace", expressions=[text.copy(), one, two])
    return exp.DPipe(this=exp.DPipe(this=one.copy(), expression=doubled), expression=one.copy())


_FORMATTED: Final = {"s": _text_or_empty, "I": quoted_identifier, "L": quoted_literal}
