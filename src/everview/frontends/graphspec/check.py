"""What a graph must be to mean anything: every name known and once, every variable bound, no negation of itself.

A checked graph has its nodes in an order in which each comes after what it reads. Nodes that read each other come
together, as a cycle: one of joins, unions, projections and renamings is positive, and has a least fixed point. A
cycle through `Diff`, or through a predicate that only a provider knows, is refused.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from everview.errors import GraphError
from everview.frontends.cycles import components
from everview.frontends.graphspec.model import (
    ColumnSpec,
    DeclaredSpec,
    DiffSpec,
    EnumerableSpec,
    GraphSpec,
    JoinSpec,
    Node,
    PointwiseSpec,
    ProjectSpec,
    RenameSpec,
    ScanSpec,
    UnionSpec,
)
from everview.types import unknown_name

WIDEST = 255  # columns: the canonical encoding of a tuple has one byte for their number
Variables = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelationShape:
    """A relation as a graph sees it: its columns, and the names of the predicates that their values satisfy."""

    name: str
    columns: Variables
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph that has been checked, without the nodes that no output depends on."""

    relations: Mapping[str, RelationShape]  # those that its nodes read
    nodes: Mapping[str, Node]
    variables: Mapping[str, Variables]  # of each node's tuples
    order: tuple[tuple[str, ...], ...]  # nodes in an order to compute them; more than one read each other
    outputs: Mapping[str, str]  # name → node
    computed: frozenset[str]  # relations that have providers, also those that no output depends on

    @property
    def scanned(self) -> tuple[str, ...]:
        return _relations(self.nodes.values(), ScanSpec)

    @property
    def enumerated(self) -> tuple[str, ...]:
        return _relations(self.nodes.values(), EnumerableSpec)

    @property
    def pointwise(self) -> tuple[PointwiseSpec, ...]:
        return tuple(node for node in self.nodes.values() if isinstance(node, PointwiseSpec))

    def is_cycle(self, part: Sequence[str]) -> bool:
        """Do nodes that are computed together read each other?"""
        return len(part) > 1 or part[0] in self.nodes[part[0]].sources


def _relations(nodes: Iterable[Node], kind: type[ScanSpec] | type[EnumerableSpec]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node.rel for node in nodes if isinstance(node, kind)))


def declared(part: DeclaredSpec) -> RelationShape:
    """A relation of a graph."""
    names = tuple(column.name if isinstance(column, ColumnSpec) else column for column in part.columns)
    types = tuple(column.type if isinstance(column, ColumnSpec) else "any" for column in part.columns)
    check_columns(f'relation "{part.name}"', names)
    return RelationShape(part.name, names, types)


def check_columns(what: str, names: Sequence[str]) -> None:
    """Refuse columns that no relation can have."""
    if len(names) > WIDEST:
        raise GraphError(f"{what} has {len(names)} columns", hint=f"at most {WIDEST} are possible: split it")
    _once(what, "column", names)


def check(spec: GraphSpec, known: Mapping[str, RelationShape] | None = None) -> Graph:
    """The graph of a spec, over its own relations and others that are known; refused if it is ill-formed."""
    _once("the graph", "relation", [part.name for part in spec.relations])
    _once("the graph", "node", [node.id for node in spec.nodes])
    _once("the graph", "output", [output.name for output in spec.outputs])
    relations = dict(known or {}) | {part.name: declared(part) for part in spec.relations}
    nodes = {node.id: node for node in spec.nodes}
    for node in spec.nodes:
        _check_names(node, nodes, relations)
    _check_roles(spec.nodes)
    outputs = _outputs(spec, nodes)
    order = tuple(components({name: node.sources for name, node in nodes.items()}))
    for part in order:
        _check_cycle(part, nodes)
    variables: dict[str, Variables] = {}
    for part in order:
        _find_variables(part, nodes, relations, variables)
        for one in part:
            _check_node(nodes[one], nodes, variables, relations)
    needed = _needed(nodes, outputs.values())
    return Graph(
        _named(relations, (nodes[one] for one in needed)),
        {one: node for one, node in nodes.items() if one in needed},
        variables,
        tuple(part for part in order if part[0] in needed),
        outputs,
        frozenset(node.rel for node in spec.nodes if isinstance(node, EnumerableSpec | PointwiseSpec)),
    )


def _named(relations: Mapping[str, RelationShape], nodes: Iterable[Node]) -> dict[str, RelationShape]:
    names = {node.rel for node in nodes if isinstance(node, ScanSpec | EnumerableSpec | PointwiseSpec)}
    return {name: relation for name, relation in relations.items() if name in names}


