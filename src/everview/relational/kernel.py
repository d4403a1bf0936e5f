"""The kernel: named relations, graphs over them, and batches of changes that all graphs take in, or none.

A batch is normalised, made exact by what the relations hold, and given to every active graph; each asks its providers
first. Only when all have computed their outputs does anything count, so whatever fails leaves all as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import Any

from everview.blocks import Busy
from everview.circuit.circuit import Circuit
from everview.codes import atom_key
from everview.codes.order import PRECEDENCE
from everview.doors import doors
from everview.errors import GraphError, shown
from everview.frontends.graphspec.build import build
from everview.frontends.graphspec.check import Graph, check, declared
from everview.frontends.graphspec.model import (
    ColumnSpec,
    DeclaredSpec,
    EnumerableSpec,
    PointwiseSpec,
    check_name,
    parse,
)
from everview.frontends.graphspec.tuples import Order, Tuples, natural
from everview.relational.active import RELATION, Active
from everview.relational.delta import Delta
from everview.relational.predicates import Predicate, resolve
from everview.relational.providers import check_provider
from everview.relational.relation import KernelRelation, anonymous, same_shape, shapes
from everview.relational.ticking import SharedVerdict
from everview.types import unknown_name
from everview.types.atoms import HOST_ATOMS

Bootstrap = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Defined:
    """A graph that is defined, and may be activated."""

    graph: Graph
    providers: Mapping[str, Any]


@doors(GraphError)
class Kernel:
    """Relations and graphs over them, kept up to date batch by batch.

    The path ``A[a,b] ⋈ P[b] ⋈ B[b,c]``, of which those ``(a, c)`` are wanted that a predicate finds true:

    >>> spec = {
    ...     "relations": [
    ...         {"name": "A", "schema": ["a", "b"]}, {"name": "B", "schema": ["b", "c"]},
    ...         {"name": "P", "schema": ["b"]}, {"name": "Q", "schema": ["a", "c"]},
    ...     ],
    ...     "nodes": [
    ...         {"id": "scanA", "op": "Scan", "rel": "A"},
    ...         {"id": "scanB", "op": "Scan", "rel": "B"},
    ...         {"id": "scanP", "op": "Scan", "rel": "P"},
    ...         {"id": "join1", "op": "Join", "inputs": ["scanA", "scanP", "scanB"], "vo": ["a", "b", "c"],
    ...          "atoms": [{"rel": "A", "vars": ["a", "b"]}, {"rel": "P", "vars": ["b"]},
    ...                    {"rel": "B", "vars": ["b", "c"]}]},
    ...         {"id": "qFilter", "op": "Compute", "mode": "Pointwise", "rel": "Q", "inputs": ["join1"],
    ...          "tupleVars": ["a", "c"]},
    ...         {"id": "proj", "op": "Project", "inputs": ["qFilter"], "attrs": ["a", "c"]},
    ...     ],
    ...     "outputs": [{"name": "Res", "from": "proj"}],
    ... }
    >>> class Allowed:
    ...     def eval_many(self, candidates):
    ...         return {(a, c) for a, c in candidates if a == "a1"}
    >>> kernel = Kernel()
    >>> kernel.define_graph("g", spec, providers={"Q": Allowed()})
    >>> kernel.activate_graph("g")
    {'Res': Delta(adds=set(), removes=set())}
    >>> kernel.push_batch({"A": Delta({("a1", "b2")}), "B": Delta({("b2", "c3")}), "P": Delta({("b2",)})})
    {'Res': Delta(adds={('a1', 'c3')}, removes=set())}
    >>> kernel.push_batch({"P": Delta(removes={("b2",)}), "A": Delta(adds={("a2", "b2")})})
    {'Res': Delta(adds=set(), removes={('a1', 'c3')})}
    """

    def __init__(
        self,
        *,
        check_types: bool = False,
        types: Mapping[str, Predicate] | None = None,
        order: Sequence[str] | Callable[[Any], Any] | None = None,
    ) -> None:
        """``check_types`` holds every tuple to the predicates of its columns, of which ``types`` names more.

        ``order`` fixes another total order of atoms, in which results iterate: the names of types in their order, or
        a key for atoms.
        """
        self._epoch = 0
        self._check_types = check_types
        self._types = dict(types or {})
        self._order = _order(order)
        self._relations: dict[str, KernelRelation] = {}
        self._graphs: dict[str, Defined] = {}
        self._active: dict[str, Active] = {}
        self._lock = RLock()
        self._busy: Busy | None = None
        self._doing = ""
        self._step: Callable[[], None] | None = None  # what undoes or completes the act under way; may be repeated

    # -- defining

    def define_relation(self, name: str, schema: Sequence[Any], *, exact: bool = False) -> None:
        """Define a relation by its columns: names, ``{"name": …, "type": …}``, or pairs of a name and a predicate.

        With ``exact``, the host vouches that it adds only what is not there and removes only what is, and nothing of
        it is kept.
        """
        with self._alone("define_relation"):
            if name in self._relations:
                raise GraphError(f'there is a relation "{name}" already', hint="relations have different names")
            self._relations[name] = self._relation(name, schema, exact=exact)

    def define_graph(
        self, graph: str, spec: str | Mapping[str, Any], *, providers: Mapping[str, Any] | None = None
    ) -> None:
        """Define a graph by JSON, as text or object, with a provider for every computed relation."""
        with self._alone("define_graph"):
            check_name("a graph", graph)
            if graph in self._graphs:
                raise GraphError(f'there is a graph "{graph}" already', hint="drop_graph it first, or use another id")
            parsed = parse(spec)
            new = self._declared(parsed.relations)
            checked = check(parsed, shapes(self._relations | new))
            given = dict(providers or {})
            self._check_roles(checked)
            _check_providers(checked, given)
            _check_build(checked)
            self._relations = self._relations | new  # first: without its relations no graph is of use
            self._graphs[graph] = Defined(checked, given)

    def drop_graph(self, graph: str) -> None:
        """Forget a graph; its relations stay."""
        with self._alone("drop_graph"):
            self._known(graph)
            self._active.pop(graph, None)
            del self._graphs[graph]

    def drop_relation(self, name: str) -> None:
        """Forget a relation that no graph reads."""
        with self._alone("drop_relation"):
            self._has(name)
            users = [graph for graph, defined in self._graphs.items() if name in defined.graph.relations]
            if users:
                raise GraphError(f'relation "{name}" is part of graph {", ".join(users)}', hint="drop_graph it first")
            del self._relations[name]

    # -- activating

    def activate_graph(self, graph: str, bootstrap: Bootstrap | None = None) -> dict[str, Delta]:
        """Build a graph over what relations hold and providers enumerate; then it takes part in every batch.

        The ``bootstrap`` batch is a change of relations that comes with it: a `Delta`, or a set of tuples, for each.
        Returns the changes of all outputs, which for the new ones is all they hold.
        """
        with self._alone("activate_graph"):
            defined = self._known(graph)
            if graph in self._active:
                raise GraphError(f'graph "{graph}" is active already', hint="deactivate_graph it first")
            self._check_outputs(graph, defined.graph)
            deltas = self._deltas(bootstrap or {})
            for name, delta in deltas.items():
                if self._relations[name].exact and delta.removes:
                    raise GraphError(
                        f'the bootstrap batch removes tuples of relation "{name}", which takes exact deltas',
                        hint="give the tuples that it holds as adds",
                    )
            active = self._begun(defined, deltas)
            # To graphs that have been at work, tuples of a relation that keeps nothing are not new.
            kept = {name: delta for name, delta in deltas.items() if not self._relations[name].exact}

            def activated() -> None:
                for name in deltas.keys() - kept.keys():
                    self._relations[name].pushed = True
                self._active[graph] = active

            computed_deltas = self._apply(kept, {}, {**self._active, graph: active}, activated)
            return computed_deltas | {name: Delta(adds=active.contents(name)) for name in defined.graph.outputs}

    def deactivate_graph(self, graph: str) -> None:
        """Let go of the state of a graph, which stays defined."""
        with self._alone("deactivate_graph"):
            self._known(graph)
            if graph not in self._active:
                raise GraphError(f'graph "{graph}" is not active', hint="activate_graph it first")
            del self._active[graph]

    # -- batches

    def push_batch(self, batch: Mapping[str, Any] | None = None) -> dict[str, Delta]:
        """Change relations, all at once; returns the change of every output of every active graph."""
        with self._alone("push_batch"):
            deltas = self._deltas(batch or {})
            asked = {graph: active.ask(self._epoch) for graph, active in self._active.items()}
            epoch = self._epoch + 1

            def pushed() -> None:
                self._epoch = epoch

            return self._apply(deltas, asked, self._active, pushed)

    # -- reading

    @property
    def epoch(self) -> int:
        """How many batches have been committed."""
        with self._settled():
            return self._epoch

    @property
    def relations(self) -> dict[str, tuple[str, ...]]:
        """The columns of every relation."""
        with self._settled():
            return {name: relation.columns for name, relation in self._relations.items()}

    @property
    def graphs(self) -> dict[str, bool]:
        """Every graph, and whether it is active."""
        with self._settled():
            return {graph: graph in self._active for graph in self._graphs}

    def relation(self, name: str) -> Tuples:
        """The tuples of a relation, in order."""
        relation = self._has(name)
        if name in self._computed():
            raise GraphError(f'relation "{name}" is computed by a provider', hint="the kernel does not keep it")
        with self._settled():
            return relation.contents(self._order)

    def output(self, name: str) -> Tuples:
        """The tuples of an output, in order."""
        with self._settled():
            for active in self._active.values():
                if name in active.graph.outputs:
                    return active.contents(name)
        raise unknown_name("output", name, [n for active in self._active.values() for n in active.graph.outputs])

    def explain(self, graph: str) -> str:
        """The nodes of a graph with their variables, and if it is active, the circuit that they became."""
        checked = self._known(graph).graph
        lines = [_line(checked, part) for part in checked.order]
        lines += [f"output {name}: {node}" for name, node in checked.outputs.items()]
        if graph in self._active:
            lines += ["", str(self._active[graph].run.program.circuit)]
        return "\n".join(lines)

    def vacuum(self) -> None:
        """Let go of values that no tuple has any more."""
        with self._alone("vacuum"):
            for relation in self._relations.values():
                relation.vacuum()
            for active in self._active.values():
                active.run.vacuum()

    # -- inside

    @contextmanager
    def _alone(self, what: str) -> Generator[None]:
        """A block for one act at a time: a provider that is being asked cannot begin another."""
        with self._lock:
            if self._at_work:
                raise GraphError(f"{what} during {self._doing}", hint="structure and data change between batches")
            self._recover()
            busy = Busy()
            with busy:
                self._busy, self._doing = busy, what
                yield

    @property
    def _at_work(self) -> bool:
        return self._busy is not None and self._busy.alive

    @contextmanager
    def _settled(self) -> Generator[None]:
        """Within this nothing is half done, unless it is a provider that asks."""
        with self._lock:
            if not self._at_work:
                self._recover()
            yield

    def _recover(self) -> None:
        """Undo or complete the act under way, which an exception may have cut short. Does nothing if there is none."""
        if self._step is not None:
            self._step()
            self._step = None

    def _relation(self, name: str, schema: Any, *, exact: bool = False) -> KernelRelation:
        check_name("a relation", name)
        what = f'relation "{name}"'
        if isinstance(schema, str) or not isinstance(schema, Iterable):
            raise GraphError(f"{what}: {shown(schema)} is no schema", hint='give columns, such as ["a", "b"]')
        columns = [self._column(what, column) for column in schema]
        return KernelRelation(name, [c for c, _ in columns], [type_ for _, type_ in columns], exact=exact)

    def _column(self, what: str, column: Any) -> tuple[str, tuple[str, Predicate]]:
        match column:
            case str():
                name, type_ = column, "any"
            case ColumnSpec():
                name, type_ = column.name, column.type
            case {"name": str(name), **rest} if rest.keys() <= {"type"}:
                type_ = rest.get("type", "any")
            case (str(name), type_):
                pass
            case _:
                raise GraphError(f"{what}: {shown(column)} is no column", hint='write "a", or {"name": "a", "type": …}')
        check_name(f"a column of {what}", name)
        if isinstance(type_, str):
            return name, (type_, resolve(f'{what}, column "{name}"', type_, self._types, HOST_ATOMS))
        if not callable(type_):
            raise GraphError(f'{what}, column "{name}": {shown(type_)} is no type', hint="give a name, or a function")
        return name, (getattr(type_, "__name__", repr(type_)), type_)

    def _declared(self, parts: Sequence[DeclaredSpec]) -> dict[str, KernelRelation]:
        """The relations new with a graph; a relation already there must be declared with its own columns and types."""
        new: dict[str, KernelRelation] = {}
        for part in parts:
            shape, known = declared(part), self._relations.get(part.name)
            if known is None:
                new[part.name] = self._relation(part.name, part.columns)
            elif not same_shape(known, shape):
                raise GraphError(
                    f'relation "{part.name}" has columns {", ".join(known.columns)}, and the graph declares others',
                    hint="declare it as it is, leave it out, or name it otherwise",
                )
        return new

    def _check_roles(self, graph: Graph) -> None:
        computed = _computed(graph)
        for name in sorted(computed & self._relations.keys() - self._computed()):
            if self._relations[name].pushed or len(self._relations[name].whole()):
                raise GraphError(
                    f'relation "{name}" has been given tuples, and the graph computes it', hint="name it otherwise"
                )
        for name, defined in self._graphs.items():
            other = defined.graph
            clash = {*graph.scanned} & _computed(other) | {*other.scanned} & computed
            if clash:
                raise GraphError(
                    f'relation "{min(clash)}" is computed in one graph and scanned in the other, "{name}"',
                    hint="name it otherwise in one of them",
                )

    def _check_outputs(self, graph: str, new: Graph) -> None:
        for other, active in self._active.items():
            taken = new.outputs.keys() & active.graph.outputs.keys()
            if taken:
                raise GraphError(
                    f'graph "{graph}" has output {min(taken)!r}, and so has "{other}", which is active',
                    hint="outputs of active graphs have different names",
                )

    def _known(self, graph: str) -> Defined:
        if not isinstance(graph, str) or graph not in self._graphs:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise unknown_name("graph", str(graph), self._graphs)
        return self._graphs[graph]

    def _has(self, name: str) -> KernelRelation:
        if not isinstance(name, str) or name not in self._relations:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise unknown_name("relation", str(name), self._relations)
        return self._relations[name]

    def _computed(self) -> set[str]:
        return {name for defined in self._graphs.values() for name in _computed(defined.graph)}

    def _deltas(self, batch: Any) -> dict[str, Delta]:
        """The deltas of a batch by relation, checked and normalised; relations without changes are left out."""
        if not isinstance(batch, Mapping):
            raise GraphError(f"a batch of {type(batch).__name__}", hint='give {"A": Delta(adds=…, removes=…)}')
        computed, deltas = self._computed(), dict[str, Delta]()
        for name, given in batch.items():
            relation = self._has(name)
            if name in computed:
                raise GraphError(f'relation "{name}" is computed by a provider', hint="its provider tells its changes")
            deltas[name] = relation.delta(given, check_types=self._check_types)
        return {name: delta for name, delta in deltas.items() if delta}

    def _start(self, name: str, deltas: Mapping[str, Delta]) -> Any:
        """The first change of a relation for a graph that begins: its tuples, or the bootstrap's if it keeps none."""
        relation = self._relations[name]
        if not relation.exact:
            return relation.whole()
        if name in deltas:
            return [(row, 1) for row in deltas[name].adds]
        if relation.pushed:
            raise GraphError(
                f'relation "{name}" takes exact deltas and keeps nothing, so nobody knows what it holds',
                hint="give its tuples in the bootstrap batch",
            )
        return []

    def _begun(self, defined: Defined, deltas: Mapping[str, Delta]) -> Active:
        """Start a graph with the tuples of its relations and providers; nobody else has seen it yet."""
        graph = defined.graph
        active = Active(graph, self._relations, defined.providers, self._order, check_types=self._check_types)
        whole = {f"{RELATION} {name}": self._start(name, deltas) for name in graph.scanned}
        verdict = SharedVerdict()
        active.tick(active.first() | {name: rows for name, rows in whole.items() if len(rows)}, verdict)
        verdict.counts = True
        active.end(verdict)
        return active

    def _apply(
        self,
        deltas: Mapping[str, Delta],
        asked: Mapping[str, Mapping[str, Any]],
        graphs: Mapping[str, Active],
        done: Callable[[], None],
    ) -> dict[str, Delta]:
        """Let relations and graphs take in changes: all of them, or none. What is ``done`` then may be repeated."""
        found: dict[str, Delta] = {}
        verdict = SharedVerdict()
        relations = {name: self._relations[name] for name in deltas}
        self._step = partial(_end, verdict, [*relations.values(), *graphs.values()], done)
        try:
            exact = {name: relation.apply(deltas[name], verdict) for name, relation in relations.items()}
            for graph, active in graphs.items():
                changed = {name: rows for name, rows in exact.items() if name in active.scanned and len(rows)}
                changes = {f"{RELATION} {name}": rows for name, rows in changed.items()}
                found |= active.tick({**asked.get(graph, {}), **changes}, verdict)
            verdict.counts = True
        finally:
            self._recover()
        return found


