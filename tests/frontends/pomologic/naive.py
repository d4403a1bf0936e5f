"""PomoLogic by its definition: sets of Python tuples, every rule as it is written."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from everview.frontends.rules.program import (
    AggregateTerm,
    Constant,
    Constraint,
    Identified,
    Negation,
    Rule,
    RuleAtom,
    RuleProgram,
    RuleVariable,
    Term,
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

    def __init__(self, program: RuleProgram, aggregates: Mapping[str, Any] | None = None) -> None:
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
            if isinstance(part, RuleAtom | Identified):
                bindings = [new for old in bindings for new in _selected(part, old, facts)]
        if not bindings:
            return
        waiting = [part for part in rule.body if isinstance(part, Constraint) and isinstance(part.right, AggregateTerm)]
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

    def _aggregated(self, part: Constraint, binding: Binding, facts: Facts) -> Iterator[Binding]:
        assert isinstance(part.right, AggregateTerm)
        assert part.right.body is not None
        (atom,) = part.right.body
        assert isinstance(atom, RuleAtom)
        matches = list(_selected(atom, binding, facts))
        rows = [tuple(match[str(a)] for a in part.right.arguments) for match in matches]
        result = self.aggregates[part.right.function](rows)
        known = binding.get(str(part.left), result)
        if result is not None and known == result:
            yield {**binding, str(part.left): result}


def _names(part: Constraint) -> set[str]:
    assert isinstance(part.right, AggregateTerm)
    assert part.right.body is not None
    (atom,) = part.right.body
    assert isinstance(atom, RuleAtom)
    return {term.name for term in atom.terms if isinstance(term, RuleVariable)}


def _atoms(part: Any) -> Iterator[tuple[RuleAtom, int]]:
    match part:
        case RuleAtom():
            yield part, 0
        case Identified(_, atom):
            yield atom, 0
        case Negation((RuleAtom() as atom,)):
            yield atom, 1
        case Constraint(_, _, AggregateTerm(_, _, (RuleAtom() as atom,))):
            yield atom, 1
        case _:
            pass


def _selected(part: RuleAtom | Identified, binding: Binding, facts: Facts) -> Iterator[Binding]:
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


def _matched(atom: RuleAtom, row: dict[str, Any], binding: Binding) -> Binding | None:
    found = dict(binding)
    for name, term in zip(atom.names or (), atom.terms, strict=True):
        match term:
            case RuleVariable(variable):
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
        case Negation((RuleAtom() as atom,)):
            return not any(True for _ in _selected(atom, binding, facts))
        case Constraint(compared, left, right) if not isinstance(right, AggregateTerm):
            return COMPARE[compared](_value(left, binding), _value(right, binding))
        case _:
            return True


def _value(term: Term, binding: Binding) -> Any:
    match term:
        case RuleVariable(name):
            return binding[name]
        case Constant(value):
            return value
        case _:
            raise AssertionError(term)


def named(columns: Iterable[str], rows: Iterable[Row]) -> set[Named]:
    """Rows as the evaluators hold them."""
    names = tuple(columns)
    return {frozenset(zip(names, row, strict=True)) for row in rows}
