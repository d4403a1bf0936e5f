"""Patterns as atoms: of an attribute, of facts whatever their attribute, or of columns of another source.

The name of an atom tells what it reads: ``:to`` an attribute, ``:*1`` facts of all attributes, ``$in0`` rows that are
given, ``$r(0, 2)`` columns of a source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from everview.errors import EdnError, UnknownName
from everview.frontends.edn.arguments import Given, OtherFacts, WrittenRows
from everview.frontends.edn.attributes import ENTITY, Attributes, EdnAttribute, picked
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import ScalarForm
from everview.frontends.edn.infer import type_of_value
from everview.frontends.edn.query import DataPattern, LookupRef
from everview.frontends.edn.scope import ClauseScope
from everview.frontends.edn.transaction import IDENT
from everview.frontends.rules.meeting import family
from everview.frontends.rules.program import BodyLiteral, Constant, RuleAtom, RuleVariable, Term, TextPlace, Wildcard
from everview.plan.node import Plan
from everview.plan.typing import is_number
from everview.types import DATE, STRING, TIMESTAMP, Type


@dataclass(frozen=True)
class Anything:
    """Facts of all attributes: entity, attribute and, if it is ``valued``, value."""

    valued: bool


@dataclass(frozen=True)
class SourceColumns:
    """Some columns of a relation."""

    plan: Plan


Reads = EdnAttribute | Anything | SourceColumns | WrittenRows


class Patterns:
    """Translates patterns into atoms, and notes what the atoms read."""

    def __init__(self, given: Given, attributes: Attributes, *, lenient: bool) -> None:
        self.attributes = attributes
        self.reads: dict[str, Reads] = dict(given.written)
        self._sources = given.sources
        self._lenient = lenient

    def written(self, rows: WrittenRows) -> str:
        """Note rows as a relation, and give its name."""
        name = f"$in{sum(known.startswith('$in') for known in self.reads)}"
        self.reads[name] = rows
        return name

    def pattern(self, clause: DataPattern, scope: ClauseScope) -> tuple[BodyLiteral, ...]:
        if clause.source != "$":
            return self._of_source(clause, scope)
        extra = list[BodyLiteral]()
        entity, name, value = (*clause.terms, *(Wildcard(),) * (3 - len(clause.terms)))
        entity = self._looked_up(entity, scope, clause.place, extra)
        name = self._looked_up(name, scope, clause.place, extra)
        value = self._looked_up(value, scope, clause.place, extra)
        if isinstance(name, Constant):
            attribute = self._attribute(name.value, clause.place)
            entity = self._by_ident(entity, attribute.entity, scope, clause.place, extra)
            value = self._by_ident(value, attribute.value, scope, clause.place, extra)
            return (*extra, self.fact(entity, name, value, clause.place))
        entity = self._by_ident(entity, ENTITY, scope, clause.place, extra)
        valued = not isinstance(value, Wildcard)
        relation = f":*{sum(isinstance(reads, Anything) for reads in self.reads.values()) + 1}"
        self.reads[relation] = Anything(valued)
        terms = (entity, name, value) if valued else (entity, name)
        return (*extra, RuleAtom(relation, terms, place=clause.place))

    def fact(self, entity: Term, name: Constant, value: Term, place: TextPlace) -> RuleAtom:
        attribute = self._attribute(name.value, place)
        self.check(entity, attribute.entity, f"the entities of {attribute.name}", place)
        if attribute.value is not None:
            self.check(value, attribute.value, f"the values of {attribute.name}", place)
        return RuleAtom(attribute.name, (entity, value), place=place)

    def _attribute(self, name: object, place: TextPlace) -> EdnAttribute:
        if not isinstance(name, str) or not name.startswith(":"):
            raise refuse(place, f"{name!r} is no attribute", "an attribute is a keyword: :name, :track/name")
        try:
            attribute = self.attributes.find(name)
        except EdnError as error:
            raise refuse(place, error.message, error.hint or "") from None
        if attribute is None and not (self._lenient and self.attributes.may_be_new(name)):
            error = self.attributes.unknown(name)
            raise refuse(place, error.message, error.hint or "")
        attribute = attribute or EdnAttribute(name, ENTITY, None)
        self.reads[name] = attribute
        return attribute

    def check(self, term: Term, type_: Type, what: str, place: TextPlace) -> None:
        if isinstance(term, Constant) and not fits(term.value, type_):
            raise refuse(
                place, f"{what} are {type_}, and {ScalarForm(term.value)!r} is none", "compare it with such a value"
            )

    def _looked_up(
        self, term: Term | LookupRef, scope: ClauseScope, place: TextPlace, extra: list[BodyLiteral]
    ) -> Term:
        if not isinstance(term, LookupRef):
            return self.plain(term, scope)
        entity = scope.fresh("entity")
        extra.append(self.fact(entity, Constant(term.attribute), term.value, place))
        return entity

    def _by_ident(
        self, term: Term, type_: Type | None, scope: ClauseScope, place: TextPlace, extra: list[BodyLiteral]
    ) -> Term:
        """The entity that a keyword names, where entities are numbers; any other term as it is."""
        value = term.value if isinstance(term, Constant) else None
        if type_ != ENTITY or not isinstance(value, str) or not value.startswith(":"):
            return term
        if self.attributes.find(IDENT) is None:
            raise refuse(place, f"no entity has the ident {value}", "transact it: {:db/ident " + value + "}")
        entity = scope.fresh("entity")
        extra.append(self.fact(entity, Constant(IDENT), Constant(value), place))
        return entity

    def plain(self, term: Term, scope: ClauseScope) -> Term:
        """The term, or what its variable stands for in a scope."""
        return scope.term(term.name) if isinstance(term, RuleVariable) else term

    def _of_source(self, clause: DataPattern, scope: ClauseScope) -> tuple[BodyLiteral, ...]:
        source = self._sources.get(clause.source)
        if isinstance(source, OtherFacts):
            if source.facts is None:
                return self.pattern(replace(clause, source="$"), scope)
            return (self._of_database(clause, source.facts, scope),)
        if source is None:
            hint = f":in $ {clause.source}, and args=[…] with its rows or the name of a relation"
            raise refuse(clause.place, f"there is no source {clause.source}", hint)
        plan, width = None, 0
        if isinstance(source, WrittenRows):
            width = len(source.types)
        else:
            try:
                _, plan = self.attributes.source(source)
            except UnknownName as error:
                raise refuse(clause.place, error.message, error.hint or "") from None
            width = len(plan.schema)
        if width and len(clause.terms) > width:
            hint = "leave terms out at the end, or write _"
            raise refuse(clause.place, f"{clause.source} has {width} columns, not {len(clause.terms)}", hint)
        return (self._columns(clause, source, plan, scope),)

    def _of_database(self, clause: DataPattern, facts: Mapping[str, WrittenRows], scope: ClauseScope) -> RuleAtom:
        """A fact of another database."""
        entity, name, value = (*clause.terms, *(Wildcard(),) * (3 - len(clause.terms)))
        rows = facts.get(name.value) if isinstance(name, Constant) else None
        if rows is None or isinstance(entity, LookupRef) or isinstance(value, LookupRef):
            hint = f"write [{clause.source} ?e :attribute ?v]; look entities up by another pattern"
            raise refuse(clause.place, "of another database, facts are read by their attributes", hint)
        relation = f"{clause.source}{name}"
        self.reads[relation] = rows
        return RuleAtom(relation, (self.plain(entity, scope), self.plain(value, scope)), place=clause.place)

    def _columns(
        self, clause: DataPattern, source: str | WrittenRows, plan: Plan | None, scope: ClauseScope
    ) -> RuleAtom:
        places = tuple(column for column, term in enumerate(clause.terms) if not isinstance(term, Wildcard))
        if not places:
            raise refuse(clause.place, f"this pattern of {clause.source} binds nothing", "name one of its columns")
        terms = list[Term]()
        for column in places:
            term = clause.terms[column]
            if isinstance(term, LookupRef):
                raise refuse(clause.place, f"{clause.source} has no entities", "write a value or a variable")
            terms.append(self.plain(term, scope))
        relation = f"{clause.source}{places}"
        if plan is not None:
            self.reads[relation] = SourceColumns(
                picked(plan, places, tuple(plan.schema.names[column] for column in places))
            )
        else:
            assert isinstance(source, WrittenRows)
            rows = tuple(tuple(row[column] for column in places) for row in source.rows)
            self.reads[relation] = WrittenRows(
                rows, tuple(source.types[column] if source.types else None for column in places)
            )
        return RuleAtom(relation, tuple(terms), place=clause.place)


def fits(value: object, type_: Type) -> bool:
    """Can a value be equal to one of a type?"""
    own = type_of_value(value)
    if is_number(own) and is_number(type_):
        return True
    return family(own) == family(type_) or (own == STRING and type_ in (DATE, TIMESTAMP))
