"""Subqueries become joins: after this no expression holds a plan."""

from everview.optimize.subqueries.decorrelate import decorrelate

__all__ = ["decorrelate"]
