"""From a checked graph to logical plans, one for each of its nodes, and to the streams of a circuit that compute them.

Relations are sets and nodes give sets: a join of sets is one, as is what is left of one; what may give a tuple twice,
a union or a projection, is made distinct. A cycle becomes a recursion, which has a least fixed point. NULL, where a
column may have it, is a value like any other. A predicate that only a provider knows is no part of any plan: plans
end there, and go on from what was found true, as if that were a relation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from everview.circuit.joined import wider
from everview.circuit.stream import Stream
from everview.errors import EverviewError, GraphError
from everview.frontends.graphspec.check import Graph
from everview.frontends.graphspec.model import (
    DiffSpec,
    EnumerableSpec,
    JoinSpec,
    Node,
    PointwiseSpec,
    ProjectSpec,
    RenameSpec,
    ScanSpec,
    UnionSpec,
)
from everview.lowering.lower import Lowering
from everview.plan import nodes as plan
from everview.plan.conditions import conjunction
from everview.plan.node import Plan, unique
from everview.plan.nullary import NULLARY, any_of
from everview.plan.references import free_references
from everview.plan.typing import call, cast
from everview.scalars.expressions import Column, Expression
from everview.types import ANY, Field, Schema

Judge = Callable[[PointwiseSpec, Stream], Stream]
Streams = dict[str, Stream]
Plans = dict[str, Plan]
Fields = dict[str, Field]
T = TypeVar("T")


def build(graph: Graph, relations: Mapping[str, Stream], judge: Judge) -> Streams:
    """A stream for each output, given one for each relation, a set with its columns in order.

    ``judge`` makes of a stream of candidates, a set, the stream of those for which a node's predicate is true.
    """
    if not relations:
        return {}
    streams = dict(relations)
    lowering = Lowering(next(iter(streams.values())).circuit, streams)

    def judged(node: PointwiseSpec, input_: Plan) -> Plan:
        candidates = lowering.of(_projected(input_, node.variables))
        true = lowering.of(input_).semijoin(judge(node, candidates), node.variables)
        name = unique([*streams, node.id])[-1]
        streams[name] = true
        return plan.Scan(name, true.schema)

    schemas = {name: stream.schema for name, stream in relations.items()}
    built = _plans(graph, schemas, judged, lowering.of)
    return {name: lowering.of(built[node]) for name, node in graph.outputs.items()}


def plans(graph: Graph, schemas: Mapping[str, Schema] | None = None) -> Plans:
    """A plan for each output of a graph without pointwise nodes; columns are of atoms, unless ``schemas`` say better.

    >>> from everview.frontends.graphspec import check, parse
    >>> spec = {
    ...     "relations": [{"name": "edge", "schema": ["a", "b"]}],
    ...     "nodes": [
    ...         {"id": "e", "op": "Scan", "rel": "edge"},
    ...         {"id": "j", "op": "Join", "inputs": ["u", "e"], "vo": ["a", "c", "b"],
    ...          "atoms": [{"vars": ["a", "c"]}, {"vars": ["c", "b"]}]},
    ...         {"id": "p", "op": "Project", "inputs": ["j"], "attrs": ["a", "b"]},
    ...         {"id": "u", "op": "Union", "inputs": ["e", "p"]},
    ...     ],
    ...     "outputs": [{"name": "path", "from": "u"}],
    ... }
    >>> print(plans(check(parse(spec)))["path"])
    Recursive u
      u =
        Union
          Scan edge
          Distinct
            Project a, b
              Multiway (v0, v1), (v1, v2) → v0, v1, v2, binding v0, v1, v2
                Reference u
                Scan edge
      Reference u
    """
    if graph.pointwise:
        raise GraphError(
            f'node "{graph.pointwise[0].id}" (Compute) asks a provider, which no plan does',
            hint="give plans of graphs without pointwise nodes",
        )
    given = {name: _of_atoms(relation.columns) for name, relation in graph.relations.items()} | dict(schemas or {})
    built = _plans(graph, given, _never, lambda _: None)
    return {name: built[node] for name, node in graph.outputs.items()}


def _of_atoms(columns: Sequence[str]) -> Schema:
    if not columns:
        return NULLARY
    return Schema(Field(name, ANY, nullable=False) for name in columns)


# -- nodes


def _plans(
    graph: Graph,
    schemas: Mapping[str, Schema],
    judged: Callable[[PointwiseSpec, Plan], Plan],
    visit: Callable[[Plan], object],
) -> Plans:
    """The plans of all nodes read outside of their cycle; ``visit`` gets each plan after the plans it reads."""
    built: Plans = {}
    known: dict[Plan, Plan] = {}
    for part in graph.order:
        if graph.is_cycle(part):
            made = _recursion(graph, part, built, known)
        else:
            node = graph.nodes[part[0]]
            made = {node.id: _guarded(node, lambda node=node: _outside(graph, node, built, schemas, judged))}
        for one, its in made.items():
            built[one] = _once(its, known)
            _guarded(graph.nodes[one], lambda one=one: visit(built[one]))
    return built


def _once(made: Plan, known: dict[Plan, Plan]) -> Plan:
    """The plan made first among equal plans, so that comparing plans never goes deep."""
    free_references(made)
    return known.setdefault(made, made)


def _outside(
    graph: Graph,
    node: Node,
    built: Mapping[str, Plan],
    schemas: Mapping[str, Schema],
    judged: Callable[[PointwiseSpec, Plan], Plan],
) -> Plan:
    """The plan of a node that stands in no cycle."""
    if isinstance(node, ScanSpec | EnumerableSpec):
        return _named(plan.Scan(node.rel, schemas[node.rel]), graph.variables[node.id] or NULLARY.names)
    if isinstance(node, PointwiseSpec):
        return judged(node, built[node.inputs[0]])
    return _plan(node, [built[source] for source in node.sources])


def _guarded(node: Node, act: Callable[[], T]) -> T:
    """Act on a node; an error, of types that do not fit perhaps, gets the name of the node."""
    try:
        return act()
    except EverviewError as error:
        if isinstance(error, GraphError):
            raise
        raise GraphError(f'node "{node.id}" ({node.op}): {error.message}', hint=error.hint) from error


def _plan(node: Node, inputs: Sequence[Plan]) -> Plan:
    match node:
        case JoinSpec():
            return _joined(node, inputs)
        case UnionSpec():
            return _united(inputs)
        case DiffSpec():
            return _without(inputs[0], inputs[1], node.key)
        case ProjectSpec():
            return _projected(inputs[0], node.attrs)
        case RenameSpec():
            return _named(inputs[0], [node.names.get(name, name) for name in inputs[0].schema.names])
        case ScanSpec() | EnumerableSpec() | PointwiseSpec():
            raise AssertionError("relations and verdicts are given")


def _joined(node: JoinSpec, inputs: Sequence[Plan]) -> Plan:
    """The join in the planner's order. An input without variables lets all tuples pass if it holds, and else none."""
    made = _bound_by_variables(node, [i for i, atom in zip(inputs, node.atoms, strict=True) if atom.vars])
    for input_ in (i for i, atom in zip(inputs, node.atoms, strict=True) if not atom.vars):
        made = input_ if made is None else plan.Join(made, input_, "semi")
    assert made is not None, "a join has an input"
    return made