def _once(what: str, kind: str, names: Sequence[str]) -> None:
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise GraphError(f"{what} has {kind} {', '.join(map(repr, twice))} more than once", hint="names are unique")


def _label(node: Node) -> str:
    return f'node "{node.id}" ({node.op})'


# -- names


def _check_names(node: Node, nodes: Mapping[str, Node], relations: Mapping[str, RelationShape]) -> None:
    for source in node.sources:
        if source not in nodes:
            hint = unknown_name("", source, nodes).hint
            raise GraphError(f'{_label(node)} reads node "{source}", which does not exist', hint=hint)
    if isinstance(node, ScanSpec | EnumerableSpec | PointwiseSpec):
        _check_relation(node, node.rel, relations)
    if isinstance(node, JoinSpec):
        _check_atoms(node, nodes, relations)


def _check_relation(node: Node, name: str, relations: Mapping[str, RelationShape]) -> None:
    if name not in relations:
        hint = unknown_name("", name, relations).hint
        raise GraphError(f'{_label(node)} names relation "{name}", which does not exist', hint=hint)


def _check_atoms(node: JoinSpec, nodes: Mapping[str, Node], relations: Mapping[str, RelationShape]) -> None:
    if len(node.atoms) != len(node.inputs):
        counts = f"{len(node.atoms)} atoms for {len(node.inputs)} inputs"
        raise GraphError(f"{_label(node)} has {counts}", hint="the atoms say the variables of the inputs, in order")
    for source, atom in zip(node.inputs, node.atoms, strict=True):
        read = nodes[source]
        if atom.rel is None or atom.rel == source:
            continue
        _check_relation(node, atom.rel, relations)
        if isinstance(read, ScanSpec | EnumerableSpec) and read.rel != atom.rel:
            raise GraphError(
                f'{_label(node)} has an atom of "{atom.rel}" where its input "{source}" is of "{read.rel}"',
                hint="the atoms stand in the order of the inputs",
            )


def _check_roles(nodes: Sequence[Node]) -> None:
    """Refuse a relation with two roles: given by the host, listed by a provider, or judged by one."""
    roles: dict[str, Node] = {}
    for node in nodes:
        if not isinstance(node, ScanSpec | EnumerableSpec | PointwiseSpec):
            continue
        first = roles.setdefault(node.rel, node)
        if type(first) is not type(node):
            raise GraphError(
                f'{_label(node)} and {_label(first)} take relation "{node.rel}" in different ways',
                hint="a relation is scanned, or enumerated by a provider, or pointwise; give them different names",
            )


def _outputs(spec: GraphSpec, nodes: Mapping[str, Node]) -> dict[str, str]:
    if not spec.outputs:
        raise GraphError("the graph has no outputs", hint='add {"name": …, "from": the id of a node}')
    for output in spec.outputs:
        if output.node not in nodes:
            hint = unknown_name("", output.node, nodes).hint
            raise GraphError(f'output "{output.name}" is of node "{output.node}", which does not exist', hint=hint)
    return {output.name: output.node for output in spec.outputs}


def _needed(nodes: Mapping[str, Node], outputs: Iterable[str]) -> set[str]:
    needed, waiting = set[str](), list(outputs)
    while waiting:
        one = waiting.pop()
        if one not in needed:
            needed.add(one)
            waiting += nodes[one].sources
    return needed


# -- order and cycles


def _check_cycle(part: Sequence[str], nodes: Mapping[str, Node]) -> None:
    for one in part:
        if isinstance(nodes[one], DiffSpec | PointwiseSpec) and (path := _cycle(one, part, nodes)):
            what = "negates itself" if isinstance(nodes[one], DiffSpec) else "depends on its own truth"
            raise GraphError(
                f"{_label(nodes[one])} {what}, in the cycle {' → '.join(path)}",
                hint="a cycle may go through Join, Union, Project and Rename only: then it has a least fixed point",
            )


def _cycle(one: str, part: Sequence[str], nodes: Mapping[str, Node]) -> list[str]:
    """The shortest cycle through a node, in the direction of the data; empty if there is none."""
    came: dict[str, str] = {}
    waiting = deque([one])
    while waiting:
        node = waiting.popleft()
        for other in nodes[node].sources:
            if other == one:
                path = [one, node]
                while path[-1] != one:
                    path.append(came[path[-1]])
                return path
            if other in part and other not in came:
                came[other] = node
                waiting.append(other)
    return []


# -- variables


def _find_variables(
    part: Sequence[str],
    nodes: Mapping[str, Node],
    relations: Mapping[str, RelationShape],
    variables: dict[str, Variables],
) -> None:
    """Find the variables of each node of a part; in a cycle, those of a node may depend on others."""
    left = list(part)
    while left:
        known = {one: names for one in left if (names := _given(nodes[one], relations, variables)) is not None}
        if not known:
            raise GraphError(
                f"nothing says which variables nodes {', '.join(map(repr, left))} have: they only read each other",
                hint="a cycle needs an input from outside",
            )
        variables |= known
        left = [one for one in left if one not in known]


