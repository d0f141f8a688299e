"""Fixtures: one whole box and one Chromium per run, and a destination that records its requests."""

import json
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, expect

from loadgen.scripted import Receiver
from localbox.testing import Box, box_of
from tests.e2e.look import chromium
from tests.e2e.mails import Mails
from tests.support.sender import Sender

LIVE_MS: Final = 240_000  # for the box's first pipe, whose cell must start first
# Ramps last seconds, and alerts about a slow or failing destination open and end within a minute.
QUICK: Final = {
    "PENSTOCK_RAMP_HOLD_S": "3",
    "PENSTOCK_RAMP_EVIDENCE": "5",
    "PENSTOCK_RECOVERY_S": "10",
    "PENSTOCK_WAITS_S": "30",
}
expect.set_options(timeout=60_000)  # a box on a busy machine answers slowly; the expected results are the same


@pytest.fixture(scope="package")
def whole_box() -> Iterator[Box]:
    """All services and processes of Penstock, with real Kafka and Spark."""
    with box_of(env=QUICK) as box:
        yield box


@pytest.fixture(scope="module")
def mails(tmp_path_factory: pytest.TempPathFactory) -> Mails:
    return Mails(tmp_path_factory.mktemp("mails"))


@pytest.fixture(scope="module")
def box(mails: Mails) -> Iterator[Box]:
    """Box with the console only, which writes its e-mails to files."""
    programs = ("postgres", "migrate", "bootstrap", "web")
    with box_of(*programs, env={"PENSTOCK_MAIL_URL": f"filemail:///{mails.folder}"}) as running:
        yield running


@pytest.fixture(scope="package")
def chrome() -> Iterator[Browser]:
    """Chromium for all tests here; while it is open, nothing else in the process may have an event loop."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    listening = Receiver()
    yield listening
    listening.close()


@pytest.fixture
def sample(whole_box: Box, receiver: Receiver) -> Iterator[dict[str, Any]]:
    """The sample pipe of `make demo`, with a steady stream of events."""
    made = said_by(whole_box, "manage.py", "demo_pipe", "--url", receiver.url("/sample"))
    with Sender(int(whole_box.env["PENSTOCK_INGEST_PORT"]), made["key"], 10):
        yield made


def said_by(box: Box, *words: str) -> dict[str, Any]:
    """Run a script in the box's environment and return the JSON line that it prints last."""
    done = box.run(sys.executable, *words)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said
