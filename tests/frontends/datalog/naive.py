"""Random programs, and what they mean: rules applied to sets until nothing is new, one stratum after the other.

A rule here is positive atoms and what is asked of their bindings; its text has the same parts in any order. Nothing of
the package is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Row = tuple[int, ...]
Facts = Mapping[str, set[Row]]
Bound = dict[str, int]

BASE = {"e": 2, "f": 2, "n": 1}
HEADS = ("p", "q", "r", "s")
VALUES = 4

TESTS: dict[str, Callable[[int, int], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
FUNCTIONS: dict[str, Callable[[list[int]], int]] = {"count": len, "sum": sum, "min": min, "max": max}

Term = str | int  # a variable, "_" or a number


@dataclass(frozen=True)
class Atom:
    name: str
    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.terms))})"

    def matches(self, bound: Bound, facts: Facts) -> Iterator[Bound]:
        for row in facts.get(self.name, set()):
            found = dict(bound)
            if all(_meets(t, v, found) for t, v in zip(self.terms, row, strict=True)):
                yield found


def _meets(term: Term, value: int, bound: Bound) -> bool:
    if term == "_":
        return True
    if isinstance(term, int):
        return term == value
    return bound.setdefault(term, value) == value


@dataclass(frozen=True)
class Test:
    left: Term
    operator: str
    right: Term

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"

    def holds(self, bound: Bound) -> bool:
        return TESTS[self.operator](_value(self.left, bound), _value(self.right, bound))


def _value(term: Term, bound: Bound) -> int:
    return term if isinstance(term, int) else bound[term]


@dataclass(frozen=True)
class Step:
    """``name = (of + by) % 4``."""

    name: str
    of: str
    by: int

    def __str__(self) -> str:
        return f"{self.name} = ({self.of} + {self.by}) % {VALUES}"


@dataclass(frozen=True)
class Aggregate:
    """``name = function v : { atom, v operator limit }``, or a count without v; the limit may be outside."""

    name: str
    function: str
    atom: Atom
    test: Test | None

    def __str__(self) -> str:
        inner = str(self.atom) if self.test is None else f"{self.atom}, {self.test}"
        argument = "" if self.function == "count" else " v"
        return f"{self.name} = {self.function}{argument} : {{ {inner} }}"

    def value(self, bound: Bound, facts: Facts) -> int | None:
        found = [b for b in self._each(bound, facts) if self.test is None or self.test.holds(b)]
        values = [b["v"] if self.function != "count" else 1 for b in found]
        if not values and self.function in ("min", "max"):
            return None
        return FUNCTIONS[self.function](values)

    def _each(self, bound: Bound, facts: Facts) -> Iterator[Bound]:
        """Once for every row that matches, whatever its wildcards are."""
        outside = {k: v for k, v in bound.items() if k != "v"}
        yield from self.atom.matches(outside, facts)


@dataclass(frozen=True)
class Without:
    """``!(atom, u operator limit)``: u is its own, the limit is bound outside."""

    atom: Atom
    test: Test

    def __str__(self) -> str:
        return f"!({self.atom}, {self.test})"

    def holds(self, bound: Bound, facts: Facts) -> bool:
        outside = {k: v for k, v in bound.items() if k != "u"}
        return not any(self.test.holds(b) for b in self.atom.matches(outside, facts))


@dataclass(frozen=True)
class No:
    """``!(a, b ; c)``: none of the branches has a match; what is in a branch may be nested further."""

    branches: tuple[Parts, ...]

    def __str__(self) -> str:
        shown = " ; ".join(", ".join(map(str, branch)) for branch in self.branches)
        plain = len(self.branches) == 1 and len(self.branches[0]) == 1 and not isinstance(self.branches[0][0], Test)
        return f"!{shown}" if plain and not isinstance(self.branches[0][0], Many) else f"!({shown})"

    def holds(self, bound: Bound, facts: Facts) -> bool:
        return not any(True for branch in self.branches for _ in matches(branch, bound, facts))


@dataclass(frozen=True)
class Many:
    """``limit operator count : { … }``: of the ways in which nested parts match."""

    limit: Term
    operator: str
    parts: Parts

    def __str__(self) -> str:
        return f"{self.limit} {self.operator} count : {{ {', '.join(map(str, self.parts))} }}"

    def holds(self, bound: Bound, facts: Facts) -> bool:
        found = len(list(matches(self.parts, bound, facts)))
        return TESTS[self.operator](_value(self.limit, bound), found)


Nested = Atom | Test | No | Many
Parts = tuple[Nested, ...]


def matches(parts: Parts, bound: Bound, facts: Facts) -> Iterator[Bound]:
    """The ways in which all parts hold: atoms bind, all others are asked of what they have bound."""
    found: list[Bound] = [bound]
    for atom in (p for p in parts if isinstance(p, Atom)):
        found = [b for before in found for b in atom.matches(before, facts)]
    for here in found:
        tests = all(p.holds(here) for p in parts if isinstance(p, Test))
        if tests and all(p.holds(here, facts) for p in parts if isinstance(p, No | Many)):
            yield here


@dataclass(frozen=True)
class Rule:
    head: Atom
    positive: tuple[Atom, ...]
    either: tuple[Atom, ...] = ()  # one of these besides
    steps: tuple[Step, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    tests: tuple[Test, ...] = ()
    negative: tuple[Atom, ...] = ()
    without: tuple[Without, ...] = ()
    nested: tuple[No | Many, ...] = ()
    order: int = 0

    def __str__(self) -> str:
        parts = [*map(str, self.positive), *map(str, self.steps), *map(str, self.aggregates), *map(str, self.tests)]
        parts += [f"!{atom}" for atom in self.negative] + [str(group) for group in (*self.without, *self.nested)]
        if self.either:
            parts.append("(" + " ; ".join(map(str, self.either)) + ")")
        shuffled = next(itertools.islice(itertools.permutations(parts), self.order, None), parts)
        return f"{self.head} :- {', '.join(shuffled)}."

    def rows(self, facts: Facts) -> Iterator[Row]:
        for bound in self._bound(facts):
            yield tuple(_value(t, bound) for t in self.head.terms)

    def _bound(self, facts: Facts) -> Iterator[Bound]:
        found: list[Bound] = [{}]
        for atom in self.positive:
            found = [b for before in found for b in atom.matches(before, facts)]
        if self.either:
            found = [b for before in found for atom in self.either for b in atom.matches(before, facts)]
        for bound in found:
            for step in self.steps:
                bound[step.name] = (bound[step.of] + step.by) % VALUES
            values = {a.name: a.value(bound, facts) for a in self.aggregates}
            if None in values.values():
                continue
            bound.update(values)  # type: ignore[arg-type]
            if not all(test.holds(bound) for test in self.tests):
                continue
            if not all(group.holds(bound, facts) for group in (*self.without, *self.nested)):
                continue
            if not any(True for atom in self.negative for _ in atom.matches(bound, facts)):
                yield bound

    def grouped(self, facts: Facts) -> set[Row]:
        """As the rule of a head that has the number and the sum of its last column for each of the others."""
        found = list(self._bound(facts))
        if self.either:  # what both branches give is there once
            found = [dict(items) for items in {tuple(sorted(bound.items())) for bound in found}]
        groups: dict[Row, list[int]] = {}
        for bound in found:
            *key, value = (_value(t, bound) for t in self.head.terms)
            groups.setdefault(tuple(key), []).append(value)
        return {(*key, len(values), sum(values)) for key, values in groups.items()}


@dataclass(frozen=True)
class Program:
    strata: tuple[tuple[Rule, ...], ...]
    arities: Mapping[str, int]
    total: Rule

    def __str__(self) -> str:
        declared = [
            f".decl {name}({', '.join(f'c{i}: number' for i in range(count))})" for name, count in self.arities.items()
        ]
        *key, value = map(str, self.total.head.terms)
        head = f"total({', '.join([*key, f'count({value})', f'sum({value})'])})"
        rules = [str(rule) for rules in self.strata for rule in rules]
        return "\n".join([*declared, *rules, head + str(self.total).removeprefix(str(self.total.head))])

    def meaning(self, given: Facts) -> dict[str, set[Row]]:
        facts: dict[str, set[Row]] = {name: set(rows) for name, rows in given.items()}
        for rules in self.strata:
            for rule in rules:
                facts.setdefault(rule.head.name, set())
            changed = True
            while changed:
                changed = False
                for rule in rules:
                    new = set(rule.rows(facts)) - facts[rule.head.name]
                    changed = changed or bool(new)
                    facts[rule.head.name] |= new
        facts["total"] = self.total.grouped(facts)
        return facts


# -- drawing them


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Up to four heads in up to three strata, each over the base relations and all heads before and beside it."""
    heads = HEADS[: draw(st.integers(1, 4))]
    arities = {**BASE, **{name: draw(st.integers(1, 2)) for name in heads}}
    strata: list[tuple[Rule, ...]] = []
    lower, waiting = list(BASE), list(heads)
    while waiting:
        here = waiting[: draw(st.integers(1, len(waiting)))]
        del waiting[: len(here)]
        rules = [draw(rules_of(name, arities, lower, [*lower, *here])) for name in here for _ in range(draw(_UP_TO_3))]
        strata.append(tuple(rules))
        lower += here
    total = draw(rules_of("total", {**arities, "total": 2}, lower, lower))
    return Program(tuple(strata), arities, total)


