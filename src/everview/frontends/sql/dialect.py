"""Spark's dialect, where sqlglot's differs from what Spark 4 reads.

Functions keep the names that were written, since the plan names functions as Spark does. Strings are read by Spark's
own rules, operators bind as its grammar says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.tokenizer_core import Token, TokenType

_ESCAPE = r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[01][0-7]{2}|.)"
_ESCAPED = {quote: re.compile(f"{_ESCAPE}|{quote}{quote}", re.DOTALL) for quote in "'\""}
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


class UnsignedShift(exp.Expression, exp.Binary):
    """``a >>> b``, which sqlglot has no name for."""


# -- strings


def strings_as_spark(tokens: list[Token], text: str) -> list[Token]:
    r"""The tokens with strings as Spark reads them: a doubled quote is a quote, a backslash escapes what follows.

    >>> text = r"SELECT 'O''Brien', 'a' 'b', '\101\t'"
    >>> [token.text for token in strings_as_spark(Spark().tokenize(text), text) if token.token_type == TokenType.STRING]
    ["O'Brien", 'a', 'b', 'A\t']
    """
    found: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.STRING or text[token.start] not in "'\"":
            found.append(token)
            continue
        start = token.start
        if found and _goes_on(found[-1], token, text):
            start = found.pop().start
        value = unescaped(text[start + 1 : token.end], text[start])
        found.append(Token(TokenType.STRING, value, token.line, token.col, start, token.end, token.comments))
    return found


def _goes_on(before: Token, token: Token, text: str) -> bool:
    """Whether a string follows one at once, in the same quotes, so that the two quotes between them are one."""
    return (
        before.token_type == TokenType.STRING
        and before.end + 1 == token.start
        and text[before.end] == text[token.start] == text[before.start]
    )


def unescaped(written: str, quote: str) -> str:
    r"""A string without its escapes; an escaped ``%`` or ``_`` keeps its backslash, for LIKE.

    >>> unescaped(r"\u00e9\n\q\%''", "'")
    "é\nq\\%'"
    """

    def plain(found: re.Match[str]) -> str:
        code = found[1]
        if code is None:
            return quote
        if len(code) == 3:
            return chr(int(code, 8))
        if len(code) > 1:
            return chr(int(code[1:], 16))
        return _CONTROLS.get(code, code)

    return _ESCAPED[quote].sub(plain, written)


# -- the grammar

T = TokenType


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator that binds less than a product; one of a lower level binds more."""

    level: int
    tokens: tuple[TokenType, ...]
    of: type[exp.Expr]


# By the first token; of those that start with the same one, the longest first.
OPERATORS: dict[TokenType, tuple[Operator, ...]] = {
    T.PLUS: (Operator(1, (T.PLUS,), exp.Add),),
    T.DASH: (Operator(1, (T.DASH,), exp.Sub),),
    T.DPIPE: (Operator(1, (T.DPIPE,), exp.DPipe),),
    T.GT: (Operator(2, (T.GT, T.GT, T.GT), UnsignedShift), Operator(2, (T.GT, T.GT), exp.BitwiseRightShift)),
    T.LT: (Operator(2, (T.LT, T.LT), exp.BitwiseLeftShift),),
    T.AMP: (Operator(3, (T.AMP,), exp.BitwiseAnd),),
    T.CARET: (Operator(4, (T.CARET,), exp.BitwiseXor),),
    T.PIPE: (Operator(5, (T.PIPE,), exp.BitwiseOr),),
}
COMPARISONS: dict[TokenType, type[exp.Binary]] = {
    T.EQ: exp.EQ, T.NEQ: exp.NEQ, T.NULLSAFE_EQ: exp.NullSafeEQ,
    T.LT: exp.LT, T.LTE: exp.LTE, T.GT: exp.GT, T.GTE: exp.GTE,
}  # fmt: skip


class Plain(Spark):
    """Spark's dialect, with functions by the names that were written."""

    class Parser(Spark.Parser):
        FUNCTIONS = {}  # noqa: RUF012
        ARRAY_CONSTRUCTORS = {}  # noqa: RUF012  # array(1, 2)[0] is an element

        def _parse_bitwise(self) -> exp.Expr | None:
            """A chain of operators, without going deeper for each level of them."""
            operands: list[Any] = [self._parse_factor()]
            waiting: list[Operator] = []

            def apply() -> None:
                right, left = operands.pop(), operands.pop()
                operands.append(self.expression(waiting.pop().of(this=left, expression=right)))

            while (operator := self._operator_ahead()) is not None:
                self._advance(len(operator.tokens))
                while waiting and waiting[-1].level <= operator.level:
                    apply()
                waiting.append(operator)
                operands.append(self._parse_factor())
            while waiting:
                apply()
            return operands[0]

        def _operator_ahead(self) -> Operator | None:
            """The operator that stands next; between its signs there is no space."""
            for operator in OPERATORS.get(self._curr.token_type, ()):
                ahead = self._tokens[self._index : self._index + len(operator.tokens)]
                touching = all(a.end + 1 == b.start for a, b in pairwise(ahead))
                if touching and tuple(token.token_type for token in ahead) == operator.tokens:
                    return operator
            return None

        def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
            """Comparisons from left to right, then one predicate of what they give: ``1 = 2 IS NULL``."""
            this = self._parse_compared()
            return self._parse_range(this, parse_is=True) if parse_is else this

        def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr | None:
            return self._parse_equality()

        def _parse_compared(self) -> exp.Expr | None:
            this = self._parse_bitwise()
            while self._match_set(COMPARISONS):
                this = self._build_predicate(COMPARISONS[self._prev.token_type], this, self._parse_bitwise())
            return this
