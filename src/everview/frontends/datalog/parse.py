"""From a text to a program: components are expanded, names resolved, types looked up.

>>> print(parse('''
...     .decl edge(a: number, b: number)
...     .input edge
...     path(x, y) :- edge(x, y) ; path(x, z), edge(z, y).
... ''').rules[0])
path(x, y) :- (edge(x, y) ; path(x, z), edge(z, y)).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from textwrap import indent
from typing import Any

from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from everview.errors import DatalogError
from everview.frontends.datalog.checks import (
    check_calls,
    check_casts,
    check_chosen,
    check_directive,
    check_functors,
    check_inlined,
    check_plans,
    check_qualifiers,
    check_type_names,
    smallest,
)
from everview.frontends.datalog.components import ScopedPart, expanded
from everview.frontends.datalog.grammar import parser
from everview.frontends.datalog.including import lines_of, with_includes
from everview.frontends.datalog.naming import Naming
from everview.frontends.datalog.reading import LINES
from everview.frontends.datalog.subsuming import subsumed
from everview.frontends.datalog.syntax import (
    Clause,
    Directive,
    FunctorDeclared,
    Part,
    RelationDeclared,
    Subsumption,
    TypeDefined,
    refused,
)
from everview.frontends.datalog.types import Types
from everview.frontends.datalog.witnesses import with_witnesses
from everview.frontends.datalog.wording import CASTS, NOTED
from everview.frontends.pointing import pointed
from everview.frontends.rules import faults
from everview.frontends.rules.functors import FUNCTORS
from everview.frontends.rules.ground import check_ground
from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Constraint,
    Declaration,
    Either,
    Rule,
    RuleAtom,
    RuleProgram,
    RuleVariable,
    StructKind,
    TermKind,
    TermName,
    TextPlace,
    Wildcard,
)
from everview.frontends.rules.resolve import LIMIT
from everview.frontends.rules.walk import RulePart, rewritten
from everview.plan.nullary import NULLARY
from everview.types import Field, Schema
from everview.types.names import check_names


def parse(text: str) -> RuleProgram:
    """Read a text, and the files that it includes, into a program; raises `DatalogError` with line and column."""
    parts = expanded(_parts(with_includes(text)))
    declared = _declarations(parts)
    rules = tuple(map(with_witnesses, _rules(parts, declared)))
    check_plans(parts, rules)
    check_calls(rules, {f.name: len(f.types) - 1 for p in parts if isinstance(f := p.part, FunctorDeclared)})
    for rule in rules:
        check_ground(rule)
    inlined = {n for p in parts for n in _qualified(p, "inline")}
    check_chosen(declared.values(), {rule.head.relation for rule in rules})
    check_inlined(inlined, {d.name for d in declared.values() if d.input or d.output}, rules)
    return RuleProgram(rules, tuple(declared.values()), _directed(parts, Naming(declared)))


def _parts(text: str) -> list[Part]:
    before, places, casts = LINES.set(lines_of(text)), NOTED.set({}), CASTS.set([])
    try:
        parts: Any = parser().parse(text)
        check_casts(parts, CASTS.get() or [])
    except UnexpectedInput as error:
        raise _unexpected(text, error) from None
    finally:
        LINES.reset(before)
        NOTED.reset(places)
        CASTS.reset(casts)
    return parts


# -- declarations


def _declarations(parts: Sequence[ScopedPart]) -> dict[str, Declaration]:
    defined = {f"{p.scope}{p.part.name}": (p.scope, _given(p)) for p in parts if isinstance(p.part, TypeDefined)}
    types = Types(defined)
    check_type_names(parts)
    types.check()
    check_functors(parts, types)
    declared: dict[str, Declaration] = {}
    for placed in parts:
        part = placed.part
        if not isinstance(part, RelationDeclared):
            continue
        check_qualifiers(part)
        schema = _schema(placed, part, types)
        for name in part.names:
            full = f"{placed.scope}{name}"
            if full in declared:
                raise refused(f"relation {full} is declared twice", part.place, "declare it once")
            given, shown = "input" in part.qualifiers, bool({"output", "printsize"}.intersection(part.qualifiers))
            signs, choices = _unsigned(placed, part, types), _choices(part)
            kinds = _kinds(placed, part, types)
            declared[full] = Declaration(
                full, schema, given, shown, part.place, signs, choices, kinds=kinds, types=types.terms_of(kinds)
            )
    return _with_directives(parts, declared)


def _given(placed: ScopedPart) -> TypeDefined:
    """A type with its component's arguments in the places of parameters."""
    part = placed.part
    assert isinstance(part, TypeDefined)
    alternatives = tuple(placed.given.get(n, n) for n in part.alternatives)
    fields = None if part.fields is None else tuple((n, placed.given.get(t, t)) for n, t in part.fields)
    branches = tuple((b, tuple((n, placed.given.get(t, t)) for n, t in inner)) for b, inner in part.branches)
    return replace(part, alternatives=alternatives, fields=fields, branches=branches)


