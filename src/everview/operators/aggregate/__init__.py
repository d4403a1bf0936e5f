"""Aggregates: one row a group, replaced when it changes.

Two kinds of state, and nothing else, so that all of them work in ticks, in recursive scopes, on shards and on disk
as any trace does:

- What is **linear** is added up: `Weigh` turns each row into entries ``(group, place)`` whose *weight* is the row's
  contribution, and the trace adds them up exactly and reversibly. Counts, sums, averages, variances, and whether all
  or any are true; of all values, or (`distinct` goes before) of the different ones.
- What asks for an **order** reads a trace in which the group's rows lie in it: the least and the first at one end of
  the group, the greatest and the last at the other, percentiles in between; arrays, texts and a user's own function
  take the whole group.

`Aggregate` reads those traces before and after the tick for the groups that changed, retracts the old row and asserts
the new one.

A group is there when its weights sum to more than zero. NULLs count only for ``count(*)``, and where they are asked
for; an aggregate over nothing but NULLs is NULL. What reads an order looks at values of positive weight, and a value
of weight w counts w times.
"""

from everview.operators.aggregate.call import Call
from everview.operators.aggregate.operator import Aggregate, AggregateIncremental
from everview.operators.aggregate.ordered import Ordering, orderings
from everview.operators.aggregate.weigh import Slot, Weigh, slots
from everview.operators.aggregate.written import WrittenAggregate

__all__ = [
    "Aggregate",
    "AggregateIncremental",
    "Call",
    "Ordering",
    "Slot",
    "Weigh",
    "WrittenAggregate",
    "orderings",
    "slots",
]
