"""Checks of PomoLogic: range restriction, grounding, well-formed aggregates, one set of attributes for each head.

Each has an error of its own, which names the variable and shows the rule.

>>> from everview.frontends.pomologic.parse import parse
>>> check(parse("t(c: C, n: N) :- N := sum Q : p(c: C, q: Q)."))
Traceback (most recent call last):
everview.errors.NotRangeRestricted: variable C of the head of t is not bound by a selection
  line 1, column 1:
    t(c: C, n: N) :- N = sum Q : { p(c: C, q: Q) }.
  hint: C is bound only inside the aggregate N := sum Q : p(c: C, q: Q); select it in the body, too
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from everview.errors import BadAggregate, DatalogError, NotRangeRestricted, UnboundVariable
from everview.frontends.pomologic.scope import Aggregation, RuleScope, names_in
from everview.frontends.rules.faults import fault
from everview.frontends.rules.program import Rule, RuleProgram, Wildcard
from everview.operators.aggregate.registry import aggregates_of
from everview.scalars.functions.user import is_registered, registered

PARAMETERS = {name: int(name != "count") for name in aggregates_of("pomologic")}  # how many each aggregate takes


def check(program: RuleProgram) -> None:
    """Refuse a program with a rule that fails a check."""
    _check_attributes(program)
    for rule in program.rules:
        scope = RuleScope.of(rule)
        for test in CHECKS:
            for problem in test(rule, scope):
                raise problem


def _check_attributes(program: RuleProgram) -> None:
    """Refuse rules of one head that name different attributes."""
    known: dict[str, Rule] = {}
    for rule in program.rules:
        names, first = rule.head.names or (), known.setdefault(rule.head.relation, rule)
        if not names:
            raise fault(DatalogError, f"{rule.head.relation} has no attributes", rule, "name at least one in its head")
        if frozenset(names) != frozenset(first.head.names or ()):
            raise fault(
                *(DatalogError, f"{rule.head.relation} has other attributes than in an earlier rule", rule),
                f"there it has {', '.join(first.head.names or ())}: name all of them in every head",
            )


def _parameters(rule: Rule, scope: RuleScope) -> Iterator[DatalogError]:
    """Errors for aggregates: a wrong number of parameters, or one bound elsewhere or not once in the atom."""
    for aggregation in scope.aggregates:
        wanted, given = _wanted(aggregation, rule), len(aggregation.parameters)
        if wanted is not None and given != wanted:
            takes = f"{wanted} parameter{'' if wanted == 1 else 's'}"
            problem = f"{aggregation.function} takes {takes}, and {aggregation} has {given}"
            yield fault(BadAggregate, problem, rule, _written(aggregation.function, wanted))
        for name in aggregation.parameters:
            times = [str(term) for term in aggregation.atom.terms].count(name)
            if times != 1:
                problem = f"parameter {name} of {aggregation} stands {times} times in its atom"
                yield fault(BadAggregate, problem, rule, "it must stand there exactly once")
            if name in scope.bound:
                problem = f"parameter {name} of {aggregation} is bound outside of the aggregate, too"
                yield fault(BadAggregate, problem, rule, "give it another name: it would be one value in every group")


def _wanted(aggregation: Aggregation, rule: Rule) -> int | None:
    if aggregation.function in PARAMETERS:
        return PARAMETERS[aggregation.function]
    if is_registered(aggregation.function) and registered(aggregation.function).aggregate:
        return None
    hint = f"there are {', '.join(PARAMETERS)}, and those of @ev.aggregate"
    raise fault(BadAggregate, f"there is no aggregate {aggregation.function}", rule, hint)


def _written(function: str, wanted: int) -> str:
    return f"write X := {' '.join([function, 'Y'][: wanted + 1])} : atom(…)"


def _grouping(rule: Rule, scope: RuleScope) -> Iterator[DatalogError]:
    """Errors for aggregates that share a variable with the rule which only an aggregate would bind."""
    for aggregation in scope.waiting():
        missing = min(scope.shared(aggregation) - scope.selected)
        problem = f"variable {missing} of {aggregation} is not grounded before the aggregate"
        yield fault(
            UnboundVariable, problem, rule, f"bind {missing} by a selection, or give it another name in the atom"
        )


def _negated(rule: Rule, scope: RuleScope) -> Iterator[DatalogError]:
    for atom in scope.negations:
        for name in sorted(names_in(atom.terms) - scope.bound):
            problem = f"variable {name} of !{atom} is not grounded"
            hint = _why(name, scope) or f"bind {name} by a selection, or leave the attribute out to mean any value"
            yield fault(UnboundVariable, problem, rule, hint)


def _constrained(rule: Rule, scope: RuleScope) -> Iterator[DatalogError]:
    for part in scope.constraints:
        if Wildcard() in (part.left, part.right):
            yield fault(
                UnboundVariable, f"_ in the constraint {part} is no value", rule, "compare variables and constants"
            )
        for name in sorted(names_in((part.left, part.right)) - scope.bound):
            problem = f"variable {name} of the constraint {part} is not grounded"
            hint = _why(name, scope) or f"bind {name} by a selection: a constraint only tests"
            yield fault(UnboundVariable, problem, rule, hint)


def _restricted(rule: Rule, scope: RuleScope) -> Iterator[DatalogError]:
    if Wildcard() in rule.head.terms:
        yield fault(NotRangeRestricted, "_ in a head is no value", rule, "name a variable that the body binds")
    for name in sorted(names_in(rule.head.terms) - scope.bound):
        problem = f"variable {name} of the head of {rule.head.relation} is not bound by a selection"
        hint = _why(name, scope) or _alike(name, scope) or f"let an atom of the body bind {name}"
        yield fault(NotRangeRestricted, problem, rule, hint)


def _why(name: str, scope: RuleScope) -> str | None:
    """A hint if a variable is bound inside of an aggregate alone."""
    for aggregation in scope.aggregates:
        if name in scope.local(aggregation):
            return f"{name} is bound only inside the aggregate {aggregation}; select it in the body, too"
    return None


def _alike(name: str, scope: RuleScope) -> str | None:
    near = [other for other in sorted(scope.bound) if other.casefold() == name.casefold()]
    return f"the body binds {near[0]}, which is another variable" if near else None


CHECKS: tuple[Callable[[Rule, RuleScope], Iterator[DatalogError]], ...] = (
    _parameters,  # first: what they say of a variable is the most precise
    _grouping,
    _negated,
    _constrained,
    _restricted,
)
