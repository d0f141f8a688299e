"""Pipe with failing steps: a lane's signal pauses it, pages show the cause, held messages are released."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.observer.store import LedgerStore
from controlplane.provisioner.records import desired_records
from dataplane.causes import Cause
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.names import cell_topic
from dataplane.tables.records import PipeRecord
from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal, encode_signal, signal_key
from mgmt.alerts.services.alerts import WELL_AFTER, resolve_recovered
from mgmt.deliveries.services.redrives import release_leftovers
from mgmt.models import Alert, AuditOffset, Cell, LaneSignal, Pipe, PipeMigration, Redrive, User
from mgmt.services import pause_pipe, resume_pipe
from tests.db.console.truth import go_live
from tests.db.controlplane.test_observer_ends import AT, Message, save

HELD, SIGNALS = (cell_topic("c1", purpose, 1) for purpose in ("held", "signals"))
WHY = "100 of 100 messages were dead-lettered within a minute, the last at normalize: step"


@pytest.fixture
def live(pipe: Pipe) -> Pipe:
    go_live(pipe)
    pipe.refresh_from_db()
    return pipe


@pytest.fixture
def store(live: Pipe) -> LedgerStore:
    store = LedgerStore()
    for topic in (HELD, SIGNALS):
        AuditOffset.objects.create(topic=topic, partition=0, next_offset=0)
        store.offsets[topic, 0] = 0
    return store


def word(pipe: Pipe, of_version: int, offset: int = 0) -> Message:
    """Return a process lane's signal that suspends the pipe."""
    at_us = int(AT.timestamp() * 1e6)
    signal = DestinationSignal(
        SIGNAL_VERSION, "c1", "process-0", pipe.id, "", at_us,
        breaker="open", suspended=Cause.DEAD_RATE, reason=WHY, of_version=of_version,
    )  # fmt: skip
    return Message(SIGNALS, offset, key=signal_key(signal).encode(), value=encode_signal(signal))


def held(pipe: Pipe, offset: int) -> Message:
    meta = MessageMeta(1, f"m{offset}", pipe.id, 1, "shop", 0, 0, 29_000_000, position=offset + 1, attempt=1)
    return Message(HELD, offset, headers=[(META_HEADER, encode_meta(meta))])


def test_lane_signal_pauses_the_pipe_with_its_cause_and_opens_an_alert(store: LedgerStore, live: Pipe):
    save(store, word(live, live.version))
    before = live.version
    live.refresh_from_db()
    assert (live.state, live.state_cause, live.state_reason) == ("paused", Cause.DEAD_RATE, WHY)
    assert live.version == before + 1
    alert = Alert.objects.get()
    assert (alert.destination, alert.cause, alert.suspended, alert.sample["reason"]) == ("", Cause.DEAD_RATE, True, WHY)
    assert not LaneSignal.objects.exists()


def test_signal_is_ignored_if_the_pipe_was_changed_since_or_is_paused_already(store: LedgerStore, live: Pipe):
    save(store, word(live, live.version - 1))
    live.refresh_from_db()
    assert live.state == "active"
    pause_pipe(pipe=live)
    save(store, word(live, live.version, offset=1))
    live.refresh_from_db()
    assert (live.state, live.state_cause) == ("paused", "")


def test_pipe_record_carries_the_cause_to_the_lanes(store: LedgerStore, live: Pipe):
    save(store, word(live, live.version))
    (record,) = desired_records([f"pipe/{live.id}"]).records
    assert isinstance(record, PipeRecord)
    assert (record.state, record.cause) == ("paused", Cause.DEAD_RATE)


def test_person_resumes_the_pipe_and_held_messages_are_released(store: LedgerStore, live: Pipe):
    save(store, word(live, live.version), held(live, 4), held(live, 5))
    assert release_leftovers() == 0
    live.refresh_from_db()
    assert resume_pipe(pipe=live)
    assert (live.state, live.state_cause, live.state_reason) == ("active", "", "")
    assert (release_leftovers(), release_leftovers()) == (1, 0)
    move = Redrive.objects.get()
    assert (move.destination, move.what, move.total) == ("", "release", 2)
    later = datetime.now(UTC) + WELL_AFTER + timedelta(seconds=1)
    assert resolve_recovered(now=later) == 1
    assert Alert.objects.get().resolution == "the pipe was resumed"


def test_pages_show_the_cause_the_held_messages_and_their_release(
    store: LedgerStore, live: Pipe, alice: User, client: Client
):
    save(store, word(live, live.version), held(live, 4))
    client.force_login(alice)
    page = client.get(f"/pipes/{live.id}/").content.decode()
    assert "too many messages fail in the pipe&#x27;s steps" in page
    assert WHY in page
    assert "Resume</button>" in page
    assert "1 held before the first step" in client.get(f"/pipes/{live.id}/held/").content.decode()
    alert = client.get(f"/pipes/{live.id}/alerts/{Alert.objects.get().id}/").content.decode()
    assert "Resume the pipe</button>" in alert
    client.post(f"/pipes/{live.id}/resume/")
    release_leftovers()
    page = client.get(f"/pipes/{live.id}/held/").content.decode()
    assert ">pipe steps</td>" in page


def test_messages_held_for_a_migration_show_that_reason(store: LedgerStore, live: Pipe, client: Client, alice: User):
    save(store, held(live, 4))
    row = PipeMigration.objects.create(
        pipe=live,
        source_id=str(live.cell_id),
        target=Cell.objects.create(id="c9"),
        state="draining",
        asked_at=timezone.now(),
        held_at=timezone.now(),
    )
    client.force_login(alice)
    says = "The pipe is being migrated within the platform"
    assert says in client.get(f"/pipes/{live.id}/held/").content.decode()
    assert release_leftovers() == 0
    PipeMigration.objects.filter(id=row.id).update(state="done")
    assert says not in client.get(f"/pipes/{live.id}/held/").content.decode()
    assert release_leftovers() == 1
