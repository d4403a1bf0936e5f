"""Why a row is in a view, and why another is not: the plan walked from the row down to rows of tables.

Nothing is stored for it. `Finder` finds the rows of a plan that have given values in some columns, by lookups in what
tables and views hold; `Reasons` takes a row apart node by node, `AbsenceFinder` finds the first condition that fails.
"""

from everview.why.absences import AbsenceFinder
from everview.why.asking import WhyAsked
from everview.why.bounds import Budget
from everview.why.find import Finder, Holder
from everview.why.reasons import Reasons
from everview.why.tree import Why

__all__ = ["AbsenceFinder", "Budget", "Finder", "Holder", "Reasons", "Why", "WhyAsked"]
