"""A view as its users see it: its contents now, and its changes as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from everview.codes.exits import AsFrames
from everview.errors import EverviewError, ListenerError
from everview.kernels.large import arrange
from everview.kernels.merge import merge
from everview.types import Schema
from everview.types.words import Matrix
from everview.zset.batch import Batch

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.runtimes.embedded.runtime import Embedded

Listener = Callable[[Batch, int], None]


class CircuitView(AsFrames):
    """The contents of a sink: the integral of its changes."""

    def __init__(self, runtime: Embedded, name: str, schema: Schema, node: int | None) -> None:
        self._runtime = runtime
        self.node = node
        self.name = name
        self.schema = schema
        self.listeners: list[Listener] = []

    def contents(self) -> Batch:
        """The rows now, each with its weight."""
        self._runtime.require_here()
        self._runtime.recover()
        return self.held()

    def held(self) -> Batch:
        """`contents` without recovering first: for the code that completes an act which an exception has cut short."""
        if self.node is None:
            raise EverviewError(f"view {self.name} keeps no contents", hint="build its sink with keep=True")
        whole = np.empty((0, self.schema.width + 1), np.int64)
        for trace in self._runtime.state.of(self.node):
            whole = merge(whole, trace.before.consolidated())
        return Batch(self.schema, whole, self._runtime.dictionary)

    def beginning_with(self, values: Matrix) -> Batch:
        """The rows whose first words are one of these, without reading the others."""
        key, whole = values.shape[1] - 1, np.empty((0, self.schema.width + 1), np.int64)
        for trace in self._runtime.state.of(self.node) if self.node is not None else ():
            rows = trace.before.group_rows(values, key)
            whole = merge(whole, arrange(rows, np.arange(self.schema.width)))
        return Batch(self.schema, whole, self._runtime.dictionary)

    def first(self, limit: int) -> Batch:
        """The first rows in the order of the trace, at most so many different ones, without reading the others."""
        whole, all_of_it = np.empty((0, self.schema.width + 1), np.int64), np.ones((1, 1), np.int64)
        for trace in self._runtime.state.of(self.node) if self.node is not None else ():
            rows = trace.before.first_rows(all_of_it, 0, 0, limit)
            whole = merge(whole, arrange(rows, np.arange(self.schema.width)))
        return Batch(self.schema, whole[:limit], self._runtime.dictionary)

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows now, each as often as its weight."""
        contents = self.contents()
        return [row for row, weight in contents for _ in range(weight)]

    def to_arrow(self) -> pa.Table:
        """The rows now as an Arrow table, each as often as its weight."""
        contents = self.contents()
        repeated = contents.rows[_repeats(contents.weights)]
        repeated[:, -1] = 1
        from everview.codes import decode

        return decode(self.schema, repeated[:, :-1], contents.dictionary)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows())

    def __len__(self) -> int:
        return int(np.maximum(self.contents().weights, 0).sum())

    def subscribe(self, listener: Listener, *, snapshot: bool = False) -> Callable[[], None]:
        """Call ``listener(changes, epoch)`` after every tick that changed the view; returns a function to end this."""
        if snapshot:
            listener(self.contents(), self._runtime.epoch)
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def __repr__(self) -> str:
        return f"<view {self.name}: {self.schema}>"

    def _repr_html_(self) -> str:
        return self.contents().to_html()


def tell(views: Mapping[str, CircuitView], outputs: Mapping[str, Batch], epoch: int) -> None:
    """Tell every listener what an epoch has changed, whatever the others do."""
    raised: list[tuple[str, Exception]] = []
    for name, changes in outputs.items():
        for listener in tuple(views[name].listeners) if len(changes) else ():
            try:
                listener(changes, epoch)
            except Exception as error:  # noqa: BLE001, whatever it is, the others are told
                raised.append((name, error))
    if raised:
        name, error = raised[0]
        raise ListenerError(
            f"a listener of view {name} raised {type(error).__name__}: {error}",
            hint=f"epoch {epoch} has been applied, and all listeners were told",
        ) from error


def _repeats(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.repeat(np.arange(weights.size), np.maximum(weights, 0))