def _end(verdict: SharedVerdict, parts: Sequence[KernelRelation | Active], done: Callable[[], None]) -> None:
    """Let what relations and graphs have taken in count, or undo it."""
    for part in parts:
        part.end(verdict)
    if verdict.counts:
        done()


def _computed(graph: Graph) -> set[str]:
    return {*graph.enumerated, *(node.rel for node in graph.pointwise)}


def _check_providers(graph: Graph, providers: Mapping[str, Any]) -> None:
    needed: dict[str, tuple[str, str]] = {}
    for node in graph.nodes.values():
        if isinstance(node, EnumerableSpec):
            needed[node.rel] = node.id, "delta_since"
        elif isinstance(node, PointwiseSpec):
            needed[node.rel] = node.id, "eval_many"
    for name in providers:
        if name not in graph.computed:
            hint = unknown_name("", str(name), graph.computed).hint
            raise GraphError(f'a provider of "{name}" is given, which no node asks', hint=hint)
    for name, (node, call) in needed.items():
        check_provider(f'node "{node}" (Compute), relation "{name}",', providers.get(name), call)


def _check_build(graph: Graph) -> None:
    """Build a graph once when it is defined, to show its mistakes before activation."""
    circuit = Circuit()
    read = (*graph.scanned, *graph.enumerated)
    streams = {name: circuit.source(name, anonymous(len(graph.relations[name].columns))) for name in read}
    build(graph, streams, lambda _, candidates: candidates)


def _line(graph: Graph, part: Sequence[str]) -> str:
    nodes = [graph.nodes[one] for one in part]
    said = [
        f"{node.id} {node.op}({', '.join(node.sources or [getattr(node, 'rel', '')])}) "
        f"→ [{', '.join(graph.variables[node.id])}]"
        for node in nodes
    ]
    return said[0] if not graph.is_cycle(part) else "\n".join(["to their fixed point:", *(f"  {one}" for one in said)])


def _order(given: Sequence[str] | Callable[[Any], Any] | None) -> Order:
    """The order of tuples by an order of atoms; ties are broken by the natural order."""
    if given is None:
        return natural
    if callable(given):
        return lambda row: (tuple(map(given, row)), natural(row))
    if isinstance(given, str):
        raise GraphError(f"{shown(given)} is no order of types", hint=f"name them in a list: {', '.join(PRECEDENCE)}")
    ranks = tuple(str(name).upper() for name in given)
    atom_key(0, ranks)  # refuses what is no order of types
    return lambda row: tuple(atom_key(value, ranks) for value in row)
