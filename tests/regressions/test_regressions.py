"""Cases that once went wrong, each a file of data, run in every way against the oracle.

A file holds a `Case`: print ``case.to_json()`` of what Hypothesis has shrunk, and put it here under a name that
says what was wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from everview.circuit import incrementalize
from oracle.cases import Case
from oracle.ways import SPECIAL, WAYS, check

CASES = sorted(Path(__file__).parent.glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_it_stays_right(path: Path) -> None:
    case = Case.from_json(path.read_text())
    check(case, *WAYS, *SPECIAL)
    once = incrementalize(case.build())
    assert str(incrementalize(once)) == str(once)