_UP_TO_3 = st.integers(1, 3)
_NUMBER = st.integers(0, VALUES - 1)
_VARIABLE = st.sampled_from(["x", "y", "z"])


@st.composite
def rules_of(draw: st.DrawFn, head: str, arities: Mapping[str, int], lower: list[str], all_: list[str]) -> Rule:
    positive = tuple(draw(atoms(all_, arities)) for _ in range(draw(_UP_TO_3)))
    either: tuple[Atom, ...] = ()
    if draw(st.booleans()):
        one = draw(atoms(all_, arities))
        either = (one, draw(atoms_with(all_, arities, one)))
    variables = sorted({t for a in (*positive, *either[:1]) for t in a.terms if isinstance(t, str) and t != "_"})
    steps: tuple[Step, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    if variables and draw(st.booleans()):
        steps = (Step("k", draw(st.sampled_from(variables)), draw(_NUMBER)),)
        variables = [*variables, "k"]
    if draw(st.integers(0, 3)) == 0:
        aggregates = (draw(aggregates_of(lower, arities, variables)),)
        variables = [*variables, "c"]
    some = st.sampled_from(variables) | _NUMBER if variables else _NUMBER
    count = draw(st.integers(0, 2)) if variables else 0
    tests = tuple(Test(draw(some), draw(st.sampled_from(list(TESTS))), draw(some)) for _ in range(count))
    negative: tuple[Atom, ...] = ()
    if draw(st.booleans()):
        name = draw(st.sampled_from(lower))
        terms = tuple(draw(some | st.just("_")) for _ in range(arities[name]))
        negative = (Atom(name, terms),)
    without: tuple[Without, ...] = ()
    if draw(st.integers(0, 2)) == 0:
        name = draw(st.sampled_from(lower))
        inner: list[Term] = [draw(some | st.just("_")) for _ in range(arities[name])]
        inner[draw(st.integers(0, len(inner) - 1))] = "u"
        without = (Without(Atom(name, tuple(inner)), Test("u", draw(st.sampled_from(list(TESTS))), draw(some))),)
    shallow = nested_in(lower, arities, variables, DEEPEST - 1)
    nested = (draw(shallow),) if draw(st.integers(0, 2)) == 0 else ()
    terms = tuple(_small(draw(some), aggregates) for _ in range(arities[head]))
    order = draw(st.integers(0, 119))
    return Rule(Atom(head, terms), positive, either, steps, aggregates, tests, negative, without, nested, order)


DEEPEST = 2  # negations and counts inside of each other


@st.composite
def nested_in(draw: st.DrawFn, lower: list[str], arities: Mapping[str, int], variables: list[str], depth: int) -> Any:
    """A negation of one or two conjunctions, or a count of one, over the variables that are bound around it."""
    limit = st.sampled_from(variables) | _NUMBER if variables else _NUMBER
    if draw(st.integers(0, 3)) == 0:
        parts = draw(parts_of(lower, arities, variables, depth))
        return Many(draw(limit), draw(st.sampled_from(list(TESTS))), parts)
    branches = tuple(draw(parts_of(lower, arities, variables, depth)) for _ in range(draw(st.integers(1, 2))))
    return No(tuple(_bound_alone(branch, variables) for branch in branches))


@st.composite
def parts_of(draw: st.DrawFn, lower: list[str], arities: Mapping[str, int], variables: list[str], depth: int) -> Parts:
    """A conjunction, which may be of negations alone; an atom in it may bind a variable of its own."""
    deeper = depth < DEEPEST
    found: list[Nested] = []
    for _ in range(draw(st.integers(0 if deeper else 1, 2))):
        name, own = draw(st.sampled_from(lower)), f"u{depth}"
        some = st.sampled_from([*variables, own]) | _NUMBER | st.just("_")
        atom = Atom(name, tuple(draw(some) for _ in range(arities[name])))
        found.append(atom)
        variables = [*variables, own] if own in atom.terms and own not in variables else variables
    if variables and draw(st.booleans()):
        some = st.sampled_from(variables) | _NUMBER
        found.append(Test(draw(st.sampled_from(variables)), draw(st.sampled_from(list(TESTS))), draw(some)))
    least = 0 if any(isinstance(p, Atom) for p in found) else 1
    for _ in range(draw(st.integers(least, 2 if depth == 0 else 1)) if deeper else 0):
        found.append(draw(nested_in(lower, arities, variables, depth + 1)))
    return tuple(draw(st.permutations(found)))


@st.composite
def nested_programs(draw: st.DrawFn) -> Program:
    """One rule over the base relations, with negations and counts inside of each other."""
    arities = {**BASE, "p": draw(st.integers(1, 2))}
    names = list(BASE)
    positive = tuple(draw(atoms(names, arities)) for _ in range(draw(st.integers(1, 2))))
    variables = sorted({t for a in positive for t in a.terms if isinstance(t, str) and t != "_"})
    some = st.sampled_from(variables) | _NUMBER if variables else _NUMBER
    nested = tuple(draw(nested_in(names, arities, variables, 0)) for _ in range(draw(st.integers(1, 2))))
    head = Atom("p", tuple(draw(some) for _ in range(arities["p"])))
    rule = Rule(head, positive, nested=nested, order=draw(st.integers(0, 23)))
    total = Rule(Atom("total", (0, *(variables[:1] or [1]))), positive, nested=nested)
    return Program(((rule,),), arities, total)


def _bound_alone(branch: Parts, variables: list[str]) -> Parts:
    """A negated atom alone has no variables of its own."""
    if len(branch) == 1 and isinstance(branch[0], Atom):
        atom = branch[0]
        return (Atom(atom.name, tuple(t if isinstance(t, int) or t in variables else "_" for t in atom.terms)),)
    return branch


def _small(term: Any, aggregates: tuple[Aggregate, ...]) -> Term:
    """A sum does not stand in a head, lest recursion goes on for ever."""
    return 0 if aggregates and term == "c" else term


@st.composite
def atoms(draw: st.DrawFn, names: list[str], arities: Mapping[str, int]) -> Atom:
    name = draw(st.sampled_from(names))
    term = _VARIABLE | _VARIABLE | _NUMBER | st.just("_")
    return Atom(name, tuple(draw(term) for _ in range(arities[name])))


@st.composite
def atoms_with(draw: st.DrawFn, names: list[str], arities: Mapping[str, int], other: Atom) -> Atom:
    """An atom that binds the variables of another, and no others."""
    own = sorted({t for t in other.terms if isinstance(t, str) and t != "_"})
    name = draw(st.sampled_from([n for n in names if arities[n] >= len(own)]))
    rest = st.sampled_from(own) | _NUMBER if own else _NUMBER
    terms: list[Term] = [*own, *(draw(rest | st.just("_")) for _ in range(arities[name] - len(own)))]
    return Atom(name, tuple(draw(st.permutations(terms))))


@st.composite
def aggregates_of(draw: st.DrawFn, lower: list[str], arities: Mapping[str, int], variables: list[str]) -> Aggregate:
    name = draw(st.sampled_from(lower))
    shared = st.sampled_from(variables) | _NUMBER if variables else _NUMBER
    terms: list[Term] = [draw(shared | st.just("_")) for _ in range(arities[name])]
    terms[draw(st.integers(0, len(terms) - 1))] = "v"
    limit = draw(st.none() | shared)
    test = None if limit is None else Test("v", draw(st.sampled_from(list(TESTS))), limit)
    return Aggregate("c", draw(st.sampled_from(list(FUNCTIONS))), Atom(name, tuple(terms)), test)


def facts() -> st.SearchStrategy[list[tuple[str, Row, int]]]:
    """Changes of the base relations: a relation, a row, and whether it comes or goes."""
    one = st.sampled_from(list(BASE)).flatmap(
        lambda name: st.tuples(st.just(name), st.tuples(*[_NUMBER] * BASE[name]), st.sampled_from([1, 1, -1]))
    )
    return st.lists(one, max_size=12)
