"""Orders of rows in Python: directions, keys that compare as SQL orders, and lists of rows that stay sorted."""

from everview.orders.keys import Direction, Order, SortKey, column_key, direction_of, row_key, with_ties
from everview.orders.sorted_rows import SortedRows

__all__ = ["Direction", "Order", "SortKey", "SortedRows", "column_key", "direction_of", "row_key", "with_ties"]
