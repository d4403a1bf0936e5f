"""Functions and predicates of clauses as literals.

Those that read facts, or bind several variables, are here; all others are in `functions`.
"""

from __future__ import annotations

from collections.abc import Callable

from everview.frontends.edn.arguments import rows_of, value_of
from everview.frontends.edn.clauses import constant
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import AnyForm, KeywordForm, ListForm, ScalarForm, SetForm, SymbolForm, VectorForm
from everview.frontends.edn.functions import function, may_be_null, predicate
from everview.frontends.edn.patterns import Patterns
from everview.frontends.edn.query import Applied, CollectionBinding, RelationBinding, ScalarBinding, TupleBinding
from everview.frontends.edn.scope import ClauseScope
from everview.frontends.rules.program import (
    BodyLiteral,
    Constant,
    Constraint,
    Either,
    Functor,
    Holds,
    Negation,
    RuleAtom,
    RuleVariable,
    Term,
    Wildcard,
)


class Functions:
    """Translates calls of functions into literals."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._special: dict[str, Callable[[Applied, ClauseScope], tuple[BodyLiteral, ...]]] = {
            "ground": self._ground,
            "get-else": self._get_else,
            "get-some": self._get_some,
            "missing?": self._missing,
            "contains?": self._contains,
            "tuple": self._tuple,
            "untuple": self._untuple,
        }

    def literals(self, clause: Applied, scope: ClauseScope) -> tuple[BodyLiteral, ...]:
        special = self._special.get(clause.function)
        if special is not None:
            return special(clause, scope)
        terms = tuple(self._term(form, scope) for form in clause.arguments)
        if clause.binding is None:
            return predicate(clause.function, terms, clause.place)
        made = function(clause.function, terms, clause.place)
        literals = self._bound(clause, made, scope)
        if may_be_null(clause.function):
            literals += (Holds(Functor("sql.is_not_null", (made,))),)
        return literals

    def _bound(self, clause: Applied, made: Term, scope: ClauseScope) -> tuple[BodyLiteral, ...]:
        match clause.binding:
            case ScalarBinding(term):
                return () if isinstance(term, Wildcard) else (Constraint("=", scope.term(term.name), made),)
            case TupleBinding():
                hint = "untuple gives the parts of a tuple: [(untuple ?t) [?x ?y]]"
                raise refuse(clause.place, f"{clause.function} gives one value", hint)
            case _:
                hint = "bind it to a variable, or use ground: [(ground [1 2 3]) [?x ...]]"
                raise refuse(clause.place, f"{clause.function} gives one value, not a collection", hint)

    def _term(self, form: AnyForm, scope: ClauseScope) -> Term:
        match form:
            case SymbolForm(name) if name.startswith("?") and len(name) > 1:
                return scope.term(name[1:])
            case KeywordForm(name):
                return Constant(name)
            case ScalarForm(value):
                return constant(value, form.place)
            case ListForm((SymbolForm(name), *arguments)):
                return function(name, tuple(self._term(argument, scope) for argument in arguments), form.place)
            case _:
                raise refuse(form.place, f"{form!r} cannot be given to a function", "give variables and constants")

    def _ground(self, clause: Applied, scope: ClauseScope) -> tuple[BodyLiteral, ...]:
        self._takes(clause, 1, "[(ground 1) ?x]")
        (form,) = clause.arguments
        match clause.binding:
            case ScalarBinding(RuleVariable(name)):
                return (Constraint("=", scope.term(name), Constant(value_of(form, clause.place))),)
            case CollectionBinding() | RelationBinding() as binding:
                rows, terms = rows_of(binding, form)
                relation = self._patterns.written(rows)
                return (RuleAtom(relation, tuple(self._patterns.plain(t, scope) for t in terms), place=clause.place),)
            case TupleBinding(terms):
                rows, named = rows_of(RelationBinding(terms, place=clause.place), VectorForm((form,)))
                pairs = zip(named, rows.rows[0], strict=True)
                return tuple(
                    Constraint("=", self._patterns.plain(term, scope), Constant(value)) for term, value in pairs
                )
            case _:
                raise refuse(clause.place, "ground binds a variable", "write [(ground 1) ?x]")

    def _get_else(self, clause: Applied, scope: ClauseScope) -> tuple[BodyLiteral, ...]:
        """The value, or a default where there is none."""
        self._takes(clause, 4, '[(get-else $ ?e :attribute "default") ?v]')
        _, entity, name, default = clause.arguments
        if not isinstance(clause.binding, ScalarBinding) or not isinstance(clause.binding.term, RuleVariable):
            raise refuse(clause.place, "get-else binds a variable", '[(get-else $ ?e :attribute "default") ?v]')
        value = scope.term(clause.binding.term.name)
        subject, otherwise = self._term(entity, scope), self._term(default, scope)
        attribute = Constant(self._keyword(name))
        there = self._patterns.fact(subject, attribute, value, clause.place)
        known = self._patterns.attributes.find(attribute.value)
        if known is not None and known.value is not None:
            self._patterns.check(otherwise, known.value, f"the values of {known.name}", clause.place)
        nothing = Negation((self._patterns.fact(subject, attribute, Wildcard(), clause.place),))
        return (Either(((there,), (nothing, Constraint("=", value, otherwise)))),)

    def _get_some(self, clause: Applied, scope: ClauseScope) -> tuple[BodyLiteral, ...]:
        """The first of several attributes that the entity has, and its value."""
        how = "[(get-some $ ?e :first :second) [?attribute ?v]]"
        if len(clause.arguments) < 3 or not isinstance(clause.binding, TupleBinding) or len(clause.binding.terms) != 2:
            raise refuse(clause.place, "get-some has an entity and attributes, and binds two variables", f"write {how}")
        subject = self._term(clause.arguments[1], scope)
        name, value = (self._patterns.plain(term, scope) for term in clause.binding.terms)
        branches, before = list[tuple[BodyLiteral, ...]](), tuple[BodyLiteral, ...]()
        for form in clause.arguments[2:]:
            attribute = Constant(self._keyword(form))
            fact = self._patterns.fact(subject, attribute, value, clause.place)
            called = () if isinstance(name, Wildcard) else (Constraint("=", name, attribute),)
            branches.append((*before, fact, *called))
            before += (Negation((self._patterns.fact(subject, attribute, Wildcard(), clause.place),)),)
        return (Either(tuple(branches)),)

    def _missing(self, clause: Applied, scope: ClauseScope) -> tuple[BodyLiteral, ...]:
        self._takes(clause, 3, "[(missing? $ ?e :attribute)]")
        _, entity, name = clause.arguments
        attribute = Constant(self._keyword(name))
        return (Negation((self._patterns.fact(self._term(entity, scope), attribute, Wildcard(), clause.place),)),)

    def _contains(self, clause: Applied, scope: ClauseScope) -> tuple[BodyLiteral, ...]:
        self._takes(clause, 2, "[(contains? #{1 2} ?x)]")
        among, value = clause.arguments
        if not isinstance(among, SetForm) or not among.items or clause.binding is not None:
            hint = "write [(contains? #{1 2} ?x)]; of text it is includes?"
            raise refuse(clause.place, "contains? asks whether a value is in a set that is written down", hint)
        values = tuple(self._term(item, scope) for item in among.items)
        return (Holds(Functor("sql.in", (self._term(value, scope), *values))),)

    def _tuple(self, clause: Applied, scope: ClauseScope) -> tuple[BodyLiteral, ...]:
        terms = tuple(self._term(form, scope) for form in clause.arguments)
        return self._bound(clause, Functor("record", terms), scope)

    def _untuple(self, clause: Applied, scope: ClauseScope) -> tuple[BodyLiteral, ...]:
        self._takes(clause, 1, "[(untuple ?t) [?x ?y]]")
        if not isinstance(clause.binding, TupleBinding):
            raise refuse(clause.place, "untuple binds the parts of a tuple", "write [(untuple ?t) [?x ?y]]")
        parts = tuple(self._patterns.plain(term, scope) for term in clause.binding.terms)
        return (Constraint("=", Functor("record", parts), self._term(clause.arguments[0], scope)),)

    def _takes(self, clause: Applied, count: int, how: str) -> None:
        if len(clause.arguments) != count:
            message = f"{clause.function} takes {count} arguments, not {len(clause.arguments)}"
            raise refuse(clause.place, message, f"write {how}")

    def _keyword(self, form: AnyForm) -> str:
        if not isinstance(form, KeywordForm):
            raise refuse(form.place, f"{form!r} is no attribute", "an attribute is a keyword: :name")
        return form.name
