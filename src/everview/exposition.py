"""Metrics in Prometheus' text format.

>>> print("".join(metric("epoch", "gauge", "The last epoch.", 7)), end="")
# HELP everview_epoch The last epoch.
# TYPE everview_epoch gauge
everview_epoch 7
>>> print("".join(by_label("rows", "gauge", "Rows.", "view", {'a"b': 2})), end="")
# HELP everview_rows Rows.
# TYPE everview_rows gauge
everview_rows{view="a\\"b"} 2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MetricKind = Literal["counter", "gauge"]
_ESCAPED: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def metric(name: str, kind: MetricKind, help_: str, value: float) -> Iterator[str]:
    """The lines of a metric with one value."""
    yield from _head(name, kind, help_)
    yield f"everview_{name} {_number(value)}\n"


def by_label(name: str, kind: MetricKind, help_: str, label: str, values: Mapping[str, float]) -> Iterator[str]:
    """The lines of a metric with a value for each value of a label."""
    yield from _head(name, kind, help_)
    for key, value in dict(values).items():  # a copy, as another thread may add to it
        yield f'everview_{name}{{{label}="{key.translate(_ESCAPED)}"}} {_number(value)}\n'


def _head(name: str, kind: MetricKind, help_: str) -> Iterator[str]:
    yield f"# HELP everview_{name} {help_}\n# TYPE everview_{name} {kind}\n"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6f}"
