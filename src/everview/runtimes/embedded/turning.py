"""The plan of a turn: what going on with other definitions keeps, computes and drops, and how many rows that reads.

It is found out from a program and from what a stored state says of itself, without reading a row. Traces are known by
their fingerprints: a name that both have is kept. The others are computed from what is held, by `hydrate`; where
nothing is held, the plan says which node needs it, and why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from everview.circuit.blame import views_behind
from everview.circuit.nodes import inputs_of, reads_of
from everview.circuit.program import Program
from everview.errors import DefinitionError
from everview.runtimes.embedded.durable import contents, fingerprints
from everview.runtimes.embedded.hydrate import HydrationPlan, hydration, new_nodes
from everview.runtimes.embedded.reshape import Refusal, Reshape
from everview.runtimes.tables import TOMBSTONES, Table
from everview.traces.store import Manifest
from everview.types import Schema

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
    def computed(self) -> tuple[str, ...]:
        """The names of the traces that are new."""
        return tuple(name for name in self.program.fingerprint if name not in self.kept)

    @cached_property
    def dropped(self) -> tuple[str, ...]:
        """The names of the traces that the program has no more."""
        return tuple(name for name in self.manifest.plan.traces if name not in self.kept)

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
        names = {*self.hydration.traces, *(each.trace for each in self.reshapes)}
        return {name: self.rows[name] for name in sorted(names)}

    @cached_property
    def hydration(self) -> HydrationPlan:
        """What computing the new traces takes."""
        return hydration(self.program, self.kept)

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
        """By view, what becomes of it: kept, computed, dropped, or another one's under its name."""
        old, new = self.said("views"), contents(self.program)["views"]
        fates = {name: self._fate(name, said) for name, said in new.items()}
        renamed = set(self.renamed.values())
        return fates | {name: "dropped" for name in old if name not in new and name not in renamed}

    @cached_property
    def renamed(self) -> dict[str, str]:
        """By new view, the view that is gone and held the same rows with the same columns."""
        old, new = self.said("views"), contents(self.program)["views"]
        gone = {tuple(said.items()): name for name, said in old.items() if said is not None and name not in new}
        renamed: dict[str, str] = {}
        for name, said in new.items():
            before = gone.pop(tuple(said.items()), None) if said is not None and name not in old else None
            if before is not None and said is not None and said["trace"] in self.kept:
                renamed[name] = before
        return renamed

    def _fate(self, view: str, now: Mapping[str, str] | None) -> str:
        old = self.said("views")
        if view in self.renamed:
            return f"{self.renamed[view]} under another name"
        if view in old and old[view] == now:
            return "kept"
        if now is not None and now["trace"] in self.kept:
            return "kept, its rows are there already"
        return "computed anew" if view in old else "new"

    # -- what cannot be done

    def refusals(self) -> Iterator[Refusal]:
        """Why the program cannot go on from this state, as far as that is known without reading rows."""
        sources = self.program.circuit.sources
        known = {*self.fed, *(name for name in self.said("tables") if not name.endswith(TOMBSTONES))}
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
        for name, at in self.hydration.sources.items():
            if name in known - moved:
                yield self._unheld(name, at)

    def require(self) -> None:
        """Raise what stands in the way of the turn, if anything does."""
        for message, hint in self.refusals():
            raise DefinitionError(message, hint=hint)

    def _unheld(self, source: str, at: int) -> Refusal:
        """Which new node needs the rows of a source that nothing holds."""
        circuit = self.program.circuit
        for node in new_nodes(self.program, self.kept):
            if at in _behind(self.program, node, self.hydration.needed):
                views = ", ".join(views_behind(circuit, node)) or source
                return (
                    f"view {views} cannot be computed: {circuit.label(node)} is new and needs all rows of source "
                    f"{source}, whose contents are not kept",
                    f"make the source with keep=True from its beginning, in an empty directory; or leave {views} out",
                )
        raise AssertionError("a source is read because a new trace needs it")


def _behind(program: Program, node: int, needed: Collection[int]) -> set[int]:
    """The nodes that must run for a node, itself included."""
    behind: set[int] = set()
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if at in behind or at not in needed:
            continue
        behind.add(at)
        one = program.circuit[at]
        waiting += [i for i in inputs_of(one) if i is not None] + [read.node for read in reads_of(one)]
    return behind
