"""One whole box, with the demo's pipe and receiver, for all tests here: each leaves it as it found it."""

from collections.abc import Iterator

import pytest

from localbox.testing import Box, box_of
from tests.support.demo_traffic import DEMO


@pytest.fixture(scope="package")
def box() -> Iterator[Box]:
    with box_of(extra=DEMO) as box:
        yield box
