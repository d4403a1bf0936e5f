"""Languages other than SQL by the names that views keep of them, and how the texts of each are read.

Of a dialect of rules a text is read as a program, of other languages as the views that it defines.

>>> [str(rule) for rule in program_of("path(x, y) :- edge(x, y).", "souffle").rules]
['path(x, y) :- edge(x, y).']
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from everview.errors import DatalogError
from everview.later import Later
from everview.types import unknown_name

if TYPE_CHECKING:
    from everview.frontends.frame.plans import named_plans as frame_plans
    from everview.frontends.pomora.plans import named_plans as pomora_plans
    from everview.frontends.rules.faults import require_text
    from everview.frontends.rules.program import RuleProgram
    from everview.plan.catalog import FrontEnd
else:
    frame_plans = Later("everview.frontends.frame.plans", "named_plans")
    pomora_plans = Later("everview.frontends.pomora.plans", "named_plans")
    require_text = Later("everview.frontends.rules.faults", "require_text")

DATALOG: Final = "datalog"  # the dialect of views that rules define, whichever the rules are written in
EDN: Final = "edn"  # the dialect of views that are EDN queries
FLUENT: Final = "fluent"  # the dialect of views that are fluent queries
FRAME: Final = "frame"  # the dialect of views that are frames
SOUFFLE: Final = "souffle"  # the dialect of rules unless another is named
POMORA: Final = "pomora"  # relational algebra, whose programs have assignments instead of rules


def _souffle(text: str) -> RuleProgram:
    from everview.frontends.datalog.parse import parse

    return parse(text)


def _pomologic(text: str) -> RuleProgram:
    from everview.frontends.pomologic.read import read

    return read(text)


# A grammar is loaded when it is first needed.
DIALECTS: Final[dict[str, Callable[[str], RuleProgram]]] = {SOUFFLE: _souffle, "pomologic": _pomologic}

# Languages of which a stored text is a whole text: by its line here, whatever opens a state reads its views again.
LANGUAGES: Final[dict[str, FrontEnd]] = {POMORA: pomora_plans, FRAME: frame_plans}


def is_sql(dialect: str) -> bool:
    """Whether views of a dialect are written in SQL, of which there are many dialects."""
    return dialect not in LANGUAGES and dialect not in DIALECTS and dialect not in (DATALOG, EDN, FLUENT)


def program_of(text: str, dialect: str) -> RuleProgram:
    """The program that a text is in its dialect."""
    if dialect == POMORA:
        raise DatalogError("a program of PomoRA has no rules", hint="remove it by its handle, or drop its views")
    if not isinstance(dialect, str) or dialect not in DIALECTS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise unknown_name("dialect of Datalog", str(dialect), (*DIALECTS, POMORA))
    return _program_of(whole_text(text, dialect), dialect)


def whole_text(text: str, dialect: str, folder: Path | None = None) -> str:
    """The text with all files that it includes; their paths are relative to a folder, or to the current one."""
    if dialect != SOUFFLE:
        return require_text(text)
    from everview.frontends.datalog.including import with_includes

    return with_includes(require_text(text), folder)


@lru_cache(maxsize=256)
def _program_of(text: str, dialect: str) -> RuleProgram:
    return DIALECTS[dialect](text)
