"""PomoRA by its definition: sets of Python tuples, every statement as it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from everview.frontends.pomora import algebra as ra
from frontends.pomologic.naive import COMPARE, Facts, Named, Row


def run(block: Iterable[ra.Statement], facts: Facts) -> Facts:
    """What a program leaves of facts: assignments add, loops go round until nothing is new."""
    facts = {name: set(rows) for name, rows in facts.items()}
    for statement in block:
        _step(statement, facts)
    return facts


def _step(statement: ra.Statement, facts: Facts) -> None:
    match statement:
        case ra.Assignment(target, expression):
            facts[target] = facts.get(target, set()) | evaluated(expression, facts)
        case ra.ChangeLoop(block):
            before = None
            while before != facts:
                before = {name: set(rows) for name, rows in facts.items()}
                for inner in block:
                    _step(inner, facts)


def evaluated(expression: ra.Expression, facts: Facts) -> set[Named]:
    match expression:
        case ra.NamedRelation(name):
            return set(facts.get(name, ()))
        case ra.WrittenRelation(rows):
            return {frozenset(row) for row in rows}
        case ra.Projection(names, inner):
            return {frozenset((n, v) for n, v in row if n in names) for row in evaluated(inner, facts)}
        case ra.Renaming(pairs, inner):
            new = dict(pairs)
            return {frozenset((new.get(n, n), v) for n, v in row) for row in evaluated(inner, facts)}
        case ra.FormulaSelection(formula, inner):
            return {row for row in evaluated(inner, facts) if _true(formula, dict(row))}
        case ra.United(parts):
            return set().union(*(evaluated(part, facts) for part in parts))
        case ra.Combined():
            return _combined(expression, evaluated(expression.left, facts), evaluated(expression.right, facts))
        case ra.Grouping(by, name, function, arguments, inner):
            return set(_grouped(by, name, function, arguments, evaluated(inner, facts)))


def _combined(found: ra.Combined, left: set[Named], right: set[Named]) -> set[Named]:
    pairs = [(a, b) for a in left for b in right if _agree(dict(a), dict(b))]
    match found.operator:
        case "difference":
            return left - right
        case "semijoin":
            return {a for a, _ in pairs}
        case "antijoin":
            return left - {a for a, _ in pairs}
        case "theta_join" | "equijoin":
            assert found.formula is not None
            return {a | b for a, b in pairs if _true(found.formula, dict(a | b))}
        case _:
            return {a | b for a, b in pairs}


def _agree(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all(a[name] == b[name] for name in a.keys() & b.keys())


def _true(formula: ra.Formula, row: dict[str, Any]) -> bool:
    match formula:
        case ra.AttributeComparison(compared, left, right):
            a, b = (row[s.name] if isinstance(s, ra.AttributeName) else s.value for s in (left, right))
            return COMPARE[compared](a, b)
        case ra.Connected("not", (part,)):
            return not _true(part, row)
        case ra.Connected("and", parts):
            return all(_true(part, row) for part in parts)
        case ra.Connected(_, parts):
            return any(_true(part, row) for part in parts)


def _grouped(
    by: tuple[str, ...], name: str, function: str, arguments: tuple[str, ...], rows: set[Named]
) -> Iterator[Named]:
    groups: dict[Row, list[dict[str, Any]]] = {}
    for row in map(dict, rows):
        groups.setdefault(tuple(row[n] for n in by), []).append(row)
    for key, group in groups.items():
        values = [row[arguments[0]] for row in group] if arguments else group
        result = {"count": len, "sum": sum, "min": min, "max": max}[function](values)
        yield frozenset([*zip(by, key, strict=True), (name, result)])
