"""From the trees of the grammar to the parts of a text."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

from lark import Token, Transformer

from everview.frontends.datalog.including import IncludedLines
from everview.frontends.datalog.syntax import (
    Clause,
    Component,
    ComponentSignature,
    Directive,
    FunctorDeclared,
    Init,
    Override,
    Part,
    PlanDirective,
    RelationDeclared,
    Subsumption,
    TypeDefined,
    refused,
)
from everview.frontends.datalog.wording import (
    Conjunction,
    Grouped,
    NamedArgument,
    Negated,
    WrittenCall,
    body,
    chained,
    noted,
    somewhere,
    term,
)
from everview.frontends.rules.program import (
    BRANCH,
    NIL,
    AggregateTerm,
    BodyLiteral,
    Constant,
    Constraint,
    Constructor,
    Either,
    Functor,
    RuleAtom,
    RuleVariable,
    Term,
    TextPlace,
    Wildcard,
)
from everview.frontends.rules.terms import RECORD
from everview.frontends.rules.texts import unescaped

WORDS: Final[dict[str, Any]] = {"true": True, "True": True, "false": False, "False": False}


LINES: Final = ContextVar[IncludedLines | None]("LINES", default=None)  # of the text that is being read


_NO_COUNTER: Final = (
    "number the rows where they come from, or give them what makes them different: a program must give the same rows "
    "when others go and come again"
)


def place_of(token: Token) -> TextPlace:
    lines = LINES.get() or IncludedLines()
    return lines.place(token.line or 0, token.column or 0)


def _arguments(parts: list[Any]) -> tuple[Any, ...]:
    return tuple(part for part in parts if part is not None)


class DatalogReading(Transformer[Token, Any]):
    """Turns trees of the grammar into parts of a text; its methods have the names of the grammar's rules."""

    def start(self, parts: list[Part | None]) -> list[Part]:
        return [part for part in parts if part is not None]

    # -- clauses

    def clause(self, parts: list[Any]) -> Clause:
        heads, bodies = parts
        atoms = tuple(self._head(item) for item in heads.items)
        bodies_read = () if bodies is None else tuple(body(b.items) for b in bodies)
        return Clause(atoms, bodies_read, atoms[0].place)

    def _head(self, item: Any) -> RuleAtom:
        if not isinstance(item, WrittenCall):
            hint = "a rule is head(…) :- body. and a fact is head(…)."
            shown = "a negation" if isinstance(item, Negated) else "what stands in brackets"
            shown = shown if isinstance(item, Grouped | Negated) else item
            raise refused(f"{shown} is no head", somewhere(item), hint)
        return item.atom

    def subsumption(self, parts: list[Any]) -> Subsumption:
        worse, better, bodies = parts
        if bodies is not None and len(bodies) > 1:
            raise refused("a subsumption with a disjunction", worse.place, "write two")
        conditions = () if bodies is None else body(bodies[0].items)
        return Subsumption(self._head(worse), self._head(better), conditions, worse.place)

    def disjunction(self, parts: list[Any]) -> list[Any]:
        return parts

    def conjunction(self, parts: list[Any]) -> Conjunction:
        return Conjunction(tuple(parts[:-1]), parts[-1] is not None)

    def trailing(self, _: list[Any]) -> bool:
        return True

    def comparison(self, parts: list[Any]) -> Constraint:
        left, operator, right = parts
        return Constraint(str(operator), term(left), term(right))  # pyright: ignore[reportArgumentType]

    def negation(self, parts: list[Any]) -> Negated:
        return Negated(parts[0])

    # -- terms

    def chain(self, parts: list[Any]) -> Term:
        return chained(parts)

    def group(self, parts: list[Any]) -> Grouped:
        (branches,) = parts
        return Grouped(tuple(b.items for b in branches), any(b.trailing for b in branches))

    def negative(self, parts: list[Any]) -> Term:
        operand = term(parts[1])
        if isinstance(operand, Constant) and isinstance(operand.value, (int, float)):
            return Constant(-operand.value, operand.type)
        return Functor("-", (operand,))

    def not_(self, parts: list[Any]) -> Term:
        return Functor(str(parts[0]), (term(parts[1]),))

    def record(self, parts: list[Any]) -> Term:
        return noted(Functor(RECORD, tuple(map(term, _arguments(parts[1:])))), place_of(parts[0]))

    def call(self, parts: list[Any]) -> WrittenCall:
        arguments = _arguments(parts[1:])
        if str(parts[0]) == "autoinc" and not arguments:
            raise refused("autoinc() counts rows as they are found", place_of(parts[0]), _NO_COUNTER)
        if not any(isinstance(a, NamedArgument) for a in arguments):
            return WrittenCall(str(parts[0]), arguments, place_of(parts[0]))
        names = tuple(a.name for a in arguments)
        if len(set(names)) < len(names):
            raise refused(f"{parts[0]} names a column twice", place_of(parts[0]), "name each once")
        return WrittenCall(str(parts[0]), tuple(a.value for a in arguments), place_of(parts[0]), names)

    called = call

    def named(self, parts: list[Any]) -> NamedArgument:
        return NamedArgument(str(parts[0]), parts[1])

    def aggregate(self, parts: list[Any]) -> AggregateTerm:
        name, *arguments, branches = parts
        if isinstance(name, WrittenCall):
            name, arguments = name.name, list(name.arguments)
        return AggregateTerm(str(name), tuple(map(term, arguments)), _inside(branches))

    def body(self, parts: list[Any]) -> list[tuple[Any, ...]]:
        (found,) = parts
        return [(found,)] if isinstance(found, WrittenCall) else [b.items for b in found]

    def name(self, parts: list[Token]) -> Term:
        name, place = str(parts[0]), place_of(parts[0])
        if name in WORDS:
            return noted(Constant(WORDS[name]), place)
        return noted(Constructor(NIL, ()) if name == NIL else RuleVariable(name), place)

    def constructed(self, parts: list[Any]) -> Constructor:
        return noted(Constructor(str(parts[0]), tuple(map(term, _arguments(parts[1:])))), place_of(parts[0]))

    def number(self, parts: list[Token]) -> Constant:
        written = parts[0].rstrip("u")
        return noted(Constant(int(written, 0) if written[:2] in ("0x", "0b") else int(written)), place_of(parts[0]))

    def real(self, parts: list[Token]) -> Constant:
        return noted(Constant(float(parts[0])), place_of(parts[0]))

    def text(self, parts: list[Token]) -> Constant:
        try:
            return noted(Constant(unescaped(parts[0])), place_of(parts[0]))
        except (SyntaxError, ValueError):
            hint = "write a backslash twice, or use one as Python does"
            raise refused(f"{parts[0]} is no text", place_of(parts[0]), hint) from None

    def counter(self, parts: list[Token]) -> Term:
        raise refused(f"{parts[0]} counts rows as they are found", place_of(parts[0]), _NO_COUNTER)

    def wildcard(self, parts: list[Token]) -> Wildcard:
        return noted(Wildcard(), place_of(parts[0]))

    # -- declarations

    def declaration(self, parts: list[Any]) -> RelationDeclared:
        names = tuple(str(p) for p in parts if isinstance(p, Token))
        attributes = tuple(p for p in parts if isinstance(p, tuple))
        said = [p for p in parts if isinstance(p, list)]
        qualifiers = tuple(names[0] for names in said)
        choices = tuple(domain for names in said for domain in names[1:])
        return RelationDeclared(names, attributes, qualifiers, place_of(parts[0]), choices)

    def attribute(self, parts: list[Token]) -> tuple[str, str]:
        return str(parts[0]), str(parts[1])

    def qualifier(self, parts: list[Any]) -> list[Any]:
        """The word, and the domains that a choice-domain names."""
        return [str(parts[0]), *parts[1:]]

    def choice(self, parts: list[Token]) -> tuple[str, ...]:
        return tuple(map(str, parts))

    def type(self, parts: list[Any]) -> TypeDefined:
        name, (kind, definition) = parts
        given: dict[str, Any] = {"one of": (), "record": None, "branches": ()} | {kind: definition}
        return TypeDefined(str(name), given["one of"], given["record"], place_of(name), given["branches"])

    def symbols(self, parts: list[Token]) -> TypeDefined:
        return TypeDefined(str(parts[0]), ("symbol",), None, place_of(parts[0]))

    def numbers(self, parts: list[Token]) -> TypeDefined:
        return TypeDefined(str(parts[0]), ("number",), None, place_of(parts[0]))

    def alternatives(self, parts: list[Token]) -> tuple[str, tuple[str, ...]]:
        return "one of", tuple(map(str, parts))

    def branches(self, parts: list[Any]) -> tuple[str, tuple[Any, ...]]:
        return "branches", tuple(parts)

    def branch(self, parts: list[Any]) -> tuple[str, tuple[Any, ...]]:
        return f"{BRANCH}{parts[0]}", _arguments(parts[1:])

    def fields(self, parts: list[Any]) -> tuple[str, tuple[Any, ...]]:
        return "record", tuple(part for part in _arguments(parts) if not isinstance(part, Token))

    tuple = fields

    def directive(self, parts: list[Any]) -> Directive:
        kind, *targets = parts
        return Directive(str(kind), tuple(targets), place_of(kind))

    def target(self, parts: list[Any]) -> tuple[str, tuple[Any, ...]]:
        return str(parts[0]), _arguments(parts[1:])

    def parameter(self, parts: list[Token]) -> tuple[str, str]:
        return str(parts[0]), str(parts[1])

    # -- components

    def component(self, parts: list[Any]) -> Component:
        signatures = [p for p in parts if isinstance(p, ComponentSignature)]
        rest = tuple(p for p in parts if p is not None and not isinstance(p, ComponentSignature))
        return Component(signatures[0], tuple(signatures[1:]), rest)

    def signature(self, parts: list[Any]) -> ComponentSignature:
        names = [str(p) for p in parts if p is not None]
        return ComponentSignature(names[0], tuple(names[1:]), place_of(parts[0]))

    def init(self, parts: list[Any]) -> Init:
        return Init(str(parts[0]), parts[1], place_of(parts[0]))

    def override(self, parts: list[Any]) -> Override:
        return Override(str(parts[0]), place_of(parts[0]))

    def functor(self, parts: list[Any]) -> FunctorDeclared:
        name, *types = (part for part in parts if part is not None)
        return FunctorDeclared(
            str(name), tuple(str(t[1] if isinstance(t, tuple) else t) for t in types), place_of(name)
        )

    extern = functor

    def pragma(self, _: list[Any]) -> None:
        return None

    def plan(self, parts: list[Any]) -> PlanDirective:
        versions = (int(part) for part in parts[::2])
        return PlanDirective(tuple(zip(versions, parts[1::2], strict=True)), place_of(parts[0]))

    def order(self, parts: list[Token | None]) -> tuple[int, ...]:
        return tuple(int(part) for part in parts if part is not None)


def _inside(branches: list[tuple[Any, ...]]) -> tuple[BodyLiteral, ...]:
    made = [body(items) for items in branches]
    return made[0] if len(made) == 1 else (Either(tuple(made)),)


setattr(DatalogReading, "not", DatalogReading.not_)  # the rule has the name of a word of Python
