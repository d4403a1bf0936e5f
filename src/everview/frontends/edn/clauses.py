"""Clauses and rules from forms: patterns, functions, `or`, `not`, calls of rules, and how values are bound.

>>> from everview.frontends.edn.reader import read
>>> parse_clause(read("(not-join [?x] [?x :to ?y])")).joined
('x',)
"""

from __future__ import annotations

from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import AnyForm, KeywordForm, ListForm, ScalarForm, SetForm, SymbolForm, VectorForm
from everview.frontends.edn.query import (
    Absent,
    Applied,
    Binding,
    Clause,
    Clauses,
    CollectionBinding,
    DataPattern,
    LookupRef,
    OneOf,
    RelationBinding,
    RuleCall,
    RuleClause,
    ScalarBinding,
    Term,
    TupleBinding,
    variables,
)
from everview.frontends.rules.program import Constant, RuleVariable, TextPlace, Wildcard


def variable(form: AnyForm) -> RuleVariable:
    """Read a variable, ``?x``."""
    if isinstance(form, SymbolForm) and form.name.startswith("?") and len(form.name) > 1:
        return RuleVariable(form.name[1:])
    raise refuse(form.place, f"{form!r} is no variable", "a variable begins with a question mark: ?x")


def parse_binding(form: AnyForm) -> Binding:
    """Read a binding: ``?x``, ``[?x ?y]``, ``[?x ...]`` or ``[[?x ?y]]``."""
    match form:
        case SymbolForm():
            return ScalarBinding(_bindable(form), place=form.place)
        case VectorForm((inner, SymbolForm("..."))):
            return CollectionBinding(_bindable(inner), place=form.place)
        case VectorForm((VectorForm(inner),)) if inner:
            return RelationBinding(tuple(map(_bindable, inner)), place=form.place)
        case VectorForm(inner) if inner:
            return TupleBinding(tuple(map(_bindable, inner)), place=form.place)
        case _:
            raise refuse(form.place, f"{form!r} binds nothing", "write ?x, [?x ?y], [?x ...] or [[?x ?y]]")


def _bindable(form: AnyForm) -> RuleVariable | Wildcard:
    return Wildcard() if form == SymbolForm("_") else variable(form)


# -- clauses


def parse_clause(form: AnyForm) -> Clause:
    """Read a clause of :where or of a rule."""
    match form:
        case VectorForm((ListForm((SymbolForm(name), *arguments)), *rest)):
            return _applied(form, name, tuple(arguments), tuple(rest))
        case VectorForm(items):
            return _pattern(form, items)
        case ListForm((SymbolForm(source), *rest)) if source.startswith("$"):
            raise refuse(form.place, f"rules and not of another source ({source}) are not there", "use its patterns")
        case ListForm((SymbolForm("and"), *_)):
            raise refuse(form.place, "and is only wanted inside of or", "write its clauses themselves")
        case ListForm((SymbolForm(name), *rest)):
            return _connective(form, name, tuple(rest))
        case _:
            hint = "clauses are [?e :attribute ?v], [(< ?x 3)], [(+ ?x 1) ?y], (or …), (not …), (rule ?x)"
            raise refuse(form.place, f"{form!r} is no clause", hint)


def _connective(form: ListForm, name: str, rest: tuple[AnyForm, ...]) -> Clause:
    match name:
        case "not":
            return Absent(_clauses(form, rest), place=form.place)
        case "not-join":
            _, joined, inner = _joined(form, rest)
            return Absent(_clauses(form, inner), joined, place=form.place)
        case "or":
            branches = OneOf(_branches(form, rest), place=form.place)
            _check_alike(branches)
            return branches
        case "or-join":
            required, joined, inner = _joined(form, rest)
            return OneOf(_branches(form, inner), joined, required, place=form.place)
        case _:
            return RuleCall(name, tuple(map(_argument, rest)), place=form.place)


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
        case ListForm((SymbolForm("and"), *rest)):
            return _clauses(form, tuple(rest))
        case _:
            return (parse_clause(form),)


def _check_alike(branches: OneOf) -> None:
    sets = [set(variables(branch)) for branch in branches.branches]
    for one in sets[1:]:
        if one != sets[0]:
            odd = ", ".join(f"?{name}" for name in sorted(one ^ sets[0]))
            hint = "name what they share: (or-join [?x] …)"
            raise refuse(branches.place, f"the branches of or have different variables: {odd}", hint)


