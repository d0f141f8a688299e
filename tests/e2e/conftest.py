"""The whole box once a run, a Chromium, and a destination that notes what came."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from localbox.testing import ROOT, Box
from tests.e2e.look import chromium
from tests.rig.receiver import Receiver


@pytest.fixture(scope="session")
def whole_box() -> Iterator[Box]:
    """Every service and every process of ours, with real Kafka and Spark."""
    parent = ROOT / "var" / "test"
    parent.mkdir(parents=True, exist_ok=True)
    var = Path(tempfile.mkdtemp(prefix="whole-", dir=parent))
    with Box(var) as box:
        yield box
    shutil.rmtree(var, ignore_errors=True)


@pytest.fixture(scope="session")
def chrome() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    listening = Receiver()
    yield listening
    listening.close()
