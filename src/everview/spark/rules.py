"""Views of a pipeline by rules: each relation defined in a text is a view; mutually recursive ones share a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.errors import DatalogError, PipelineError
from everview.frontends.dialects import POMORA, program_of, whole_text
from everview.frontends.rules.induction import (
    before_name,
    check_induction,
    inductive,
    next_name,
    timeless,
    unfolded,
    with_next,
)
from everview.frontends.rules.program import Declaration, RuleProgram
from everview.plan.catalog import Tables
from everview.types import Schema

if TYPE_CHECKING:
    from everview.spark.queries import Queries


def define_rules(queries: Queries, text: str, dialect: str) -> None:
    """Add the views that a text of rules defines; or a program of relational algebra, if that is the dialect."""
    from everview.frontends.rules.compile import compile_program

    if dialect == POMORA:
        queries.define_text(text, POMORA)
        return
    program, known = program_of(text, dialect), queries.readable()
    for head in program.heads:
        if head in known.names():
            raise PipelineError(
                f"{head} is a source or a view already, and rules cannot add to it",
                hint="give it all its rules in one text, or the rules another head",
            )
    for declared in program.declarations:
        if declared.input or declared.name not in program.heads:
            _check_source(declared, known)
    carried = _carried(program, known)
    within = with_next(unfolded(program), carried)
    heads = list(compile_program(within, queries.readable(carried=carried)).heads.values())
    for name in carried:
        queries.require_free(name)
    queries.check(heads)
    again = {name: queries.delayed(name, schema) for name, schema in carried.items()}
    for head in heads:
        queries.add(head, source=(whole_text(text, dialect), dialect))
    for head in inductive(program):
        again[before_name(head)](next_name(head))


def _carried(program: RuleProgram, known: Tables) -> dict[str, Schema]:
    """The relations that inductive rules read of the epoch before, with their columns."""
    heads = inductive(program)
    if not heads:
        return {}
    from everview.frontends.rules.compile import columns_of

    check_induction(program)
    columns = columns_of(timeless(program), known)
    return {before_name(head): columns[head] for head in heads}


def _check_source(declared: Declaration, known: Tables) -> None:
    name = declared.name
    if name not in known.names():
        raise PipelineError(f"{name} is declared, and comes from nowhere", hint=f'bind it: p.source("{name}", frame)')
    schema = known.scan(name).schema
    if schema.types != declared.schema.types:
        raise DatalogError(
            f"{name} is declared as ({declared.schema}), and is ({schema})", hint="leave the declaration out"
        )
