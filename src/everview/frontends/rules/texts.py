"""What the texts of all syntaxes share: places, numbers, quoted text, and the error for a text that cannot be read."""

from __future__ import annotations

import ast
import decimal
import re
from functools import cache
from typing import Final, TypeVar

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError
from lark.tree import Meta

from everview.errors import DatalogError
from everview.frontends.rules.program import TextPlace

T = TypeVar("T")
ESCAPED: Final = re.compile(r"""(\\[\\'"abfnrtvxuUN0-7])|\\""")  # or a backslash that is none


def unescaped(token: str) -> str:
    """Read a quoted token as Python does; a backslash that begins no escape is itself, as in patterns.

    >>> unescaped(r'"a\\tb"') == "a\\tb", unescaped(r'"\\d+"') == r"\\d+"
    (True, True)
    """
    if "\\" not in token:
        return token[1:-1]
    return ast.literal_eval(ESCAPED.sub(lambda found: found[1] or r"\\", token))


def read(text: str, parser: Lark, reading: Transformer[Token, T]) -> T:
    """A text as what a transformer makes of its tree; raises `DatalogError` if the grammar refuses the text."""
    try:
        return reading.transform(parser.parse(text))
    except VisitError as error:
        raise error.orig_exc from None
    except UnexpectedInput as error:
        raise _misread(text, error) from None


@cache
def parser_of(grammar: str) -> Lark:
    """The parser of a grammar, made once."""
    return Lark(grammar, start="program", parser="lalr", propagate_positions=True)


def _misread(text: str, error: UnexpectedInput) -> DatalogError:
    """The error for a text refused by the grammar: the place, the text found there, and the tokens expected."""
    match error:
        case UnexpectedToken():
            found, wanted = str(error.token), error.accepts or error.expected
        case UnexpectedCharacters():
            found, wanted = text[error.pos_in_stream or 0], error.allowed or ()
        case _:
            found, wanted = "", ()
    hint = " or ".join(sorted({SHOWN.get(str(name), str(name).lower()) for name in wanted}))
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
        return DatalogError(f"{line}:{column}: the text ends too early", hint=f"expected {hint}")
    return DatalogError(f"{error.line}:{error.column}: {found!r} cannot stand here", hint=f"expected {hint}")


# Names of the grammars' tokens in messages.
SHOWN = {
    "_STOP": '"."', "_IF": '":-"', "COLON": '":"', "SEMICOLON": '";"', "COMMA": '","', "LPAR": '"("', "RPAR": '")"',
    "LSQB": '"["', "RSQB": '"]"', "BANG": '"!"', "AT": '"@next"', "NEXT": '"next"', "__ANON_0": '":="',
    "__ANON_1": '":="', "__ANON_2": '":="',  # the ways to write an assignment are as good as one
    "NAME": "a name", "QUOTED": "a name", "NUMBER": "a number", "TEXT": "a text", "COMPARISON": "a comparison",
    "COMBINED": "an operator", "JOINED": "a join", "$END": "the end",
}  # fmt: skip


def place_of(meta: Meta) -> TextPlace:
    """The place where a part of a text begins."""
    return TextPlace(meta.line, meta.column) if not meta.empty else TextPlace()


def name_of(token: Token) -> str:
    """The name in a token, which may stand between backquotes; a backquote inside is written twice."""
    return str(token) if token.type == "NAME" else token[1:-1].replace("``", "`")


def text_of(token: str) -> str:
    """The text that a quoted token stands for.

    >>> text_of('"a\\\\tb"'), text_of("'it\\\\'s'")
    ('a\\tb', "it's")
    """
    try:
        return unescaped(token)
    except (SyntaxError, ValueError):
        where = f"{token.line}:{token.column}: " if isinstance(token, Token) else ""
        hint = "write a backslash twice, or use one as Python does"
        raise DatalogError(f"{where}{token} is no text", hint=hint) from None


def number_of(token: str) -> int | float | decimal.Decimal:
    """The number in a token: an integer, a decimal if it has a point, a float if it has an exponent."""
    if "e" in token.lower():
        return float(token)
    return decimal.Decimal(token) if "." in token else int(token)
