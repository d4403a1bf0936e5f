"""Views over sources that are not kept: `Pipeline` owns the sources and the views attached over them.

The runtime behind these names is `everview.runtimes.pull`; `docs/explanation/pull.md` tells how it works.
"""

from everview.runtimes.pull import Among, Demand, Feed, Feeds, Node, Pipeline, Sort, Transaction, Weighted

__all__ = ["Among", "Demand", "Feed", "Feeds", "Node", "Pipeline", "Sort", "Transaction", "Weighted"]
