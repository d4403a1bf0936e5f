"""What a query circuit means: every operator by its definition, over all rows at once, from scratch.

The incremental circuit is held to this: after every tick, a view's contents are `evaluate` of all that its
sources were given. So the oracle shares nothing with what it checks: rows are tuples of Python values, Z-sets
are plain dictionaries, there are no words, kernels, traces or steps, and operators are read as data only.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Hashable, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Child, Export, Feedback, Import, Sink, Source
from everview.errors import CircuitError, FunctionError, WeightOverflow
from everview.operators.aggregate import Aggregate, Call, Weigh
from everview.operators.distinct import Distinct
from everview.operators.functions import Function
from everview.operators.index import Direction, Index
from everview.operators.join import JoinStream
from everview.operators.linear import (
    Filter,
    FlatMap,
    Inspect,
    Map,
    Minus,
    Negate,
    NotNull,
    Plus,
    Project,
    Recode,
)
from everview.operators.pad import Pad
from everview.operators.semijoin import Semijoin
from everview.operators.top import Top
from everview.types import (
    ANY,
    BIGINT,
    ID,
    KINDS,
    SYMBOL,
    Array,
    Atom,
    Decimal,
    Field,
    Id,
    Schema,
    Struct,
    Symbol,
    Type,
)
from everview.zset import ZSet
from everview.zset.elements import identity

Row = tuple[Any, ...]
Entry = tuple[Any, int]  # a value or row, and its weight

DIGITS = decimal.Context(prec=100)


def evaluate(circuit: Circuit, inputs: Mapping[str, ZSet]) -> dict[str, ZSet]:
    """What every sink of a query circuit holds when its sources hold ``inputs``, rows as a view shows them.

    >>> circuit = Circuit()
    >>> orders = circuit.source("orders", "customer STRING, amount BIGINT NOT NULL")
    >>> orders.aggregate(["customer"], total=("sum", "amount")).sink("totals")
    >>> evaluate(circuit, {"orders": ZSet({("Ada", 5): 1, ("Ada", 1): 2, ("Bob", 7): 1})})
    {'totals': ZSet({('Ada', 7): 1, ('Bob', 7): 1})}
    """
    given = {at: inputs.get(name, ZSet()) for name, at in circuit.sources.items()}
    found = _streams(circuit, given)
    return {node.name: found[node.input] for node in circuit if isinstance(node, Sink)}


def _streams(circuit: Circuit, given: Mapping[int, ZSet]) -> dict[int, ZSet]:
    """What every stream holds, given those that come from outside or from an iteration before."""
    found = dict(given)
    inside: dict[int, Mapping[int, ZSet]] = {}
    for at in circuit.order():
        match circuit[at]:
            case Apply() as node if _weighs(circuit, at):
                pass  # a state for sums; an aggregate means what it does to the rows that were weighed
            case Apply() as node:
                found[at] = _applied(circuit, at, node, found)
            case Child() as node:
                inside[at] = _fixed_point(circuit, at, node, found)
            case Export(_, child, node):
                found[at] = inside[child][node]
            case Source() | Import() | Feedback() | Sink() as node:
                if at not in found and not isinstance(node, Sink):
                    raise _no_query(circuit, at)
    return found


def _fixed_point(parent: Circuit, at: int, child: Child, outer: Mapping[int, ZSet]) -> dict[int, ZSet]:
    """The streams of a child when another iteration would change none of its feedbacks, which begin empty."""
    imports = {i: outer[n.parent] for i, n in enumerate(child.circuit) if isinstance(n, Import)}
    loops = {i: _connected(n.input) for i, n in enumerate(child.circuit) if isinstance(n, Feedback)}
    fed = dict.fromkeys(loops, ZSet())
    for _ in range(child.limit):
        found = _streams(child.circuit, imports | fed)
        again = {i: found[source] for i, source in loops.items()}
        if again == fed:
            return found
        fed = again
    raise CircuitError(
        f"{parent.label(at)} has not come to an end after {child.limit} iterations",
        hint="let every iteration add only rows that were not there: end it with distinct",
    )


def _applied(circuit: Circuit, at: int, node: Apply, found: Mapping[int, ZSet]) -> ZSet:
    operator: Any = node.operator
    if isinstance(operator, Aggregate):
        weigh, source = _weighed(circuit, _connected(node.inputs[0]))
        return _aggregated(operator, weigh.group, found[source])
    inputs = [found[_connected(i)] for i in node.inputs]
    match operator:
        case Map() | Filter() | FlatMap():
            return _called(operator, circuit.functions[operator.function], inputs[0])
        case Project(_, fields, _) | Index(_, fields, _, _) | Pad(_, fields, _):
            return ZSet.of((_picked(row, fields), w) for row, w in inputs[0])
        case Recode() | Inspect():
            return inputs[0]
        case NotNull(_, field):
            return ZSet.of((row, w) for row, w in inputs[0] if row[field] is not None)
        case Negate():
            return ZSet.of((row, -w) for row, w in inputs[0])
        case Plus():
            return ZSet.of(entry for rows in inputs for entry in rows)
        case Minus():
            return ZSet.of([*inputs[0], *((row, -w) for row, w in inputs[1])])
        case Distinct():
            return ZSet.of((row, 1) for row, w in inputs[0] if w > 0)
        case JoinStream():
            return _joined(operator, *inputs)
        case Semijoin(left, _):
            return ZSet.of((row, w) for row, w in inputs[0] if inputs[1][row[: left.key]] > 0)
        case Top():
            return _first(operator, inputs[0])
        case _:
            raise _no_query(circuit, at)


def _weighs(circuit: Circuit, at: int) -> bool:
    """Whether a stream carries weighed entries: of rows, or of several kinds of rows added up."""
    node = circuit[at]
    operator: Any = node.operator if isinstance(node, Apply) else None
    if isinstance(operator, Index | Plus):
        assert isinstance(node, Apply)
        return all(_weighs(circuit, _connected(i)) for i in node.inputs)
    return isinstance(operator, Weigh)


def _weighed(circuit: Circuit, entries: int) -> tuple[Weigh, int]:
    """What turned all rows into entries, and the stream of those rows; it comes first where others are added."""
    node = circuit[entries]
    assert isinstance(node, Apply), "an aggregate reads weighed entries"
    operator: Any = node.operator
    first = _connected(node.inputs[0])
    return (operator, first) if isinstance(operator, Weigh) else _weighed(circuit, first)


def _connected(stream: int | None) -> int:
    assert stream is not None, "an ordered circuit is connected"
    return stream


def _no_query(circuit: Circuit, at: int) -> CircuitError:
    return CircuitError(
        f"{circuit.label(at)} is no part of a query over whole Z-sets",
        hint="evaluate the circuit as it was before `incrementalize`, without delays and traces",
    )


def _picked(row: Row, fields: Sequence[int | None]) -> Row:
    return tuple(None if f is None else row[f] for f in fields)


# -- joins, and groups


def _joined(join: JoinStream, left: ZSet, right: ZSet) -> ZSet:
    """Every pair of rows with equal keys, weights multiplied; NULL and NaN equal themselves."""
    partners = _grouped(right, range(join.right.key))
    return ZSet.of(
        (tuple((a, b)[side][field] for side, field in join.picks), v * w)
        for key, (_, rows) in _grouped(left, range(join.left.key)).items()
        for a, v in rows
        for b, w in partners.get(key, ((), []))[1]
    )


def _grouped(rows: ZSet, fields: Sequence[int]) -> dict[Hashable, tuple[Row, list[Entry]]]:
    """The rows by some of their fields: for each group its key, and its entries."""
    groups: dict[Hashable, tuple[Row, list[Entry]]] = {}
    for row, w in rows:
        key = _picked(row, fields)
        groups.setdefault(identity(key), (key, []))[1].append((row, w))
    return groups


# -- user functions, one row at a time: the definition of what they compute for many


def _called(operator: Map | Filter | FlatMap, function: Function, rows: ZSet) -> ZSet:
    schema = operator.source.schema
    match operator:
        case FlatMap(_, _, out):
            images = ((image, w) for row, w in rows for image in function.call(*_outside(schema, row, None)))
            return ZSet.of((_inside(out.fields, image), w) for image, w in images)
        case Filter(_, _, arguments):
            return ZSet.of((r, w) for r, w in rows if _image(function, schema, r, arguments)[0] is True)
        case Map(_, _, out, keep, arguments):
            made = out.fields[len(keep) :]
            return ZSet.of(
                (_picked(row, keep) + _inside(made, _image(function, schema, row, arguments)), w) for row, w in rows
            )


def _image(function: Function, schema: Schema, row: Row, arguments: Sequence[int] | None) -> Row:
    """What a function gives for one row; a vectorised one is given columns of length one."""
    given = _outside(schema, row, arguments)
    if function.shape == "rows":
        result = function.call(*given)
        return result if isinstance(result, tuple) else (result,)
    chosen = schema.fields if arguments is None else [schema.fields[a] for a in arguments]
    result = function.call(*(pa.array([value], f.type.arrow) for value, f in zip(given, chosen, strict=True)))
    return tuple(_only(column) for column in (result if isinstance(result, tuple) else (result,)))


def _only(column: Any) -> Any:
    """The one value of a column."""
    value = column if isinstance(column, pa.Scalar) else column[0]
    return value.as_py() if isinstance(value, pa.Scalar) else value


def _outside(schema: Schema, row: Row, arguments: Sequence[int] | None) -> Row:
    """The arguments of a function: symbols and IDs as the text and bytes that Arrow knows them by."""
    chosen = range(len(schema)) if arguments is None else arguments
    return tuple(_plain(schema.fields[a].type, row[a]) for a in chosen)


def _plain(of: Type, value: Any) -> Any:
    if of == ANY or isinstance(of, Atom):
        raise FunctionError(f"the oracle hands no {of} to a function", hint="leave the column out")
    if isinstance(value, Symbol):
        return value.name
    return value.raw if isinstance(value, Id) else value


def _inside(fields: Sequence[Field], image: Any) -> Row:
    """A function's result as a row of the declared types."""
    values = image if isinstance(image, tuple) else (image,)
    return tuple(_typed(f.type, value) for f, value in zip(fields, values, strict=True))


