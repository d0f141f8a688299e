"""Search for the group of minutes in which the newest events begin."""

import pytest

from mgmt.ledger.queries.newest import NewestPart, newest_part


@pytest.mark.parametrize(
    ("counts", "most", "found"),
    [
        ({}, 1, None),
        ({5: 9}, 10, None),
        ({5: 10}, 10, NewestPart(5, 10, 10)),
        ({3: 100, 7: 4, 9: 5}, 10, NewestPart(3, 100, 1)),
        ({3: 100, 7: 4, 9: 5}, 9, NewestPart(7, 4, 4)),
    ],
)
def test_search_ends_in_the_newest_group_from_which_on_there_are_enough(
    counts: dict[int, int], most: int, found: NewestPart | None
):
    assert newest_part(counts, most) == found
