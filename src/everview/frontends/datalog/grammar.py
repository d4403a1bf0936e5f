"""The grammar of programs.

A conjunction has items between commas; an item is an expression, a comparison of two, or a negated item. The grammar
does not tell an atom from a call of a functor, nor a tuple from a disjunction: `reading` does, by where each stands. So
one token of lookahead is enough. `reading` also orders operators by their precedence.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from lark import Lark

from everview.operators.aggregate.registry import aggregates_of

GRAMMAR: Final = r"""
start: _entry*
_entry: clause | subsumption | declaration | type | symbols | numbers | directive | component | init | override
      | functor | extern | plan | pragma

clause: conjunction [":-" disjunction] "."
subsumption: call "<=" call [":-" disjunction] "."
disjunction: conjunction (";" conjunction)*
conjunction: _item ("," _item)* [trailing]
trailing: ","
_item: comparison | negation | expression
comparison: expression COMPARED expression
negation: "!" _item

?expression: operand
           | operand (_binary operand)+ -> chain
_binary: MINUS | TIMES
?operand: _plain | group | negative | not
_plain: name | number | real | text | wildcard | counter | call | record | constructed | aggregate | called
group: "(" disjunction ")"
negative: MINUS operand
not: NOT operand
record: OPENED [expression ("," expression)*] "]"
constructed: BRANCH ["(" [_arguments] ")"]
call: NAME "(" [_arguments | _named] ")"
_named: named ("," named)*
named: NAME ":" expression
_arguments: expression ("," expression)*
called: AGGREGATE "(" [_arguments] ")"

aggregate: AGGREGATE ":" body
         | AGGREGATE simple ":" body
         | called ":" body
?simple: first
       | first (_binary operand)+ -> chain
?first: name | number | real | call | record
body: "{" disjunction "}" | call

name: NAME | AGGREGATE
number: INTEGER
real: REAL
text: STRING
wildcard: ANY
counter: COUNTER

declaration: ".decl" _names "(" [attribute ("," attribute)*] ")" qualifier*
attribute: _word ":" NAME
_word: NAME | AGGREGATE | QUALIFIER
qualifier: QUALIFIER | CHOICE choice ("," choice)*
choice: _word | "(" _word ("," _word)* ")"
_names: NAME ("," NAME)*

type: ".type" NAME ("=" | "<:") _shape
symbols: (".type" | ".symbol_type") NAME
numbers: ".number_type" NAME
_shape: alternatives | fields | tuple | branches
alternatives: NAME ("|" NAME)*
branches: branch ("|" branch)*
branch: NAME "{" [attribute ("," attribute)*] "}"
fields: OPENED [attribute ("," attribute)*] "]"
tuple: "(" [attribute ("," attribute)*] ")"

directive: (INPUT | OUTPUT | TOLERATED) target ("," target)*
target: NAME ["(" [parameter ("," parameter)*] ")"]
parameter: _word "=" (STRING | _word | INTEGER | REAL)

component: ".comp" signature [":" signature ("," signature)*] "{" _entry* "}"
signature: NAME ["<" NAME ("," NAME)* ">"]
init: ".init" NAME "=" signature
override: ".override" NAME
functor: ".functor" NAME "(" [_shown ("," _shown)*] ")" ":" NAME ["stateful"]
extern: ".extern" "fn" NAME "(" [attribute ("," attribute)*] ")" "->" NAME
_shown: attribute | NAME
plan: ".plan" INTEGER ":" order ("," INTEGER ":" order)*
order: "(" [INTEGER ("," INTEGER)*] ")"
pragma: ".pragma" STRING [STRING]

ANY: "_"
COUNTER: "$"
OPENED: "["
COMPARED: "=" | "!=" | "<=" | ">=" | "<" | ">"
MINUS: "-"
TIMES: "+" | "*" | "/" | "%" | "^" | /(land|lor|lxor|band|bor|bxor|bshl|bshru|bshr)(?![\w?])/
NOT.3: /(lnot|bnot)(?![\w?(.])/
AGGREGATE.2: /(<aggregates>)(?![\w?.])/
INPUT: ".input"
OUTPUT: ".output" | ".printsize"
TOLERATED: ".limitsize"
CHOICE.3: "choice-domain"
QUALIFIER.2: /(overridable|(no_)?(inline|magic)|brie|btree(_delete)?|eqrel|input|output|printsize)(?![\w?(.])/
NAME: /([^\W\d_]|\?)[\w?]*(\.([^\W\d]|\?)[\w?]*)*|_[\w?]+/
BRANCH: /\$([^\W\d]|\?)[\w?]*(\.([^\W\d]|\?)[\w?]*)*/
REAL: /\d+\.\d+([eE][+-]?\d+)?|\d+[eE][+-]?\d+/
INTEGER: /0x[0-9a-fA-F]+|0b[01]+|\d+u?/
STRING: /"(?:[^"\\\n]|\\.)*"/

%ignore /\s+/
%ignore /\/\/[^\n]*/
%ignore /\/\*(.|\n)*?\*\//
""".replace("<aggregates>", "|".join(aggregates_of("datalog")))


@cache
def parser() -> Lark:
    """The Datalog parser, made at the first call; builds the parts of a text while reading."""
    from everview.frontends.datalog.reading import DatalogReading

    options: dict[str, Any] = {"parser": "lalr", "lexer": "contextual", "maybe_placeholders": True}
    return Lark(GRAMMAR, transformer=DatalogReading(), **options)
