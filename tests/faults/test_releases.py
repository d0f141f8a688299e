"""A bad release under load, on real Spark, Kafka and Postgres: it is taken back by itself, and nothing is lost."""

import logging
import os
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from pytest_django import Settings

from controlplane.compute.releases import Releases
from controlplane.deployer.health import health_before
from controlplane.deployer.snapshot import Health, Policy
from controlplane.deployer.tasks import rounds
from dataplane.ledger.bins import Bin
from dataplane.names import LANE_KINDS, WIRE_VERSION
from localbox.settings import ROOT
from mgmt.models import Cell, Pipe, Release, Rollout, User
from mgmt.services import create_tenant, register_release, request_rollout
from tests.integration.controlplane.observing import observing
from tests.rig.data_plane import DataPlane, until
from tests.rig.sender import Sender

pytestmark = [pytest.mark.timeout(900), pytest.mark.django_db(transaction=True)]
log = logging.getLogger(__name__)
BACK_S: Final = 120.0
RATE: Final = 60.0
POLICY: Final = Policy(up_s=75, watch_s=90)
JOB, REQUEST = "jobs/cell.py", "transmit/request.py"
AT_START = 'raise SystemExit("planted")\n'
AFTER_A_WHILE = "import os, threading\nthreading.Timer(25, os._exit, [9]).start()\n"
REFUSES = """

def request_of(send, carried, now_s):
    from dataplane.plan.stage import StageError
    raise StageError("template", "planted")
"""
DAWDLES = """

_prompt = request_of

def request_of(send, carried, now_s):
    import time
    time.sleep(0.05)
    return _prompt(send, carried, now_s)
"""


def build(plane: DataPlane, scratch: Path, file: str, *, before: str = "", after: str = "") -> Release:
    """A release like ours but for what is planted in one of its files."""
    shutil.copytree(ROOT / "dataplane", scratch / "dataplane")
    path = scratch / "dataplane" / file
    path.write_text(before + path.read_text() + after)
    return known(Releases(plane.var).pack(scratch))


def known(release: str) -> Release:
    return register_release(release=release, wire=WIRE_VERSION, about="", now=datetime.now(UTC))


class Rolling:
    """The Deployer on the plane's cell, and what the Provisioner does between: asks for what the row says."""

    def __init__(self, plane: DataPlane, pipe: str) -> None:
        self.plane = plane
        self.old = known(Releases(plane.var).pack(ROOT))
        lanes = dict.fromkeys(LANE_KINDS, 1)
        name, epoch = plane.cluster.cell, plane.cluster.epoch
        cell = Cell.objects.create(id=name, epoch=epoch, lanes=lanes, release=self.old)
        tenant = create_tenant(name="Alice", owner=User.objects.create_user("alice"))
        Pipe.objects.create(id=pipe, tenant=tenant, name=pipe, cell=cell)

    def out(self, release: Release, policy: Policy) -> tuple[Rollout, float]:
        """Roll it out until that ends; the rollout, and how many seconds it took."""
        rollout = request_rollout(release=release, author=None, now=datetime.now(UTC))

        def ended() -> bool:
            list(rounds(policy, datetime.now(UTC)))
            row = Cell.objects.get()
            if row.epoch != self.plane.cluster.epoch:
                self.plane.ask_for(row.epoch, str(row.release_id))
            rollout.refresh_from_db()
            return rollout.ended_at is not None

        took = until(ended, "the end of the rollout", 500)
        log.info("release %s: %s after %.0f s: %s", release.id, rollout.state, took, rollout.why)
        return rollout, took


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "checkout"


@pytest.fixture(autouse=True)
def _observes_the_planes_kafka(plane: DataPlane, settings: Settings) -> None:
    settings.PENSTOCK_KAFKA = plane.broker.address
    settings.PENSTOCK_FERNET_KEYS = [plane.cluster.fernet_key]


def allowed_s() -> float:
    """Two minutes on a machine of our own; where others wait for the processors too, as much more as they make us."""
    return BACK_S * max(1.0, os.getloadavg()[0] / (2 * (os.cpu_count() or 1)))


def sends_to(plane: DataPlane, pipe: str) -> Sender:
    return plane.sender(plane.add_pipe(pipe, {"crm": {"url": plane.receiver.url(f"/{pipe}")}}), RATE)


def known_health(plane: DataPlane) -> Health:
    return health_before(plane.cluster.cell, datetime.now(UTC))


def nothing_is_lost(plane: DataPlane, pipe: str, sender: Sender) -> None:
    """The three books say the same; what the bad release made dead is named as that."""
    whole = plane.settled(pipe, sender.positions, 120)
    got = Counter(received.position for received in plane.receiver.got[f"/{pipe}"])
    dead = whole.at("crm", Bin.DEAD)
    assert whole.lost() == 0
    missing = sender.positions - got.keys() - dead
    assert not missing, {str(bin_): found for bin_ in Bin if (found := len(missing & whole.at("crm", bin_)))}
    assert not plane.offsets.fell


def test_a_release_that_fails_at_its_start_is_taken_back_and_nothing_is_lost(plane: DataPlane, scratch: Path):
    rolling = Rolling(plane, "bad-start")
    bad = build(plane, scratch, JOB, before=AT_START)
    with sends_to(plane, "bad-start") as sender, observing():
        rollout, took = rolling.out(bad, Policy(up_s=15, watch_s=90))
    assert (rollout.state, rollout.why) == ("rolled back", "cell c1: driver did not come up within 15 s")
    assert Cell.objects.get().release == rolling.old
    assert took <= allowed_s()
    nothing_is_lost(plane, "bad-start", sender)


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "planted", "why"),
    [
        pytest.param(JOB, {"before": AFTER_A_WHILE}, "cell c1: a lane died 2 times", id="crash loop"),
        pytest.param(REQUEST, {"after": REFUSES}, "of its messages failed, 0.0% before", id="errors"),
        pytest.param(REQUEST, {"after": DAWDLES}, "the 95th percentile of its lag is", id="slow"),
    ],
)
def test_a_release_that_comes_up_and_is_bad_is_taken_back_within_two_minutes(
    plane: DataPlane, scratch: Path, request: pytest.FixtureRequest, file: str, planted: dict[str, str], why: str
):
    pipe = f"bad-{request.node.callspec.id.replace(' ', '-')}"
    rolling = Rolling(plane, pipe)
    bad = build(plane, scratch, file, **planted)
    with sends_to(plane, pipe) as sender, observing():
        until(lambda: known_health(plane).ended > POLICY.enough, "something to compare with", 180)
        rollout, took = rolling.out(bad, POLICY)
    assert rollout.state == "rolled back"
    assert why in rollout.why
    assert took <= allowed_s()
    nothing_is_lost(plane, pipe, sender)


@pytest.mark.long
def test_a_good_release_goes_out_under_load_and_nothing_is_lost_or_comes_twice(plane: DataPlane, scratch: Path):
    rolling = Rolling(plane, "good")
    good = build(plane, scratch, JOB, after="# another build\n")
    with sends_to(plane, "good") as sender, observing():
        rollout, _ = rolling.out(good, POLICY)
    assert (rollout.state, Cell.objects.get().release) == ("done", good)
    nothing_is_lost(plane, "good", sender)
    assert Counter(received.position for received in plane.receiver.got["/good"]) == Counter(sender.positions)
    running = plane.files.running(plane.cluster.cell)
    assert running is not None
    assert running.release == good.id
