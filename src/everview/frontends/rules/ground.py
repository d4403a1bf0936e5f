"""Range restriction: a positive atom binds each variable of a rule, or an equality with bound terms does.

>>> from everview.frontends.datalog.parse import parse
>>> parse("p(x, y) :- q(x).")
Traceback (most recent call last):
everview.errors.UnboundVariable: variable y is not bound in the head
  line 1, column 1:
    p(x, y) :- q(x).
  hint: use y in a positive atom of the body, or set it equal to something that is bound
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from everview.errors import DatalogError
from everview.frontends.rules.bodies import MOST_WAYS, bodies, ways
from everview.frontends.rules.faults import fault
from everview.frontends.rules.matching import is_record
from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Constraint,
    Identified,
    Negation,
    Rule,
    RuleAtom,
    Term,
    Wildcard,
)
from everview.frontends.rules.terms import unbound
from everview.frontends.rules.walk import RulePart, aggregates, all_variables, inner, outside, variables, walk


def check_ground(rule: Rule) -> None:
    """Refuse a rule with a variable that nothing binds; the error says where the variable stands."""
    _check_branches(rule)
    elsewhere = {v for t in rule.head.terms for v in _all(t)}
    for body in bodies(rule.body):
        known = _check_body(body, frozenset(), elsewhere, rule)
        for term in rule.head.terms:
            for name in _all(term):
                if name not in known:
                    raise unbound(name, rule, " in the head")


def _check_branches(rule: Rule) -> None:
    """Refuse a rule whose disjunctions have too many combinations to be joined one by one."""
    nested = [aggregate.body or () for aggregate in aggregates(*rule.body)]
    if max(map(ways, (rule.body, *nested))) > MOST_WAYS:
        hint = "give the alternatives a relation of their own, with a rule for each"
        raise fault(DatalogError, f"the rule has more than {MOST_WAYS:,} combinations of alternatives", rule, hint)


def _all(term: Term) -> Iterable[str]:
    return all_variables(term) if isinstance(term, AggregateTerm) and term.body is None else variables(term)


def _check_body(
    body: tuple[BodyLiteral, ...], around: frozenset[str], elsewhere: set[str], rule: Rule
) -> frozenset[str]:
    """Check that every variable of a body is bound; return the variables bound in the body or around it."""
    known = bound_by(body, around)

    def others() -> set[str]:
        return elsewhere | set(variables(*(other for other in body if other is not literal_))) | known

    for literal_ in body:
        if isinstance(literal_, Negation) and not _is_atom(literal_):
            _check_body(literal_.body, known, others(), rule)
            continue
        where = " in a negation" if isinstance(literal_, Negation) else f" in {literal_}"
        (part,) = literal_.body if isinstance(literal_, Negation) else (literal_,)
        _check_wildcards(part, rule)
        for name in variables(part):
            if name not in known:
                raise unbound(name, rule, where)
        for aggregate in aggregates(part):
            _check_aggregate(aggregate, known, others(), rule)
    return known


def _check_wildcards(literal_: BodyLiteral, rule: Rule) -> None:
    """``_`` stands for any value of a column or of a record's field, and nowhere else."""
    for part in walk((literal_,), outside):
        takes_any = isinstance(part, RuleAtom | Identified) or is_record(part)
        if not takes_any and outside(part) and any(isinstance(p, Wildcard) for p in inner(part)):
            hint = "give it a name and bind it, or leave the condition out"
            raise fault(DatalogError, f"_ stands for a value that nothing binds in {literal_}", rule, hint)


def _is_atom(negation: Negation) -> bool:
    """Is one atom negated? Its variables must be bound outside; those of a negated bracket may be bound inside."""
    return len(negation.body) == 1 and isinstance(negation.body[0], RuleAtom)


def _check_aggregate(aggregate: AggregateTerm, known: frozenset[str], others: set[str], rule: Rule) -> None:
    shared = others & set(all_variables(aggregate))
    if aggregate.function == "count" and aggregate.arguments and aggregate.body is not None:
        hint = "write count : { … }: it counts the ways in which all of it holds"
        raise fault(DatalogError, f"count takes no argument, and was given {aggregate.arguments[0]}", rule, hint)
    for name in sorted(shared):
        if name not in known:
            raise unbound(name, rule, f" outside of the aggregate {aggregate.function}")
    for body in bodies(aggregate.body or ()):
        inside = _check_body(body, frozenset(shared), others, rule)
        for name in variables(*aggregate.arguments):
            if name not in inside:
                raise unbound(name, rule, f" in the aggregate {aggregate.function}")


def bound_by(body: tuple[BodyLiteral, ...], around: frozenset[str] = frozenset()) -> frozenset[str]:
    """The variables bound by positive atoms of a body, by equalities with bound terms, or already `around` it."""
    known = set(around)
    for literal_ in body:
        if isinstance(literal_, RuleAtom | Identified):
            known |= set(_given(*inner(literal_)))
    changed = True
    while changed:
        before = len(known)
        for literal_ in body:
            if isinstance(literal_, Constraint) and literal_.operator == "=":
                for target, source in ((literal_.left, literal_.right), (literal_.right, literal_.left)):
                    if all(v in known for v in variables(source)):
                        known |= set(_given(target))
        changed = len(known) > before
    return frozenset(known)


def _given(*parts: RulePart) -> Iterator[str]:
    """The variables that terms give when they are matched with values: also those of records."""
    return variables(*parts, enters=is_record)
