"""The kernels that most programs call: those of the demo, with its joins, sums, recursion, as-of joins and Spark tasks.

A machine on which these are compiled shows a first program at work, in a third of the time that all kernels take; the
others are compiled when they are first called. A name that is missing here costs somebody a wait, no more.
"""

from __future__ import annotations

from typing import Final

_BY_MODULE: Final = {
    "asof": "beside in_force spans within_spans",
    "crossings": "crossings crossings_at",
    "dictionary": "gather intern locate",
    "exact_sum": "finish_decimals put_integers",
    "exchanged": "exchanged",
    "extend": "find narrow proposals",
    "extend_word": "extend_word",
    "fixed": "pack_bits put_decimals put_words take_decimals take_words",
    "group_sums": "_add_up _count_groups",
    "large": "_group_end _in_small_pages",
    "levels": "enter follow gathered level",
    "linear": "invert negated project",
    "merge": "merge merge_some",
    "message": "message",
    "probe": "group_rows join join_at keys later_times weights",
    "resolve": "resolve",
    "shard": "split",
    "sieve": "entered",
    "sort": "arrange is_batch sort_order",
    "table": "with_batch",
    "tally": "tally weighed",
    "timed": "split_now stamped",
    "top": "first_rows_change",
    "weights": "largest_weight",
    "words": "word_rows",
    "xxh64": "hash_bytes",
}
COMMON: Final = frozenset(
    f"everview.kernels.{module}:{name}" for module, names in _BY_MODULE.items() for name in names.split()
)