def _typed(of: Type, value: Any) -> Any:
    plain = pa.array([value], of.arrow)[0].as_py()
    if plain is None:
        return None
    return Symbol(plain) if of == SYMBOL else Id(plain) if of == ID else plain


# -- aggregates


def _aggregated(aggregate: Aggregate, group: Sequence[int], rows: ZSet) -> ZSet:
    """A row for every group whose weights sum to more than zero."""
    return ZSet.of(
        ((*key, *(_result(call, aggregate.source, entries) for call in aggregate.calls)), 1)
        for key, entries in _grouped(rows, group).values()
        if sum(w for _, w in entries) > 0
    )


def _result(call: Call, schema: Schema, rows: list[Entry]) -> Any:
    if not call.fields:
        return sum(w for _, w in rows)
    of = schema.fields[call.fields[0]].type
    values = _values(call, rows)
    if call.function in ("min", "max"):
        present = [value for (value,), w in values if w > 0]
        choose = min if call.function == "min" else max
        return choose(present, key=lambda value: _place(of, value), default=None)
    count = sum(w for _, w in values)
    if call.function == "count":
        return count
    if call.function not in ("sum", "avg"):
        raise CircuitError(f"the oracle knows no {call.function}", hint="it knows count, sum, avg, min and max")
    if count == 0:
        return None
    divisor = 1 if call.function == "sum" else count
    numbers = [(value, w) for (value,), w in values]
    result = call.result(schema, "result").type
    if isinstance(of, Decimal):
        assert isinstance(result, Decimal), "sums and averages of decimals are decimals"
        return _in_range(_decimal(_exact(numbers) / divisor, result), call, result)
    if result == BIGINT:
        return _in_range(int(_exact(numbers)), call, result)
    return _float(numbers, divisor)


