"""The variables that clauses bind, in any order; an unbound variable is refused with the place of its clause.

A pattern binds all its variables, a function those of its binding once its arguments are bound, `or` what each of its
branches binds. `not` binds nothing, and needs what it shares with the clauses around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everview.errors import EdnError
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.query import (
    Absent,
    Applied,
    Clause,
    Clauses,
    DataPattern,
    OneOf,
    RuleCall,
    RuleClause,
    bound,
    used,
    variables,
)
from everview.frontends.rules.program import RuleVariable

Rules = Mapping[str, Sequence[RuleClause]]


def check_bindings(clauses: Clauses, given: frozenset[str], rules: Rules) -> frozenset[str]:
    """The variables bound by clauses, and the ``given`` ones; raises `EdnError` if a clause needs any other."""
    there, waiting = given, [clause for clause in clauses if not isinstance(clause, Absent)]
    while waiting:
        ready = [clause for clause in waiting if _gives(clause, there, rules) is not None]
        if not ready:
            raise _insufficient(waiting[0], there, rules)
        there = there.union(*(_gives(clause, there, rules) or () for clause in ready))
        waiting = [clause for clause in waiting if clause not in ready]
    for place, clause in enumerate(clauses):
        if isinstance(clause, Absent):
            shared = there | given.intersection(around(clauses, place, given))
            _check_absent(clause, shared, rules)
    return there


def around(clauses: Clauses, place: int, outside: frozenset[str]) -> frozenset[str]:
    """The variables a clause can share: the outside ones, and the variables of all other clauses but negations."""
    others = tuple(c for i, c in enumerate(clauses) if i != place and not isinstance(c, Absent))
    return outside.union(variables(others))


def _gives(clause: Clause, there: frozenset[str], rules: Rules) -> frozenset[str] | None:
    """The variables bound by a clause; None if the clause needs a variable not bound yet."""
    match clause:
        case DataPattern():
            return frozenset(variables((clause,)))
        case RuleCall(name, terms):
            clauses = rules.get(name, ())
            needed = len(clauses[0].required) if clauses else 0
            known = all(not isinstance(term, RuleVariable) or term.name in there for term in terms[:needed])
            return frozenset(variables((clause,))) if known else None
        case Applied():
            return _applied(clause, there)
        case OneOf():
            return _one_of(clause, there, rules)
        case Absent():
            return frozenset()


def _applied(clause: Applied, there: frozenset[str]) -> frozenset[str] | None:
    unknown = set(used(clause.arguments)) - there
    if not unknown:
        return frozenset(bound(clause.binding))
    # An equality binds the one side when the other is bound.
    is_equality = clause.function in ("=", "==") and clause.binding is None and len(clause.arguments) == 2
    sides = [set(used((side,))) - there for side in clause.arguments]
    if is_equality and len(unknown) == 1 and not all(sides):
        return frozenset(unknown)
    return None


def _one_of(clause: OneOf, there: frozenset[str], rules: Rules) -> frozenset[str] | None:
    shared = None if clause.joined is None else frozenset((*clause.required, *clause.joined))
    if not set(clause.required) <= there:
        return None
    inside = there if shared is None else there & shared
    shared_by_all = shared
    for branch in clause.branches:
        try:
            binds = check_bindings(branch, inside, rules)
        except EdnError:
            return None
        if not (shared or frozenset(variables(branch))) <= binds:
            return None
        shared_by_all = frozenset(variables(branch)) if shared_by_all is None else shared_by_all
    return shared_by_all


def _check_absent(clause: Absent, there: frozenset[str], rules: Rules) -> None:
    names = frozenset(variables(clause.clauses))
    if clause.joined is None:
        shared = names & there
        if names and not shared:
            shown = ", ".join(f"?{name}" for name in sorted(names))
            raise refuse(
                clause.place,
                f"insufficient bindings: not shares none of its variables ({shown}) with the clauses around it",
                "bind one of them outside of it",
            )
    else:
        shared = frozenset(clause.joined)
        for name in sorted(shared - there):
            hint = "bind it in a clause outside of not-join"
            raise refuse(clause.place, f"insufficient bindings: not-join shares ?{name}, which nothing binds", hint)
    check_bindings(clause.clauses, shared, rules)


def _insufficient(clause: Clause, there: frozenset[str], rules: Rules) -> EdnError:
    match clause:
        case Applied(name, arguments):
            unknown, what = [v for v in used(arguments) if v not in there], f"({name} …)"
        case RuleCall(name, terms):
            needed = terms[: len(rules[name][0].required)]
            unknown = [term.name for term in needed if isinstance(term, RuleVariable) and term.name not in there]
            what = f"rule {name}"
        case OneOf(branches, joined, required):
            unknown, what = [v for v in required if v not in there], "or-join"
            if not unknown:
                return _in_branches(clause, branches, joined, there, rules)
        case _:
            raise AssertionError(f"{clause} waits for nothing")
    shown = " and ".join(f"?{name}" for name in dict.fromkeys(unknown))
    hint = f"bind it in another clause, as in [?e :attribute ?{unknown[0]}], or give it with :in"
    return refuse(clause.place, f"insufficient bindings: {what} needs {shown}, which nothing binds", hint)


def _in_branches(
    clause: OneOf, branches: tuple[Clauses, ...], joined: tuple[str, ...] | None, there: frozenset[str], rules: Rules
) -> EdnError:
    inside = there if joined is None else there & frozenset((*clause.required, *joined))
    for branch in branches:
        try:
            binds = check_bindings(branch, inside, rules)
        except EdnError as error:
            return error
        lacking = [v for v in joined or variables(branch) if v not in binds]
        if lacking:
            hint = "bind it in every branch, or outside of or"
            return refuse(branch[0].place, f"insufficient bindings: this branch does not bind ?{lacking[0]}", hint)
    raise AssertionError("a branch that binds too little says what")
