"""Migration of a pipe under load while lanes die: nothing is lost, and the messages that waited on the old cell
are delivered as well."""

import http.client
import os
import signal
import subprocess
import sys
import uuid
from asyncio import StreamWriter
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from django.conf import LazySettings

from controlplane.observer.reader import AuditReader
from controlplane.observer.sealing import Sealer
from dataplane.ledger.bins import Bin, BucketAccount
from dataplane.ledger.units import parse_position, place_of
from dataplane.names import AUDIT_PARTITIONS, LANE_KINDS, PURPOSES, WIRE_VERSION, LaneKind, cell_topic
from loadgen.scripted import Received, Receiver, status
from localbox.ports import free_ports
from localbox.settings import ROOT
from localbox.testing_kafka import role_env
from mgmt.deliveries.queries.message_selection import MessageSelection
from mgmt.deliveries.services.redrives import release_leftovers
from mgmt.ledger.queries.ledger import accounts
from mgmt.messages.queries.journey import message_journey
from mgmt.messages.queries.message_search import find_messages
from mgmt.models import Cell, ControlAction, DeadLetter, Heartbeat, OffsetSet, PipeMigration, Seal, Topic, User
from mgmt.services import (
    create_api_key,
    create_pipe,
    create_tenant,
    pause_destination,
    register_release,
    request_migration,
    resume_destination,
    start_redrive,
)
from tests.integration.controlplane.observing import observing
from tests.integration.controlplane.test_provisioner_tick import provisioner_at
from tests.support.crash_cells import LaneServer
from tests.support.kafka import broker_admin
from tests.support.keyed import KEYS, Keyed, numbers_of
from tests.support.lane_server import Order
from tests.support.patience import until
from tests.support.sender import Acked, Sender

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(1_500)]
RELEASE: Final = "0123456789abcdef"
RATE: Final = 150.0
JSON: Final = {"content-type": "application/json"}
LARGER: Final = 7  # partitions
WAITING: Final = ("late", "dead", "held")


class Cells:
    """Two cells with a lane of each kind in plain processes, one ingest replica, and a Provisioner that ticks.

    The second cell has more partitions: a migration is how a cell grows.
    """

    def __init__(self, kafka: str, var: Path, fernet_key: str) -> None:
        stem = f"r{uuid.uuid4().hex[:6]}"
        self.names = [f"{stem}{end}" for end in "ab"]
        register_release(release=RELEASE, wire=WIRE_VERSION, about="", now=datetime.now(UTC))
        self.port = free_ports(1)[0]
        self.provisioner = provisioner_at(kafka, var)
        for name, partitions in zip(self.names, (None, LARGER), strict=True):  # a pipe is placed on the first of both
            Cell.objects.create(id=name, release_id=RELEASE, partitions=partitions)
        self.provisioner.tick()
        of_ingest = Topic.objects.filter(purpose="ingest").order_by("cell").values_list("partitions", flat=True)
        assert list(of_ingest) == [4, LARGER]
        self._env = {
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "platform"))),
            "PENSTOCK_KAFKA": kafka,
            "PENSTOCK_VAR": str(var),
            "PENSTOCK_INGEST_PORT": str(self.port),
            "PENSTOCK_FERNET_KEYS": fernet_key,
            "PENSTOCK_DESTINATION_ALLOW": "127.0.0.0/8",
        }
        command = [sys.executable, "-m", "dataplane.ingest", "--replica", "ingest-1"]
        with (var / "ingest.log").open("wb") as log:
            self._ingest = subprocess.Popen(
                command, cwd=ROOT, env=os.environ | self._env | role_env("ingest"), stdout=log, stderr=log
            )
        self.server = LaneServer(self._env)
        for name in self.names:
            for kind in LANE_KINDS:
                self.start(name, kind)

    def start(self, cell: str, kind: LaneKind) -> None:
        self.server.start(Order(f"{cell}/{kind}", cell, kind, "run-1", self._env))

    def kill(self, cell: str, kind: LaneKind) -> None:
        """Kill a lane by the pid of its heartbeat, and start another when it has ended."""
        os.kill(Heartbeat.objects.get(cell=cell, writer=f"{kind}-0").body["pid"], signal.SIGKILL)
        until(lambda: self.server.ended.get(f"{cell}/{kind}") == -signal.SIGKILL, limit_s=30)
        self.start(cell, kind)

    def ticks_until(self, truth: Any, limit_s: float = 60) -> None:
        until(lambda: self.provisioner.tick() and truth(), limit_s=limit_s)

    def tell_all(self, cell: str) -> None:
        """Publish the records of all rows, and wait until the cell's lanes hold them."""
        self.provisioner.tick()
        end = max(one.offset for one in self.provisioner._hands.control.published.values()) + 1
        until(lambda: not Heartbeat.objects.filter(cell=cell, table_offset__lt=end).exists(), limit_s=30)

    def wait_accepting(self, key: str) -> None:
        """Wait until ingest runs and knows this API key: it then refuses only the body."""

        def knows_key() -> bool:
            with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as connection:
                try:
                    connection.request("POST", "/v1/events", b"not json", {"authorization": f"Bearer {key}"} | JSON)
                    return connection.getresponse().status == 400
                except OSError:
                    return False

        until(knows_key, limit_s=60)

    def close(self) -> None:
        self.server.close()
        self._ingest.terminate()
        self._ingest.wait(40)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    running = Receiver()
    yield running
    running.close()