def _values(call: Call, rows: list[Entry]) -> ZSet:
    """What a call is of: the values of its fields, none of them NULL; the different ones once, if it says so."""
    found = ((_picked(row, call.fields), w) for row, w in rows)
    values = ZSet.of((value, w) for value, w in found if None not in value)
    return ZSet.of((value, 1) for value, w in values if w > 0) if call.distinct else values


def _exact(values: Sequence[Entry]) -> Fraction:
    return sum((Fraction(value) * w for value, w in values), Fraction(0))


def _decimal(x: Fraction, of: Decimal) -> decimal.Decimal:
    """Rounded once, half away from zero."""
    scaled = x * 10**of.scale
    size = math.floor(abs(scaled) + Fraction(1, 2))
    return decimal.Decimal(size if scaled >= 0 else -size).scaleb(-of.scale, DIGITS)


def _float(values: Sequence[Entry], count: int) -> float:
    """The exact quotient rounded once. Infinities and NaN count when their weights do not cancel."""
    special = [value for value, _ in values if isinstance(value, float) and not math.isfinite(value)]
    if special:
        return math.copysign(1, count) * (special[0] if len(special) == 1 else math.nan)
    x = _exact(values) / count
    try:
        return x.numerator / x.denominator  # Python divides integers with one rounding, to nearest even
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _in_range(value: Any, call: Call, of: Type) -> Any:
    limit = 10 ** (of.precision - of.scale) if isinstance(of, Decimal) else 2**63
    if -limit <= value < limit and (of == BIGINT or value != -limit):
        return value
    raise WeightOverflow(f"{call.function} of a group left the range of {of}", hint="cast it to a wider type")


