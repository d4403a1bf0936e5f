"""Pipelines over sources that keep (almost) nothing: history is pulled, changes are pushed.

`PullPipeline` owns sources and the views attached over them. A plan becomes nodes (`build`), each with two ways: `pull`
for history, ordered and lazy, and `push` for the change of a turn. See `node` for the seam between them.
"""

from everview.runtimes.pull.demand import Among, Demand, Sort
from everview.runtimes.pull.feed import PulledFeed, PulledFeeds, Weighted
from everview.runtimes.pull.node import PullNode
from everview.runtimes.pull.pipeline import PullPipeline
from everview.runtimes.pull.transaction import SourceTransaction

__all__ = [
    "Among",
    "Demand",
    "PullNode",
    "PullPipeline",
    "PulledFeed",
    "PulledFeeds",
    "Sort",
    "SourceTransaction",
    "Weighted",
]
