"""Better plans that mean the same: passes from plan to plan, one after the other."""

from everview.optimize.passes import PASSES, REQUIRED, optimize

__all__ = ["PASSES", "REQUIRED", "optimize"]
