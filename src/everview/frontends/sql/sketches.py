"""Estimates read from a sketch in the same query: ``hll_sketch_estimate(hll_sketch_agg(x))``.

A sketch cannot forget a row that is deleted, so none is kept. What is asked of one at once is answered exactly instead:
the count of different values, the number of values, a quantile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from everview.errors import UnknownName
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.spark_names import OF_SPARK
from everview.scalars.expressions import Expression

Exact = Callable[[exp.Expr, list[exp.Expr]], exp.Expr]


def _different(value: exp.Expr, rest: list[exp.Expr]) -> exp.Expr:
    return exp.Count(this=exp.Distinct(expressions=[value]))


def _count(value: exp.Expr, rest: list[exp.Expr]) -> exp.Expr:
    return exp.Count(this=value)


def _quantile(value: exp.Expr, rest: list[exp.Expr]) -> exp.Expr:
    return exp.Anonymous(this="percentile_approx", expressions=[value, *rest])


# What reads a sketch: the aggregate that makes one, how many arguments follow the sketch, and what is asked instead.
_READERS: Final[dict[str, tuple[str, int, Exact]]] = {
    "hll_sketch_estimate": ("hll_sketch_agg", 0, _different),
    "theta_sketch_estimate": ("theta_sketch_agg", 0, _different),
    **{f"kll_sketch_get_n_{kind}": (f"kll_sketch_agg_{kind}", 0, _count) for kind in ("bigint", "double", "float")},
    **{
        f"kll_sketch_get_quantile_{kind}": (f"kll_sketch_agg_{kind}", 1, _quantile)
        for kind in ("bigint", "double", "float")
    },
}


def estimate(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
    """An estimate as the exact number; raises where the sketch comes from elsewhere."""
    name = node.name.lower()
    maker, others, exact = _READERS[name]
    sketch = arguments[0] if arguments else None
    kept = sketch.expression if isinstance(sketch, exp.Filter) else None
    made = sketch.this if isinstance(sketch, exp.Filter) else sketch
    if not isinstance(made, exp.Anonymous) or made.name.lower() != maker or not made.expressions:
        raise UnknownName(f"Spark's {name} of a sketch that is kept is not supported", hint=OF_SPARK[name])
    if len(arguments) != 1 + others:
        raise site.context.error(f"{name} takes {1 + others} arguments, and was given {len(arguments)}", node)
    asked = exact(made.expressions[0].copy(), [part.copy() for part in arguments[1:]])
    return expression(asked if kept is None else exp.Filter(this=asked, expression=kept.copy()), site)