def _joined(form: ListForm, rest: tuple[AnyForm, ...]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[AnyForm, ...]]:
    """The variables of a join that must be bound, its others, and what follows."""
    if not rest or not isinstance(rest[0], VectorForm):
        raise refuse(form.place, f"{form.items[0]!r} begins with its variables", f"write ({form.items[0]!r} [?x] …)")
    items, inner = rest[0].items, rest[1:]
    required = tuple[str, ...]()
    if items and isinstance(items[0], VectorForm):
        required, items = tuple(variable(item).name for item in items[0].items), items[1:]
    joined = tuple(variable(item).name for item in items)
    if not (*required, *joined):
        raise refuse(form.place, f"{form.items[0]!r} shares no variable", "name at least one")
    return required, joined, inner


def _applied(form: VectorForm, name: str, arguments: tuple[AnyForm, ...], rest: tuple[AnyForm, ...]) -> Applied:
    if len(rest) > 1:
        raise refuse(form.place, f"a function has one binding, not {len(rest)}", f"write [({name} …) ?x]")
    binding = parse_binding(rest[0]) if rest else None
    return Applied(name, arguments, binding, place=form.place)


def _pattern(form: VectorForm, items: tuple[AnyForm, ...]) -> DataPattern:
    source = "$"
    if items and isinstance(items[0], SymbolForm) and items[0].name.startswith("$"):
        source, items = items[0].name, items[1:]
    if not items:
        raise refuse(form.place, "a pattern has at least one term", "write [?e :attribute ?v]")
    if source == "$" and len(items) > 3:
        hint = "write [?e :attribute ?v]; transactions and times of facts are not kept"
        raise refuse(form.place, f"a pattern has an entity, an attribute and a value, not {len(items)} terms", hint)
    return DataPattern(tuple(_term(item) for item in items), source, place=form.place)


def _term(form: AnyForm) -> Term | LookupRef:
    match form:
        case VectorForm((KeywordForm(attribute), value)):
            argument = _argument(value)
            if not isinstance(argument, Constant):
                raise refuse(form.place, f"{form!r} looks nothing up", 'write a value: [:email "a@b.c"]')
            return LookupRef(attribute, argument)
        case _:
            return _argument(form)


def _argument(form: AnyForm) -> Term:
    match form:
        case SymbolForm("_"):
            return Wildcard()
        case SymbolForm():
            return variable(form)
        case KeywordForm(name):
            return Constant(name)
        case ScalarForm(value):
            return constant(value, form.place)
        case _:
            raise refuse(form.place, f"{form!r} is no term", "terms are variables, _, keywords, numbers and text")


def constant(value: object, place: TextPlace) -> Constant:
    """A constant; nil is refused, as no fact has it."""
    if value is None:
        raise refuse(place, "nil is no value: what is not there has no fact", "use missing? or (not …)")
    return Constant(value)


# -- rules


def parse_rules(form: AnyForm) -> tuple[RuleClause, ...]:
    """Read a vector of rules, ``[[(name ?x) clause …] …]``."""
    if not isinstance(form, VectorForm | ListForm | SetForm):
        raise refuse(form.place, f"{form!r} are no rules", "write [[(ancestor ?a ?b) [?a :parent ?b]] …]")
    return tuple(map(parse_rule, form.items))


def parse_rule(form: AnyForm) -> RuleClause:
    """Read a rule, ``[(name [?required] ?x) clause …]``."""
    match form:
        case VectorForm((ListForm((SymbolForm(name), *parameters)), *body)):
            pass
        case _:
            raise refuse(form.place, f"{form!r} is no rule", "write [(name ?x ?y) clause …]")
    if name in ("and", "or", "not", "or-join", "not-join") or name[0] in "?$%":
        raise refuse(form.place, f"no rule can be called {name}", "take another name")
    required = tuple[str, ...]()
    if parameters and isinstance(parameters[0], VectorForm):
        required, parameters = tuple(variable(p).name for p in parameters[0].items), parameters[1:]
    names = tuple(variable(p).name for p in parameters)
    whole = (*required, *names)
    if not whole or len(set(whole)) != len(whole):
        raise refuse(form.place, f"rule {name} needs different variables", "write [(name ?x ?y) clause …]")
    rule = RuleClause(name, required, names, _clauses(form, tuple(body)), place=form.place)
    for parameter in names:
        if parameter not in variables(rule.body):
            hint = f"bind it in the rule, or require it: ({name} [?{parameter}] …)"
            raise refuse(form.place, f"rule {name}: no clause has ?{parameter}", hint)
    return rule
