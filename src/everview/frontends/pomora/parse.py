"""From a text of PomoRA to its statements.

>>> for statement in parse("path := edge; while change do path := union(path, edge); end"):
...     print(statement)
path := edge;
while change do path := union(path, edge); end
"""

from __future__ import annotations

from typing import Any, Final

from lark import Token, Transformer
from lark.tree import Meta
from lark.visitors import v_args

from everview.errors import DatalogError
from everview.frontends.pomora.algebra import (
    Assignment,
    AttributeComparison,
    AttributeName,
    ChangeLoop,
    Combined,
    Connected,
    Formula,
    FormulaSelection,
    Grouping,
    NamedRelation,
    Projection,
    Renaming,
    Statement,
    United,
    WrittenRelation,
)
from everview.frontends.rules.program import Constant
from everview.frontends.rules.texts import name_of, number_of, parser_of, place_of, read, text_of

GRAMMAR: Final = r"""
program: block
block: (_statement ";"*)*
_statement: assignment | loop
assignment: name (":-" | ":\u2212" | ":=") expression ";"
loop: "while" "change" "do" block "end"

?expression: name -> named
    | "[" (row ("," row)* ","?)? "]" -> written
    | "projection" "(" names "," expression ")" -> projection
    | "rename" "(" pairs "," expression ")" -> renaming
    | ("selection" | "select") "(" formula "," expression ")" -> selection
    | "union" "(" expression ("," expression)* ")" -> united
    | COMBINED "(" expression "," expression ")" -> combined
    | JOINED "(" formula "," expression "," expression ")" -> joined
    | "group_by" "(" names "," attribute "," call "," expression ")" -> grouping
row: "(" (name ":" value) ("," name ":" value)* ","? ")"
names: attribute | "[" (attribute ("," attribute)*)? "]"
pairs: "[" name ":" attribute ("," name ":" attribute)* "]"
call: name ("(" (attribute ("," attribute)*)? ")")?
attribute: ":"? name

?formula: conjunction ("or" conjunction)* -> disjunction
conjunction: factor ("and" factor)*
?factor: "not" factor -> denial
    | "(" formula ")"
    | operand COMPARISON operand -> comparison
?operand: attribute -> attribute_of
    | value
value: NUMBER | TEXT | TRUE | FALSE
name: NAME | QUOTED

COMBINED.2: /(?:difference|cartesian_product|natural_join|semijoin|antijoin)\b/
JOINED.2: /(?:theta_join|equijoin)\b/
TRUE: "true"
FALSE: "false"
NAME: /[^\W\d]\w*/
QUOTED: /`(?:[^`]|``)+`/
NUMBER: /[-+]?(?:\d+\.\d+|\.\d+|\d+)(?:[eE][-+]?\d+)?/
TEXT: /"(?:[^"\\\n]|\\.)*"/ | /'(?:[^'\\\n]|\\.)*'/
COMPARISON: "==" | "=" | "!=" | "<=" | "<" | ">=" | ">"
COMMENT: /\/\/[^\n]*|#[^\n]*|\/\*(?:[^*]|\*(?!\/))*\*\//
%ignore COMMENT
%ignore /\s+/
"""


def parse(text: str) -> tuple[Statement, ...]:
    """Read a text into statements; raises `DatalogError` if the grammar refuses it."""
    return read(text, parser_of(GRAMMAR), _Statements())


class _Statements(Transformer[Token, Any]):
    """Turns trees of the grammar into statements."""

    def program(self, parts: list[Any]) -> tuple[Statement, ...]:
        return parts[0]

    def block(self, parts: list[Statement]) -> tuple[Statement, ...]:
        return tuple(parts)

    @v_args(meta=True)
    def assignment(self, meta: Meta, parts: list[Any]) -> Assignment:
        return Assignment(parts[0], parts[1], place_of(meta))

    @v_args(meta=True)
    def loop(self, meta: Meta, parts: list[Any]) -> ChangeLoop:
        return ChangeLoop(parts[0], place_of(meta))

    # -- expressions

    @v_args(meta=True)
    def named(self, meta: Meta, parts: list[str]) -> NamedRelation:
        return NamedRelation(parts[0], place_of(meta))

    @v_args(meta=True)
    def written(self, meta: Meta, rows: list[Any]) -> WrittenRelation:
        return WrittenRelation(tuple(rows), place_of(meta))

    @v_args(meta=True)
    def projection(self, meta: Meta, parts: list[Any]) -> Projection:
        return Projection(parts[0], parts[1], place_of(meta))

    @v_args(meta=True)
    def renaming(self, meta: Meta, parts: list[Any]) -> Renaming:
        return Renaming(parts[0], parts[1], place_of(meta))

    @v_args(meta=True)
    def selection(self, meta: Meta, parts: list[Any]) -> FormulaSelection:
        return FormulaSelection(parts[0], parts[1], place_of(meta))

    @v_args(meta=True)
    def united(self, meta: Meta, parts: list[Any]) -> United:
        return United(tuple(parts), place_of(meta))

    @v_args(meta=True)
    def combined(self, meta: Meta, parts: list[Any]) -> Combined:
        operator, left, right = parts
        return Combined(str(operator), left, right, None, place_of(meta))  # pyright: ignore[reportArgumentType]

    @v_args(meta=True)
    def joined(self, meta: Meta, parts: list[Any]) -> Combined:
        operator, formula, left, right = parts
        return Combined(str(operator), left, right, formula, place_of(meta))  # pyright: ignore[reportArgumentType]

    @v_args(meta=True)
    def grouping(self, meta: Meta, parts: list[Any]) -> Grouping:
        by, name, (function, arguments), expression = parts
        return Grouping(by, name, function, arguments, expression, place_of(meta))

    @v_args(meta=True)
    def row(self, meta: Meta, parts: list[Any]) -> tuple[tuple[str, Any], ...]:
        names, values = parts[::2], parts[1::2]
        if len(set(names)) < len(names):
            raise DatalogError(f"{meta.line}:{meta.column}: a row has an attribute twice", hint="name each once")
        return tuple((name, constant.value) for name, constant in zip(names, values, strict=True))

    def names(self, parts: list[str]) -> tuple[str, ...]:
        return tuple(parts)

    def pairs(self, parts: list[str]) -> tuple[tuple[str, str], ...]:
        return tuple(zip(parts[::2], parts[1::2], strict=True))

    def call(self, parts: list[str]) -> tuple[str, tuple[str, ...]]:
        return parts[0], tuple(parts[1:])

    # -- formulas

    def disjunction(self, parts: list[Formula]) -> Formula:
        return parts[0] if len(parts) == 1 else Connected("or", tuple(parts))

    def conjunction(self, parts: list[Formula]) -> Formula:
        return parts[0] if len(parts) == 1 else Connected("and", tuple(parts))

    def denial(self, parts: list[Formula]) -> Formula:
        return Connected("not", (parts[0],))

    def comparison(self, parts: list[Any]) -> AttributeComparison:
        left, operator, right = parts
        return AttributeComparison("=" if operator == "==" else str(operator), left, right)  # pyright: ignore[reportArgumentType]

    def attribute_of(self, parts: list[str]) -> AttributeName:
        return AttributeName(parts[0])

    def attribute(self, parts: list[str]) -> str:
        return parts[0]

    def value(self, tokens: list[Token]) -> Constant:
        (token,) = tokens
        match token.type:
            case "NUMBER":
                return Constant(number_of(token))
            case "TEXT":
                return Constant(text_of(token))
            case kind:
                return Constant(kind == "TRUE")

    def name(self, tokens: list[Token]) -> str:
        return name_of(*tokens)
