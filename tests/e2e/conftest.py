"""The whole box once a run, a Chromium, and a destination that notes what came."""

import json
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, expect

from localbox.testing import Box, box_of
from tests.e2e.look import chromium
from tests.rig.receiver import Receiver
from tests.rig.sender import Sender

LIVE_MS: Final = 240_000  # of the first pipe in the box: its cell has yet to start
expect.set_options(timeout=60_000)  # a box beside others takes its time to answer; what is waited for is the same


@pytest.fixture(scope="package")
def whole_box() -> Iterator[Box]:
    """Every service and every process of ours, with real Kafka and Spark; ramps take seconds, not minutes."""
    with box_of(env={"PENSTOCK_RAMP_HOLD_S": "3", "PENSTOCK_RAMP_EVIDENCE": "5"}) as box:
        yield box


@pytest.fixture(scope="package")
def chrome() -> Iterator[Browser]:
    """Closed with the last of these tests: while it is open, nobody else in the process may have an event loop."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    listening = Receiver()
    yield listening
    listening.close()


@pytest.fixture
def sample(whole_box: Box, receiver: Receiver) -> Iterator[dict[str, Any]]:
    """The sample pipe as `make demo` makes it, with events on their way."""
    made = said_by(whole_box, "manage.py", "demo_pipe", "--url", receiver.url("/sample"))
    with Sender(int(whole_box.env["PENSTOCK_INGEST_PORT"]), made["key"], 10):
        yield made


def said_by(box: Box, *words: str) -> dict[str, Any]:
    """The JSON line that a script prints at its end, run with the box's environment."""
    done = box.run(sys.executable, *words)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said
