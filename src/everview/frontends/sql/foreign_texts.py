"""Functions of text to which DuckDB and PostgreSQL give another meaning than Spark does."""

from __future__ import annotations

import re

from sqlglot import exp

from everview.frontends.sql.expressions import POSTGRES, Site, expression
from everview.frontends.sql.foreign_casts import ESCAPING
from everview.plan.typing import call, cast, literal
from everview.scalars.expressions import Expression, Literal
from everview.scalars.functions.patterns import group_count
from everview.scalars.kinds import VOID
from everview.types import BOOLEAN, DOUBLE, FLOAT, STRING, Array

_GROUP = re.compile(r"\\(.)|\$", re.DOTALL)


def joined(node: exp.Expr, site: Site) -> Expression:
    """``concat(a, b)``: the texts of what is not NULL; in DuckDB also lists, of which NULL is an empty one."""
    parts = [expression(part, site) for part in node.expressions]
    if not node.args.get("coalesce"):
        return call("concat", *parts)
    if all(isinstance(part.type, Array) or part.type == VOID for part in parts) and site.context.dialect == "duckdb":
        kept = [part for part in parts if part.type != VOID]
        return call("concat", *(call("coalesce", part, cast(call("array"), part.type)) for part in kept))
    return call("concat", *(call("coalesce", _as_text(part, site), literal("")) for part in parts))


def _as_text(value: Expression, site: Site) -> Expression:
    if site.context.dialect in POSTGRES and value.type == BOOLEAN:
        return call("if", value, literal("t"), call("if", call("not", value), literal("f"), Literal(None, STRING)))
    if value.type in (DOUBLE, FLOAT) and site.context.dialect in ESCAPING:
        value = call("float_text", value, literal("duckdb" if site.context.dialect == "duckdb" else "postgres"))
    return cast(value, STRING)


# -- parts of a text


def substring_counts_alike(node: exp.Expr) -> bool:
    """Whether the place and the length of a substring are numbers of which all dialects mean the same."""
    length = node.args.get("length")
    return _is_number(node.args.get("start"), 1) and (length is None or _is_number(length, 0))


def end_counts_alike(node: exp.Expr) -> bool:
    """Whether the number of letters of ``left`` and ``right`` is written, and not negative."""
    return _is_number(node.expression, 0)


def _is_number(node: exp.Expr | None, least: int) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() and int(node.name) >= least


def duckdb_substring(node: exp.Expr, site: Site) -> Expression:
    """A part of a text; place 0 is the one before the first letter, and takes one letter of the length.

    With a negative length it is the letters before the place.
    """
    text, start, length = _substring_parts(node, site)
    if length is None:
        return call("substring", text, start)
    shorter = _at_least(0, call("subtract", length, literal(1)))
    before_first = call("substring", text, literal(1), shorter)
    part = call("substring", text, start, length)
    if not _is_number(node.args["length"], 0):
        end = call("if", call("less", start, literal(0)), _place_from_end(text, start), start)
        part = call("if", call("less", length, literal(0)), _between(text, call("add", end, length), end), part)
    return call("if", call("equal", start, literal(0)), before_first, part)


def _place_from_end(text: Expression, start: Expression) -> Expression:
    """The place of a letter that is counted from the end of a text, where the last one is -1; at least the first."""
    return _at_least(1, call("add", call("add", call("length", text), start), literal(1)))


def postgres_substring(node: exp.Expr, site: Site) -> Expression:
    """A part of a text; places below 1 are before the first letter, and take letters of the length."""
    text, start, length = _substring_parts(node, site)
    if start.type == STRING:
        return _first_match(text, start, node, site)
    if length is None:
        return call("substring", text, _at_least(1, start))
    return _between(text, start, call("add", start, length))


def _first_match(text: Expression, pattern: Expression, node: exp.Expr, site: Site) -> Expression:
    """``substring(s FROM 'o(.)b')``: the group of the first match, or the match if there is no group; else NULL."""
    if not isinstance(pattern, Literal) or pattern.value is None or node.args.get("length") is not None:
        hint = "write substring(s FROM 'a+')"
        raise site.context.unsupported("a pattern that is not written down", node, hint)
    group = literal(min(group_count(pattern.value), 1))
    match = call("regexp_extract", text, pattern, group)
    return call("if", call("rlike", text, pattern), match, Literal(None, STRING))


def similar_pattern(written: str, escape: str = "\\") -> str:
    """The regular expression that means a pattern of SIMILAR TO.

    >>> similar_pattern("(a|b)%_.")
    '(?s)^(?:(a|b).*.\\\\.)$'
    """
    made, letters = "", iter(written)
    for letter in letters:
        if letter == escape:
            made += re.escape(next(letters, ""))
        else:
            made += {"%": ".*", "_": "."}.get(letter) or (f"\\{letter}" if letter in ".^$\\" else letter)
    return f"(?s)^(?:{made})$"


def _between(text: Expression, start: Expression, end: Expression) -> Expression:
    """The letters of a text from a place on and before another, as far as there are letters."""
    first = _at_least(1, start)
    return call("substring", text, first, _at_least(0, call("subtract", end, first)))


