"""The rules of a query by name: which call themselves, and which are written out where they are called.

A rule that requires variables gets them from its callers, so it is written out there. A rule that calls itself cannot
be, and has to bind the required variables itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from everview.frontends.cycles import components
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.query import Absent, Clauses, OneOf, RuleCall, RuleClause
from everview.types import unknown_name


@dataclass(frozen=True)
class RuleBook:
    """The clauses of each rule, and the rules that call themselves."""

    clauses: Mapping[str, tuple[RuleClause, ...]]
    recursive: frozenset[str]

    @classmethod
    def of(cls, rules: Iterable[RuleClause]) -> RuleBook:
        """The book of some rules; raises `EdnError` if clauses of one rule, or its calls, disagree on its variables."""
        clauses: dict[str, tuple[RuleClause, ...]] = {}
        for rule in rules:
            before = clauses.get(rule.name, ())
            if before and (len(before[0].required), len(before[0].variables)) != (
                len(rule.required),
                len(rule.variables),
            ):
                hint = f"it has {len(before[0].parameters)} in {before[0].place.line}:{before[0].place.column}"
                raise refuse(rule.place, f"the clauses of rule {rule.name} have different variables", hint)
            clauses[rule.name] = (*before, rule)
        book = cls(clauses, _recursive(clauses))
        for rule in (rule for definitions in clauses.values() for rule in definitions):
            for call in calls(rule.body):
                book.called(call)
        return book

    def is_inlined(self, name: str) -> bool:
        return name not in self.recursive and bool(self.clauses[name][0].required)

    def called(self, call: RuleCall) -> tuple[RuleClause, ...]:
        """The clauses of the called rule; raises `EdnError` if there is none, or it has another number of variables."""
        definitions = self.clauses.get(call.rule)
        if definitions is None:
            error = unknown_name("rule", call.rule, sorted(self.clauses))
            hint = error.hint if self.clauses else "give rules: :in $ %, and args=[…]"
            raise refuse(call.place, f"there is no rule {call.rule}", hint or "")
        wanted = len(definitions[0].parameters)
        if wanted != len(call.terms):
            shown = " ".join(f"?{name}" for name in definitions[0].parameters)
            message = f"rule {call.rule} has {wanted} variables, and is called with {len(call.terms)} terms"
            raise refuse(call.place, message, f"write ({call.rule} {shown})")
        return definitions


def calls(clauses: Clauses) -> Iterator[RuleCall]:
    """The calls of rules in clauses, however deep."""
    for clause in clauses:
        match clause:
            case RuleCall():
                yield clause
            case Absent(inner):
                yield from calls(inner)
            case OneOf(branches):
                for branch in branches:
                    yield from calls(branch)
            case _:
                pass


def _recursive(clauses: Mapping[str, tuple[RuleClause, ...]]) -> frozenset[str]:
    """The rules that call themselves, directly or through others."""
    called = {name: {call.rule for rule in own for call in calls(rule.body)} for name, own in clauses.items()}
    groups = components({name: [other for other in names if other in called] for name, names in called.items()})
    return frozenset(name for group in groups for name in group if len(group) > 1 or name in called[name])