def _bound_by_variables(node: JoinSpec, inputs: Sequence[Plan]) -> Plan | None:
    """The join of the inputs that have variables; None if there are none."""
    atoms = [atom for atom in node.atoms if atom.vars]
    if not inputs:
        return None
    if len(inputs) == 1 and len({*atoms[0].vars}) == len(node.vo) == len(atoms[0].vars):
        return _selected(_named(inputs[0], atoms[0].vars), node.vo)
    common: Fields = {}
    for input_, atom in zip(inputs, atoms, strict=True):
        for name, field in zip(atom.vars, input_.schema.fields, strict=True):
            common[name] = wider(common.get(name, field), field, f"columns of variable {name}")
    alike = tuple(_cast(i, [common[v] for v in atom.vars]) for i, atom in zip(inputs, atoms, strict=True))
    number = {name: place for place, name in enumerate(node.vo)}
    terms = tuple(tuple(number[name] for name in atom.vars) for atom in atoms)
    order = tuple(number.values())
    return plan.Multiway(alike, terms, order, tuple(node.vo), order, null_safe=True)


def _united(inputs: Sequence[Plan]) -> Plan:
    """The union of inputs, whose columns meet by name, in the widest of their types."""
    names = inputs[0].schema.names
    common = list(inputs[0].schema.fields)
    for other in inputs[1:]:
        pairs = zip(names, common, other.schema.fields, strict=True)
        common = [wider(a, b, f"columns {name} and {b.name}") for name, a, b in pairs]
    return plan.Distinct(plan.Union(tuple(_cast(_named(i, names), common) for i in inputs)))


