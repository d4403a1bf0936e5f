"""Stratification: the groups of relations that read each other, in an order in which they can be computed.

Relations that read each other, directly or through others, are one group: a fixed point. Within a group nothing may be
read through a negation or an aggregate, because what has been derived would have to be taken back.

>>> from everview.frontends.rules.program import Negation, Rule, RuleAtom, RuleVariable
>>> x = (RuleVariable("x"),)
>>> rules = [Rule(RuleAtom("odd", x), (RuleAtom("even", x),)), Rule(RuleAtom("even", x), (RuleAtom("odd", x),)),
...          Rule(RuleAtom("none", x), (RuleAtom("n", x), Negation((RuleAtom("odd", x),))))]
>>> groups(rules)
[('odd', 'even'), ('none',)]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from everview.errors import NotStratified
from everview.frontends.cycles import components
from everview.frontends.rules.faults import fault
from everview.frontends.rules.program import AggregateTerm, Identified, Negation, Rule, RuleAtom
from everview.frontends.rules.walk import RulePart, inner, outside, walk


@dataclass(frozen=True, slots=True)
class RelationRead:
    """A relation that a rule reads.

    ``through`` is ``!`` for a negation, ``min`` for such an aggregate of the head, ``min:`` for one of the body, else
    empty.
    """

    relation: str
    through: str = ""

    def __str__(self) -> str:
        if self.through in ("", "!"):
            return f"{self.through}{self.relation}"
        return f"{self.through.rstrip(':')}({self.relation})"


def reads(rule: Rule) -> Iterator[RelationRead]:
    """The relations of a rule's body, and how each is read."""
    in_head = next((t.function for t in rule.head.terms if isinstance(t, AggregateTerm) and t.body is None), "")
    yield from _reads(rule.body, in_head)
    yield from _reads(rule.head.terms, "")


def _reads(parts: Iterable[RulePart], through: str) -> Iterator[RelationRead]:
    for part in walk(parts, outside):
        match part:
            case RuleAtom() | Identified(_, RuleAtom()):
                atom = part.atom if isinstance(part, Identified) else part
                yield RelationRead(atom.relation, through)
            case Negation(body):
                yield from _reads(body, "!")
            case AggregateTerm(function):
                yield from _reads(inner(part), f"{function}:")
            case _:
                pass


def groups(rules: Sequence[Rule]) -> list[tuple[str, ...]]:
    """Groups of heads that read each other, each after the groups it reads; inside, in the order of the rules."""
    order = {name: at for at, name in enumerate(dict.fromkeys(rule.head.relation for rule in rules))}
    edges: dict[str, dict[str, None]] = {name: {} for name in order}
    for rule in rules:
        edges_of_head = edges[rule.head.relation]
        edges_of_head.update((read.relation, None) for read in reads(rule) if read.relation in order)
    return [tuple(sorted(group, key=order.__getitem__)) for group in components(edges)]


def is_recursive(group: Sequence[str], rules: Iterable[Rule]) -> bool:
    """Does the group read itself?"""
    return len(group) > 1 or any(read.relation == group[0] for rule in rules for read in reads(rule))


# -- stratification


def check_stratified(group: Sequence[str], rules: Sequence[Rule], allowed: frozenset[str] = frozenset()) -> None:
    """Refuse a group that reads itself through a negation, or through an aggregate that is not ``allowed``."""
    inside = set(group)
    for rule in rules:
        for read in reads(rule):
            if read.relation in inside and read.through and read.through not in allowed:
                raise _unstratified(rule, read, group, rules)


def _unstratified(rule: Rule, read: RelationRead, group: Sequence[str], rules: Sequence[Rule]) -> NotStratified:
    back = _path(read.relation, rule.head.relation, group, rules)
    cycle = " → ".join([rule.head.relation, str(read), *back[1:]])
    what = "its own negation" if read.through == "!" else f"an aggregate ({read.through.rstrip(':')}) of itself"
    return fault(
        NotStratified,
        f"{rule.head.relation} depends on {what}: {cycle}",
        rule,
        "compute what is negated or aggregated in relations that do not read the result",
    )


def _path(start: str, end: str, group: Sequence[str], rules: Sequence[Rule]) -> list[str]:
    """A shortest path from a relation to one that it depends on."""
    inside = set(group)
    before: dict[str, str] = {}
    waiting = deque([start])
    while waiting and end != start and end not in before:
        name = waiting.popleft()
        for rule in rules:
            if rule.head.relation != name:
                continue
            for read in reads(rule):
                if read.relation in inside and read.relation not in before and read.relation != start:
                    before[read.relation] = name
                    waiting.append(read.relation)
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]