@pytest.fixture
def cells(kafka: str, tmp_path: Path, settings: LazySettings) -> Iterator[Cells]:
    made = Cells(kafka, tmp_path, settings.PENSTOCK_FERNET_KEYS[0])
    yield made
    made.close()
    admin = broker_admin(kafka)
    names = list(Topic.objects.values_list("name", flat=True))
    assert {cell_topic(cell, "ingest", n) for n, cell in enumerate(made.names, 1)} <= set(names)
    assert len(names) == 2 * len(PURPOSES)
    for future in admin.delete_topics(names).values():
        future.exception()


class Story:
    """A pipe that sends all events to `crm`, and to each other destination the events that wait there."""

    def __init__(self, cells: Cells, receiver: Receiver) -> None:
        self.cells, self.receiver = cells, receiver
        self.well = {"late": False, "dead": False}
        receiver.answers |= {"/late": self._answer("late", 503), "/dead": self._answer("dead", 400)}
        retry = {"local_tries": 1, "delays_s": [5]}
        to = {name: {"type": "http", "url": receiver.url(f"/{name}"), "retry": retry} for name in ("crm", *WAITING)}
        rules = [{"when": f"has(body.{name})", "to": [name]} for name in WAITING]
        spec = {
            "sources": {"shop": {}},
            "routes": {"mode": "all", "rules": [*rules, {"when": "true", "to": ["crm"]}]},
            "destinations": to,
        }
        self.alice = User.objects.create_user("alice")
        tenant = create_tenant(name="Alice", owner=self.alice)
        self.pipe = create_pipe(tenant=tenant, name="orders", spec=spec, author=self.alice)
        self.key = create_api_key(source=self.pipe.sources.get())[1]
        self.acked: list[Acked] = []
        self.waiting: dict[str, set[str]] = {}  # ids of the events that a second destination gets, too

    def _answer(self, name: str, bad: int) -> Any:
        async def behave(writer: StreamWriter, received: Received) -> bool:
            return await status(204 if self.well[name] else bad)(writer, received)

        return behave

    def sender(self, rate: float, field: str) -> Sender:
        return Sender(self.cells.port, self.key, rate, field=field)

    def send(self, field: str, count: int) -> None:
        with self.sender(50, field) as sender:
            until(lambda: len(sender.acked) >= count, limit_s=30)
        self.acked += sender.acked
        self.waiting[field] = {one.id for one in sender.acked}

    def account(self) -> dict[int, BucketAccount]:
        return accounts(self.pipe.id, {one.bucket for one in self.acked})

    def bins(self) -> Counter[str]:
        of_all = Counter[str]()
        for account in self.account().values():
            for found in (account.upstream, *account.destinations.values()):
                of_all.update({name.value: len(units) for name, units in found.items() if units})
        return of_all

    def bins_at(self, destination: str) -> set[Bin]:
        """Return the bins of a destination that are not empty."""
        of_all = [account.destinations.get(destination, {}) for account in self.account().values()]
        return {name for found in of_all for name, units in found.items() if units}

    def got(self, path: str, *, answered: int = 204) -> Counter[str]:
        return Counter(one.id for one in self.receiver.got[path] if one.answered == answered)


