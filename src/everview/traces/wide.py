"""The traces of all shards read together, for an operator that looks up keys wherever they lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everview.traces.view import Batches


class Wide:
    """The views of a trace, one a shard. ``table`` lists all batches, those of shard s from ``starts[s]`` on."""

    __slots__ = ("columns", "starts", "table", "views")

    def __init__(self, views: Sequence[Batches]) -> None:
        self.views = tuple(views)
        self.columns = self.views[0].columns
        if len(self.views) == 1:
            self.table = self.views[0].table
            self.starts = np.array([0, self.table.shape[0]], np.int64)
        else:
            self.table = np.concatenate([view.table for view in self.views])
            self.starts = np.cumsum([0, *(view.table.shape[0] for view in self.views)])

    def __len__(self) -> int:
        return int(self.table[:, 1].sum())

    @property
    def most(self) -> int:
        """The most batches that a shard has."""
        return int(np.diff(self.starts).max())