def _at_least(least: int, value: Expression) -> Expression:
    """A number, or the least one if it is less; NULL stays NULL."""
    return call("if", call("less", value, literal(least)), literal(least), value)


def _substring_parts(node: exp.Expr, site: Site) -> tuple[Expression, Expression, Expression | None]:
    start, length = node.args.get("start"), node.args.get("length")
    first = literal(1) if start is None else expression(start, site)
    return expression(node.this, site), first, None if length is None else expression(length, site)


def left_end(node: exp.Expr, site: Site) -> Expression:
    """The first letters of a text; with a negative number all but so many of the last."""
    text, count = expression(node.this, site), expression(node.expression, site)
    kept = call("left", text, _at_least(0, call("add", call("length", text), count)))
    return call("if", call("less", count, literal(0)), kept, call("left", text, count))


def right_end(node: exp.Expr, site: Site) -> Expression:
    """The last letters of a text; with a negative number all but so many of the first."""
    text, count = expression(node.this, site), expression(node.expression, site)
    after = call("substring", text, call("subtract", literal(1), count))
    return call("if", call("less", count, literal(0)), after, call("right", text, count))


_HOLE = re.compile(r"\{(\d*)\}|\{\{|\}\}|[{}]")


def formatted(node: exp.Expr, site: Site) -> Expression:
    """``format('{} of {1}', x, y)``: values in the places of a text that is written down."""
    pattern = node.this
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise site.context.unsupported("a format that is not written down", node, "write printf('%s', x), or concat")
    given = [expression(value, site) for value in node.expressions]
    parts, end, next_place = list[Expression](), 0, 0
    for hole in _HOLE.finditer(pattern.name):
        parts.append(literal(pattern.name[end : hole.start()]))
        end = hole.end()
        if hole[0] in ("{{", "}}"):
            parts.append(literal(hole[0][0]))
            continue
        place = int(hole[1]) if hole[1] else next_place
        next_place += 1
        if hole[1] is None or place >= len(given):
            hint = "write {} or {0}; for digits and widths there is printf('%5.2f', x)"
            raise site.context.unsupported(f"the format {pattern.name[:40]!r}", node, hint)
        parts.append(_shown(given[place]))
    return call("concat", *parts, literal(pattern.name[end:]))


def _shown(value: Expression) -> Expression:
    if value.type in (DOUBLE, FLOAT):
        return call("float_text", cast(value, DOUBLE), literal("duckdb"))
    return cast(value, STRING)


# -- regular expressions


def regexp_replace(node: exp.Expr, site: Site) -> Expression:
    """The text with the first match replaced, or with the option ``g`` all; ``\\1`` is a group, ``\\0`` the match."""
    site.context.only(node, "this", "expression", "replacement", "modifiers", "single_replace")
    options = _options(node.args.get("modifiers"), node, site)
    text, pattern = expression(node.this, site), expression(node.expression, site)
    options |= {"s"} if site.context.dialect in POSTGRES else set()  # there a point is a line's end, too
    flags = "".join(sorted(options & set("is")))
    opened = f"(?{flags}:" if flags else "(?:"
    replacement = node.args.get("replacement")
    if "g" in options:
        whole = call("concat", literal(opened), pattern, literal(")")) if flags else pattern
        return call("regexp_replace", text, whole, _in_java(replacement, site, 0))
    # The pattern takes in the whole text, or at least all before the first match, so that no second match is sought.
    end, after = _end(pattern)
    once = call("concat", literal(f"^((?s:.*?))({opened}"), pattern, literal(f")){end}"))
    made = call("concat", literal("$1"), _in_java(replacement, site, 2), literal(after))
    return call("regexp_replace", text, once, made)


def _end(pattern: Expression) -> tuple[str, str]:
    """A pattern of all after a match, and its group in a replacement; nothing if that group has no number to write."""
    if not isinstance(pattern, Literal) or pattern.value is None:
        return "", ""
    number = 3 + group_count(pattern.value)
    return ("((?s:.*))$", f"${number}") if number < 10 else ("", "")


def _options(node: exp.Expr | None, around: exp.Expr, site: Site) -> set[str]:
    if node is None:
        return set()
    if not isinstance(node, exp.Literal) or set(node.name) - set("gics"):
        raise site.context.unsupported("this option of regexp_replace", around, "there are 'g', 'i', 'c' and 's'")
    return set(node.name)


def _in_java(node: exp.Expr | None, site: Site, before: int) -> Expression:
    """A replacement with its groups as Java writes them; so many groups were put before those of the pattern.

    What no literal says is taken as it is, with neither groups nor escapes.
    """
    if not isinstance(node, exp.Literal):
        text = literal("") if node is None else expression(node, site)
        return call("regexp_replace", text, literal(r"([\\$])"), literal(r"\\$1"))

    def java(match: re.Match[str]) -> str:
        letter = match[1]
        if letter is None:
            return r"\$"
        if letter.isdigit():
            return f"${int(letter) + before}"
        return f"${before}" if letter == "&" else f"\\{letter}"

    return literal(_GROUP.sub(java, node.name))
