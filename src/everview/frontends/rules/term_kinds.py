"""Kinds of terms: which type each constructor, record and ``nil`` of a rule is of.

``$Num(x)`` belongs to the type that has such a branch, and ``[x, y]`` and ``nil`` to the type of the column, variable
or field that they stand for. The kinds of columns are those declared; a column that is not declared has the kind of
what its rules give. Constructors are given the kinds of their arguments, by which they are written and read.

>>> from everview.frontends.datalog.parse import parse
>>> text = ".type L = [head: number, tail: L] .decl l(x: L) l(nil). l([1, x]) :- l(x). s(y) :- l([_, y])."
>>> [str(type(rule.head.terms[0]).__name__) for rule in with_kinds(parse(text)).rules]
['Constructor', 'Constructor', 'RuleVariable']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from everview.errors import DatalogError, TypeConflict
from everview.frontends.rules.faults import fault
from everview.frontends.rules.program import (
    BRANCH,
    NIL,
    RECORDS,
    AggregateTerm,
    Constant,
    Constraint,
    Constructor,
    Functor,
    Identified,
    Rule,
    RuleAtom,
    RuleProgram,
    RuleVariable,
    StructKind,
    Term,
    TermKind,
    TermName,
    TermType,
    Wildcard,
)
from everview.frontends.rules.terms import RECORD
from everview.frontends.rules.walk import RulePart, is_literal, is_term, rebuilt, rule_parts, walk
from everview.types import Type


def with_kinds(program: RuleProgram) -> RuleProgram:
    """The program with the kinds of all its constructors; raises `TypeConflict`, `DatalogError`."""
    if not any(d.kinds for d in program.declarations) and not any(map(_constructs, program.rules)):
        return program
    kinds = _Kinds(program)
    return replace(program, rules=tuple(_Typing(rule, kinds).rule() for rule in program.rules))


def _constructs(rule: Rule) -> bool:
    return any(isinstance(part, Constructor) for part in walk(rule_parts(rule)))


class _Kinds:
    """The types of a program, and the kinds of the columns of its relations."""

    def __init__(self, program: RuleProgram) -> None:
        self.types: dict[str, TermType] = {}
        for declared in program.declarations:
            for type_ in declared.types:
                if self.types.setdefault(type_.name, type_) != type_:
                    hint = "give one of them another name"
                    raise fault(DatalogError, f"type {type_.name} is defined in two ways", None, hint, declared.place)
        self.names = {d.name: d.schema.names for d in program.declarations}
        self.declared = {d.name: d.kinds or d.schema.types for d in program.declarations}
        self.found: dict[str, dict[int, TermKind]] = {}
        while sum(self._learn(rule) for rule in program.rules):  # all of them, until nothing is new
            pass

    def _learn(self, rule: Rule) -> bool:
        if rule.head.relation in self.declared:
            return False
        known = self.found.setdefault(rule.head.relation, {})
        before = len(known)
        typing = _Typing(rule, self)
        for place, term in enumerate(rule.head.terms):
            kind = typing.kind(term)
            if kind is not None and place not in known:
                known[place] = kind
        return len(known) > before

    def columns(self, atom: RuleAtom) -> Iterator[tuple[Term, TermKind | None]]:
        """The terms of an atom with the kinds of their columns, as far as they are known."""
        names, kinds = self.names.get(atom.relation), self.declared.get(atom.relation)
        learnt = self.found.get(atom.relation, {})
        for place, term in atom.placed(names):
            yield term, learnt.get(place) if kinds is None else kinds[place] if place < len(kinds) else None

    def of_branch(self, name: str) -> TermType | None:
        """The one type that has a branch."""
        having = [type_ for type_ in self.types.values() if type_.branch(name) is not None]
        return having[0] if len(having) == 1 else None


class _Typing:
    """The kinds of one rule's variables."""

    def __init__(self, rule: Rule, kinds: _Kinds) -> None:
        self._rule, self._kinds = rule, kinds
        self._of: dict[str, TermKind] = {}
        literals = [part for part in walk(rule_parts(rule)) if is_literal(part)]
        for atom in (rule.head, *(p.atom if isinstance(p, Identified) else p for p in literals)):
            if isinstance(atom, RuleAtom):
                for term, kind in kinds.columns(atom):
                    self._note(term, kind)
        equal = [part for part in literals if isinstance(part, Constraint) and part.operator == "="]
        before = -1
        while len(self._of) > before:
            before = len(self._of)
            for part in equal:
                for target, source in ((part.left, part.right), (part.right, part.left)):
                    self._note(target, self.kind(source))

    # -- what is known

    def _note(self, term: Term, kind: TermKind | None) -> None:
        """Note the kinds of variables in a term of some kind."""
        match term:
            case RuleVariable(name) if kind is not None:
                known = self._of.setdefault(name, kind)
                if _differ(known, kind):
                    hint = "a variable has one type; take the value apart, or make one of it"
                    raise fault(
                        TypeConflict, f"variable {name} is {_shown(known)} and {_shown(kind)}", self._rule, hint
                    )
            case Constructor() | Functor("record"):
                for argument, inner in zip(term.arguments, self._inside(term, kind) or (), strict=False):
                    self._note(argument, inner)
            case _:
                pass

    def kind(self, term: Term) -> TermKind | None:
        """The kind of a term, if it is known."""
        match term:
            case RuleVariable(name):
                return self._of.get(name)
            case Constructor(name) if name.startswith(BRANCH):
                type_ = self._kinds.of_branch(name)
                return None if type_ is None else TermName(type_.name)
            case AggregateTerm("min" | "max", (argument,)):
                return self.kind(argument)
            case _:
                return None

    def _inside(self, term: Functor, kind: TermKind | None) -> Sequence[TermKind] | None:
        """The kinds of the arguments of a constructor or record that stands for a value of some kind."""
        if isinstance(kind, StructKind):
            return [inner for _, inner in kind.fields]
        if isinstance(kind, TermName) and kind.name in self._kinds.types:
            return self._kinds.types[kind.name].branch(_branch(term))
        if kind is None and _branch(term).startswith(BRANCH):
            type_ = self._kinds.of_branch(_branch(term))
            return None if type_ is None else type_.branch(_branch(term))
        return None

    # -- the rule with kinds

    def rule(self) -> Rule:
        head = self._atom(self._rule.head)
        body = tuple(part for part in map(self._changed, self._rule.body) if is_literal(part))
        return replace(self._rule, head=head, body=body)

    def _atom(self, atom: RuleAtom) -> RuleAtom:
        return replace(atom, terms=tuple(self._typed(term, kind) for term, kind in self._kinds.columns(atom)))

    def _changed(self, part: RulePart) -> RulePart:
        match part:
            case RuleAtom():
                return self._atom(part)
            case Identified(variable, atom):
                return Identified(variable, self._atom(atom))
            case Constraint(operator, left, right):
                kind = self.kind(left) or self.kind(right)
                self._check_order(part, kind)
                return Constraint(operator, self._typed(left, kind), self._typed(right, kind))
            case _ if is_term(part):
                return self._typed(part, None)
            case _:
                return rebuilt(part, self._changed)

    def _check_order(self, part: Constraint, kind: TermKind | None) -> None:
        if isinstance(kind, TermName) and part.operator not in ("=", "!="):
            raise self._no_order(str(part))

    def _no_order(self, what: str) -> TypeConflict:
        hint = "such values are equal or not; compare their fields, or ord(x)"
        return fault(TypeConflict, f"{what}: records that may hold themselves have no order", self._rule, hint)

    def _typed(self, term: Term, kind: TermKind | None) -> Term:
        """The term with kinds for its constructors, as a value of a kind if that is known."""
        match term:
            case Constructor() | Functor("record"):
                return self._constructed(term, kind)
            case RuleVariable() | Wildcard():
                return term
            case AggregateTerm(function, arguments):
                if function != "count" and any(isinstance(self.kind(a), TermName) for a in arguments):
                    raise self._no_order(f"{function} of {arguments[0]}")
                made = rebuilt(term, self._changed)
            case Constant() | Functor():
                if isinstance(kind, TermName):
                    hint = f"write one of {', '.join(name for name, _ in self._kinds.types[kind.name].branches)}"
                    raise fault(TypeConflict, f"{term} is no {kind.name}", self._rule, hint)
                made = rebuilt(term, self._changed)
        assert is_term(made), "a term stays a term"
        return made

    def _constructed(self, term: Functor, kind: TermKind | None) -> Term:
        if isinstance(term, Constructor) and term.kinds is not None:
            return term
        kind = kind or self.kind(term)
        inner = self._inside(term, kind)
        if inner is None and not isinstance(kind, TermName) and _branch(term) == RECORDS:
            return replace(term, arguments=tuple(self._typed(a, self.kind(a)) for a in term.arguments))
        if inner is None:
            raise self._unknown(term, kind)
        if len(inner) != len(term.arguments):
            message = f"{term} has {len(term.arguments)} fields, and {_shown(kind)} {len(inner)}"
            raise fault(TypeConflict, message, self._rule, "write as many terms as the type has fields")
        arguments = tuple(self._typed(a, k) for a, k in zip(term.arguments, inner, strict=True))
        if isinstance(kind, StructKind):
            return Functor(RECORD, arguments)
        return Constructor(_branch(term), arguments, tuple(inner))

    def _unknown(self, term: Functor, kind: TermKind | None) -> DatalogError:
        name = _branch(term)
        if kind is None:
            what = f"there is no type with the branch {name}" if not self._having(name) else f"{term} is of which type?"
            hint = "declare the relation and the type: .type T = A {x: number} | B {}"
            return fault(DatalogError, what, self._rule, hint)
        hint = "only records that may hold themselves are nil; for others write .type T = None {} | Some {x: number}"
        if name != NIL:
            hint = "look at the type of its column"
        return fault(TypeConflict, f"{term} is no {_shown(kind)}", self._rule, hint)

    def _having(self, name: str) -> bool:
        return name == NIL or any(type_.branch(name) is not None for type_ in self._kinds.types.values())


def _branch(term: Functor) -> str:
    return term.name if isinstance(term, Constructor) else RECORDS


def _differ(a: TermKind, b: TermKind) -> bool:
    """Is one of two kinds a type that is kept as text, and the other not that?"""
    return a != b and (isinstance(a, TermName) or isinstance(b, TermName))


def _shown(kind: TermKind | None) -> str:
    match kind:
        case TermName(name):
            return name
        case StructKind(fields):
            return f"[{', '.join(name for name, _ in fields)}]"
        case Type():
            return kind.sql
        case _:
            return "a value"