def _schema(placed: ScopedPart, part: RelationDeclared, types: Types) -> Schema:
    if not part.attributes:
        return NULLARY
    check_names([name for name, _ in part.attributes], f"relation {part.names[0]}")
    return Schema(
        Field(name, types.of(placed.given.get(type_name, type_name), placed.scope, part.place), nullable=False)
        for name, type_name in part.attributes
    )


def _unsigned(placed: ScopedPart, part: RelationDeclared, types: Types) -> frozenset[int]:
    names = enumerate(placed.given.get(type_name, type_name) for _, type_name in part.attributes)
    return frozenset(column for column, name in names if types.is_unsigned(name, placed.scope))


def _kinds(placed: ScopedPart, part: RelationDeclared, types: Types) -> tuple[TermKind, ...]:
    """The kinds of a relation's columns, if some of them hold values that are kept as text."""
    names = (placed.given.get(type_name, type_name) for _, type_name in part.attributes)
    kinds = tuple(types.kind(name, placed.scope, part.place) for name in names)
    return kinds if any(isinstance(kind, TermName | StructKind) for kind in kinds) else ()


def _choices(part: RelationDeclared) -> tuple[tuple[int, ...], ...]:
    """The places of the columns of each domain that a choice-domain names."""
    names = [name for name, _ in part.attributes]
    return tuple(tuple(map(names.index, domain)) for domain in smallest(part.choices))


def _qualified(placed: ScopedPart, qualifier: str) -> list[str]:
    """The relations that a part declares with a qualifier."""
    part = placed.part
    if not isinstance(part, RelationDeclared) or qualifier not in part.qualifiers:
        return []
    return [f"{placed.scope}{name}" for name in part.names]


def _directed(parts: Sequence[ScopedPart], naming: Naming) -> tuple[tuple[str, str, TextPlace], ...]:
    directives = [(p.part, p.scope) for p in parts if isinstance(p.part, Directive)]
    return tuple((d.kind, naming.full(name, scope), d.place) for d, scope in directives for name, _ in d.targets)


def _with_directives(parts: Sequence[ScopedPart], declared: dict[str, Declaration]) -> dict[str, Declaration]:
    naming = Naming(declared)
    for placed in parts:
        if not isinstance(placed.part, Directive):
            continue
        check_directive(placed.part)
        for target, given in placed.part.targets:
            name = naming.full(target, placed.scope)
            if name not in declared:
                continue  # a relation of the database, or of rules alone: known under its name anyway
            if placed.part.kind == LIMIT:
                declared[name] = _limited(declared[name], int(dict(given)["n"]))
                continue
            is_given = declared[name].input or placed.part.kind == ".input"
            shown = declared[name].output or placed.part.kind in (".output", ".printsize")
            declared[name] = replace(declared[name], input=is_given, output=shown)
    return declared


def _limited(declared: Declaration, most: int) -> Declaration:
    """The declaration of a relation with a limit; of several limits the least counts."""
    return replace(declared, limit=most if declared.limit is None else min(most, declared.limit))


# -- rules


def _rules(parts: Sequence[ScopedPart], declared: Iterable[str]) -> tuple[Rule, ...]:
    heads = {
        f"{p.scope}{h.relation}" for p in parts if isinstance(p.part, Clause) and not p.scope for h in p.part.heads
    }
    relations = {*declared, *heads}
    functors = {p.part.name for p in parts if isinstance(p.part, FunctorDeclared)} | set(FUNCTORS)
    naming = Naming(relations, functors - relations)
    rules: list[Rule] = []
    for placed in parts:
        match placed.part:
            case Clause(clause_heads, bodies, place):
                rules += [naming.rule(_rule(head, bodies, place), placed.scope) for head in clause_heads]
            case RelationDeclared(names, _, qualifiers, place) if "eqrel" in qualifiers:
                rules += [rule for name in names for rule in _equivalence(f"{placed.scope}{name}", place)]
            case _:
                pass
    subsumptions = [p for p in parts if isinstance(p.part, Subsumption)]
    return subsumed(tuple(rules), [(naming, p) for p in subsumptions])


