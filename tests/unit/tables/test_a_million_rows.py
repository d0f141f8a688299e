"""A look-up table of a million rows meets the promised figures."""

import pytest

from tests.bench.lookups import measure


@pytest.mark.long
@pytest.mark.alone
def test_million_rows_are_warm_within_seconds_and_looked_up_in_microseconds():
    figures = measure()
    assert figures.p99_us < 50, figures
    assert figures.warm_s < 10, figures
