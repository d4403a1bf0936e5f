"""A text of PomoLogic as a program that keeps the rules of the language.

>>> print(read("far(x: X) :- point(x: X), X > 100.").rules[0])
far(x: X) :- point(x: X), X > 100.
"""

from __future__ import annotations

from everview.frontends.pomologic.check import check
from everview.frontends.pomologic.parse import parse
from everview.frontends.rules.program import RuleProgram


def read(text: str) -> RuleProgram:
    """The program that a text is; raises `DatalogError`, of the kind that says which rule it breaks."""
    program = parse(text)
    check(program)
    return program
