"""One process, any number of shards: ticks in, changes of the views out.

A tick encodes its rows, runs the program's stages over the shards, and only when everything has succeeded closes the
epoch. Whatever fails before that, in the rows, in a user's function or in a weight, leaves all as it was.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everview.circuit.circuit import Circuit
from everview.circuit.incrementalize import incrementalize
from everview.circuit.nodes import Sink
from everview.circuit.program import Program
from everview.codes import encode_pairs
from everview.codes.dictionary import Dictionary, Mark
from everview.errors import EverviewError, FunctionError, ListenerError, NegativeWeight, StoreError
from everview.operators.exchange import Exchange
from everview.operators.operator import Context, Layout
from everview.runtimes.embedded.durable import Durable, check_plan, restore
from everview.runtimes.embedded.state import State
from everview.runtimes.embedded.tick import Cells, Here, Tick
from everview.runtimes.embedded.view import View
from everview.runtimes.tables import Commands, Table, resolvers
from everview.traces.store import Policy, Store
from everview.types import unknown_name
from everview.zset.batch import Batch

Matrix = NDArray[np.int64]


class Embedded:
    """A circuit at work.

    >>> circuit = Circuit()
    >>> orders = circuit.source("orders", "customer STRING, amount BIGINT NOT NULL")
    >>> orders.aggregate(["customer"], total=("sum", "amount")).sink("totals")
    >>> run = Embedded(circuit)
    >>> list(run.tick({"orders": [(("Ada", 5), 1), (("Bob", 7), 1)]})["totals"])
    [(('Bob', 7), 1), (('Ada', 5), 1)]
    >>> sorted(run.tick({"orders": [(("Ada", 1), 1)]})["totals"])
    [(('Ada', 5), -1), (('Ada', 6), 1)]
    """

    def __init__(
        self,
        circuit: Circuit,
        path: str | Path | None = None,
        *,
        shards: int = 1,
        check_functions: bool = False,
        policy: Policy | None = None,
        as_is: bool = False,
        tables: Mapping[str, Table] | None = None,
    ) -> None:
        """Run a circuit in memory, or with its state in a directory, which is opened if it exists.

        A query circuit is made incremental first; with ``as_is``, it takes every tick for whole Z-sets instead.
        ``check_functions`` calls every user function twice and compares; ``policy`` says how soon a tick is on disk.
        Of the sources named in ``tables`` the contents are kept, and their rows may come as `Commands`.
        """
        circuit.check()
        if path is not None:
            _require_names(circuit)
        self.tables = dict(tables or {})
        self._require_sources(circuit, self.tables)
        incremental = circuit if circuit.incremental or as_is else incrementalize(circuit)
        self.program = Program(incremental, shards, {name: table.key for name, table in self.tables.items()})
        self.resolvers = resolvers(self.program, self.tables)
        self.dictionary = Dictionary()
        self.context = Context(self.dictionary, dict(circuit.functions), check_functions)
        self.state = State(self.program, self.context)
        self.durable = None if path is None else Durable.open(path, self.program, policy or Policy())
        if self.durable:
            self.durable.restore(self.state, self.dictionary)
        self._refusal: str | None = None
        self.epoch = self.durable.epoch if self.durable else 0
        built = self.program.circuit
        self._sources = {name: (at, built.layout(at).schema) for name, at in built.sources.items()}
        self._arrivals = {
            name: Exchange(Layout(schema), self.program.arrival(name)) for name, (_, schema) in self._sources.items()
        }
        self._sinks = [node for node in built if isinstance(node, Sink) and not node.table]
        self.views = {
            node.name: View(self, node.name, built.layout(node.input).schema, node.input if node.keep else None)
            for node in self._sinks
        }

    @property
    def shards(self) -> int:
        return self.program.shards

    def view(self, name: str) -> View:
        if name not in self.views:
            raise unknown_name("view", name, self.views)
        return self.views[name]

    def table(self, name: str) -> View:
        """What a source holds, if that is kept."""
        if name not in self.tables:
            raise unknown_name("table", name, self.tables)
        trace = self.program.table(name)
        assert trace is not None, "a table is kept"
        return View(self, name, self.program.circuit.layout(trace).schema, trace)

    def tick(self, changes: Mapping[str, Any] | None = None) -> dict[str, Batch]:
        """Apply weighted rows to the sources, all at once; returns the change of every view.

        Rows come as (row, weight) pairs, as a table or frame that may have a ``_weight`` column, or for a table as
        `Commands`.
        """
        self._require_open()
        with self.attempt() as mark:
            cells = self.encode(changes or {})
            Tick(self.program, Here(self.program, self.state, self.context)).run(cells)
            outputs = self.outputs(cells)
            self._commit(mark)
        self.epoch += 1
        if self.durable:
            self.durable.settle(self.state)
        self._notify(outputs)
        return outputs

    @contextmanager
    def attempt(self) -> Generator[Mark]:
        """Within this, whatever raises leaves the traces and the dictionary as they were."""
        mark = self.dictionary.mark()
        try:
            yield mark
        except BaseException:
            self.state.abandon()
            self.dictionary.rollback(mark)
            raise

    def vacuum(self, keep_epochs: int = 1) -> None:
        """Let go of dictionary entries that no row refers to, and of stored epochs before the last few."""
        self._require_open()
        if keep_epochs < 1:
            raise EverviewError(
                f"vacuum cannot keep {keep_epochs} epochs", hint="the last one is always kept: give 1 or more"
            )
        self.dictionary.sweep(self.state.references())
        if self.durable:
            self.durable.vacuum(self.state, self.dictionary, keep_epochs)

    def close(self) -> None:
        """Let the next writer have the state directory."""
        if self.durable and self._refusal is None:
            self.durable.close()
            self._refusal = "it is closed"

    @classmethod
    def attach(
        cls,
        circuit: Circuit,
        path: str | Path,
        epoch: int | None = None,
        *,
        shards: int = 1,
        as_is: bool = False,
        tables: Mapping[str, Table] | None = None,
    ) -> Self:
        """The views as they were at an epoch, the last by default; to read only. A writer may be at work."""
        run = cls(circuit, shards=shards, as_is=as_is, tables=tables)
        with Store.attach(path, epoch) as reader:
            check_plan(reader, run.program)
            restore(reader, run.state, run.dictionary)
            run.epoch = reader.epoch
        run._refusal = "it is attached to read only"
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._refusal is not None:
            raise StoreError(f"the state cannot change: {self._refusal}", hint="open it with Embedded(circuit, path)")

    def _commit(self, mark: Mark) -> None:
        """End the epoch: on disk first, where there is one, then in memory."""
        if self.durable is None:
            self.state.close()
            return
        pushed = self.state.pushed()
        self.state.close(self.durable.commit(self.epoch + 1, pushed, self.dictionary, mark), pushed)

    def encode(self, changes: Mapping[str, Any]) -> Cells:
        """The rows of a tick as words, on the shards where they belong."""
        cells: Cells = [{} for _ in range(self.shards)]
        for name, rows in changes.items():
            if name not in self._sources:
                raise unknown_name("source", name, self._sources)
            at, schema = self._sources[name]
            if isinstance(rows, Commands):
                self._resolve(name, rows, cells)
                continue
            delta = encode_pairs(schema, rows, self.dictionary)
            for shard, part in enumerate(self._arrivals[name].spread(delta, self.shards)):
                cells[shard][at] = part
        return cells

    def _resolve(self, name: str, commands: Commands, cells: Cells) -> None:
        if name not in self.tables:
            raise unknown_name("table", name, self.tables)
        at, schema = self._sources[name]
        resolver, rows = self.resolvers[at], commands.encode(schema, self.dictionary)
        for shard, part in enumerate(self._arrivals[name].spread(rows, self.shards)):
            contents = self.state.before(shard, resolver.trace)
            cells[shard][at] = resolver.change(part, contents, whole=commands.whole)

    def outputs(self, cells: Cells) -> dict[str, Batch]:
        """The change of every view."""
        return {node.name: self._output(node, cells) for node in self._sinks}

    def _output(self, sink: Sink, cells: Cells) -> Batch:
        parts = [shard[sink.input] for shard in cells if sink.input in shard]
        if sink.positive:
            self._check_positive(sink, cells)
        if not parts:
            delta = self.program.empty(sink.input)
        else:
            delta = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return Batch.consolidated(self.views[sink.name].schema, delta, self.dictionary)

    def _check_positive(self, sink: Sink, cells: Cells) -> None:
        for shard, found in enumerate(cells):
            delta = found.get(sink.input)
            if delta is None:
                continue
            after = self.state.before(shard, sink.input).plus(delta).weights(delta, delta.shape[1] - 1)
            if (after < 0).any():
                self._negative(sink, delta[np.flatnonzero(after < 0)[:1]], int(after.min()))

    def _negative(self, sink: Sink, row: Matrix, weight: int) -> None:
        schema = self.views[sink.name].schema
        (element,) = Batch.consolidated(schema, row, self.dictionary).elements()
        functions = self.program.circuit.user_functions(sink.input)
        suspects = f"function {' or '.join(functions)} may not be pure, or " if functions else ""
        check = "run with check_functions=True to call every function twice and compare"
        cause = f"{suspects}a row that was not there was deleted"
        raise NegativeWeight(
            f"view {sink.name} would hold {element} with weight {weight}: {cause}",
            hint=check if functions else "check the deletes",
        )

    def _notify(self, outputs: Mapping[str, Batch]) -> None:
        """Tell every listener, whatever the others do."""
        raised: list[tuple[str, Exception]] = []
        for name, changes in outputs.items():
            for listener in tuple(self.views[name].listeners) if len(changes) else ():
                try:
                    listener(changes, self.epoch)
                except Exception as error:  # noqa: BLE001, whatever it is, the others are told
                    raised.append((name, error))
        if raised:
            name, error = raised[0]
            raise ListenerError(
                f"a listener of view {name} raised {type(error).__name__}: {error}",
                hint=f"epoch {self.epoch} has been applied, and all listeners were told",
            ) from error

    @staticmethod
    def _require_sources(circuit: Circuit, tables: Mapping[str, Table]) -> None:
        for name in tables:
            if name not in circuit.sources:
                raise unknown_name("source", name, circuit.sources)


def _require_names(circuit: Circuit) -> None:
    """A stored state knows functions by name, and all lambdas have the same."""
    nameless = [name for name in circuit.functions if "<lambda>" in name]
    if nameless:
        raise FunctionError(
            f"a state directory cannot tell {', '.join(nameless)} from other functions",
            hint="define it with def, or wrap it: Function('name', function, 'columns')",
        )
