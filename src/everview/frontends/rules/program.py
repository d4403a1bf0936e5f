"""Rules as data: terms, literals, rules and programs, in whatever syntax they were written.

A relation is a set of rows. A rule says that its head holds for every binding of its variables for which its body
does. The Soufflé-like syntax, PomoLogic and EDN queries all become these values; `compile` makes plans of them.

>>> x, y, z = RuleVariable("x"), RuleVariable("y"), RuleVariable("z")
>>> print(Rule(RuleAtom("path", (x, z)), (RuleAtom("path", (x, y)), RuleAtom("edge", (y, z)))))
path(x, z) :- path(x, y), edge(y, z).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from everview.types import Schema, Type

Comparison = Literal["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class TextPlace:
    """The line and the column of something in its text, from 1, and the file if the text includes one.

    Values at different places are equal.
    """

    line: int = 0
    column: int = 0
    file: str = ""


NOWHERE = TextPlace()


# -- kinds of values


@dataclass(frozen=True, slots=True)
class TermName:
    """The name of a type whose values are kept as text: one with branches, or a record that may hold itself."""

    name: str


@dataclass(frozen=True, slots=True)
class StructKind:
    """A record that is a struct: its fields by name, each with its kind."""

    fields: tuple[tuple[str, TermKind], ...]


TermKind = Type | TermName | StructKind


@dataclass(frozen=True, slots=True)
class TermType:
    """A type whose values are kept as text: its branches by name, each with the kinds of its arguments."""

    name: str
    branches: tuple[tuple[str, tuple[TermKind, ...]], ...]

    def branch(self, name: str) -> tuple[TermKind, ...] | None:
        return next((kinds for known, kinds in self.branches if known == name), None)


# -- terms


@dataclass(frozen=True, slots=True)
class RuleVariable:
    """A variable, with one value in each binding of its rule."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """A value, with its ``type`` if the value alone does not tell."""

    value: Any
    type: Type | None = None

    def __str__(self) -> str:
        match self.value:
            case bool():
                return str(self.value).lower()
            case str():
                return '"' + "".join(_ESCAPED.get(c, c) for c in self.value) + '"'
            case None:
                return "nil"
            case _:
                return str(self.value)


_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Any value: ``_``."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class Functor:
    """A function of terms, by its name: ``cat(x, y)``; `functors` says what it means."""

    name: str
    arguments: tuple[Term, ...]

    def __str__(self) -> str:
        if self.name == "unsigned" and len(self.arguments) == 1:  # a check that nobody wrote
            return str(self.arguments[0])
        if self.name == "record":
            return f"[{', '.join(map(str, self.arguments))}]"
        if len(self.arguments) == 2 and self.name in _INFIX:
            return f" {self.name} ".join(map(_operand, self.arguments))
        if self.name == "-" and len(self.arguments) == 1:
            return f"-{_operand(self.arguments[0])}"
        return f"{self.name}({', '.join(map(str, self.arguments))})"


BRANCH: Final = "$"  # before the name of a branch of a type
RECORDS: Final = "[]"  # the branch of a record that is kept as text
NIL: Final = "nil"  # the branch of no record


@dataclass(frozen=True, slots=True)
class Constructor(Functor):
    """``$Add(x, y)``, ``nil``, or a record of a type that may hold itself: a value that is kept as text.

    ``kinds`` has the kinds of its arguments, once `term_kinds` has found them.
    """

    kinds: tuple[TermKind, ...] | None = None

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.arguments))
        if self.name == RECORDS:
            return f"[{inside}]"
        return f"{self.name}({inside})" if inside else self.name


@dataclass(frozen=True, slots=True)
class TermField(Functor):
    """An argument of a value that a `Constructor` made: its place there, and its kind."""

    place: int = 0
    kind: TermKind | None = None


_INFIX = frozenset(
    ["+", "-", "*", "/", "%", "^", "land", "lor", "lxor", "band", "bor", "bxor", "bshl", "bshr", "bshru"]
)


def _operand(term: Term) -> str:
    is_infix = isinstance(term, Functor) and term.name in _INFIX and len(term.arguments) == 2
    return f"({term})" if is_infix else str(term)


@dataclass(frozen=True, slots=True)
class AggregateTerm:
    """Many rows as one value: the bindings of a body or, without a body, in a head, the rows of its group.

    ``count : {edge(x, _)}`` is ``AggregateTerm("count", (), (RuleAtom(…),))``. The variables of the body that the rule
    binds elsewhere tell groups apart; the others belong to the aggregate.
    """

    function: str
    arguments: tuple[Term, ...] = ()
    body: tuple[BodyLiteral, ...] | None = None

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.arguments))
        if self.body is None:
            return f"{self.function}({inside})"
        return f"{self.function}{' ' if inside else ''}{inside} : {{ {', '.join(map(str, self.body))} }}"


Term = RuleVariable | Constant | Wildcard | Functor | AggregateTerm


# -- literals


@dataclass(frozen=True, slots=True)
class RuleAtom:
    """Rows of a relation whose columns match the terms: all by position, or some by ``names``."""

    relation: str
    terms: tuple[Term, ...]
    names: tuple[str, ...] | None = None
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        shown = map(str, self.terms)
        if self.names is not None:
            shown = (f"{name}: {term}" for name, term in zip(self.names, shown, strict=True))
        return f"{self.relation}({', '.join(shown)})"

    def placed(self, columns: Sequence[str] | None) -> Iterator[tuple[int, Term]]:
        """The terms, each with the number of its column; ``columns`` are those of the relation, if they are known."""
        for number, term in enumerate(self.terms):
            name = self.names[number] if self.names else None
            yield columns.index(name) if columns and name in columns else number, term


@dataclass(frozen=True, slots=True)
class Negation:
    """A body that has no match; variables that the rule does not bind elsewhere belong to the negation."""

    body: tuple[BodyLiteral, ...]

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.body))
        return f"!{inside}" if len(self.body) == 1 and isinstance(self.body[0], RuleAtom | Either) else f"!({inside})"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A comparison of two terms; ``=`` binds an unbound variable on one side."""

    operator: Comparison
    left: Term
    right: Term

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class Holds:
    """A term that must be true: ``contains("a", x)``."""

    term: Term

    def __str__(self) -> str:
        return str(self.term)


