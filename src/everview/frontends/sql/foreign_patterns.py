"""Patterns of moments: ``to_char(t, 'DD Mon YYYY')`` and ``to_date(s, 'DD Mon YYYY')`` of PostgreSQL, and DuckDB's.

DuckDB writes ``strftime(t, '%d %b %Y')``.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from everview.frontends.sql.expressions import Site, expression
from everview.plan.typing import call, cast, is_number, literal
from everview.scalars.expressions import Expression
from everview.types import STRING

# The letters of PostgreSQL's patterns, as Spark's `date_format` writes them; names are padded unless FM stands before.
_SHOWN: Final = {
    "HH24": "HH", "HH12": "hh", "HH": "hh", "MI": "mm", "SS": "ss", "MS": "SSS", "US": "SSSSSS", "AM": "a", "PM": "a",
    "YYYY": "yyyy", "YY": "yy", "MM": "MM", "DDD": "DDD", "DD": "dd", "Q": "q",
}  # fmt: skip
_NAMES: Final = {"MONTH": ("MMMM", 9), "MON": ("MMM", 0), "DAY": ("EEEE", 9), "DY": ("EEE", 0)}
_READ: Final = {
    "HH24": "H", "HH12": "h", "HH": "h", "MI": "m", "SS": "s", "MS": "SSS", "US": "SSSSSS", "AM": "a", "PM": "a",
    "YYYY": "yyyy", "YY": "yy", "MM": "M", "DD": "d", "MONTH": "MMMM", "MON": "MMM",
}  # fmt: skip
_WORDS: Final = sorted({*_SHOWN, *_NAMES}, key=len, reverse=True)
_PART: Final = re.compile(rf'(?P<fill>FM)?(?P<word>{"|".join(_WORDS)})|"(?P<text>[^"]*)"|(?P<other>.)', re.IGNORECASE)
_HINT: Final = f"there are {', '.join((*_SHOWN, *_NAMES))}, FM before a name, and text in double quotes"


def shown_moment(node: exp.Expr, site: Site) -> Expression:
    """``to_char(t, 'FMDay, DD Mon YYYY')``."""
    value, pattern = _arguments(node, site)
    if is_number(value.type):
        hint = "write printf('%05.2f', x), or to_char in Spark's dialect"
        raise site.context.unsupported("to_char of a number", node, hint)
    parts: list[Expression] = []
    plain = ""

    def shown(letters: str) -> Expression:
        return call("date_format", value, literal(letters))

    for part in _parts(pattern, node, site):
        word = (part["word"] or "").upper()
        if word not in _NAMES:
            plain += _letters(part, _SHOWN)
            continue
        if plain:
            parts.append(shown(plain))
        letters, width = _NAMES[word]
        parts.append(_named(shown(letters), part["word"], 0 if part["fill"] else width))
        plain = ""
    if plain or not parts:
        parts.append(shown(plain) if plain else literal(""))
    return call("concat", *parts)


def _named(name: Expression, written: str, width: int) -> Expression:
    """The name of a month or a day, in the case of the pattern, filled up to a width."""
    cased = call("upper", name) if written.isupper() else call("lower", name) if written.islower() else name
    return call("rpad", cased, literal(width), literal(" ")) if width else cased


def read_moment(node: exp.Expr, site: Site) -> Expression:
    """``to_date(s, 'DD Mon YYYY')`` and ``to_timestamp(s, …)``, or the moment so many seconds after 1970 began."""
    if len(node.expressions) == 1 and node.name.lower() == "to_timestamp":
        return call("timestamp_seconds", expression(node.expressions[0], site))
    value, pattern = _arguments(node, site)
    parts = _parts(pattern, node, site)
    words = {(part["word"] or "").upper() for part in parts}
    unread = words - {"", *_READ}
    if unread:
        raise site.context.unsupported(f"{min(unread)} where a moment is read", node, f"there are {', '.join(_READ)}")
    text = call("capitalized", cast(value, STRING)) if words & _NAMES.keys() else cast(value, STRING)
    return call(node.name.lower(), text, literal("".join(_letters(part, _READ) for part in parts)))


def _arguments(node: exp.Expr, site: Site) -> tuple[Expression, str]:
    name, given = node.name.lower(), node.expressions
    if len(given) != 2 or not isinstance(given[1], exp.Literal) or not given[1].is_string:
        raise site.context.unsupported(f"{name} by what is not written down", node, f"write {name}(x, 'YYYY-MM-DD')")
    return expression(given[0], site), given[1].name


def _parts(pattern: str, node: exp.Expr, site: Site) -> list[re.Match[str]]:
    parts = list(_PART.finditer(pattern))
    for part in parts:
        if part["other"] is not None and part["other"].isalnum() and part["other"] != "T":
            hint = _HINT
            raise site.context.unsupported(f"{part['other']} in the pattern {pattern[:40]!r}", node, hint)
    return parts


def _letters(part: re.Match[str], known: dict[str, str]) -> str:
    """A part of a pattern as Spark writes it, quoted if it is text."""
    if part["word"] is not None:
        return known[part["word"].upper()]
    text = part["other"] if part["text"] is None else part["text"]
    return "'" + text.replace("'", "''") + "'" if text.isalpha() or "'" in text else text


# -- strftime

_PERCENTS: Final = {
    "a": "EEE", "A": "EEEE", "b": "MMM", "h": "MMM", "B": "MMMM", "c": "yyyy-MM-dd HH:mm:ss", "d": "dd", "-d": "d",
    "f": "SSSSSS", "g": "SSS", "H": "HH", "-H": "H", "I": "hh", "-I": "h", "j": "DDD", "-j": "D", "m": "MM", "-m": "M",
    "M": "mm", "-M": "m", "p": "a", "S": "ss", "-S": "s", "x": "yyyy-MM-dd", "X": "HH:mm:ss", "y": "yy", "Y": "yyyy",
}  # fmt: skip
_PERCENT: Final = re.compile(r"(?P<text>(?:[^%]|%%)+|%$)|%(?P<code>-?.)", re.DOTALL)


def by_percents(node: exp.Expr, site: Site) -> Expression:
    """``strftime(t, '%Y-%m-%dT%H:%M')``; the pattern may stand first."""
    site.context.only(node, "this", "format")
    value, pattern = node.this, node.args["format"]
    if isinstance(value, exp.Literal) and value.is_string and not isinstance(pattern, exp.Literal):
        value, pattern = pattern, value
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise site.context.unsupported("strftime by what is not written down", node, "write strftime(t, '%Y-%m-%d')")
    made = ""
    for part in _PERCENT.finditer(pattern.name):
        if part["text"] is not None:
            made += "'" + part["text"].replace("%%", "%").replace("'", "''") + "'"
        elif part["code"] in _PERCENTS:
            made += _PERCENTS[part["code"]]
        else:
            known = ", ".join(f"%{code}" for code in _PERCENTS)
            raise site.context.unsupported(f"%{part['code']} in the pattern of strftime", node, f"there are {known}")
    return call("date_format", expression(value, site), literal(made))