@pytest.mark.long
def test_migration_under_load_also_delivers_messages_that_waited_on_the_old_cell(
    cells: Cells, receiver: Receiver, kafka: str
):
    with ExitStack() as stack:
        stack.enter_context(observing())
        story = Story(cells, receiver)
        pipe = story.pipe
        cells.ticks_until(lambda: pipe.revisions.filter(state="live").exists(), 90)
        cells.wait_accepting(story.key)
        pipe.refresh_from_db()
        old, new = cells.names
        assert pipe.cell_id == old

        pause_destination(destination=pipe.destinations.get(name="held"))
        cells.tell_all(old)
        for name in WAITING:
            story.send(name, 3)
        held = OffsetSet.objects.filter(pipe_id=pipe.id, destination="held", kind="held", count__gt=0)
        until(lambda: held.exists() and DeadLetter.objects.count() >= 3 and story.bins()["retrying"] >= 3, limit_s=30)

        load = stack.enter_context(ExitStack())
        sender = load.enter_context(story.sender(RATE, "n"))
        until(lambda: len(sender.acked) > RATE, limit_s=30)
        row = request_migration(
            pipe=pipe, target=Cell.objects.get(id=new), reason="room", by=story.alice, now=datetime.now(UTC)
        )
        cells.ticks_until(lambda: PipeMigration.objects.get().state == "draining")
        cells.kill(old, "process")
        cells.kill(new, "transmit")
        generations = {cell: Topic.objects.get(cell=cell, purpose="ingest").generation for cell in (old, new)}
        until(lambda: any(_generation(one.position) == generations[new] for one in sender.acked), limit_s=30)
        cells.ticks_until(lambda: PipeMigration.objects.get(id=row.id).state == "done", 90)
        late = story.bins_at("late")
        assert late
        assert late <= {Bin.RETRYING, Bin.QUEUED}, "scheduled retries continue to wait"
        load.close()
        story.acked += sender.acked

        story.well = {"late": True, "dead": True}
        resume_destination(destination=pipe.destinations.get(name="held"))
        start_redrive(pipe=pipe, chosen=MessageSelection("dead"), by=story.alice)
        release_leftovers()
        count = len(story.acked) + sum(map(len, story.waiting.values()))
        cells.ticks_until(lambda: story.bins() == {"delivered": count}, 90)

    moved = {_generation(one.position) for one in sender.acked}
    assert moved == set(generations.values()), "each event was sent to one cell, and both got some"
    delivered = story.got("/crm")
    assert {one.id for one in story.acked} <= delivered.keys()
    twice = {id_ for id_, times in delivered.items() if times > 1}
    assert len(twice) <= RATE, "only messages that the killed transmit lane had not reported yet are repeated"
    for name in WAITING:
        assert len(story.waiting[name]) >= 3
        assert story.got(f"/{name}") == Counter(story.waiting[name]), "each is delivered once"
    assert sum(account.count(Bin.LOST) for account in story.account().values()) == 0
    before = next(one for one in story.acked if _generation(one.position) == generations[old])
    assert message_journey(pipe, parse_position(before.position)).record is not None
    for one in (before, story.acked[-1]):
        for name in (one.id, one.position):
            found = [(message.pipe_id, message.position) for message in find_messages([pipe], name)]
            assert found == [(pipe.id, parse_position(one.position))]
    actions = ControlAction.objects.filter(cell=old, action__endswith="-pipe").exclude(outcome="refused").order_by("id")
    assert [(action.action, action.outcome) for action in actions] == [
        ("move-pipe", "requested"), ("switch-pipe", "done"), ("move-pipe", "done")
    ]  # fmt: skip
    _assert_sealed(story, kafka)


