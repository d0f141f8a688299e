"""A bad release under load, on real Spark, Kafka and Postgres, is rolled back automatically without loss."""

import logging
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import pytest
from pytest_django import Settings

from controlplane.compute.releases import ReleaseStore
from controlplane.deployer.health import health_before
from controlplane.deployer.snapshot import CellErrorRate, RolloutPolicy
from controlplane.deployer.tasks import rounds
from controlplane.provisioner.records import desired_records
from dataplane.ledger.bins import Bin
from dataplane.names import LANE_KINDS, WIRE_VERSION
from dataplane.tables.records import destination_key, redrive_key
from localbox.settings import ROOT
from mgmt.deliveries.services.redrives import release_leftovers
from mgmt.models import Cell, Destination, OffsetSet, Pipe, Redrive, Release, Rollout, RolloutStep, Topic, User
from mgmt.services import create_tenant, register_release, request_rollout
from tests.integration.controlplane.observing import observing
from tests.support.changed_builds import changed
from tests.support.data_plane import DataPlane
from tests.support.patience import Patience, until
from tests.support.sender import Sender

pytestmark = [pytest.mark.timeout(900), pytest.mark.django_db(transaction=True)]
log = logging.getLogger(__name__)
BACK_S: Final = 120.0
RATE: Final = 60.0
POLICY: Final = RolloutPolicy(up_s=300, watch_s=90)  # Spark needs minutes to start on a busy machine
A_MINUTE: Final = int(RATE * 60)  # messages; the first seconds of a new pipe may be slow themselves
JOB, PROCESS, REQUEST = "jobs/cell.py", "process/work.py", "transmit/deliveries/rendered_delivery.py"
AT_START = 'raise SystemExit("planted")\n'
AFTER_A_WHILE = """

_begin = ProcessWork.__init__

def _init(self, *arguments):
    import os, threading
    threading.Timer(25, os._exit, [9]).start()
    _begin(self, *arguments)

ProcessWork.__init__ = _init
"""
# A cell that takes more than 20 s to come back, on a busy machine, is noticed by its silence first.
CRASHES = "cell c1: (a lane crashed 2 times|.* has not reported for more than 20 s)"
REFUSES = """

def request_of(send, carried, now_s):
    from dataplane.plan.stage import StageError
    raise StageError("template", "planted")
"""
STALLS = """

_prompt = request_of

def request_of(send, carried, now_s):
    import time
    time.sleep(0.05)
    return _prompt(send, carried, now_s)
"""
DAWDLES = """

_prompt = ProcessWork.process

def _process(self, messages):
    import time
    time.sleep(3)  # half a session: far above the lag before, also where the first seconds of a pipe are slow
    _prompt(self, messages)

ProcessWork.process = _process
"""


def build(plane: DataPlane, scratch: Path, file: str, *, before: str = "", after: str = "") -> Release:
    """Pack a release like ours with a fault planted in one of its files."""
    folder = changed(scratch, file, lambda text: before + text + after)
    return known(ReleaseStore(plane.var).pack(folder))


def known(release: str) -> Release:
    return register_release(release=release, wire=WIRE_VERSION, about="", now=datetime.now(UTC))


class Rolling:
    """The Deployer on the plane's cell, and in place of the Provisioner a request for what the row says."""

    def __init__(self, plane: DataPlane, pipe: str) -> None:
        self.plane = plane
        self.old = known(ReleaseStore(plane.var).pack(ROOT))
        lanes = dict.fromkeys(LANE_KINDS, 1)
        name, epoch = plane.cluster.cell, plane.cluster.epoch
        cell = Cell.objects.create(id=name, epoch=epoch, lanes=lanes, release=self.old)
        Topic.objects.bulk_create(
            Topic(cell=cell, purpose=purpose, **msgspec.structs.asdict(topic))
            for purpose, topic in plane.cluster.topics.items()
        )
        tenant = create_tenant(name="Alice", owner=User.objects.create_user("alice"))
        row = Pipe.objects.create(id=pipe, tenant=tenant, name=pipe, cell=cell)
        config = {"type": "http", "url": plane.receiver.url(f"/{pipe}")}
        self.crm = Destination.objects.create(pipe=row, name="crm", config=config)
        self._published = {destination_key(pipe, "crm"): self.crm.version}

    def sends(self) -> Sender:
        """Return a sender for the pipe; its destination matches its row from now on."""
        crm = {"url": self.crm.config["url"]}
        key = self.plane.add_pipe(self.crm.pipe_id, {"crm": crm}, destination_version=self.crm.version)
        return self.plane.sender(key, RATE)

    def out(self, release: Release, policy: RolloutPolicy) -> tuple[Rollout, float]:
        """Roll the release out until the rollout ends; return it, and the seconds since its lanes came up.

        Seconds since the request if they never came up: Spark's start depends on the machine, not on the release.
        The seconds are those that count (see Patience).
        """
        rollout = request_rollout(release=release, author=None, now=datetime.now(UTC))
        since, is_up = Patience(), False

        def ended() -> bool:
            nonlocal since, is_up
            list(rounds(policy, datetime.now(UTC)))
            if not is_up and RolloutStep.objects.filter(rollout=rollout, up_at__isnull=False).exists():
                since, is_up = Patience(), True
            row = Cell.objects.get()
            if row.epoch != self.plane.cluster.epoch:
                self.plane.ask_for(row.epoch, str(row.release_id))
            self._publish()
            rollout.refresh_from_db()
            return rollout.ended_at is not None

        until(ended, "the end of the rollout", 500)
        took_s = since.counted_s
        log.info("release %s: %s after %.0f s: %s", release.id, rollout.state, took_s, rollout.why)
        return rollout, took_s

    def release_held(self) -> None:
        """Act as the Observer once the destination is active again, until nothing of the pipe is held.

        The plane's topics keep the held messages of earlier tests, whose pipes this test's database does not know.
        """

        def released() -> bool:
            release_leftovers()
            self._publish()
            return not self._held() and not Redrive.objects.filter(finished_at=None).exists()

        until(released, "nothing is held", 120, seen=self._held)

    def _held(self) -> list[tuple[str, int]]:
        """Return destination and number of the pipe's held messages."""
        held = OffsetSet.objects.filter(pipe_id=self.crm.pipe_id, kind=OffsetSet.Kind.HELD, count__gt=0)
        return list(held.values_list("destination", "count"))

    def _publish(self) -> None:
        """Act as the Provisioner: publish the records of changed rows."""
        self.crm.refresh_from_db()
        wanted = {destination_key(self.crm.pipe_id, self.crm.name): self.crm.version}
        wanted |= {redrive_key(move.id): move.version for move in Redrive.objects.all()}
        news = [key for key, version in wanted.items() if self._published.get(key) != version]
        self.plane.cluster.publish(*desired_records(news).records)
        self._published = wanted


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "checkout"


