"""Which variables a rule binds: each must be bound by a positive atom, or be equal to what is.

>>> from everview.frontends.datalog.parse import parse
>>> parse("p(x, y) :- q(x).")
Traceback (most recent call last):
everview.errors.UnboundVariable: variable y is not bound in the head
  line 1, column 1:
    p(x, y) :- q(x).
  hint: use y in a positive atom of the body, or set it equal to something that is bound
"""

from __future__ import annotations

from collections.abc import Iterable

from everview.errors import DatalogError
from everview.frontends.datalog.bodies import MOST_WAYS, bodies, ways
from everview.frontends.datalog.faults import fault
from everview.frontends.datalog.matching import parts
from everview.frontends.datalog.program import (
    Aggregate,
    Atom,
    Compare,
    Functor,
    Identified,
    Literal_,
    Not,
    Rule,
    Term,
    Variable,
    Wildcard,
)
from everview.frontends.datalog.terms import (
    RECORD,
    aggregates,
    all_variables,
    outer_variables,
    terms_of,
    unbound,
    variables,
)


def check_ground(rule: Rule) -> None:
    """Refuse a rule with a variable that nothing binds; the error says whether in its head, a negation or where."""
    _check_branches(rule)
    outside = {v for t in rule.head.terms for v in _all(t)}
    for body in bodies(rule.body):
        known = _check_body(body, frozenset(), outside, rule)
        for term in rule.head.terms:
            for name in _all(term):
                if name not in known:
                    raise unbound(name, rule, " in the head")


def _check_branches(rule: Rule) -> None:
    """Refuse a rule that has more ways through its disjunctions than can be joined one by one."""
    nested = [a.body or () for part in rule.body for t in terms_of(part) for a in aggregates(t)]
    if max(map(ways, (rule.body, *nested))) > MOST_WAYS:
        hint = "give the alternatives a relation of their own, with a rule for each"
        raise fault(DatalogError, f"the rule has more than {MOST_WAYS:,} combinations of alternatives", rule, hint)


def _all(term: Term) -> Iterable[str]:
    return all_variables(term) if isinstance(term, Aggregate) and term.body is None else variables(term)


def _check_body(body: tuple[Literal_, ...], around: frozenset[str], outside: set[str], rule: Rule) -> frozenset[str]:
    """What a body binds, given what is bound around it."""
    known = _bound(body, around)
    for literal_ in body:
        others = outside | set(outer_variables(other for other in body if other is not literal_)) | known
        if isinstance(literal_, Not) and not _is_atom(literal_):
            _check_body(literal_.body, known, others, rule)
            continue
        where = " in a negation" if isinstance(literal_, Not) else f" in {literal_}"
        (part,) = literal_.body if isinstance(literal_, Not) else (literal_,)
        _check_wildcards(part, rule)
        for name in (v for t in terms_of(part) for v in variables(t)):
            if name not in known:
                raise unbound(name, rule, where)
        for aggregate in (a for t in terms_of(part) for a in aggregates(t)):
            _check_aggregate(aggregate, known, others, rule)
    return known


def _check_wildcards(literal_: Literal_, rule: Rule) -> None:
    """``_`` stands for any value of a column or of a record's field, and nowhere else."""
    for term in terms_of(literal_):
        alone = isinstance(term, Wildcard) and not isinstance(literal_, Atom | Identified)
        if alone or any(map(_has_wildcard, parts(term))):
            hint = "give it a name and bind it, or leave the condition out"
            raise fault(DatalogError, f"_ stands for a value that nothing binds in {literal_}", rule, hint)


def _has_wildcard(term: Term) -> bool:
    """Is an argument of a functor, other than a record, any value?"""
    return isinstance(term, Functor) and term.name != RECORD and any(isinstance(a, Wildcard) for a in term.arguments)


def _is_atom(negation: Not) -> bool:
    """Is it one atom? All its variables are to be bound; those of a bracket may be bound in it."""
    return len(negation.body) == 1 and isinstance(negation.body[0], Atom)


def _check_aggregate(aggregate: Aggregate, known: frozenset[str], others: set[str], rule: Rule) -> None:
    shared = others & set(all_variables(aggregate))
    if aggregate.function == "count" and aggregate.arguments and aggregate.body is not None:
        hint = "write count : { … }: it counts the ways in which all of it holds"
        raise fault(DatalogError, f"count takes no argument, and was given {aggregate.arguments[0]}", rule, hint)
    for name in sorted(shared):
        if name not in known:
            raise unbound(name, rule, f" outside of the aggregate {aggregate.function}")
    for body in bodies(aggregate.body or ()):
        inside = _check_body(body, frozenset(shared), others, rule)
        for name in (v for t in aggregate.arguments for v in variables(t)):
            if name not in inside:
                raise unbound(name, rule, f" in the aggregate {aggregate.function}")


def _bound(body: tuple[Literal_, ...], around: frozenset[str]) -> frozenset[str]:
    known = set(around)
    for literal_ in body:
        if isinstance(literal_, Atom | Identified):
            known |= {v for t in terms_of(literal_) for v in _given(t)}
    changed = True
    while changed:
        before = len(known)
        for literal_ in body:
            if isinstance(literal_, Compare) and literal_.operator == "=":
                for target, source in ((literal_.left, literal_.right), (literal_.right, literal_.left)):
                    if all(v in known for v in variables(source)):
                        known |= set(_given(target))
        changed = len(known) > before
    return frozenset(known)


def _given(term: Term) -> Iterable[str]:
    """The variables that a term gives when it is matched with a value."""
    match term:
        case Variable(name):
            yield name
        case _ if getattr(term, "name", None) == RECORD:
            for argument in term.arguments:  # pyright: ignore
                yield from _given(argument)
        case _:
            pass