@dataclass(frozen=True, slots=True)
class Either:
    """Several bodies, one of which must hold."""

    branches: tuple[tuple[BodyLiteral, ...], ...]

    def __str__(self) -> str:
        return "(" + " ; ".join(", ".join(map(str, branch)) for branch in self.branches) + ")"


@dataclass(frozen=True, slots=True)
class Identified:
    """Rows of an atom with the content id of each as a variable: ``C := point(x: X)``."""

    variable: RuleVariable
    atom: RuleAtom

    def __str__(self) -> str:
        return f"{self.variable} := {self.atom}"


BodyLiteral = RuleAtom | Negation | Constraint | Holds | Either | Identified


# -- rules and programs


@dataclass(frozen=True, slots=True)
class Rule:
    """A head that holds wherever its body does; without a body it is a fact.

    ``next`` rules are inductive: what they derive in one tick holds in the next.
    """

    head: RuleAtom
    body: tuple[BodyLiteral, ...] = ()
    next: bool = False
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        head = f"{self.head}@next" if self.next else f"{self.head}"
        return f"{head} :- {', '.join(map(str, self.body))}." if self.body else f"{head}."


@dataclass(frozen=True, slots=True)
class Declaration:
    """A relation and its columns; ``input`` ones are given from outside, ``output`` ones are shown."""

    name: str
    schema: Schema
    input: bool = False
    output: bool = False
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)
    unsigned: frozenset[int] = frozenset()  # the columns whose numbers have no sign
    choices: tuple[tuple[int, ...], ...] = ()  # domains: the columns of which each value has one row
    limit: int | None = None  # the number of rows at which its recursion stops
    kinds: tuple[TermKind, ...] = ()  # of its columns, if some hold values that are kept as text
    types: tuple[TermType, ...] = ()  # all that its kinds name


@dataclass(frozen=True, slots=True)
class RuleProgram:
    """Rules, with declarations and directives of their relations."""

    rules: tuple[Rule, ...] = ()
    declarations: tuple[Declaration, ...] = ()
    directed: tuple[tuple[str, str, TextPlace], ...] = ()  # directives: their kind, a relation, and where

    @property
    def heads(self) -> tuple[str, ...]:
        """The relations that rules define, in the order of their first rules."""
        return tuple(dict.fromkeys(rule.head.relation for rule in self.rules))
