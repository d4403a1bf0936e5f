"""What a scenario finds: figures with the targets they are held to, and the raw numbers behind them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on a figure.

    >>> AtMost(4).met_by(3.5), str(AtLeast(1e6))
    (True, '≥ 1,000,000')
    """

    relation: Literal["≥", "≤"]
    bound: float

    def met_by(self, value: float) -> bool:
        return value >= self.bound if self.relation == "≥" else value <= self.bound

    def __str__(self) -> str:
        return f"{self.relation} {number(self.bound)}"


def AtLeast(bound: float) -> Target:
    return Target("≥", bound)


def AtMost(bound: float) -> Target:
    return Target("≤", bound)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; without a target it is there for comparison."""

    what: str
    value: float
    unit: str
    target: Target | None = None

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.target.met_by(self.value)


@dataclass(slots=True)
class Findings:
    """What one scenario found; `raw` is what the plots are drawn from."""

    title: str
    timed: bool = True  # whether a busy machine spoils the figures
    figures: list[Figure] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)

    def add(self, what: str, value: float, unit: str, target: Target | None = None) -> None:
        self.figures.append(Figure(what, value, unit, target))


def number(value: float) -> str:
    """Three figures that mean something.

    >>> number(1234567.8), number(12.345), number(0.01234)
    ('1,230,000', '12.3', '0.0123')
    """
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.12g}"
