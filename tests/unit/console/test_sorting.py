"""Lists in an order, cut into pages, by what stands in the URL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgmt.console.sorting import Order, arranged, order_of, page_after

COLUMNS = ("name", "lag")
NAME = Order("name")


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("lag", Order("lag")),
        ("-lag", Order("lag", falls=True)),
        ("", NAME),
        ("password", NAME),
        ("--lag", NAME),
        (str(Order("lag", falls=True)), Order("lag", falls=True)),
    ],
)
def test_only_a_column_of_the_list_orders_it(text: str, order: Order):
    assert order_of(text, COLUMNS, NAME) == order


@pytest.mark.parametrize(("falls", "values"), [(False, [1, 3, 3, 9, None, None]), (True, [9, 3, 3, 1, None, None])])
def test_what_is_not_known_stands_last_whichever_way(falls: bool, values: list[int | None]):
    assert arranged([3, None, 9, 1, None, 3], lambda value: value, falls=falls) == values


@pytest.mark.parametrize("falls", [False, True])
def test_equals_keep_their_order(falls: bool):
    lines = [("a", 1), ("b", 1), ("c", 1)]
    assert arranged(lines, lambda line: line[1], falls=falls) == lines


@given(st.lists(st.text(min_size=1, max_size=3), unique=True, max_size=30), st.integers(1, 7))
def test_page_by_page_every_line_comes_once_in_its_order(lines: list[str], most: int):
    seen, after = list[str](), ""
    while True:
        page, after = page_after(lines, str, after, most)
        seen += page
        if not after:
            break
    assert seen == lines


def test_a_mark_that_is_gone_gives_the_first_page():
    assert page_after(["a", "b", "c"], str, "z", 2) == (["a", "b"], "b")
