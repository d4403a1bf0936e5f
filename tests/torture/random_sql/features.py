"""What random queries are made of, by names that a caller can switch off."""

from __future__ import annotations

FEATURES = frozenset(
    {
        "joins", "outer_joins", "semi_joins", "using", "non_equal",
        "derived", "with", "recursion", "recursion_all", "values", "lateral",
        "generators", "outer_generators", "generator_calls", "inline",
        "subqueries", "correlated", "correlated_on", "in_select", "not_in", "subquery_on", "subquery_having",
        "grouping", "grouping_sets", "grouping_bare", "having", "ordinals", "aggregates_ordered",
        "distinct_aggregates", "filters", "percentiles", "empty_group",
        "windows", "frames", "set_operations", "distinct", "limit", "order_arrays", "pivot", "pivot_edges",
        "doubled_quotes", "short_dates", "empty_array", "array_index", "shifts", "dateadd", "like", "not_like_many",
        "bare_operators",  # operands without parentheses, as far as precedence allows
    }
)  # fmt: skip
