"""Names of columns and types: unique, quoted where they must be, and the nearest one where one is unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from everview.errors import SchemaError, UnknownName


def unknown_name(what: str, name: str, available: Iterable[str]) -> UnknownName:
    """The error for a name that does not exist, with the nearest that does."""
    from difflib import get_close_matches

    available = list(available)
    folded = {n.lower(): n for n in available}
    near = get_close_matches(name.lower(), folded, n=1)
    guess = f'did you mean "{folded[near[0]]}"? ' if near else ""
    return UnknownName(
        f'{what} "{name}" does not exist',
        hint=f"{guess}available: {', '.join(available)}" if available else "none is available yet",
    )


def check_names(names: list[str], where: str) -> None:
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SchemaError(f"{where} names {', '.join(twice)} twice", hint="rename one: names are unique")


@lru_cache(maxsize=1 << 12)
def quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"