@pytest.fixture(autouse=True)
def _observes_the_planes_kafka(plane: DataPlane, settings: Settings) -> None:
    settings.PENSTOCK_KAFKA = plane.broker.address
    settings.PENSTOCK_FERNET_KEYS = [plane.cluster.fernet_key]


def known_health(plane: DataPlane) -> CellErrorRate:
    return health_before(plane.cluster.cell, datetime.now(UTC))


def nothing_is_lost(plane: DataPlane, pipe: str, sender: Sender, *, refuses: bool = False) -> None:
    """Check that sender, receiver and ledger agree. `refuses`: the release makes messages dead, and only that one."""
    whole = plane.settled(pipe, sender.positions, 120)
    got = Counter(received.position for received in plane.receiver.got[f"/{pipe}"])
    dead = whole.at("crm", Bin.DEAD)
    assert whole.lost() == 0
    assert bool(dead) == refuses
    missing = sender.positions - got.keys() - dead
    assert not missing, {str(bin_): found for bin_ in Bin if (found := len(missing & whole.at("crm", bin_)))}
    assert not plane.offsets.fell


@pytest.mark.long
def test_release_that_fails_at_its_start_is_rolled_back_and_nothing_is_lost(plane: DataPlane, scratch: Path):
    rolling = Rolling(plane, "bad-start")
    bad = build(plane, scratch, JOB, before=AT_START)
    with rolling.sends() as sender, observing():
        rollout, took_s = rolling.out(bad, RolloutPolicy(up_s=15, watch_s=90))
    assert (rollout.state, rollout.why) == ("rolled back", "cell c1: driver did not start within 15 s")
    assert Cell.objects.get().release == rolling.old
    assert took_s <= BACK_S
    nothing_is_lost(plane, "bad-start", sender)


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "planted", "why"),
    [
        pytest.param(PROCESS, {"after": AFTER_A_WHILE}, CRASHES, id="crash loop"),
        pytest.param(REQUEST, {"after": REFUSES}, "of its messages failed, 0.0% before", id="errors"),
        pytest.param(REQUEST, {"after": STALLS}, "accepted messages were settled", id="cannot keep up"),
        pytest.param(PROCESS, {"after": DAWDLES}, "the 95th percentile of its lag is", id="slow"),
    ],
)
def test_bad_release_that_comes_up_is_rolled_back_within_two_minutes(
    plane: DataPlane, scratch: Path, request: pytest.FixtureRequest, file: str, planted: dict[str, str], why: str
):
    pipe = f"bad-{request.node.callspec.id.replace(' ', '-')}"
    rolling = Rolling(plane, pipe)
    bad = build(plane, scratch, file, **planted)
    with rolling.sends() as sender, observing():
        until(lambda: known_health(plane).ended >= A_MINUTE, "a minute to compare with", 240)
        rollout, took_s = rolling.out(bad, POLICY)
        rolling.release_held()
    assert rollout.state == "rolled back"
    assert re.search(why, rollout.why)
    assert took_s <= BACK_S
    nothing_is_lost(plane, pipe, sender, refuses=planted == {"after": REFUSES})


@pytest.mark.long
def test_good_release_is_rolled_out_under_load_and_nothing_is_lost_or_repeated(plane: DataPlane, scratch: Path):
    rolling = Rolling(plane, "good")
    good = build(plane, scratch, JOB, after="# another build\n")
    with rolling.sends() as sender, observing():
        rollout, _ = rolling.out(good, POLICY)
    assert (rollout.state, Cell.objects.get().release) == ("done", good)
    nothing_is_lost(plane, "good", sender)
    assert Counter(received.position for received in plane.receiver.got["/good"]) == Counter(sender.positions)
    running = plane.files.running(plane.cluster.cell)
    assert running is not None
    assert running.release == good.id
