"""PomoLogic and PomoRA by their definitions: sets of Python tuples, every rule and statement as it is written."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from everview.frontends.pomora import algebra as ra
from everview.frontends.rules.program import (
    Aggregate,
    Atom,
    Compare,
    Constant,
    Identified,
    Not,
    Program,
    Rule,
    Term,
    Variable,
)

Row = tuple[Any, ...]
Named = frozenset[tuple[str, Any]]
Facts = dict[str, set[Named]]
Binding = dict[str, Any]

COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def content_id(relation: str, row: Named) -> str:
    def measured(value: Any) -> str:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return f"{len(text)}:{text}"

    text = measured(relation) + "".join(measured(name) + measured(value) for name, value in sorted(row))
    return hashlib.sha256(text.encode()).hexdigest()


class Clock:
    """A program tick by tick: `tick` gives what holds when tables hold these facts."""

    def __init__(self, program: Program, aggregates: Mapping[str, Any] | None = None) -> None:
        self.program = program
        self.aggregates = {
            "count": len,
            "sum": lambda rows: sum(x for (x,) in rows),
            "min": lambda rows: min((x for (x,) in rows), default=None),
            "max": lambda rows: max((x for (x,) in rows), default=None),
            **(aggregates or {}),
        }
        self.before: Facts = {}

    def tick(self, tables: Facts) -> Facts:
        facts: Facts = {name: set(rows) for name, rows in tables.items()}
        for head in self.program.heads:
            facts.setdefault(head, set())
            facts[head] |= self.before.get(head, set())
        for stratum in self._strata():
            changed = True
            while changed:
                changed = False
                for rule in stratum:
                    found = set(self._derived(rule, facts))
                    changed = changed or not found <= facts[rule.head.relation]
                    facts[rule.head.relation] |= found
        self.before = {}
        for rule in self.program.rules:
            if rule.next:
                self.before.setdefault(rule.head.relation, set()).update(self._derived(rule, facts))
        return facts

    def _strata(self) -> list[list[Rule]]:
        rules = [rule for rule in self.program.rules if not rule.next]
        level = dict.fromkeys(self.program.heads, 0)
        for _ in range(len(level) ** 2 + 1):
            for rule in rules:
                for part in rule.body:
                    for atom, later in _atoms(part):
                        if atom.relation in level:
                            least = level[atom.relation] + later
                            level[rule.head.relation] = max(level[rule.head.relation], least)
        return [[r for r in rules if level[r.head.relation] == n] for n in range(max(level.values(), default=0) + 1)]

    def _derived(self, rule: Rule, facts: Facts) -> Iterator[Named]:
        for binding in self._solutions(rule, facts):
            names = rule.head.names or ()
            yield frozenset((name, _value(term, binding)) for name, term in zip(names, rule.head.terms, strict=True))

    def _solutions(self, rule: Rule, facts: Facts) -> Iterator[Binding]:
        bindings: list[Binding] = [{}]
        for part in rule.body:
            if isinstance(part, Atom | Identified):
                bindings = [new for old in bindings for new in _selected(part, old, facts)]
        if not bindings:
            return
        waiting = [part for part in rule.body if isinstance(part, Compare) and isinstance(part.right, Aggregate)]
        results = {str(part.left) for part in waiting}
        bound = set(bindings[0])
        while waiting:
            part = next(p for p in waiting if not (_names(p) & (results - bound)))
            waiting.remove(part)
            bound.add(str(part.left))
            bindings = [new for old in bindings for new in self._aggregated(part, old, facts)]
        for binding in bindings:
            if all(_holds(part, binding, facts) for part in rule.body):
                yield binding

    def _aggregated(self, part: Compare, binding: Binding, facts: Facts) -> Iterator[Binding]:
        assert isinstance(part.right, Aggregate)
        assert part.right.body is not None
        (atom,) = part.right.body
        assert isinstance(atom, Atom)
        matches = list(_selected(atom, binding, facts))
        rows = [tuple(match[str(a)] for a in part.right.arguments) for match in matches]
        result = self.aggregates[part.right.function](rows)
        known = binding.get(str(part.left), result)
        if result is not None and known == result:
            yield {**binding, str(part.left): result}


def _names(part: Compare) -> set[str]:
    assert isinstance(part.right, Aggregate)
    assert part.right.body is not None
    (atom,) = part.right.body
    assert isinstance(atom, Atom)
    return {term.name for term in atom.terms if isinstance(term, Variable)}


def _atoms(part: Any) -> Iterator[tuple[Atom, int]]:
    match part:
        case Atom():
            yield part, 0
        case Identified(_, atom):
            yield atom, 0
        case Not((Atom() as atom,)):
            yield atom, 1
        case Compare(_, _, Aggregate(_, _, (Atom() as atom,))):
            yield atom, 1
        case _:
            pass


def _selected(part: Atom | Identified, binding: Binding, facts: Facts) -> Iterator[Binding]:
    atom = part.atom if isinstance(part, Identified) else part
    for row in facts.get(atom.relation, ()):
        found = _matched(atom, dict(row), binding)
        if found is None:
            continue
        if isinstance(part, Identified):
            made = content_id(atom.relation, row)
            if found.get(part.variable.name, made) != made:
                continue
            found[part.variable.name] = made
        yield found


def _matched(atom: Atom, row: dict[str, Any], binding: Binding) -> Binding | None:
    found = dict(binding)
    for name, term in zip(atom.names or (), atom.terms, strict=True):
        match term:
            case Variable(variable):
                if found.setdefault(variable, row[name]) != row[name]:
                    return None
            case Constant(value):
                if row[name] != value:
                    return None
            case _:
                pass
    return found


def _holds(part: Any, binding: Binding, facts: Facts) -> bool:
    match part:
        case Not((Atom() as atom,)):
            return not any(True for _ in _selected(atom, binding, facts))
        case Compare(compared, left, right) if not isinstance(right, Aggregate):
            return COMPARE[compared](_value(left, binding), _value(right, binding))
        case _:
            return True


def _value(term: Term, binding: Binding) -> Any:
    match term:
        case Variable(name):
            return binding[name]
        case Constant(value):
            return value
        case _:
            raise AssertionError(term)


# -- PomoRA, statement by statement


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
        case ra.Loop(block):
            before = None
            while before != facts:
                before = {name: set(rows) for name, rows in facts.items()}
                for inner in block:
                    _step(inner, facts)


def evaluated(expression: ra.Expression, facts: Facts) -> set[Named]:
    match expression:
        case ra.Named(name):
            return set(facts.get(name, ()))
        case ra.Written(rows):
            return {frozenset(row) for row in rows}
        case ra.Projection(names, inner):
            return {frozenset((n, v) for n, v in row if n in names) for row in evaluated(inner, facts)}
        case ra.Renaming(pairs, inner):
            new = dict(pairs)
            return {frozenset((new.get(n, n), v) for n, v in row) for row in evaluated(inner, facts)}
        case ra.Selection(formula, inner):
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
        case ra.Compared(compared, left, right):
            a, b = (row[s.name] if isinstance(s, ra.Attribute) else s.value for s in (left, right))
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


def named(columns: Iterable[str], rows: Iterable[Row]) -> set[Named]:
    """Rows as the evaluators hold them."""
    names = tuple(columns)
    return {frozenset(zip(names, row, strict=True)) for row in rows}
