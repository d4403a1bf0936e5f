"""Views over sources that are not kept: a `Pipeline` owns the sources and the views attached over them.

The runtime behind these names is `everview.runtimes.pull`; `docs/explanation/pull.md` tells how it works.
"""

from everview.runtimes.pull import Among, Demand, Sort, Weighted
from everview.runtimes.pull import PulledFeed as Feed
from everview.runtimes.pull import PulledFeeds as Feeds
from everview.runtimes.pull import PullNode as Node
from everview.runtimes.pull import PullPipeline as Pipeline
from everview.runtimes.pull import SourceTransaction as Transaction

__all__ = ["Among", "Demand", "Feed", "Feeds", "Node", "Pipeline", "Sort", "Transaction", "Weighted"]
