"""Spark's dialect, where sqlglot's differs from what Spark 4 reads.

Functions keep the names that were written, since the plan names functions as Spark does. Strings are read by Spark's
own rules, operators bind as its grammar says.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.tokenizer_core import Token, TokenType

from everview.frontends.sql.window_syntax import WindowParser

_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[01][0-7]{2}|.)", re.DOTALL)
T = TokenType
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


# -- tokens


def tokens_as_spark(tokens: list[Token], text: str) -> list[Token]:
    """The tokens of a text as Spark reads them: strings by its rules, words as names where only a name can stand."""
    return _names(_respelled(_emitting(_strings(tokens, text))))


EMIT = ("EMIT", "ON", "WINDOW", "CLOSE")
LEVEL = "max recursion level"  # by which the tree of a relation's name holds it
_ENDING = T.SERDE_PROPERTIES  # a kind of token that nothing else reads


def _emitting(tokens: list[Token]) -> list[Token]:
    """The tokens with ``EMIT ON WINDOW CLOSE`` at the end of a statement as one, which is no name of a table."""
    for first in range(len(tokens) - len(EMIT) + 1):
        last = first + len(EMIT)
        if tokens[first].text.upper() != "EMIT" or tokens[first].token_type == T.IDENTIFIER:
            continue
        words = tuple(token.text.upper() for token in tokens[first:last])
        if words == EMIT and (last == len(tokens) or tokens[last].token_type == T.SEMICOLON):
            one = _token(tokens[last - 1], _ENDING, " ".join(EMIT), tokens[first].start)
            return [*tokens[:first], one, *_emitting(tokens[last:])]
    return tokens


def _respelled(tokens: list[Token]) -> list[Token]:
    """The tokens with what Spark spells otherwise than sqlglot: IDENTIFIER('t'), FOR SYSTEM_VERSION, DESCRIBE QUERY.

    To sqlglot a TIMESTAMP WITHOUT TIME ZONE is any timestamp; to Spark it is TIMESTAMP_NTZ.
    """
    read: list[Token] = []
    place = 0
    while place < len(tokens):
        token, following = tokens[place], tokens[place + 1 : place + 4]
        word, kinds = token.text.upper(), [other.token_type for other in following]
        plain = token.token_type != T.IDENTIFIER
        if plain and word == "IDENTIFIER" and kinds == [T.L_PAREN, T.STRING, T.R_PAREN]:
            parts = following[1].text.split(".")
            for number, part in enumerate(parts):
                read += [_token(token, T.DOT, ".", token.start)] * (number > 0)
                read.append(_token(token, T.IDENTIFIER, part.strip("`"), token.start))
            place += 4
            continue
        after = following[0].text.upper() if following else ""
        if plain and word == "FOR" and after == "SYSTEM_VERSION":
            read += [token, _token(following[0], T.VAR, "VERSION", following[0].start)]
            place += 2
            continue
        words = tuple(other.text.upper() for other in tokens[place : place + 6])
        if plain and words in _NULLS:
            read.append(_token(tokens[place + 5], T.NULL, "NULL", token.start))
            place += 6
            continue
        if plain and words[:4] == ("TIMESTAMP", "WITHOUT", "TIME", "ZONE"):
            read.append(_token(tokens[place + 3], T.TIMESTAMPNTZ, "TIMESTAMP_NTZ", token.start))
            place += 4
            continue
        read.append(token)
        asks = token.token_type == T.DESCRIBE and after == "QUERY" and kinds[1:2] in ([T.SELECT], [T.WITH], [T.VALUES])
        place += 2 if asks else 1
    return read


_NULLS = [(word, "(", "NULL", "AS", "VOID", ")") for word in ("CAST", "TRY_CAST")]  # VOID has no other value


class TimeToLive(exp.Expression):  # pyright: ignore[reportPrivateImportUsage]
    """``TTL INTERVAL 1 DAY`` beside the columns of a table."""

    arg_types = {"this": True}  # noqa: RUF012


class LatenessOf(exp.Expression):  # pyright: ignore[reportPrivateImportUsage]
    """``ts TIMESTAMP LATENESS INTERVAL 5 MINUTES``: a watermark for the column."""

    arg_types = {"this": True}  # noqa: RUF012


class WatermarkOf(exp.Expression):  # pyright: ignore[reportPrivateImportUsage]
    """``WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES`` beside the columns of a table."""

    arg_types = {"this": True, "expression": True}  # noqa: RUF012


def _strings(tokens: list[Token], text: str) -> list[Token]:
    r"""The tokens with strings as Spark reads them: neighbours join, a doubled quote is one, a backslash escapes.

    >>> text = r"SELECT 'O''Brien', 'a' r'\b', '\101\t'"
    >>> [token.text for token in _strings(Spark().tokenize(text), text) if token.token_type == T.STRING]
    ["O'Brien", 'a\\b', 'A\t']
    """
    read: list[Token] = []
    for token in tokens:
        opened = text[
            token.start : token.start + 1
        ]  # the rest of a statement that sqlglot does not read is a string, too
        if token.token_type not in (T.STRING, T.RAW_STRING) or not opened or opened not in "'\"rR":
            read.append(token)
            continue
        before = read[-1] if read else None
        if before is not None and _is_hexadecimal(before, token, text):
            read[-1] = _token(token, T.HEX_STRING, token.text, before.start)
        elif before is None or before.token_type != T.STRING:
            read.append(_token(token, T.STRING, _value(token, text), token.start))
        else:
            between = text[token.start] if _goes_on(before, token, text) else ""
            read[-1] = _token(token, T.STRING, before.text + between + _value(token, text), before.start)
    return read


def _token(token: Token, kind: TokenType, text: str, start: int) -> Token:
    return Token(kind, text, token.line, token.col, start, token.end, token.comments)


def _value(token: Token, text: str) -> str:
    raw = token.token_type == T.RAW_STRING
    return token.text if raw else unescaped(text[token.start + 1 : token.end])


def _is_hexadecimal(before: Token, token: Token, text: str) -> bool:
    """``X"1F"`` and ``X '1F'``, which sqlglot knows in single quotes and without a space only."""
    touching = not text[before.end + 1 : token.start].strip()
    return before.text in ("x", "X") and before.token_type == T.VAR and touching


def _goes_on(before: Token, token: Token, text: str) -> bool:
    """Whether two strings in the same quotes touch: a doubled quote, which stands for one."""
    opened = text[before.start] not in "rR"
    return opened and before.end + 1 == token.start and text[before.end] == text[token.start]


def unescaped(written: str) -> str:
    r"""A string without its escapes; an escaped ``%`` or ``_`` keeps its backslash, for LIKE.

    >>> unescaped(r"\u00e9\n\q\%")
    'é\nq\\%'
    """

    def plain(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 3:
            return chr(int(code, 8))
        if len(code) > 1:
            return chr(min(int(code[1:], 16), sys.maxunicode))
        return _CONTROLS.get(code, code)

    # Two halves of a character make one; a half alone is a question mark.
    halves = _ESCAPED.sub(plain, written).encode("utf-16-le", "surrogatepass")
    return halves.decode("utf-16-le", "surrogatepass").encode("utf-8", "replace").decode()


# Words that sqlglot takes for a part of the grammar wherever they stand, or for a function without brackets.
_VALUES = {T.VAR, T.NULL, T.TRUE, T.FALSE, T.DEFAULT, T.STRING, T.NUMBER, T.HEX_STRING, T.BIT_STRING, T.BYTE_STRING}
_WORDS = (
    (frozenset(T) - Spark.Parser.ID_VAR_TOKENS - _VALUES)
    | {T.ALL, T.ANY, T.CASE, T.CUBE, T.DESCRIBE, T.INTERVAL, T.RECURSIVE, T.ROLLUP}
    | Spark.Parser.QUERY_MODIFIER_TOKENS
)
_CURRENT = {T.CURRENT_DATE, T.CURRENT_DATETIME, T.CURRENT_TIMESTAMP, T.CURRENT_USER, T.SESSION_USER}
_COMPARING = (T.EQ, T.NEQ, T.LT, T.LTE, T.GT, T.GTE, T.NULLSAFE_EQ, T.SLASH, T.MOD, T.DIV, T.DPIPE, T.AMP, T.CARET)
_STARTS = {
    T.SELECT, T.L_PAREN, T.COMMA, T.DASH, T.PLUS, T.WHERE, T.HAVING, T.ON, T.AND, T.OR, T.NOT, T.WHEN, T.THEN, T.ELSE,
    T.GROUP_BY, T.ORDER_BY, T.WITH, T.DOT, T.ALIAS, T.FROM, T.JOIN, *_COMPARING,
}  # fmt: skip
_ENDS = {
    T.COMMA, T.R_PAREN, T.R_BRACKET, T.AND, T.OR, T.IS, T.IN, T.LIKE, T.FROM, T.WHERE, T.ALIAS, T.THEN, T.ELSE, T.END,
    T.SEMICOLON, T.ASC, T.DESC, T.GROUP_BY, T.ORDER_BY, T.HAVING, T.DOT, T.DCOLON, T.L_BRACKET, T.PIPE_GT,
    T.LIMIT, T.OFFSET, T.UNION, T.INTERSECT, T.EXCEPT, *_COMPARING,
}  # fmt: skip
_MEANT = {
    (T.GROUP_BY, T.ALL), (T.WITH, T.ROLLUP), (T.WITH, T.CUBE), (T.THEN, T.INSERT), (T.THEN, T.UPDATE),
    (T.THEN, T.DELETE), (T.NOT, T.DISTINCT),
}  # fmt: skip


def _names(tokens: list[Token]) -> list[Token]:
    """A word of the grammar is a name where an operand begins before it and ends after it: ``SELECT all, from FROM t``.

    Nothing else can stand there, so a text that can be read without this is read as before.
    """
    around = zip([None, *tokens], tokens, [*tokens[1:], None], strict=False)
    return [_named(*three) for three in around]


def _named(before: Token | None, token: Token, after: Token | None) -> Token:
    called = after is not None and after.token_type == T.L_PAREN
    if called and token.text.upper() in ("WINDOW", "SESSION"):
        return _token(token, T.VAR, token.text, token.start)  # the function: elsewhere a name follows
    if called and token.text.upper() == "MATCH_CONDITION":
        return _token(token, T.MATCH_CONDITION, token.text, token.start)  # of ASOF JOIN, as in Snowflake
    if token.token_type in _CURRENT:
        return _token(token, T.VAR, token.text, token.start)  # unless a column is called so, it is the moment
    word = token.token_type in _WORDS or token.text.upper() == "IF"
    if not word or not token.text.isidentifier() or before is None or before.token_type not in _STARTS:
        return token
    ends = after is None or after.token_type in _ENDS or before.token_type == T.DOT
    if not ends or (before.token_type, token.token_type) in _MEANT:
        return token
    return _token(token, T.IDENTIFIER, token.text, token.start)


# -- the grammar


@dataclass(frozen=True, slots=True)
class InfixOperator:
    """An infix operator that binds less tightly than a product; a lower level binds more tightly."""

    level: int
    tokens: tuple[TokenType, ...]
    build: Callable[..., exp.Expr]


def _unsigned_shift(this: exp.Expr, expression: exp.Expr) -> exp.Expr:
    """``a >>> b``, which sqlglot has no node for."""
    return exp.Anonymous(this="shiftrightunsigned", expressions=[this, expression])


# By the first token; of those that start with the same one, the longest first.
OPERATORS: dict[TokenType, tuple[InfixOperator, ...]] = {
    T.PLUS: (InfixOperator(1, (T.PLUS,), exp.Add),),
    T.DASH: (InfixOperator(1, (T.DASH,), exp.Sub),),
    T.DPIPE: (InfixOperator(1, (T.DPIPE,), exp.DPipe),),
    T.GT: (
        InfixOperator(2, (T.GT, T.GT, T.GT), _unsigned_shift),
        InfixOperator(2, (T.GT, T.GT), exp.BitwiseRightShift),
    ),
    T.LT: (InfixOperator(2, (T.LT, T.LT), exp.BitwiseLeftShift),),
    T.AMP: (InfixOperator(3, (T.AMP,), exp.BitwiseAnd),),
    T.CARET: (InfixOperator(4, (T.CARET,), exp.BitwiseXor),),
    T.PIPE: (InfixOperator(5, (T.PIPE,), exp.BitwiseOr),),
}
COMPARISONS: dict[TokenType, type[exp.Binary]] = {
    T.EQ: exp.EQ, T.NEQ: exp.NEQ, T.NULLSAFE_EQ: exp.NullSafeEQ,
    T.LT: exp.LT, T.LTE: exp.LTE, T.GT: exp.GT, T.GTE: exp.GTE,
}  # fmt: skip


def _negated(number: exp.Expr | None) -> exp.Expr:
    """The tree with the number that it begins with negated."""
    assert number is not None, "a number stands there"
    first = number
    while not isinstance(first, exp.Literal) and isinstance(first.this, exp.Expr):
        first = first.this
    if first is number:
        return exp.Neg(this=number)
    first.replace(exp.Neg(this=first.copy()))
    return number


class PlainParser(WindowParser):
    """Spark's parser, with operators and functions as Spark 4 reads them."""

    FUNCTIONS = {}  # noqa: RUF012
    # sqlglot's readers of these drop an argument, such as the frequency of percentile, or add one.
    FUNCTION_PARSERS = {
        name: reader
        for name, reader in Spark.Parser.FUNCTION_PARSERS.items()
        if name not in ("PERCENTILE", "PERCENTILE_APPROX", "APPROX_PERCENTILE", "DECODE", "INITCAP")
    } | dict.fromkeys(("TUMBLE", "HOP", "SESSION"), lambda self: self.window_function())
    CONSTRAINT_PARSERS = {  # noqa: RUF012
        **Spark.Parser.CONSTRAINT_PARSERS,
        "LATENESS": lambda self: self.expression(LatenessOf(this=self._present(self._parse_disjunction()))),
    }
    ARRAY_CONSTRUCTORS = {}  # noqa: RUF012  # array(1, 2)[0] is an element
    NO_PAREN_FUNCTIONS = {}  # noqa: RUF012  # current_date is a column, if there is one

    def _parse_constraint(self) -> exp.Expr | None:
        """A constraint of a table; or its watermark, which is no name of a column if FOR follows."""
        if self._curr.text.upper() == "TTL" and self._next.token_type == T.INTERVAL and self._is_value(2):
            self._advance()
            return self.expression(TimeToLive(this=self._present(self._parse_disjunction())))
        if self._curr.text.upper() != "WATERMARK" or self._next.token_type != T.FOR:
            return super()._parse_constraint()
        self._advance(2)
        column = self._present(self._parse_id_var())
        if not self._match(T.ALIAS):
            self.raise_error("write WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES")
        return self.expression(WatermarkOf(this=column, expression=self._present(self._parse_disjunction())))

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
        """The name of a relation; of one of WITH RECURSIVE also how many steps it may take."""
        alias = super()._parse_table_alias(alias_tokens)
        if alias is None or not self._match_text_seq("MAX", "RECURSION", "LEVEL"):
            return alias
        number = self._parse_number()
        if number is None or not number.name.isdigit():
            self.raise_error("write MAX RECURSION LEVEL 100")
        assert number is not None, "a text without the number is refused"
        alias.meta[LEVEL] = int(number.name)
        return alias

    def _is_value(self, ahead: int) -> bool:
        """Whether a number or a text stands so many tokens ahead."""
        rest = self._tokens[self._index + ahead : self._index + ahead + 1]
        return bool(rest) and rest[0].token_type in (T.NUMBER, T.STRING)

    def _parse_ddl_select(self) -> exp.Expr | None:
        """The query of a view, and what follows it."""
        query = super()._parse_ddl_select()
        if query is not None and self._match(_ENDING):
            query.meta["emit"] = True
        return query

    def _parse_unary(self) -> exp.Expr | None:
        """A minus before a number is a part of it: ``-1::STRING`` is a text. A plus makes a number of a text."""
        if self._curr.token_type == T.DASH and self._next.token_type == T.NUMBER:
            self._advance()
            return _negated(super()._parse_unary())
        if not self._match(T.PLUS):
            return super()._parse_unary()
        operand = self._present(self._parse_unary())
        number = isinstance(operand, (exp.Literal, exp.Neg)) and not operand.is_string
        return operand if number else exp.Anonymous(this="positive", expressions=[operand])

    def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
        """What follows a value: fields, brackets, casts, and the path into a variant of ``v:a.b[0]::int``."""
        this = super()._parse_column_ops(this)
        while this is not None and self._curr.token_type == T.COLON and self._next.text and self._is_path_ahead():
            self._advance()
            path, name = self._variant_path()
            this = exp.Anonymous(this="variant_get", expressions=[this, exp.Literal.string(path)])
            this.meta["column name"] = name
            this = super()._parse_column_ops(this)
        return this

    def _is_path_ahead(self) -> bool:
        """Whether a colon begins a path: no space before it, and a name or a bracket after it."""
        touching = self._index > 0 and self._prev.end + 1 == self._curr.start
        return touching and (self._next.token_type == T.L_BRACKET or self._next.text.isidentifier())

    def _variant_path(self) -> tuple[str, str]:
        """The path that stands next, and the last name in it."""
        path, last = "$", "value"
        while True:
            first = path == "$"
            if self._curr.token_type == T.L_BRACKET:
                self._advance()
                inside = self._part_of_path()
                text = inside.text if inside.token_type == T.NUMBER else f"'{inside.text}'"
                if inside.token_type not in (T.NUMBER, T.STRING) or not self._match(T.R_BRACKET):
                    self.raise_error("write a path as v:a.b[0] or v:a['b c']")
                path, last = f"{path}[{text}]", last if inside.token_type == T.NUMBER else inside.text
                continue
            if not first and not self._match(T.DOT):
                return path, last
            last = self._part_of_path().text
            path = f"{path}.{last}" if last.isidentifier() else f"{path}['{last}']"

    def _part_of_path(self) -> Token:
        """The next token of a path; a syntax error if the text ends here."""
        if self._index >= len(self._tokens):
            self.raise_error("write a path as v:a.b[0] or v:a['b c']")
        found = self._curr
        self._advance()
        return found

    def _parse_bitwise(self) -> exp.Expr | None:
        """Parse a chain of operators with two stacks, so that a long chain needs no deep recursion."""
        operands: list[Any] = [self._parse_factor()]
        waiting: list[InfixOperator] = []

        def apply() -> None:
            right, left = operands.pop(), operands.pop()
            operands.append(self.expression(waiting.pop().build(this=left, expression=right)))

        while (operator := self._operator_ahead()) is not None:
            self._advance(len(operator.tokens))
            while waiting and waiting[-1].level <= operator.level:
                apply()
            waiting.append(operator)
            operands.append(self._present(self._parse_factor()))
        while waiting:
            apply()
        return operands[0]

    def _operator_ahead(self) -> InfixOperator | None:
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

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        """The keys may be any expressions: ``CUBE (a = b)``."""
        if with_prefix or not self._match_set((T.CUBE, T.ROLLUP)):
            return super()._parse_cube_or_rollup(with_prefix=with_prefix)
        kind = exp.Cube if self._prev.token_type == T.CUBE else exp.Rollup
        return self.expression(kind(expressions=self._parse_wrapped_csv(self._parse_disjunction)))

    def _parse_grouping_set(self) -> exp.Expr | None:
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

    def _parse_compared(self) -> exp.Expr | None:
        this = self._parse_bitwise()
        while self._match_set(COMPARISONS):
            this = self._build_predicate(COMPARISONS[self._prev.token_type], this, self._parse_bitwise())
        return this


class OfPostgresql:
    """A mark of PostgreSQL's dialects; their module is imported when a text is written in one of them."""

    named = True  # columns without a name are called as PostgreSQL calls them


class Plain(Spark):
    """Spark's dialect, with functions by the names that were written."""

    Parser = PlainParser
