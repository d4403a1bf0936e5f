"""Weights: integers of 64 bits; one that leaves them is an error and never wraps."""

from __future__ import annotations

import operator
from typing import Any

from everview.errors import WeightOverflow, WrongType, shown

LEAST_WEIGHT = -(2**63)
GREATEST_WEIGHT = 2**63 - 1


def integral(weight: Any) -> int:
    """This weight as a plain integer, of any size, or an error if it is none."""
    try:
        return int(operator.index(weight))
    except TypeError:
        raise WrongType(f"the weight {shown(weight)} is not an integer", hint="weights count; give 1 or -1") from None


def checked(weight: Any) -> int:
    """This weight as a plain integer, or an error if it is none of 64 bits.

    >>> checked(-3)
    -3
    >>> checked(2**63)
    Traceback (most recent call last):
    ...
    everview.errors.WeightOverflow: the weight 9223372036854775808 leaves the range of 64 bits
    ...
    """
    value = integral(weight)
    if not LEAST_WEIGHT <= value <= GREATEST_WEIGHT:
        raise WeightOverflow(
            f"the weight {value} leaves the range of 64 bits",
            hint="take the distinct rows before weights multiply again",
        )
    return value
