"""One whole box, with the demo's pipe and receiver, for all tests here: each leaves it as it found it."""

from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pytest

from localbox.testing import Box, box_of
from tests.support.demo_traffic import DEMO
from tests.support.kill_schedule import BoxProcesses, too_many_starts
from tests.support.patience import until

UP_S: Final = 300.0


@pytest.fixture(scope="package")
def box() -> Iterator[Box]:
    with box_of(extra=DEMO) as box:
        with closing(BoxProcesses(box)) as processes:
            until(processes.lanes_run, "every lane runs", UP_S)
            assert not too_many_starts([], processes.starts())
        yield box
