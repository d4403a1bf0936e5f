"""Views of a pipeline by rules: every relation that a text defines is one, and those that read each other one loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from everview.database.derived import optimized
from everview.database.rules import POMORA, program_of
from everview.errors import DatalogError, PipelineError
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
from everview.plan.node import Plan
from everview.runtimes.embedded.rehearse import rehearse_plans
from everview.types import Schema

if TYPE_CHECKING:
    from everview.spark.queries import Queries


class Readable:
    """What rules are told of a pipeline: its sources, which are bags, and its views."""

    def __init__(self, queries: Queries, carried: Mapping[str, Schema] | None = None) -> None:
        """``carried`` are those that hold what was derived an epoch ago."""
        carried = carried or {}
        self._relations, self._sets = queries.relations() | dict(carried), queries.sets() | carried.keys()

    def names(self) -> Iterable[str]:
        return self._relations

    def relation(self, name: str) -> Schema | Plan:
        return self._relations[name]

    def is_set(self, name: str) -> bool:
        return name in self._sets


def define_rules(queries: Queries, text: str, dialect: str) -> None:
    """Add the views that a text of rules defines; or a program of relational algebra, if that is the dialect."""
    from everview.frontends.rules.compile import compile_program

    if dialect == POMORA:
        define_program(queries, text)
        return
    program, known = program_of(text, dialect), Readable(queries)
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
    heads = compile_program(within, Readable(queries, carried)).heads.values()
    for name in (*carried, *(head.name for head in heads)):
        queries.require_free(name)
    rehearse_plans([head.optimized for head in heads])
    again = {name: queries.delayed(name, schema) for name, schema in carried.items()}
    for head in heads:
        queries.add(head.name, head.plan, head.optimized, None, is_set=True)
    for head in inductive(program):
        again[before_name(head)](next_name(head))


def _carried(program: RuleProgram, known: Readable) -> dict[str, Schema]:
    """What inductive rules need of the epoch before."""
    heads = inductive(program)
    if not heads:
        return {}
    from everview.frontends.rules.compile import columns_of

    check_induction(program)
    columns = columns_of(timeless(program), known)
    return {before_name(head): columns[head] for head in heads}


def define_program(queries: Queries, text: str) -> None:
    """Add the views that a program of PomoRA assigns to."""
    from everview.frontends.pomora.compile import compile_program
    from everview.frontends.pomora.parse import parse

    plans = compile_program(parse(text), Readable(queries))
    better = optimized(plans)
    for name in plans:
        queries.require_free(name)
    rehearse_plans(better.values())
    for name, plan in plans.items():
        queries.add(name, plan, better[name], None, is_set=True)


def _check_source(declared: Declaration, known: Readable) -> None:
    name = declared.name
    if name not in known.names():
        raise PipelineError(f"{name} is declared, and comes from nowhere", hint=f'bind it: p.source("{name}", frame)')
    found = known.relation(name)
    schema = found if isinstance(found, Schema) else found.schema
    if schema.types != declared.schema.types:
        raise DatalogError(
            f"{name} is declared as ({declared.schema}), and is ({schema})", hint="leave the declaration out"
        )
