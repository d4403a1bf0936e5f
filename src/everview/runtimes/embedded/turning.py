"""The plan of a turn: what going on with other definitions keeps, computes and drops, and how many rows that reads.

It is found out from a program and from what a stored state says of itself, without reading a row. Traces are known by
their fingerprints: a name that both have is kept. The others are computed from what is held, by `hydrate`; where
nothing is held, the plan says which node needs it, and why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from everview.circuit.blame import views_behind
from everview.circuit.fingerprints import fingerprints as fingerprints_of
from everview.circuit.fingerprints import node_text
from everview.circuit.nodes import Apply, Source, inputs_of, reads_of
from everview.circuit.program import Program
from everview.errors import DefinitionError
from everview.operators.linear import Project
from everview.operators.operator import Layout
from everview.plan.timed import tells_time
from everview.runtimes.embedded.durable import contents, fingerprints
from everview.runtimes.embedded.hydrate import HydrationPlan, hydration, new_nodes
from everview.runtimes.embedded.reshape import Refusal, Reshape
from everview.runtimes.tables import TOMBSTONES, Table
from everview.traces.store import Manifest
from everview.types import Schema

RECOMPUTED: Final = "recomputed("  # what the names of sources begin with that have the rows of recomputed views
Said = Mapping[str, Mapping[str, str] | None]  # the views or tables of a state: the trace and the columns of each


@dataclass(frozen=True)
class TurnPlan:
    """The difference between a stored state and a program, and what it takes to go from one to the other."""

    manifest: Manifest
    program: Program
    tables: Mapping[str, Table]
    fed: frozenset[str]  # the sources that the state has taken rows from

    @cached_property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        if self.manifest.epoch == 0:
            return False
        named = "views" in self.manifest.meta and self.said("views") != contents(self.program)["views"]
        return named or self.manifest.plan.plan != fingerprints(self.program).plan

    @cached_property
    def kept(self) -> frozenset[str]:
        """The names of the traces that mean the same in both."""
        return fingerprints(self.program).kept_from(self.manifest.plan)

    @cached_property
    def moved(self) -> dict[str, str]:
        """The stored traces that hold the same under other names, by the new names: their sources have other columns.

        What reads only columns that have stayed is what it was. A trace inside a loop goes with all others there.
        """
        stored = self.manifest.plan.traces
        moved = {
            new: old
            for new, old in names_over(self.program, dict(self._texts())).items()
            if new not in self.kept and stored.get(old) == self.program.fingerprint[new]
        }
        for path, inner in self.program.nested():
            if path and not all(name in self.kept or name in moved for name in inner.names.values()):
                moved = {new: old for new, old in moved.items() if new not in inner.names.values()}
        return moved

    def _texts(self) -> Iterator[tuple[int, str]]:
        """The texts of sources and of projections of them, as they were with the columns that are stored."""
        circuit = self.program.circuit
        for each in self.reshapes:
            source, before = circuit.sources[each.name], self._columns(each)
            if not each.keeps_key or before is None:
                continue  # rows may be on other shards than before
            yield source, node_text(Source(each.name, before))
            for node_id, node in enumerate(circuit):
                if isinstance(node, Apply) and node.inputs == (source,) and isinstance(node.operator, Project):
                    was = _over(node.operator, before)
                    if was is not None:
                        yield node_id, node_text(replace(node, operator=was))

    def _columns(self, reshape: Reshape) -> Schema | None:
        """The stored columns of a source, in their own order; a table has them with its key first."""
        said = self.manifest.meta.get("sources", {}).get(reshape.name)
        return reshape.before if said is None else Schema.parse(said)

    @cached_property
    def held(self) -> frozenset[str]:
        """The names of the traces that need not be computed."""
        return self.kept | self.moved.keys()

    @cached_property
    def computed(self) -> tuple[str, ...]:
        """The names of the traces that are new."""
        return tuple(name for name in self.program.fingerprint if name not in self.held)

    @cached_property
    def dropped(self) -> tuple[str, ...]:
        """The names of the traces that the program has no more."""
        gone = self.kept | frozenset(self.moved.values())
        return tuple(name for name in self.manifest.plan.traces if name not in gone)

    @cached_property
    def rows(self) -> Counter[str]:
        """The rows in the slices of each stored trace."""
        rows = Counter[str]()
        for (name, _), entries in self.manifest.slices.items():
            rows[name] += sum(entry.ref.rows for entry in entries)
        return rows

    @cached_property
    def read(self) -> dict[str, int]:
        """The rows that are read of each trace to compute the new ones."""
        read = {self.moved.get(name, name) for name in self.hydration.traces}
        names = {*read, *(each.trace for each in self.reshapes)}
        return {name: self.rows[name] for name in sorted(names)}

    @cached_property
    def hydration(self) -> HydrationPlan:
        """The computation of the new traces."""
        return hydration(self.program, self.held)

    @cached_property
    def reshapes(self) -> tuple[Reshape, ...]:
        """The tables that have other columns than they are stored with."""
        circuit, now = self.program.circuit, contents(self.program)["tables"]
        return tuple(
            Reshape(
                name,
                said["trace"],
                Schema.parse(said["schema"]),
                circuit.layout(circuit.sources[name]).schema,
                self.tables[name.removesuffix(TOMBSTONES)].key,
            )
            for name, said in self.said("tables").items()
            if said is not None and now.get(name) is not None and said != now[name]
        )

    def said(self, what: str) -> Said:
        """The views or tables of the stored state."""
        return self.manifest.meta.get(what, {})

    @cached_property
    def views(self) -> dict[str, str]:
        """The fate of each view: kept, computed, dropped, or renamed from another."""
        old, new = self.said("views"), self._views
        fates = {name: self._fate(name, said) for name, said in new.items()}
        renamed = set(self.renamed.values())
        return fates | {name: "dropped" for name in old if name not in new and name not in renamed}

    @cached_property
    def _views(self) -> Said:
        """The views of the program, with the names that their traces have in the stored state, if they are there."""
        views: Said = contents(self.program)["views"]
        return {
            name: said if said is None else {**said, "trace": self.moved.get(said["trace"], said["trace"])}
            for name, said in views.items()
        }

    @cached_property
    def renamed(self) -> dict[str, str]:
        """By new view, the view that is gone and held the same rows with the same columns."""
        old, new = self.said("views"), self._views
        gone = {tuple(said.items()): name for name, said in old.items() if said is not None and name not in new}
        renamed: dict[str, str] = {}
        for name, said in new.items():
            before = gone.pop(tuple(said.items()), None) if said is not None and name not in old else None
            if before is not None:
                renamed[name] = before
        return renamed

    def _fate(self, view: str, now: Mapping[str, str] | None) -> str:
        old = self.said("views")
        if view in self.renamed:
            return f"{self.renamed[view]} under another name"
        if view in old and old[view] == now:
            return "kept"
        if now is not None and now["trace"] in {*self.kept, *self.moved.values()}:
            return "kept, its rows are there already"
        return "computed anew" if view in old else "new"

    # -- what cannot be done

    def refusals(self) -> Iterator[Refusal]:
        """Why the program cannot go on from this state, as far as that is known without reading rows."""
        sources = self.program.circuit.sources
        known = {*self.fed, *(name for name in self.said("tables") if not name.endswith(TOMBSTONES))}
        known = {name for name in known if not is_derived(name)}  # nothing was read of these: they come and go
        shards = self.manifest.meta.get("shards", self.program.shards)
        if shards != self.program.shards:
            yield f"the state has {shards} shards, not {self.program.shards}", "leave shards out to open it"
        for name in sorted(known - sources.keys()):
            yield (
                f"source {name} is not defined any more, and the state holds what was read of it",
                f'define it as before, p.source("{name}", …), even if no view reads it; is this the right directory?',
            )
        for each in self.reshapes:
            yield from each.refusals()
        moved = {each.name for each in self.reshapes}
        for name, node_id in self.hydration.sources.items():
            if name in known - moved:
                yield self._unheld(name, node_id)

    def require(self) -> None:
        """Raise what stands in the way of the turn, if anything does."""
        for message, hint in self.refusals():
            raise DefinitionError(message, hint=hint)

    def _unheld(self, source: str, node_id: int) -> Refusal:
        """Which new node needs the rows of a source that nothing holds."""
        circuit = self.program.circuit
        for node in new_nodes(self.program, self.held):
            if node_id in _behind(self.program, node, self.hydration.needed):
                views = ", ".join(views_behind(circuit, node)) or source
                return (
                    f"view {views} cannot be computed: {circuit.label(node)} is new and needs all rows of source "
                    f"{source}, whose contents are not kept",
                    f"make the source with keep=True from its beginning, in an empty directory; or leave {views} out",
                )
        raise AssertionError("a source is read because a new trace needs it")


def is_derived(source: str) -> bool:
    """Whether no user has defined a source: it is the clock, a watermark, or has the rows of a recomputed view."""
    return tells_time(source) or source.startswith(RECOMPUTED)


def names_over(program: Program, texts: dict[int, str]) -> dict[str, str]:
    """By name, the names that traces of a program would have if some nodes of its root had other texts."""
    if not texts:
        return {}
    prints: dict[tuple[int, ...], dict[int, str]] = {(): fingerprints_of(program.circuit, dict(texts), None)}
    seen, names = Counter[str](), dict[str, str]()
    for path, inner in program.nested():
        if path:
            prints[path] = fingerprints_of(inner.circuit, {}, prints[path[:-1]])
        for node_id, name in inner.names.items():
            other = prints[path][node_id]
            seen[other] += 1
            names[name] = other if seen[other] == 1 else f"{other}-{seen[other]}"
    return names


def _over(project: Project, before: Schema) -> Project | None:
    """The same projection of rows with other columns; None if these do not have what it takes."""
    taken = [project.source.schema.fields[at] for at in project.fields]
    if any(field not in before.fields for field in taken):
        return None
    return replace(project, source=Layout(before), fields=tuple(before.index(field.name) for field in taken))


def _behind(program: Program, node: int, needed: Collection[int]) -> set[int]:
    """The nodes that must run for a node, itself included."""
    behind: set[int] = set()
    waiting = [node]
    while waiting:
        node_id = waiting.pop()
        if node_id in behind or node_id not in needed:
            continue
        behind.add(node_id)
        one = program.circuit[node_id]
        waiting += [i for i in inputs_of(one) if i is not None] + [read.node for read in reads_of(one)]
    return behind
