"""Charts: every point inside of the frame, every name escaped, and well-formed whatever they are given."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from everview.drawings.chart import HEIGHT, WIDTH, Series, Strip, chart
from everview.spark.progress import Progress, ProgressLog

VALUES = st.floats(0, 1e12, allow_subnormal=False)


@given(
    st.lists(st.tuples(st.text(max_size=5), st.lists(st.tuples(st.integers(0, 10**6), VALUES), max_size=6)), max_size=3)
)
def test_a_chart_is_well_formed_and_within_its_frame(given: list[tuple[str, list[tuple[int, float]]]]) -> None:
    series = [Series(name, tuple(points)) for name, points in given]
    kinds = tuple(name for name, points in given for _ in points)
    drawn = ET.fromstring(chart("<a> & b", "x", "y", series, Strip(kinds)))
    for circle in drawn.iter("{http://www.w3.org/2000/svg}circle"):
        assert 0 <= float(circle.get("cy", "")) <= HEIGHT
        if circle.get("class") != "mark":
            assert 0 <= float(circle.get("cx", "")) <= WIDTH


def test_epochs_are_drawn_with_the_places_where_they_ran() -> None:
    where = ("cluster", "driver", "driver")
    log = ProgressLog(
        Progress(number, None, {}, {}, {"tick": 0.01 * number, "total": 0.5}, place, "")
        for number, place in enumerate(where, 1)
    )
    text = log.to_svg()
    assert re.findall(r"<title>(\d+: \w+)</title></rect>", text) == ["1: cluster", "2: driver", "3: driver"]
    assert re.findall(r"<title>(its tick, .*?)</title>", text) == [f"its tick, {n}: {10 * n}" for n in (1, 2, 3)]
    assert "epochs 1 to 3" in text
    assert ProgressLog().to_svg().endswith("</svg>")