def _given(node: Node, relations: Mapping[str, RelationShape], variables: Mapping[str, Variables]) -> Variables | None:
    """The variables of a node's tuples; None where they depend on nodes that are not known yet."""
    match node:
        case ScanSpec() | EnumerableSpec():
            return relations[node.rel].columns
        case JoinSpec():
            return tuple(node.vo)
        case ProjectSpec():
            return tuple(node.attrs)
        case UnionSpec():
            return next((variables[source] for source in node.inputs if source in variables), None)
        case DiffSpec() | PointwiseSpec():
            return variables.get(node.inputs[0])
        case RenameSpec():
            names = variables.get(node.inputs[0])
            return None if names is None else tuple(node.names.get(name, name) for name in names)


def _check_node(
    node: Node, nodes: Mapping[str, Node], variables: Mapping[str, Variables], relations: Mapping[str, RelationShape]
) -> None:
    what = _label(node)
    inputs = [(source, variables[source]) for source in node.sources]
    match node:
        case ScanSpec() | EnumerableSpec():
            return
        case JoinSpec():
            _check_join(node, inputs)
        case UnionSpec():
            _check_union(node, inputs)
        case DiffSpec():
            _once(what, "key variable", node.key)
            for source, names in inputs:
                _among(node, "key", node.key, source, names)
        case ProjectSpec():
            _once(what, "attribute", node.attrs)
            _among(node, "attrs", node.attrs, *inputs[0])
        case RenameSpec():
            _among(node, "names", list(node.names), *inputs[0])
            _once(what, "variable", variables[node.id])
        case PointwiseSpec():
            _check_pointwise(node, inputs[0], relations[node.rel])
    if len(variables[node.id]) > WIDEST:
        raise GraphError(f"{what} has {len(variables[node.id])} variables", hint=f"at most {WIDEST} are possible")


def _check_join(node: JoinSpec, inputs: Sequence[tuple[str, Variables]]) -> None:
    what = _label(node)
    for (source, names), atom in zip(inputs, node.atoms, strict=True):
        if len(atom.vars) != len(names):
            raise GraphError(
                f'{what} has an atom of {len(atom.vars)} variables for its input "{source}", which has {len(names)}',
                hint=f"name one for each of {', '.join(names)}" if names else "its atom has no variables",
            )
    _once(f"{what}: vo", "variable", node.vo)
    bound = dict.fromkeys(name for atom in node.atoms for name in atom.vars)
    missing = [name for name in bound if name not in node.vo]
    if missing:
        raise GraphError(
            f"{what}: vo does not have {', '.join(missing)}", hint=f"it orders all variables: {', '.join(bound)}"
        )
    unbound = [name for name in node.vo if name not in bound]
    if unbound:
        raise GraphError(f"{what}: no atom binds {', '.join(unbound)} of vo", hint=f"the atoms have {', '.join(bound)}")


def _check_union(node: UnionSpec, inputs: Sequence[tuple[str, Variables]]) -> None:
    first, wanted = inputs[0]
    for source, names in inputs[1:]:
        if names != wanted:
            raise GraphError(
                f'{_label(node)}: inputs "{first}" [{", ".join(wanted)}] and "{source}" [{", ".join(names)}] differ',
                hint="Project or Rename one, so that both have the same variables in the same order",
            )


def _check_pointwise(node: PointwiseSpec, parent: tuple[str, Variables], relation: RelationShape) -> None:
    source, names = parent
    _once(_label(node), "tuple variable", node.variables)
    unbound = [name for name in node.variables if name not in names]
    if unbound:
        raise GraphError(
            f'{_label(node)} comes before {", ".join(unbound)} of its tupleVars: its input "{source}" has '
            f"{', '.join(names)}",
            hint="place it after the nodes that bind all of its variables",
        )
    if len(node.variables) != len(relation.columns):
        counts = f"{len(node.variables)} tupleVars for the {len(relation.columns)} columns of {relation.name!r}"
        raise GraphError(f"{_label(node)} has {counts}", hint=f"one for each of {', '.join(relation.columns)}")


def _among(node: Node, part: str, wanted: Sequence[str], source: str, names: Variables) -> None:
    missing = [name for name in wanted if name not in names]
    if missing:
        raise GraphError(
            f'{_label(node)}: {part} has {", ".join(missing)}, which its input "{source}" has not',
            hint=f"it has {', '.join(names)}",
        )
