"""A table of a million rows: the figures that are promised, measured."""

import pytest

from tests.bench.lookups import measure


@pytest.mark.long
def test_a_million_rows_are_warm_at_once_and_looked_up_in_microseconds():
    figures = measure()
    assert figures.p99_us < 50, figures
    assert figures.warm_s < 10, figures
