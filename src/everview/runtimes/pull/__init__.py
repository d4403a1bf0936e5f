"""Pipelines over sources that keep (almost) nothing: history is pulled, changes are pushed.

`Pipeline` owns sources and the views attached over them. A plan becomes nodes (`build`), each with two ways: `pull`
for history, ordered and lazy, and `push` for the change of a turn. See `node` for the seam between them.
"""

from everview.runtimes.pull.demand import Among, Demand, Sort
from everview.runtimes.pull.feed import Feed, Feeds, Weighted
from everview.runtimes.pull.node import Node
from everview.runtimes.pull.pipeline import Pipeline
from everview.runtimes.pull.transaction import Transaction

__all__ = ["Among", "Demand", "Feed", "Feeds", "Node", "Pipeline", "Sort", "Transaction", "Weighted"]
