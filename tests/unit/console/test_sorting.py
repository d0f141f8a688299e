"""Sorting and pagination of lists by the parameters of the URL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgmt.web.sorting import SortOrder, arranged, order_of, page_after

COLUMNS = ("name", "lag")
NAME = SortOrder("name")


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("lag", SortOrder("lag")),
        ("-lag", SortOrder("lag", descending=True)),
        ("", NAME),
        ("password", NAME),
        ("--lag", NAME),
        (str(SortOrder("lag", descending=True)), SortOrder("lag", descending=True)),
    ],
)
def test_list_is_sorted_only_by_its_own_columns(text: str, order: SortOrder):
    assert order_of(text, COLUMNS, NAME) == order


@pytest.mark.parametrize(
    ("descending", "values"), [(False, [1, 3, 3, 9, None, None]), (True, [9, 3, 3, 1, None, None])]
)
def test_unknown_values_are_last_in_both_directions(descending: bool, values: list[int | None]):
    assert arranged([3, None, 9, 1, None, 3], lambda value: value, descending=descending) == values


@pytest.mark.parametrize("descending", [False, True])
def test_equal_values_keep_their_order(descending: bool):
    lines = [("a", 1), ("b", 1), ("c", 1)]
    assert arranged(lines, lambda line: line[1], descending=descending) == lines


@given(st.lists(st.text(min_size=1, max_size=3), unique=True, max_size=30), st.integers(1, 7))
def test_pages_contain_every_line_once_in_its_order(lines: list[str], most: int):
    seen, after = list[str](), ""
    while True:
        page, after = page_after(lines, str, after, most)
        seen += page
        if not after:
            break
    assert seen == lines


def test_cursor_of_a_missing_line_gives_the_first_page():
    assert page_after(["a", "b", "c"], str, "z", 2) == (["a", "b"], "b")