def test_each_key_keeps_its_order_while_its_pipe_is_migrated_and_lanes_die(cells: Cells, receiver: Receiver):
    old, new = cells.names
    to = {"crm": {"type": "http", "url": receiver.url("/crm"), "ordered": True}}
    alice = User.objects.create_user("alice")
    tenant = create_tenant(name="Alice", owner=alice)
    spec = {"sources": {"shop": {"key": "user"}}, "destinations": to}
    pipe = create_pipe(tenant=tenant, name="orders", spec=spec, author=alice)
    key = create_api_key(source=pipe.sources.get())[1]
    with observing():
        cells.ticks_until(lambda: pipe.revisions.filter(state="live").exists(), 90)
        cells.wait_accepting(key)
        with Keyed(cells.port, key) as sender:
            until(lambda: sum(sender.acked.values()) > 10 * KEYS, limit_s=30)
            request_migration(
                pipe=pipe, target=Cell.objects.get(id=new), reason="room", by=alice, now=datetime.now(UTC)
            )
            cells.ticks_until(lambda: PipeMigration.objects.get().state == "draining")
            cells.kill(old, "transmit")
            cells.kill(new, "process")
            held = OffsetSet.objects.filter(pipe_id=pipe.id, destination="", count__gt=0)
            until(held.exists, limit_s=30)
            assert release_leftovers() == 0, "the source cell still has earlier messages"
            cells.ticks_until(lambda: PipeMigration.objects.get().state == "done", 120)
            until(release_leftovers, limit_s=30)
            cells.ticks_until(lambda: pipe.moves.filter(state="done").exists(), 60)
            cells.kill(new, "process")
            more = sum(sender.acked.values()) + 5 * KEYS
            until(lambda: sum(sender.acked.values()) > more, limit_s=30)
        total = sum(sender.acked.values())

        def all_came() -> bool:
            release_leftovers()  # a process lane that only knows that something is held also holds later messages
            return sum(map(len, numbers_of(receiver.got["/crm"]).values())) >= total

        cells.ticks_until(all_came, 120)
    assert set(pipe.moves.values_list("destination", flat=True)) == {""}, (
        "messages of the meantime were held before the steps"
    )
    assert numbers_of(receiver.got["/crm"]) == {user: list(range(count)) for user, count in sender.acked.items()}


def _generation(position: str) -> int:
    return place_of(parse_position(position)).generation


def _assert_sealed(story: Story, kafka: str) -> None:
    """Seal the minutes as the Observer will: each has its ACKed count and nothing lost."""
    sealer, reader = Sealer(grace_s=60), AuditReader(kafka)
    for partition in range(AUDIT_PARTITIONS):
        sealer.load(partition)
    later = datetime.now(UTC) + timedelta(minutes=10)
    until(lambda: sealer.step(later, reader.bounds) == 0, limit_s=30)
    by_minute = Counter(one.bucket for one in story.acked)
    seals = Seal.objects.filter(pipe_id=story.pipe.id, bucket__in=by_minute)
    assert {seal.bucket: (seal.accepted, seal.lost) for seal in seals} == {
        bucket: (count, 0) for bucket, count in by_minute.items()
    }
