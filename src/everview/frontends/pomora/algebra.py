"""PomoRA as data: expressions over relations, formulas over attributes, and the statements of a program.

>>> edge, path = NamedRelation("edge"), NamedRelation("path")
>>> print(Assignment("path", Combined("natural_join", path, edge)))
path := natural_join(path, edge);
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from everview.frontends.rules.program import NOWHERE, Comparison, Constant, TextPlace

Operator = Literal["difference", "cartesian_product", "natural_join", "theta_join", "equijoin", "semijoin", "antijoin"]


# -- formulas


@dataclass(frozen=True, slots=True)
class AttributeName:
    """An attribute as an operand of a comparison."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AttributeComparison:
    """A comparison of attributes and constants."""

    operator: Comparison
    left: AttributeName | Constant
    right: AttributeName | Constant

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class Connected:
    """Formulas joined by ``and`` or ``or``, or one formula denied by ``not``."""

    connective: Literal["and", "or", "not"]
    parts: tuple[Formula, ...]

    def __str__(self) -> str:
        if self.connective == "not":
            return f"not ({self.parts[0]})"
        return f" {self.connective} ".join(f"({part})" for part in self.parts)


Formula = AttributeComparison | Connected


# -- expressions


@dataclass(frozen=True, slots=True)
class NamedRelation:
    """A relation by its name, standing for its rows at this point of the program."""

    name: str
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class WrittenRelation:
    """A relation of constant rows, each with the names of its attributes."""

    rows: tuple[tuple[tuple[str, Any], ...], ...]
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        rows = (", ".join(f"{name}: {Constant(value)}" for name, value in row) for row in self.rows)
        return f"[{', '.join(f'({row})' for row in rows)}]"


@dataclass(frozen=True, slots=True)
class Projection:
    """Some attributes of a relation."""

    attributes: tuple[str, ...]
    input: Expression
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"projection([{', '.join(f':{name}' for name in self.attributes)}], {self.input})"


@dataclass(frozen=True, slots=True)
class Renaming:
    """A relation with other names for some attributes."""

    pairs: tuple[tuple[str, str], ...]  # (from, to)
    input: Expression
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"rename([{', '.join(f'{old}: :{new}' for old, new in self.pairs)}], {self.input})"


@dataclass(frozen=True, slots=True)
class FormulaSelection:
    """The rows of a relation for which a formula holds."""

    formula: Formula
    input: Expression
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"selection({self.formula}, {self.input})"


@dataclass(frozen=True, slots=True)
class United:
    """The rows of several relations."""

    parts: tuple[Expression, ...]
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"union({', '.join(map(str, self.parts))})"


@dataclass(frozen=True, slots=True)
class Combined:
    """An operator of two relations; only a theta join and an equijoin have a formula."""

    operator: Operator
    left: Expression
    right: Expression
    formula: Formula | None = None
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        given = [str(part) for part in (self.formula, self.left, self.right) if part is not None]
        return f"{self.operator}({', '.join(given)})"


@dataclass(frozen=True, slots=True)
class Grouping:
    """One row for each group: the attributes ``by`` which rows are grouped, and an aggregate under a name."""

    by: tuple[str, ...]
    name: str
    function: str
    arguments: tuple[str, ...]
    input: Expression
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        by, called = ", ".join(f":{name}" for name in self.by), f"{self.function}({', '.join(self.arguments)})"
        return f"group_by([{by}], {self.name}, {called}, {self.input})"


Expression = NamedRelation | WrittenRelation | Projection | Renaming | FormulaSelection | United | Combined | Grouping


# -- statements


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment: it adds the rows of an expression to a relation."""

    target: str
    expression: Expression
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.target} := {self.expression};"


@dataclass(frozen=True, slots=True)
class ChangeLoop:
    """A block repeated until none of the relations assigned in the block changes."""

    block: tuple[Statement, ...]
    place: TextPlace = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"while change do {' '.join(map(str, self.block))} end"


Statement = Assignment | ChangeLoop


def assignments(block: tuple[Statement, ...]) -> Iterator[Assignment]:
    """The assignments of a block, those of its loops included."""
    for statement in block:
        match statement:
            case Assignment():
                yield statement
            case ChangeLoop(inner):
                yield from assignments(inner)


def inputs_of(expression: Expression) -> tuple[Expression, ...]:
    """The relations that an operator takes."""
    match expression:
        case NamedRelation() | WrittenRelation():
            return ()
        case United(parts):
            return parts
        case Combined():
            return expression.left, expression.right
        case Projection() | Renaming() | FormulaSelection() | Grouping():
            return (expression.input,)


def expressions_in(expression: Expression) -> Iterator[Expression]:
    """An expression, followed by all that are inside of it."""
    yield expression
    for part in inputs_of(expression):
        yield from expressions_in(part)


def read_by(expression: Expression) -> Iterator[str]:
    """The relations that an expression names."""
    return (part.name for part in expressions_in(expression) if isinstance(part, NamedRelation))


def about(target: str, block: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The statements of a block needed for a relation: assignments to it and, in turn, to the relations they read."""
    needed, before = {target}, set[str]()
    while needed != before:
        before = set(needed)
        needed.update(name for a in assignments(block) if a.target in before for name in read_by(a.expression))
    return _only(frozenset(needed), block)


def _only(targets: frozenset[str], block: tuple[Statement, ...]) -> tuple[Statement, ...]:
    kept: list[Statement] = []
    for statement in block:
        match statement:
            case Assignment() if statement.target in targets:
                kept.append(statement)
            case ChangeLoop(inner) if any(a.target in targets for a in assignments(inner)):
                kept.append(ChangeLoop(_only(targets, inner), statement.place))
            case _:
                pass
    return tuple(kept)
