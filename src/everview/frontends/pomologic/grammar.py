"""The grammar of PomoLogic, and how names in it are told from values."""

from __future__ import annotations

from typing import Final

GRAMMAR: Final = r"""
program: (rule _STOP)* rule?
rule: atom next? (_IF body)?
next: "@" NEXT
body: literal ("," literal)*
?literal: atom -> selection
    | "!" atom -> negation
    | name ":=" atom -> identified
    | name ":=" name name* ":" atom -> aggregation
    | term COMPARISON term -> constraint
atom: name "(" (attribute ("," attribute)*)? ","? ")"
attribute: name ":" term
?term: name -> named
    | NUMBER -> number
    | TEXT -> text
name: NAME | QUOTED

NEXT: "next"
NAME: /[^\W\d]\w*/
QUOTED: /`(?:[^`]|``)+`/
NUMBER: /[-+]?(?:\d+\.\d+|\.\d+|\d+)(?:[eE][-+]?\d+)?/
TEXT: /"(?:[^"\\\n]|\\.)*"/ | /'(?:[^'\\\n]|\\.)*'/
COMPARISON: "==" | "=" | "!=" | "<=" | "<" | ">=" | ">"
_IF: ":-" | ":\u2212"
_STOP: /\.(?!\d)/
COMMENT: /\/\/[^\n]*|%[^\n]*|\/\*(?:[^*]|\*(?!\/))*\*\//
%ignore COMMENT
%ignore /\s+/
"""

LITERALS: Final = {"true": True, "false": False}
