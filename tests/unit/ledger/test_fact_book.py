"""Fact book: positions recorded as a range equal positions recorded one by one."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from dataplane.ledger.facts import Fact, FactBook, FactKey
from dataplane.ledger.units import dense

KEY = FactKey("process", Fact.SENT)


@given(st.lists(st.integers(0, 12)))
def test_numbers_become_a_range_only_if_each_is_one_more_than_the_last(numbers: list[int]):
    assert list(dense(numbers)) == numbers
    follow = all(after == before + 1 for before, after in pairwise(numbers))
    assert isinstance(dense(numbers), range) == (bool(numbers) and follow)


@given(st.lists(st.tuples(st.integers(0, 1 << 60), st.integers(1, 50)), min_size=1))
def test_ranges_lists_and_single_positions_give_the_same_set(stretches: list[tuple[int, int]]):
    book, expected = FactBook(), BitMap64()
    for number, (first, count) in enumerate(stretches):
        positions = range(first, first + count)
        expected.update(positions)
        if number % 3 == 0:
            book.extend("p", 1, KEY, positions)
        elif number % 3 == 1:
            book.extend("p", 1, KEY, list(positions))
        else:
            for position in positions:
                book.add("p", 1, KEY, position)
    (found,) = book.take()
    assert BitMap64.deserialize(found.positions) == expected
    assert not len(book)
