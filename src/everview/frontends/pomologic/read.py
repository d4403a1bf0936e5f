"""Texts of PomoLogic, read and checked.

>>> print(read("far(x: X) :- point(x: X), X > 100.").rules[0])
far(x: X) :- point(x: X), X > 100.
"""

from __future__ import annotations

from everview.frontends.pomologic.check import check
from everview.frontends.pomologic.parse import parse
from everview.frontends.rules.program import RuleProgram


def read(text: str) -> RuleProgram:
    """Read a text into a program, and check it; raises a `DatalogError`, of a kind for each check."""
    program = parse(text)
    check(program)
    return program
