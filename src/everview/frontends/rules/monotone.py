"""``min`` and ``max`` inside of recursion: allowed where a better value never makes anything worse.

Within a group of relations that read each other, a column of a ``min`` gets less and a column of a ``max`` more as the
fixed point is approached: call that better. A rule of the group keeps to that if each variable that reads such a column

- is used in no other atom, in no negation and no aggregate, and in no column of a head but those of a min or max;
- comes to such a column, if at all, only through ``+``, ``-``, a sign, ``*`` and ``/`` by a constant, ``min``, ``max``
  and ``to_float``, so that a better value there gives a better value here;
- is compared only in a direction in which a better value stays true: ``d < 10`` for the d of a min.

Then the fixed point is the least one of a monotone function, whatever the order in which rows come. A rule that does
not keep to it is refused.

>>> from everview.frontends.datalog.parse import parse
>>> shortest = parse("sp(x, min(0)) :- source(x). sp(y, min(d + w)) :- sp(x, d), edge(x, y, w), d + w < 100.")
>>> check_extremes(["sp"], shortest.rules)
>>> longer = parse("sp(x, min(0)) :- source(x). sp(y, min(d + w)) :- sp(x, d), edge(x, y, w), d > 3.")
>>> check_extremes(["sp"], longer.rules)
Traceback (most recent call last):
everview.errors.NotStratified: sp depends on its own min, and d > 3 may become false as d gets better
  line 1, column 29:
    sp(y, min(d + w)) :- sp(x, d), edge(x, y, w), d > 3.
  hint: compare it on the result of the recursion, in a rule of another relation
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from everview.errors import NotStratified
from everview.frontends.rules.bodies import bodies
from everview.frontends.rules.faults import fault
from everview.frontends.rules.heads import functions_of
from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Constant,
    Constraint,
    Functor,
    Identified,
    Rule,
    RuleAtom,
    RuleVariable,
    Term,
    Wildcard,
)
from everview.frontends.rules.walk import all_variables

EXTREMES: Final[frozenset[str]] = frozenset(["min", "max"])
BETTER: Final = {"min": -1, "max": 1}  # where a column goes as the fixed point is approached


def check_extremes(group: Sequence[str], rules: Sequence[Rule]) -> None:
    """Refuse a recursive group in which a min or max is used in a way that is not monotone."""
    columns = {name: functions_of([r for r in rules if r.head.relation == name]) for name in group}
    if any(columns.values()):
        for rule in rules:
            for body in bodies(rule.body):
                _Checking(rule, body, columns).check()


class _Checking:
    """The check of one body of a rule; ``ways`` has the direction of each variable that changes."""

    def __init__(self, rule: Rule, body: tuple[BodyLiteral, ...], columns: Mapping[str, Mapping[int, str]]) -> None:
        self.rule = rule
        self.body = body
        self.columns = columns
        self.ways: dict[str, int] = {}

    def check(self) -> None:
        for atom in self._atoms():
            for place, function in self.columns.get(atom.relation, {}).items():
                self._read(atom, atom.terms[place], function)
        if not self.ways:
            return
        self._check_alone()
        for part in self._derive(list(self.body)):
            self._check_literal(part)
        for place, term in enumerate(self.rule.head.terms):
            self._check_head(place, term)

    def _atoms(self) -> Iterable[RuleAtom]:
        for part in self.body:
            if isinstance(part, RuleAtom | Identified):
                yield part.atom if isinstance(part, Identified) else part

    def _read(self, atom: RuleAtom, term: Term, function: str) -> None:
        if isinstance(term, Wildcard):
            return
        if not isinstance(term, RuleVariable):
            raise self._refused(f"{atom} asks for one value of it", "read it with a variable")
        if term.name in self.ways:
            raise self._refused(f"{term} is read twice", "join on other columns")
        self.ways[term.name] = BETTER[function]

    def _check_alone(self) -> None:
        """Refuse a variable that reads an extreme and stands in another place of an atom, too."""
        places = [t for atom in self._atoms() for t in atom.terms]
        for name in self.ways:
            if sum(name in set(all_variables(t)) for t in places) > 1:
                raise self._refused(f"{name} is joined", "join on other columns")

    def _derive(self, waiting: list[BodyLiteral]) -> list[BodyLiteral]:
        """Note variables that are equal to a changing term; gives the literals that are no such equality."""
        bound = set(all_variables(*self._atoms()))
        changed = True
        while changed:
            changed = False
            for part in list(waiting):
                target, source = self._equality(part, bound)
                if target is not None and source is not None:
                    way = self._way(source)
                    if way is None:
                        raise self._refused(f"{source} may get worse as it gets better", HINT)
                    self.ways[target] = way
                    waiting.remove(part)
                    changed = True
        return waiting

    def _equality(self, part: BodyLiteral, bound: set[str]) -> tuple[str | None, Term | None]:
        if isinstance(part, Constraint) and part.operator == "=":
            for target, source in ((part.left, part.right), (part.right, part.left)):
                if (
                    isinstance(target, RuleVariable)
                    and target.name not in bound
                    and target.name not in self.ways
                    and any(v in self.ways for v in all_variables(source))
                ):
                    return target.name, source
        return None, None

    def _check_literal(self, part: BodyLiteral) -> None:
        if isinstance(part, RuleAtom | Identified):
            return
        touched = [v for v in all_variables(part) if v in self.ways]
        if not touched:
            return
        if not isinstance(part, Constraint):
            raise self._refused(f"{part} depends on {touched[0]}", HINT)
        left, right = self._way(part.left), self._way(part.right)
        wanted = {"<": -1, "<=": -1, ">": 1, ">=": 1}.get(part.operator)
        if wanted is None or left not in (0, wanted) or right not in (0, -wanted):
            hint = "compare it on the result of the recursion, in a rule of another relation"
            raise self._refused(f"{part} may become false as {touched[0]} gets better", hint)

    def _check_head(self, place: int, term: Term) -> None:
        function = self.columns[self.rule.head.relation].get(place)
        inner = term.arguments[0] if isinstance(term, AggregateTerm) and term.arguments else term
        way = self._way(inner)
        if way == 0:
            return
        if function is None:
            raise self._refused(f"{term} is a plain column of the head", "read the result in a rule of another group")
        if way != BETTER[function]:
            raise self._refused(f"{inner} may get worse as it gets better", HINT)

    # -- where values go

    def _way(self, term: Term) -> int | None:
        """The direction of a term as the fixed point is approached: 1 up, -1 down, 0 constant, None unknown."""
        match term:
            case RuleVariable(name):
                return self.ways.get(name, 0)
            case Functor(name, arguments):
                return self._of_functor(name, arguments)
            case AggregateTerm():
                return None if any(v in self.ways for v in all_variables(term)) else 0
            case _:
                return 0

    def _of_functor(self, name: str, arguments: tuple[Term, ...]) -> int | None:
        ways = [self._way(a) for a in arguments]
        if not any(way != 0 for way in ways):
            return 0
        match name, arguments:
            case "+" | "min" | "max" | "to_float" | "itof", _:
                return _together(ways)
            case "-", (_,):
                return _turned(ways[0])
            case "-", (_, _):
                return _together([ways[0], _turned(ways[1])])
            case "*", (Constant(factor), _) if _is_number(factor):
                return ways[1] if factor > 0 else _turned(ways[1])
            case "*" | "/", (_, Constant(factor)) if _is_number(factor):
                return ways[0] if factor > 0 else _turned(ways[0])
            case _:
                return None

    def _refused(self, why: str, hint: str) -> NotStratified:
        name = self.rule.head.relation
        functions = self.columns[name] or next(f for f in self.columns.values() if f)
        function = next(iter(functions.values()))
        return fault(NotStratified, f"{name} depends on its own {function}, and {why}", self.rule, hint)


HINT: Final = "inside of recursion it may be added to, and compared in the direction in which it gets better"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value != 0


def _turned(way: int | None) -> int | None:
    return None if way is None else -way


def _together(ways: Sequence[int | None]) -> int | None:
    if None in ways:
        return None
    directions = {way for way in ways if way != 0}
    return next(iter(directions)) if len(directions) == 1 else None