def _without(left: Plan, right: Plan, key: Sequence[str]) -> Plan:
    """The tuples of the left whose key the right has not."""
    width = len(left.schema)
    tests = list[Expression]()
    for name in key:
        here, there = left.schema.index(name), right.schema.index(name)
        wider(left.schema.fields[here], right.schema.fields[there], f"columns {name} and {name}")
        tests.append(call("null_safe_equal", left.column(here), _after(right, there, width)))
    return plan.Join(left, right, "anti", conjunction(tests))


def _after(right: Plan, column: int, width: int) -> Column:
    """A column of the right side, as a column of both sides of a join."""
    field = right.schema.fields[column]
    return Column(width + column, field.name, field.type, field.nullable)


def _projected(input_: Plan, names: Sequence[str]) -> Plan:
    if not names:
        return any_of(input_)
    kept = _selected(input_, names)
    return kept if len(names) == len(input_.schema) else plan.Distinct(kept)


def _selected(input_: Plan, names: Sequence[str]) -> Plan:
    if tuple(names) == input_.schema.names:
        return input_
    return plan.Project(input_, tuple(input_.column(input_.schema.index(name)) for name in names), tuple(names))


def _named(input_: Plan, names: Sequence[str]) -> Plan:
    """The same columns under other names."""
    return input_ if tuple(names) == input_.schema.names else plan.Project(input_, input_.columns, tuple(names))


def _cast(input_: Plan, fields: Sequence[Field]) -> Plan:
    """The same columns in types that hold them."""
    if all(field.type == own for field, own in zip(fields, input_.schema.types, strict=True)):
        return input_
    values = tuple(cast(column, field.type) for column, field in zip(input_.columns, fields, strict=True))
    return plan.Project(input_, values, input_.schema.names)


def _never(node: PointwiseSpec, input_: Plan) -> Plan:
    raise AssertionError("no predicate is asked")


# -- cycles


def _recursion(graph: Graph, part: Sequence[str], outside: Mapping[str, Plan], known: dict[Plan, Plan]) -> Plans:
    """Plans of nodes that read each other, at their least fixed point.

    The recursion binds those nodes that are read before they are computed, and those that are read from outside.
    """
    schemas = _schemas(graph, part, outside)
    again: dict[str, None] = {}
    inner: Plans = {}

    def read(source: str) -> Plan:
        if source in outside:
            return outside[source]
        if source not in inner:
            again[source] = None
            return plan.Reference(source, schemas[source])
        return inner[source]

    for one in _ending_in_union(graph, part):
        node = graph.nodes[one]
        made = _guarded(node, lambda node=node: _plan(node, [read(source) for source in node.sources]))
        inner[one] = _once(made, known)
    shown = [one for one in part if _is_read(graph, one, part)]
    bindings = tuple((one, _bound(inner[one], schemas[one])) for one in dict.fromkeys([*again, *shown]))
    schema = dict(bindings)
    return {one: plan.Recursive(bindings, plan.Reference(one, schema[one].schema)) for one in shown}


