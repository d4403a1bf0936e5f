"""Clauses and rules from forms: patterns, functions, `or`, `not`, calls of rules, and how values are bound.

>>> from everview.frontends.edn.reader import read
>>> parse_clause(read("(not-join [?x] [?x :to ?y])")).joined
('x',)
"""

from __future__ import annotations

from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import AnyForm, Keyword, List, Scalar, SetOf, Symbol, Vector
from everview.frontends.edn.query import (
    Absent,
    Applied,
    Binding,
    Called,
    Clause,
    Clauses,
    Each,
    Lookup,
    One,
    OneOf,
    Pattern,
    Row,
    Rows,
    RuleClause,
    Term,
    variables,
)
from everview.frontends.rules.program import Constant, Place, Variable, Wildcard


def variable(form: AnyForm) -> Variable:
    """``?x``."""
    if isinstance(form, Symbol) and form.name.startswith("?") and len(form.name) > 1:
        return Variable(form.name[1:])
    raise refuse(form.place, f"{form!r} is no variable", "a variable begins with a question mark: ?x")


def parse_binding(form: AnyForm) -> Binding:
    """``?x``, ``[?x ?y]``, ``[?x ...]`` or ``[[?x ?y]]``."""
    match form:
        case Symbol():
            return One(_bindable(form), place=form.place)
        case Vector((inner, Symbol("..."))):
            return Each(_bindable(inner), place=form.place)
        case Vector((Vector(inner),)) if inner:
            return Rows(tuple(map(_bindable, inner)), place=form.place)
        case Vector(inner) if inner:
            return Row(tuple(map(_bindable, inner)), place=form.place)
        case _:
            raise refuse(form.place, f"{form!r} binds nothing", "write ?x, [?x ?y], [?x ...] or [[?x ?y]]")


def _bindable(form: AnyForm) -> Variable | Wildcard:
    return Wildcard() if form == Symbol("_") else variable(form)


# -- clauses


def parse_clause(form: AnyForm) -> Clause:
    """A clause of :where or of a rule."""
    match form:
        case Vector((List((Symbol(name), *arguments)), *rest)):
            return _applied(form, name, tuple(arguments), tuple(rest))
        case Vector(items):
            return _pattern(form, items)
        case List((Symbol(source), *rest)) if source.startswith("$"):
            raise refuse(form.place, f"rules and not of another source ({source}) are not there", "use its patterns")
        case List((Symbol("and"), *_)):
            raise refuse(form.place, "and is only wanted inside of or", "write its clauses themselves")
        case List((Symbol(name), *rest)):
            return _connective(form, name, tuple(rest))
        case _:
            hint = "clauses are [?e :attribute ?v], [(< ?x 3)], [(+ ?x 1) ?y], (or …), (not …), (rule ?x)"
            raise refuse(form.place, f"{form!r} is no clause", hint)


def _connective(form: List, name: str, rest: tuple[AnyForm, ...]) -> Clause:
    match name:
        case "not":
            return Absent(_clauses(form, rest), place=form.place)
        case "not-join":
            _, joined, inner = _joined(form, rest)
            return Absent(_clauses(form, inner), joined, place=form.place)
        case "or":
            found = OneOf(_branches(form, rest), place=form.place)
            _check_alike(found)
            return found
        case "or-join":
            required, joined, inner = _joined(form, rest)
            return OneOf(_branches(form, inner), joined, required, place=form.place)
        case _:
            return Called(name, tuple(map(_argument, rest)), place=form.place)


def _clauses(form: AnyForm, items: tuple[AnyForm, ...]) -> Clauses:
    if not items:
        raise refuse(form.place, f"{form!r} has no clause", "write at least one inside")
    return tuple(map(parse_clause, items))


def _branches(form: AnyForm, items: tuple[AnyForm, ...]) -> tuple[Clauses, ...]:
    if not items:
        raise refuse(form.place, f"{form!r} has no branch", "write at least one clause inside")
    return tuple(_branch(item) for item in items)


def _branch(form: AnyForm) -> Clauses:
    match form:
        case List((Symbol("and"), *rest)):
            return _clauses(form, tuple(rest))
        case _:
            return (parse_clause(form),)


def _check_alike(found: OneOf) -> None:
    sets = [set(variables(branch)) for branch in found.branches]
    for one in sets[1:]:
        if one != sets[0]:
            odd = ", ".join(f"?{name}" for name in sorted(one ^ sets[0]))
            hint = "name what they share: (or-join [?x] …)"
            raise refuse(found.place, f"the branches of or have different variables: {odd}", hint)


