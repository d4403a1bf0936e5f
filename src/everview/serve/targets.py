"""What ``everview serve`` is pointed at: a state directory, a script of SQL, or a pipeline's file, which names one.

A pipeline's file is read only as far as to find where its state is, so that no Spark is needed to serve that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from everview.errors import EverviewError
from everview.frontends.sql.files import read_file

SETTING: Final = "everview.state"  # which a pipeline's file of SQL sets
YAML: Final = (".yaml", ".yml")


def served(target: Path) -> Path:
    """The state directory of a pipeline's file; else the target as it was given."""
    if not target.is_file():
        return target
    kind = target.suffix.lower()
    if kind not in (*YAML, ".sql", ".py"):
        return target
    named = _in_yaml(target) if kind in YAML else _in_sql(target) if kind == ".sql" else None
    if named is None and kind == ".sql":
        return target  # a script
    if not isinstance(named, str) or "://" in named:
        hint = "give the state directory of the pipeline"
        raise EverviewError(f"{target} names no state directory that can be known without running it", hint=hint)
    state = target.absolute().parent / named
    if not state.is_dir():
        raise EverviewError(f"the pipeline of {target} has no state at {state}", hint=f"everview run {target} makes it")
    return state


def _in_yaml(file: Path) -> Any:
    try:
        said = yaml.safe_load(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        hint = "give the file of a pipeline, or its state directory"
        raise EverviewError(f"{file} cannot be read: {error}", hint=hint) from None
    return said.get("state") if isinstance(said, dict) else None


def _in_sql(file: Path) -> str | None:
    try:
        return read_file(file.read_text(encoding="utf-8-sig")).settings.get(SETTING)
    except (OSError, UnicodeDecodeError, EverviewError):
        return None  # whoever runs it says what is wrong