def _ending_in_union(graph: Graph, part: Sequence[str]) -> list[str]:
    """The nodes of a cycle, each after its inputs where a cycle allows; the last is a union, if there is one.

    A node that is read before it is computed is bound, and for that made distinct, which a union is anyway.
    """
    unions = [one for one in part if isinstance(graph.nodes[one], UnionSpec)]
    first = next((one for one in unions if _is_read(graph, one, part)), (*unions, part[0])[0])
    inside, order, seen = {*part}, list[str](), {first}
    open_ = [(first, iter(graph.nodes[first].sources))]
    while open_:
        one, sources = open_[-1]
        after = next((s for s in sources if s in inside and s not in seen), None)
        if after is None:
            order.append(one)
            open_.pop()
        else:
            seen.add(after)
            open_.append((after, iter(graph.nodes[after].sources)))
    return order


def _is_read(graph: Graph, one: str, part: Sequence[str]) -> bool:
    readers = (node.id for node in graph.nodes.values() if one in node.sources)
    return one in graph.outputs.values() or any(reader not in part for reader in readers)


def _bound(made: Plan, schema: Schema) -> Plan:
    """The plan of a node as a recursion binds it: without its `Distinct`, which the recursion adds."""
    return _cast(made.input if isinstance(made, plan.Distinct) else made, schema.fields)


def _schemas(graph: Graph, part: Sequence[str], outside: Mapping[str, Plan]) -> dict[str, Schema]:
    """The schemas of the nodes of a cycle: the narrowest types for all values that enter the cycle."""
    known: dict[str, Fields] = {one: {} for one in part}
    for one in {source for inner in part for source in graph.nodes[inner].sources if source in outside}:
        known[one] = dict(zip(graph.variables[one] or NULLARY.names, outside[one].schema.fields, strict=True))
    changed = True
    while changed:
        changed = False
        for one in part:
            for name, field in _passed(graph, graph.nodes[one], known):
                old = known[one].get(name)
                new = field if old is None else wider(old, field, f'of node "{one}", the inputs of {name}')
                if old is None or (new.type, new.nullable) != (old.type, old.nullable):
                    known[one][name], changed = new, True
    for one in part:
        unknown = [name for name in graph.variables[one] if name not in known[one]]
        if unknown:
            raise GraphError(
                f'nothing says what values {", ".join(unknown)} of node "{one}" may have: the cycle '
                f"{', '.join(map(repr, part))} only gives them to itself",
                hint="a cycle needs an input from outside for every variable",
            )
    return {
        one: Schema(replace(known[one][name], name=name) for name in graph.variables[one])
        if graph.variables[one]
        else NULLARY
        for one in part
    }


def _passed(graph: Graph, node: Node, known: Mapping[str, Fields]) -> list[tuple[str, Field]]:
    """The variables of a node, with the fields of those inputs that are known."""
    match node:
        case JoinSpec():
            pairs = zip(node.inputs, node.atoms, strict=True)
            places = [
                (name, source, column)
                for source, atom in pairs
                for name, column in zip(atom.vars, graph.variables[source], strict=True)
            ]
        case RenameSpec():
            places = [(node.names.get(name, name), node.inputs[0], name) for name in graph.variables[node.inputs[0]]]
        case UnionSpec() | ProjectSpec():
            places = [(name, source, name) for source in node.inputs for name in graph.variables[node.id]]
        case ScanSpec() | EnumerableSpec() | DiffSpec() | PointwiseSpec():
            raise AssertionError("a cycle is positive")
    return [(name, known[source][column]) for name, source, column in places if column in known[source]]