def _joined(form: List, rest: tuple[AnyForm, ...]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[AnyForm, ...]]:
    """The variables of a join that must be bound, its others, and what follows."""
    if not rest or not isinstance(rest[0], Vector):
        raise refuse(form.place, f"{form.items[0]!r} begins with its variables", f"write ({form.items[0]!r} [?x] …)")
    items, inner = rest[0].items, rest[1:]
    required = tuple[str, ...]()
    if items and isinstance(items[0], Vector):
        required, items = tuple(variable(item).name for item in items[0].items), items[1:]
    joined = tuple(variable(item).name for item in items)
    if not (*required, *joined):
        raise refuse(form.place, f"{form.items[0]!r} shares no variable", "name at least one")
    return required, joined, inner


def _applied(form: Vector, name: str, arguments: tuple[AnyForm, ...], rest: tuple[AnyForm, ...]) -> Applied:
    if len(rest) > 1:
        raise refuse(form.place, f"a function has one binding, not {len(rest)}", f"write [({name} …) ?x]")
    binding = parse_binding(rest[0]) if rest else None
    return Applied(name, arguments, binding, place=form.place)


def _pattern(form: Vector, items: tuple[AnyForm, ...]) -> Pattern:
    source = "$"
    if items and isinstance(items[0], Symbol) and items[0].name.startswith("$"):
        source, items = items[0].name, items[1:]
    if not items:
        raise refuse(form.place, "a pattern has at least one term", "write [?e :attribute ?v]")
    if source == "$" and len(items) > 3:
        hint = "write [?e :attribute ?v]; transactions and times of facts are not kept"
        raise refuse(form.place, f"a pattern has an entity, an attribute and a value, not {len(items)} terms", hint)
    return Pattern(tuple(_term(item) for item in items), source, place=form.place)


def _term(form: AnyForm) -> Term | Lookup:
    match form:
        case Vector((Keyword(attribute), value)):
            found = _argument(value)
            if not isinstance(found, Constant):
                raise refuse(form.place, f"{form!r} looks nothing up", 'write a value: [:email "a@b.c"]')
            return Lookup(attribute, found)
        case _:
            return _argument(form)


def _argument(form: AnyForm) -> Term:
    match form:
        case Symbol("_"):
            return Wildcard()
        case Symbol():
            return variable(form)
        case Keyword(name):
            return Constant(name)
        case Scalar(value):
            return constant(value, form.place)
        case _:
            raise refuse(form.place, f"{form!r} is no term", "terms are variables, _, keywords, numbers and text")


def constant(value: object, place: Place) -> Constant:
    """A value of a text; there is no fact of nil."""
    if value is None:
        raise refuse(place, "nil is no value: what is not there has no fact", "use missing? or (not …)")
    return Constant(value)


# -- rules


def parse_rules(form: AnyForm) -> tuple[RuleClause, ...]:
    """A vector of rules, ``[[(name ?x) clause …] …]``."""
    if not isinstance(form, Vector | List | SetOf):
        raise refuse(form.place, f"{form!r} are no rules", "write [[(ancestor ?a ?b) [?a :parent ?b]] …]")
    return tuple(map(parse_rule, form.items))


def parse_rule(form: AnyForm) -> RuleClause:
    """``[(name [?required] ?x) clause …]``."""
    match form:
        case Vector((List((Symbol(name), *parameters)), *body)):
            pass
        case _:
            raise refuse(form.place, f"{form!r} is no rule", "write [(name ?x ?y) clause …]")
    if name in ("and", "or", "not", "or-join", "not-join") or name[0] in "?$%":
        raise refuse(form.place, f"no rule can be called {name}", "take another name")
    required = tuple[str, ...]()
    if parameters and isinstance(parameters[0], Vector):
        required, parameters = tuple(variable(p).name for p in parameters[0].items), parameters[1:]
    names = tuple(variable(p).name for p in parameters)
    whole = (*required, *names)
    if not whole or len(set(whole)) != len(whole):
        raise refuse(form.place, f"rule {name} needs different variables", "write [(name ?x ?y) clause …]")
    found = RuleClause(name, required, names, _clauses(form, tuple(body)), place=form.place)
    for parameter in names:
        if parameter not in variables(found.body):
            hint = f"bind it in the rule, or require it: ({name} [?{parameter}] …)"
            raise refuse(form.place, f"rule {name}: no clause has ?{parameter}", hint)
    return found
