"""Bodies as plans: atoms are joined, what is known along the way becomes conditions, negations are antijoins.

Relations are sets, so what a body gives is one: a row for every way in which its atoms match, wildcards included.

- Atoms are taken in their order, but one that shares a variable with those before comes first.
- An equality binds an unbound variable as soon as its other side is bound. Nothing is computed for that: the variable
  stands for the expression.
- A constraint becomes a condition where its variables are first bound together, so that equalities are keys of joins.
- A negation is an antijoin. Variables inside of it that the rule does not bind elsewhere are its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Final

from everview.errors import DatalogError
from everview.frontends.rules.bindings import Bindings, BodyContext
from everview.frontends.rules.faults import fault
from everview.frontends.rules.matching import (
    in_range,
    is_pattern,
    is_record,
    matched,
    opened,
    paired,
    tested,
    tied,
)
from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Constant,
    Constraint,
    Either,
    Functor,
    Holds,
    Identified,
    Negation,
    RuleAtom,
    RuleVariable,
    Term,
    Wildcard,
)
from everview.frontends.rules.terms import comparison, expression, unbound
from everview.frontends.rules.walk import aggregates, all_variables, inner, outside, variables, walk
from everview.plan.conditions import conjunction
from everview.plan.nodes import Filter, Join
from everview.scalars.expressions import Expression, moved

MOST_WAYS: Final = 1024  # through the disjunctions of a body, each of which is a join


def ways(body: Sequence[BodyLiteral]) -> int:
    """Count the bodies that `bodies` would make; the alternatives inside a negation do not multiply those outside."""
    choices = prod(sum(map(ways, part.branches)) for part in body if isinstance(part, Either))
    return max([choices, *(ways(part.body) for part in body if isinstance(part, Negation))])


def bodies(body: Sequence[BodyLiteral]) -> Iterator[tuple[BodyLiteral, ...]]:
    """Bodies without disjunctions: one for every choice of branches."""
    choices: list[list[tuple[BodyLiteral, ...]]] = []
    for literal_ in body:
        match literal_:
            case Either(branches):
                choices.append([inner for branch in branches for inner in bodies(branch)])
            case Negation(inner):
                choices.append([tuple(Negation(branch) for branch in bodies(inner))])
            case _:
                choices.append([(literal_,)])
    for chosen in product(*choices):
        yield tuple(_without_repeats(part for parts in chosen for part in parts))


def _without_repeats(body: Iterable[BodyLiteral]) -> Iterator[BodyLiteral]:
    """The literals of a body, of equal atoms over variables at most two.

    A second one asks that no variable is NULL, since NULL equals nothing; a third asks no more. Atoms with wildcards
    all stay: each wildcard is another way to match, which an aggregate counts.
    """
    met: Counter[RuleAtom] = Counter()
    for literal_ in body:
        if isinstance(literal_, RuleAtom) and all(isinstance(term, RuleVariable) for term in literal_.terms):
            met[literal_] += 1
            if met[literal_] > 2:
                continue
        yield literal_


def solved(body: Sequence[BodyLiteral], context: BodyContext, start: Bindings | None = None) -> Bindings:
    """Bindings for all ways in which a body without disjunctions holds; raises `UnboundVariable`."""
    bindings, left = attempted(body, context, start)
    for literal_ in left:
        _refuse(literal_, bindings, context)
    return bindings


def attempted(
    body: Sequence[BodyLiteral], context: BodyContext, start: Bindings | None = None
) -> tuple[Bindings, list[BodyLiteral]]:
    """Bindings of as much of a body as can be solved, and the literals that wait for unbound variables."""
    solving = _Solving(start or Bindings(), list(body), context)
    solving.join_all()
    solving.finish()
    return solving.bindings, solving.waiting


def _refuse(literal_: BodyLiteral, bindings: Bindings, context: BodyContext) -> None:
    needed = list(variables(literal_))
    if isinstance(literal_, Negation):
        needed = list(all_variables(literal_))
    for aggregate in aggregates(literal_):
        needed += all_variables(*(aggregate.body or ()))
    name = next((v for v in needed if v not in bindings.values), None)
    assert name is not None, f"{literal_} waits for nothing"
    raise unbound(name, context.rule, f" in {literal_}")


class _Solving:
    """The state of solving one body: the bindings so far, and the literals that still wait."""

    def __init__(self, bindings: Bindings, waiting: list[BodyLiteral], context: BodyContext) -> None:
        self.bindings = bindings
        self.waiting = waiting
        self.context = context

    # -- atoms

    def join_all(self) -> None:
        """Join all atoms, at each step preferring an atom that shares a variable with the bindings so far."""
        self._assign()
        while (atom := self._next()) is not None:
            self.waiting.remove(atom)
            self._join(atom)
            self._assign()

    def _next(self) -> RuleAtom | Identified | None:
        atoms = [a for a in self.waiting if isinstance(a, RuleAtom | Identified)]
        tied = (a for a in atoms if any(v in self.bindings.values for v in variables(a)))
        return next(tied, atoms[0] if atoms else None)

    def _join(self, literal_: RuleAtom | Identified) -> None:
        atom = literal_.atom if isinstance(literal_, Identified) else literal_
        relation = self.context.relation(atom)
        own, values, rest = matched(atom, relation, self.context.fresh, self.context.rule)
        relation = relation if own is None else Filter(relation, own)
        width = 0 if self.bindings.plan is None else len(self.bindings.plan.schema)

        def beside(e: Expression) -> Expression:
            return moved(e, lambda place: place + width)

        new = {name: beside(e) for name, e in values.items() if name not in self.bindings.values}
        ties = [self._tie(name, beside(e)) for name, e in values.items() if name in self.bindings.values]
        if self.bindings.plan is not None:
            relation = Join(self.bindings.plan, relation, "inner", conjunction(ties))
            ties = []
        self.bindings = Bindings(relation, {**self.bindings.values, **new}).where(ties)
        if isinstance(literal_, Identified):
            self._identify(literal_, width)
        self.waiting = [*rest, *self.waiting]
        self._constrain()

    def _tie(self, name: str, column: Expression) -> Expression:
        return tied(name, self.bindings.values[name], column, self.context.rule)

    def _identify(self, literal_: Identified, width: int) -> None:
        identify = self.context.identify
        if identify is None:
            raise fault(DatalogError, "content ids are not known here", self.context.rule, "leave the binding out")
        columns = self.bindings.rows.columns[width:]
        names = self.context.relation(literal_.atom).schema.names
        made = identify(literal_.atom.relation, names, columns)
        name = literal_.variable.name
        if name in self.bindings.values:
            self.bindings = self.bindings.where([tied(name, self.bindings.values[name], made, self.context.rule)])
        else:
            self.bindings = self.bindings.having({name: made})

    # -- what is known

    def _bound(self, literal_: BodyLiteral) -> bool:
        """Is a literal a constraint without aggregates whose variables are all bound?"""
        if not isinstance(literal_, Constraint | Holds) or is_pattern(literal_):
            return False
        known = all(v in self.bindings.values for v in variables(literal_))
        return known and not has_aggregate(literal_)

    def _constrain(self) -> None:
        """Move constraints whose variables are bound by now into the last join."""
        self._assign()
        ready = [part for part in self.waiting if self._bound(part)]
        if not ready:
            return
        self.waiting = [part for part in self.waiting if part not in ready]
        # What refuses negative numbers comes last: a condition beside it may be there to keep them out.
        conditions = [self._condition(part) for part in sorted(ready, key=_refuses)]
        plan = self.bindings.plan
        if isinstance(plan, Join) and plan.kind == "inner":
            both = conjunction([*([] if plan.condition is None else [plan.condition]), *conditions])
            self.bindings = replace(self.bindings, plan=replace(plan, condition=both))
        else:
            self.bindings = self.bindings.where(conditions)

    def _condition(self, literal_: BodyLiteral) -> Expression:
        rule, values = self.context.rule, self.bindings.values
        if isinstance(literal_, Constraint):
            return comparison(literal_, values, rule)
        assert isinstance(literal_, Holds)
        return tested(literal_, values, rule)

    def _assign(self) -> None:
        """Bind variables by equalities, until no equality binds another."""
        changed = True
        while changed:
            changed = False
            for part in list(self.waiting):
                made = self._assigned(part)
                if made is not None:
                    self.waiting.remove(part)
                    self.bindings, rest = made
                    self.waiting = [*rest, *self.waiting]
                    changed = True

    def _assigned(self, part: BodyLiteral) -> tuple[Bindings, list[BodyLiteral]] | None:
        if not isinstance(part, Constraint) or part.operator != "=":
            return None
        for target, source in ((part.left, part.right), (part.right, part.left)):
            if isinstance(target, RuleVariable) and target.name not in self.bindings.values:
                if isinstance(source, Functor) and source.name == "range":
                    return self._ranged(target, source), []
                if self._is_known(source) and not (_is_written(source) and self._is_read(target)):
                    return self.bindings.having(
                        {target.name: expression(source, self.bindings.values, self.context.rule)}
                    ), []
            if is_record(target) and not is_record(source) and self._is_known(source):
                return self.bindings, opened(target, source, self.bindings.values, self.context.rule)
            if is_record(target) and is_record(source):
                return self.bindings, paired(target, source, self.context.rule)
        return None

    def _is_read(self, variable: RuleVariable) -> bool:
        """Does a waiting atom bind the variable? Then the relation, and not a constant, tells its type."""
        return any(variable in inner(part) for part in self.waiting if isinstance(part, RuleAtom | Identified))

    def _is_known(self, term: Term) -> bool:
        if any(isinstance(part, Wildcard | AggregateTerm) for part in walk((term,), outside)):
            return False
        return all(v in self.bindings.values for v in variables(term))

    def _ranged(self, target: RuleVariable, source: Functor) -> Bindings:
        rows = in_range(source, self.context.rule)
        width = 0 if self.bindings.plan is None else len(self.bindings.plan.schema)
        plan = rows if self.bindings.plan is None else Join(self.bindings.plan, rows, "inner")
        return Bindings(plan, {**self.bindings.values, target.name: moved(rows.column(0), lambda place: place + width)})

    # -- what needs the rows to be there

    def finish(self) -> None:
        """Take in negations and aggregates, each as soon as the variables that it shares with the rule are bound."""
        changed = True
        while changed:
            self._constrain()
            changed = False
            for part in list(self.waiting):
                changed = self._take(part) or changed

    def _take(self, part: BodyLiteral) -> bool:
        from everview.frontends.rules.aggregating import aggregated
        from everview.frontends.rules.negating import negated

        place = self.waiting.index(part)
        if isinstance(part, Negation):
            made = negated(part, self.bindings, self._awaited(), self.context)
            if made is not None:
                self.bindings = made
                del self.waiting[place]
            return made is not None
        if not has_aggregate(part):
            return False
        taken = aggregated(part, self.bindings, self._elsewhere(part), self.context)
        if taken is not None:
            self.bindings, self.waiting[place] = taken
        return taken is not None

    def _awaited(self) -> set[str]:
        """Variables of waiting constraints that are not bound yet; an aggregate may bind them."""
        constraints = (part for part in self.waiting if isinstance(part, Constraint))
        return {v for v in variables(*constraints) if v not in self.bindings.values}

    def _elsewhere(self, part: BodyLiteral) -> set[str]:
        """The variables of the rule outside of its aggregates: those that an aggregate has, too, are shared."""
        return {*variables(*self.context.rule.head.terms, *self.waiting), *self.bindings.values, *self.context.around}


def _refuses(part: BodyLiteral) -> bool:
    """Does a constraint raise an error for some rows, instead of only dropping them?"""
    return any(isinstance(p, Functor) and p.name == "unsigned" for p in walk((part,), outside))


def _is_written(term: Term) -> bool:
    return is_record(term) or isinstance(term, Constant)


def has_aggregate(part: BodyLiteral) -> bool:
    """Does a literal have an aggregate of its own, not inside of a negation?"""
    return any(True for _ in aggregates(part))
