"""Lists of rows that stay sorted, beside lists that are sorted again after every step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everview.orders.sorted_rows import PIECE, SortedRows


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=200), st.integers(1, 5))
def test_sorted_rows(steps: list[tuple[int, bool]], piece: int) -> None:
    import everview.orders.sorted_rows as module

    module.PIECE = piece
    try:
        found, expected = SortedRows([(7, 7), (3, 3)]), [3, 7]
        for key, add in steps:
            if add:
                place = found.add(key, key)
                expected.append(key)
                expected.sort()
                assert expected[place] == key
            elif key in expected:
                place, row = found.remove(key)
                assert row == key == expected[place]
                expected.remove(key)
            assert list(found.since(key)) == [each for each in expected if each >= key]
            assert list(found.after(key)) == [each for each in expected if each > key]
            assert list(found) == expected == found[:] == [found[at] for at in range(len(found))]
    finally:
        module.PIECE = PIECE
