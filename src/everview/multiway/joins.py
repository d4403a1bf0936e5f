"""Multiway joins of streams: atoms over variables, planned and added to a circuit as one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everview.circuit.circuit import Circuit
from everview.circuit.joined import wider
from everview.circuit.nodes import Apply
from everview.circuit.stream import Stream
from everview.codes import decode_rows, encode_pairs
from everview.codes.dictionary import Dictionary
from everview.doors import door, fits
from everview.errors import CircuitError, SchemaError, WrongArity, WrongType, shown
from everview.multiway.choose import MeasuredAtom, Statistics, choose
from everview.operators.index import Index
from everview.operators.linear import Matching
from everview.operators.multijoin import Multijoin, Order
from everview.types import Field, Schema, unknown_name


@dataclass(frozen=True, slots=True)
class Is:
    """A constant in an atom."""

    value: Any


Term = str | Is | None
HIDDEN = "\0"  # begins the names of variables that nobody has named


@dataclass(frozen=True, slots=True)
class Atom:
    """A stream and what stands in its columns: a variable's name (perhaps twice), a constant, or None for anything.

    ``statistics`` say what its relation holds; see `Statistics.of`. What is chosen by them is part of a stored state,
    which must be opened again with a join that chooses the same.
    """

    stream: Stream
    terms: Sequence[Term]
    statistics: Statistics | None = None


@door
def join(
    atoms: Sequence[Atom],
    *,
    select: Sequence[str] | str | None = None,
    order: Sequence[str] | str | None = None,
) -> Stream:
    """The natural join of all atoms: a row for every binding of the variables that all of them hold; weights multiply.

    ``select`` names the variables of a result, by default all in the order in which they appear; of variables left
    out, the weights of all bindings add up. ``order`` fixes the order in which variables are bound, else it is chosen.

    >>> circuit = Circuit()
    >>> edge = circuit.source("edge", "src BIGINT NOT NULL, dst BIGINT NOT NULL")
    >>> triangles = join([Atom(edge, ("a", "b")), Atom(edge, ("b", "c")), Atom(edge, ("a", "c"))])
    >>> print(triangles.schema)
    a BIGINT NOT NULL, b BIGINT NOT NULL, c BIGINT NOT NULL
    """
    if not atoms:
        raise CircuitError("a join of no atoms", hint="give at least one")
    plain = _same_types([_plain(atom, number) for number, atom in enumerate(atoms, 1)])
    names = list(dict.fromkeys(name for atom in plain for name in atom.terms))
    chosen = _chosen(names, select)
    _check_order(names, order)
    if len(plain) == 1:
        columns = dict(zip(plain[0].terms, plain[0].stream.schema.names, strict=True))
        return plain[0].stream.select(**{name: columns[name] for name in chosen})
    numbers = {name: number for number, name in enumerate(names)}
    relations = [_relation(atom, numbers) for atom in plain]
    circuit = plain[0].stream.circuit
    fixed = None if order is None else [numbers[name] for name in (*order, *(n for n in names if n not in order))]
    choice = choose(relations, names, _existing(circuit), fixed)
    operator = Multijoin(
        tuple(atom.stream.layout for atom in plain),
        tuple(relation.variables for relation in relations),
        tuple(numbers[name] for name in chosen),
        _schema(plain, chosen),
        choice.queries,
        choice.reasons,
    )
    return circuit.add(operator, [atom.stream for atom in plain])


@dataclass(frozen=True, slots=True)
class _Plain:
    """An atom whose columns are different variables."""

    stream: Stream
    terms: tuple[str, ...]
    statistics: Statistics | None


def _plain(atom: Atom, number: int) -> _Plain:
    """An atom reduced to different variables: constants and repetitions are filtered, all other columns dropped."""
    if not isinstance(atom.terms, str) and not fits(atom.terms, Sequence[Any]):
        raise WrongType(
            f"atom {number}: {shown(atom.terms)} is no list of terms", hint="name a variable for each column"
        )
    stream, terms = _stream(atom, number), tuple(atom.terms)
    for term in terms:
        named = isinstance(term, str) and not term.startswith(HIDDEN)
        if not (named or term is None or isinstance(term, Is)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise WrongType(
                f"atom {number}: {term!r} is no term", hint=f"name a variable, or write Is({term!r}) for a constant"
            )
    if len(terms) != len(stream.schema):
        raise WrongArity(
            f"atom {number} has {len(terms)} terms for {len(stream.schema)} columns ({stream.schema})",
            hint="name a variable for each column, or None",
        )
    first: dict[str, int] = {}
    same: list[tuple[int, int]] = []
    constants: list[tuple[int, Any]] = []
    for column, term in enumerate(terms):
        if isinstance(term, Is):
            constants.append((column, _converted(stream.schema.fields[column], term.value)))
        elif term is not None and first.setdefault(term, column) != column:
            same.append((first[term], column))
    if same or constants:
        stream = _comparable(stream, same)
        stream = stream.circuit.add(Matching(stream.layout, tuple(same), tuple(constants)), [stream])
    if not first:
        # All columns are given: the rest of the join is had as often as there are such rows.
        first = {f"{HIDDEN}{number}": 0}
    statistics = atom.statistics
    if statistics is not None and len(statistics.distinct) != len(terms):
        raise WrongArity(
            f"atom {number} has {len(terms)} columns, and statistics of {len(statistics.distinct)}",
            hint="give Statistics.of the relation's rows",
        )
    if len(first) < len(terms):
        stream = stream.select(**{name: stream.schema.names[c] for name, c in first.items()})
        statistics = None if statistics is None else statistics.select(tuple(first.values()))
    return _Plain(stream, tuple(first), statistics)


def _stream(atom: Atom, number: int) -> Stream:
    if not isinstance(atom.stream, Stream):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise WrongType(f"atom {number} is over {atom.stream!r}, which is no stream", hint="give a circuit's stream")
    return atom.stream


def _converted(field: Field, value: Any) -> Any:
    """A constant as the column has it: ``"1.50"`` of a decimal is a decimal."""
    schema, dictionary = Schema([field]), Dictionary()
    return decode_rows(schema, encode_pairs(schema, [((value,), 1)], dictionary)[:, :-1], dictionary)[0][0]


def _comparable(stream: Stream, same: Sequence[tuple[int, int]]) -> Stream:
    """The stream with the columns of each repeated variable recoded to one type that holds them all."""
    fields = list(stream.schema.fields)
    common: dict[int, Field] = {}
    for column, again in same:
        known = common.get(column, fields[column])
        common[column] = wider(known, fields[again], f"columns {fields[column].name} and {fields[again].name}")
    for column, again in same:
        for place in (column, again):
            fields[place] = Field(fields[place].name, common[column].type, common[column].nullable)
    return stream.recode(Schema(fields))


def _same_types(atoms: Sequence[_Plain]) -> list[_Plain]:
    """Columns of one variable in one type that holds the values of all of them."""
    common: dict[str, Field] = {}
    for atom in atoms:
        for name, field in zip(atom.terms, atom.stream.schema.fields, strict=True):
            common[name] = wider(common.get(name, field), field, f"columns of variable {name}")
    return [_Plain(_recoded(atom, common), atom.terms, atom.statistics) for atom in atoms]


def _recoded(atom: _Plain, common: Mapping[str, Field]) -> Stream:
    fields = [
        Field(
            field.name,
            common[name].type,
            common[name].nullable if common[name].words != field.words else field.nullable,
        )
        for name, field in zip(atom.terms, atom.stream.schema.fields, strict=True)
    ]
    return atom.stream.recode(Schema(fields))


def _relation(atom: _Plain, numbers: Mapping[str, int]) -> MeasuredAtom:
    statistics = atom.statistics or Statistics.unknown(len(atom.terms))
    return MeasuredAtom(
        atom.stream.id, tuple(numbers[name] for name in atom.terms), statistics, atom.statistics is not None
    )


def _existing(circuit: Circuit) -> dict[int, list[Order]]:
    """The indexes of whole rows that a circuit has, by stream."""
    indexes: dict[int, list[Order]] = {}
    for node in circuit:
        if isinstance(node, Apply) and isinstance(node.operator, Index):
            index, (stream,) = node.operator, node.inputs
            whole = sorted(index.fields) == list(range(len(index.source.schema)))
            if stream is not None and whole and index.key and not index.order and not index.spread:
                indexes.setdefault(stream, []).append(Order(index.fields, index.key))
        elif isinstance(node, Apply) and isinstance(node.operator, Multijoin):
            for query in node.operator.queries:
                for stream, order in zip(node.inputs, query.indexes, strict=True):
                    if stream is not None and order not in indexes.setdefault(stream, []):
                        indexes[stream].append(order)
    return indexes


def _schema(atoms: Sequence[_Plain], names: Sequence[str]) -> Schema:
    fields = {name: field for atom in atoms for name, field in zip(atom.terms, atom.stream.schema.fields, strict=True)}
    return Schema(Field(name, fields[name].type, fields[name].nullable) for name in names)


def _chosen(names: Sequence[str], select: Sequence[str] | None) -> list[str]:
    shown = [name for name in names if not name.startswith(HIDDEN)]
    for name in select or ():
        if name not in shown:
            raise unknown_name("variable", name, shown)
    return shown if select is None else list(select)


def _check_order(names: Sequence[str], order: Sequence[str] | None) -> None:
    shown = [name for name in names if not name.startswith(HIDDEN)]
    if order is None:
        return
    for name in order:
        if name not in shown:
            raise unknown_name("variable", name, shown)
    if len({*order}) != len(order) or {*order} != {*shown}:
        raise SchemaError(
            f"the order {', '.join(order)} does not name each variable once",
            hint=f"the variables are {', '.join(shown)}",
        )