# -- order


def _first(top: Top, rows: ZSet) -> ZSet:
    """Of each group, the rows that take places ``skip`` to ``skip + limit``; weight w takes w places."""
    found: list[Entry] = []
    for _, entries in _grouped(rows, range(top.source.key)).values():
        place = 0
        for row, w in _in_order(top, [(row, w) for row, w in entries if w > 0]):
            inside = min(place + w, top.skip + top.limit) - max(place, top.skip)
            found.append((row, max(0, inside)))
            place += w
    return ZSet.of(found)


def _in_order(top: Top, entries: list[Entry]) -> list[Entry]:
    """By every field after the key in turn, each in its direction; sorting is stable, so backwards."""
    directions = dict(top.order)
    for at in reversed(range(top.source.key, len(top.source.schema))):
        of, direction = top.source.schema.fields[at].type, directions.get(at, Direction.ASC)
        descends = direction in (Direction.DESC, Direction.DESC_NULLS_FIRST)
        nulls_first = direction in (Direction.ASC, Direction.DESC_NULLS_FIRST)
        absent = [e for e in entries if e[0][at] is None]
        present = [e for e in entries if e[0][at] is not None]
        present.sort(key=lambda e, of=of, at=at: _place(of, e[0][at]), reverse=descends)
        entries = absent + present if nulls_first else present + absent
    return entries


def _place(of: Type, value: Any) -> Any:
    """A key that sorts the values of a type; NULL, inside a value, is first."""
    if value is None:
        return (0,)
    match of:
        case Array(element):
            return 1, tuple(_place(element, v) for v in value)
        case Struct(fields):
            return 1, tuple(_place(f.type, value[f.name]) for f in fields)
        case Atom():
            return 1, of.host.to_bytes(value)
        case _ if of == ANY:
            return 1, *_ranked(value)
        case _:
            return 1, _rank_of(value)[1]


def _ranked(value: Any) -> tuple[Any, ...]:
    """Values of different types are ordered by their kinds."""
    if isinstance(value, list | tuple):
        return KINDS["ARRAY"], tuple(_place(ANY, v) for v in value)
    return _rank_of(value)


def _rank_of(value: Any) -> tuple[int, Any]:
    match value:
        case bool():
            return KINDS["BOOLEAN"], value
        case int():
            return KINDS["INTEGER"], value
        case float():
            return KINDS["FLOAT"], (math.isnan(value), 0.0 if math.isnan(value) else value)
        case datetime():
            return KINDS["TIMESTAMP"], value
        case date():
            return KINDS["DATE"], value
        case decimal.Decimal():
            return KINDS["DECIMAL"], value
        case str():
            return KINDS["STRING"], value.encode()
        case bytes():
            return KINDS["BINARY"], value
        case Symbol():
            return KINDS["SYMBOL"], value.name.encode()
        case Id():
            return KINDS["ID"], value.raw
        case _:
            raise AssertionError(f"{value!r} has no order")
