"""Windows: every row beside functions of its partition's rows, in their order.

The rows of a partition lie in the trace in the order of the window. A change computes the partitions that it touches
anew, before and after, and puts out the difference; other partitions are not looked at. A row of weight w is w rows.
"""

from everview.operators.window.aggregates import AggregateOver
from everview.operators.window.functions import COPIES, NEVER_NULL, RANKS, SESSIONS, FramedOver, Over
from everview.operators.window.operator import SessionEdges, Window, WindowIncremental

__all__ = [
    "COPIES",
    "NEVER_NULL",
    "RANKS",
    "SESSIONS",
    "AggregateOver",
    "FramedOver",
    "Over",
    "SessionEdges",
    "Window",
    "WindowIncremental",
]