def _rule(head: RuleAtom, bodies: tuple[tuple[BodyLiteral, ...], ...], place: TextPlace) -> Rule:
    head, computed = _without_aggregates(head)
    if computed:
        bodies = tuple((*body, *computed) for body in bodies or ((),))
    if not bodies:
        return Rule(head, (), place=place)
    return Rule(head, bodies[0] if len(bodies) == 1 else (Either(bodies),), place=place)


def _without_aggregates(head: RuleAtom) -> tuple[RuleAtom, tuple[BodyLiteral, ...]]:
    """``s(sum x : { a(x) })`` as ``s(n)`` and the condition of a body that says what n is."""
    computed: list[BodyLiteral] = []

    def named(part: RulePart) -> RulePart:
        if not isinstance(part, AggregateTerm) or part.body is None:
            return part
        variable = RuleVariable(f"?in head {len(computed)}")  # no variable of a text is called so
        computed.append(Constraint("=", variable, part))
        return variable

    terms = tuple(rewritten(term, named) for term in head.terms)
    return replace(head, terms=terms), tuple(computed)  # pyright: ignore[reportArgumentType], terms stay terms


def _equivalence(name: str, place: TextPlace) -> list[Rule]:
    """The rules that make a relation an equivalence: reflexive, symmetric, transitive."""
    x, y, z = RuleVariable("x"), RuleVariable("y"), RuleVariable("z")
    return [
        Rule(RuleAtom(name, (x, x)), (RuleAtom(name, (x, Wildcard())),), place=place),
        Rule(RuleAtom(name, (y, x)), (RuleAtom(name, (x, y)),), place=place),
        Rule(RuleAtom(name, (x, z)), (RuleAtom(name, (x, y)), RuleAtom(name, (y, z))), place=place),
    ]


# -- errors


SHOWN = {
    "DOT": '"."', "COMMA": '","', "LPAR": '"("', "RPAR": '")"', "LBRACE": '"{"', "RBRACE": '"}"', "OPENED": '"["',
    "RSQB": '"]"', "COLON": '":"', "SEMICOLON": '";"', "BANG": '"!"', "__ANON_0": '":-"', "NAME": "a name",
    "INTEGER": "a number", "REAL": "a number", "STRING": "a text", "COMPARED": "a comparison", "MINUS": "an operator",
    "TIMES": "an operator", "AGGREGATE": "an aggregate", "ANY": '"_"', "NOT": "a term", "$END": "the end",
}  # fmt: skip
MOST = 6  # things expected that are worth telling


def _unexpected(text: str, error: UnexpectedInput) -> DatalogError:
    if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        place = lines_of(text).place(text.count("\n") + 1, len(text) - text.rfind("\n"))
        return refused("the text ends too early", place, _expected(error))
    shown = _line(text, TextPlace(error.line, error.column))
    if isinstance(error, UnexpectedCharacters):
        letter = text[error.pos_in_stream] if error.pos_in_stream is not None else "?"
        hint = "directives of a preprocessor are not read" if letter == "#" else _expected(error)
        return DatalogError(f"{letter!r} cannot stand here{shown}", hint=hint)
    assert isinstance(error, UnexpectedToken)
    return DatalogError(f"{str(error.token)!r} cannot stand here{shown}", hint=_expected(error))


def _line(text: str, place: TextPlace) -> str:
    """The place, and its line with a caret below."""
    line = text.split("\n")[place.line - 1]
    where = faults.placed("", lines_of(text).place(place.line, place.column))
    return f"{where}:\n{indent(pointed(line, place.column - 1), '    ')}"


def _expected(error: UnexpectedInput) -> str:
    names = getattr(error, "accepts", None) or getattr(error, "expected", None) or getattr(error, "allowed", None) or ()
    expected = sorted({SHOWN[name] for name in names if name in SHOWN})
    if not expected or len(expected) > MOST:
        return 'a rule is head(…) :- body. and ends with "."'
    return f"expected {' or '.join(expected)}"
