"""EDN queries as data: the values to find, the inputs, and the clauses that must hold.

Terms are those of rules: a variable ``?x`` is ``RuleVariable("x")``, ``_`` a wildcard, a keyword the constant of its
text. `parse` makes these values of forms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from everview.frontends.edn.forms import AnyForm, ListForm, SymbolForm, VectorForm
from everview.frontends.edn.pull_patterns import PullPattern
from everview.frontends.rules.program import NOWHERE, Constant, RuleVariable, TextPlace, Wildcard

Shape = Literal["relation", "collection", "tuple", "scalar"]
Term = RuleVariable | Constant | Wildcard


# -- what is found


@dataclass(frozen=True, slots=True)
class Aggregated:
    """``(count ?x)``: an aggregate of a variable; ``(min 3 ?x)`` and ``(max 3 ?x)`` have at ``most`` 3 values."""

    function: str
    variable: RuleVariable
    most: int | None = None
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class PulledEntity:
    """``(pull ?e [:name])`` in `:find`: attributes of an entity and of referenced entities, as a map."""

    variable: RuleVariable
    pattern: PullPattern
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)

    @property
    def function(self) -> str:
        return "pull"


Found = RuleVariable | Aggregated | PulledEntity


# -- what is given, and what functions give: how values are bound


@dataclass(frozen=True, slots=True)
class ScalarBinding:
    """``?x``, or ``_``: the value itself."""

    term: RuleVariable | Wildcard
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class TupleBinding:
    """``[?x ?y]``: the values of a tuple."""

    terms: tuple[RuleVariable | Wildcard, ...]
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class CollectionBinding:
    """``[?x ...]``: the values of a collection, one at a time."""

    term: RuleVariable | Wildcard
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class RelationBinding:
    """``[[?x ?y]]``: the tuples of a relation, one at a time."""

    terms: tuple[RuleVariable | Wildcard, ...]
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


Binding = ScalarBinding | TupleBinding | CollectionBinding | RelationBinding


@dataclass(frozen=True, slots=True)
class SourceInput:
    """``$`` is the database; ``$name`` a relation that is given."""

    name: str
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class RulesInput:
    """``%``: rules that are given."""

    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


Input = Binding | SourceInput | RulesInput


# -- clauses


@dataclass(frozen=True, slots=True)
class DataPattern:
    """``[?e :attribute ?v]``, a fact; of a ``source`` other than the database, a row by its columns."""

    terms: tuple[Term | LookupRef, ...]
    source: str = "$"
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class LookupRef:
    """``[:email "a@b.c"]``: the entity that has this value."""

    attribute: str
    value: Constant


@dataclass(frozen=True, slots=True)
class Applied:
    """``[(< ?x 3)]``, or with a binding ``[(+ ?x 1) ?y]``: a call of a function, its arguments as forms."""

    function: str
    arguments: tuple[AnyForm, ...]
    binding: Binding | None = None
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class RuleCall:
    """``(ancestor ?a ?b)``: a call of a rule."""

    rule: str
    terms: tuple[Term, ...]
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class Absent:
    """``(not …)``, or with ``joined`` variables ``(not-join [?x] …)``."""

    clauses: Clauses
    joined: tuple[str, ...] | None = None
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class OneOf:
    """``(or …)``, or with ``joined`` variables ``(or-join [?x] …)``; those ``required`` must be bound outside."""

    branches: tuple[Clauses, ...]
    joined: tuple[str, ...] | None = None
    required: tuple[str, ...] = ()
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


Clause = DataPattern | Applied | RuleCall | Absent | OneOf
Clauses = tuple[Clause, ...]


# -- rules and queries


@dataclass(frozen=True, slots=True)
class RuleClause:
    """One way in which a rule holds: ``[(ancestor ?a ?b) [?a :parent ?b]]``; some variables may be ``required``."""

    name: str
    required: tuple[str, ...]
    variables: tuple[str, ...]
    body: Clauses
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)

    @property
    def parameters(self) -> tuple[str, ...]:
        return (*self.required, *self.variables)


@dataclass(frozen=True, slots=True)
class EdnQuery:
    """A query: the values to find, their shape, the clauses that must hold, the inputs and the rules."""

    find: tuple[Found, ...]
    where: Clauses
    shape: Shape = "relation"
    with_: tuple[RuleVariable, ...] = ()
    inputs: tuple[Input, ...] = ()
    keys: tuple[str, ...] | None = None
    rules: tuple[RuleClause, ...] = ()
    place: TextPlace = field(default=NOWHERE, compare=False, kw_only=True, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns: the names of the variables, or the keys that are given for them."""
        if self.keys is not None:
            return self.keys
        names = list[str]()
        for wanted in self.find:
            name = wanted.name if isinstance(wanted, RuleVariable) else f"{wanted.function}_{wanted.variable.name}"
            names.append(name if name not in names else f"{name}_{len(names) + 1}")
        return tuple(names)


def variables(clauses: Clauses) -> tuple[str, ...]:
    """The variables that clauses share with the clauses around them, in order of first use."""
    names = dict[str, None]()
    for clause in clauses:
        for name in _variables(clause):
            names[name] = None
    return tuple(names)


def _variables(clause: Clause) -> tuple[str, ...]:
    match clause:
        case DataPattern(terms) | RuleCall(_, terms):
            return tuple(term.name for term in terms if isinstance(term, RuleVariable))
        case Applied(_, arguments, binding):
            return (*used(arguments), *bound(binding))
        case Absent(inner, joined):
            return variables(inner) if joined is None else joined
        case OneOf(branches, joined, required):
            return tuple(name for b in branches for name in variables(b)) if joined is None else (*required, *joined)


def attributes_asked(clauses: Clauses, source: str) -> dict[str, TextPlace]:
    """The attributes by which patterns of a source name its facts, each with a place."""
    asked = dict[str, TextPlace]()
    for clause in clauses:
        match clause:
            case DataPattern((_, Constant(str(name)), *_), of) if of == source:
                asked.setdefault(name, clause.place)
            case Absent(inner):
                asked = attributes_asked(inner, source) | asked
            case OneOf(branches):
                for branch in branches:
                    asked = attributes_asked(branch, source) | asked
            case _:
                pass
    return asked


def used(arguments: tuple[AnyForm, ...]) -> tuple[str, ...]:
    """The variables in the arguments of a function."""
    relations = list[str]()
    for argument in arguments:
        match argument:
            case SymbolForm(name) if name.startswith("?"):
                relations.append(name[1:])
            case ListForm(items) | VectorForm(items):
                relations.extend(used(items))
            case _:
                pass
    return tuple(relations)


def bound(binding: Input | None) -> tuple[str, ...]:
    """The variables that a binding binds."""
    match binding:
        case ScalarBinding(term) | CollectionBinding(term):
            return (term.name,) if isinstance(term, RuleVariable) else ()
        case TupleBinding(terms) | RelationBinding(terms):
            return tuple(term.name for term in terms if isinstance(term, RuleVariable))
        case _:
            return ()
