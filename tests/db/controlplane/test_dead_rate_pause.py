"""Pipe with failing steps: a lane's signal pauses it, pages show the cause, held messages are released."""

import copy
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.observer.store import LedgerStore
from controlplane.provisioner.records import desired_records
from dataplane.causes import Cause
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.units import position_of
from dataplane.names import cell_topic
from dataplane.tables.records import PipeRecord
from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal, encode_signal, signal_key
from mgmt.alerts.services import probes
from mgmt.alerts.services.alerts import WELL_AFTER, resolve_recovered
from mgmt.deliveries.services.redrives import release_leftovers
from mgmt.messages.queries.records import StoredRecord
from mgmt.models import Alert, AuditOffset, Cell, LaneSignal, Pipe, PipeMigration, PipeRevision, Redrive, User
from mgmt.services import FixNotLiveError, pause_pipe, publish_revision, resume_pipe
from tests.db.console.truth import Truth, go_live
from tests.db.controlplane.test_observer_outcomes import AT, Message, save

HELD, SIGNALS = (cell_topic("c1", purpose, 1) for purpose in ("held", "signals"))
BUCKET = 29_000_000
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


def hold_signal(pipe: Pipe, of_version: int, offset: int = 0) -> Message:
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
    save(store, hold_signal(live, live.version))
    before = live.version
    live.refresh_from_db()
    assert (live.state, live.state_cause, live.state_reason) == ("paused", Cause.DEAD_RATE, WHY)
    assert live.version == before + 1
    alert = Alert.objects.get()
    assert (alert.destination, alert.cause, alert.suspended, alert.sample["reason"]) == ("", Cause.DEAD_RATE, True, WHY)
    assert not LaneSignal.objects.exists()


def test_signal_is_ignored_if_the_pipe_was_changed_since_or_is_paused_already(store: LedgerStore, live: Pipe):
    save(store, hold_signal(live, live.version - 1))
    live.refresh_from_db()
    assert live.state == "active"
    pause_pipe(pipe=live)
    save(store, hold_signal(live, live.version, offset=1))
    live.refresh_from_db()
    assert (live.state, live.state_cause) == ("paused", "")


def test_pipe_record_carries_the_cause_to_the_lanes(store: LedgerStore, live: Pipe):
    save(store, hold_signal(live, live.version))
    (record,) = desired_records([f"pipe/{live.id}"]).records
    assert isinstance(record, PipeRecord)
    assert (record.state, record.cause) == ("paused", Cause.DEAD_RATE)


@pytest.fixture
def readable(monkeypatch: pytest.MonkeyPatch, live: Pipe) -> None:
    """Let the held record be read, as from Kafka."""
    meta = MessageMeta(1, "m4", live.id, 1, "shop", 0, 0, BUCKET, position=position_of(1, 0, 4))
    monkeypatch.setattr(probes, "read_record", lambda *_, **__: StoredRecord(meta, (), b"{}", 2))


def put_fix_live(pipe: Pipe, alice: User) -> PipeRevision:
    spec = copy.deepcopy(pipe.revisions.get(number=1).spec)
    spec["normalize"] = [{"op": "remove", "path": "total"}]
    revision = publish_revision(pipe=pipe, spec=spec, based_on=1, author=alice)
    go_live(pipe)
    pipe.refresh_from_db()
    return revision


def test_fix_of_a_failing_revision_takes_all_keys_at_once(store: LedgerStore, live: Pipe, alice: User):
    assert not publish_revision(pipe=live, spec=live.revisions.get(number=1).spec, based_on=1, author=alice).at_once, (
        "a live revision that works is compared with the next one"
    )
    save(store, hold_signal(live, live.version + 1))
    revision = publish_revision(pipe=live, spec=live.revisions.get(number=1).spec, based_on=2, author=alice)
    assert revision.at_once
    assert not publish_revision(pipe=live, spec=revision.spec, based_on=3, author=alice, at_once=False).at_once, (
        "unless the author chose otherwise"
    )


def test_pipe_is_not_resumed_before_a_fix_is_live(store: LedgerStore, live: Pipe, alice: User):
    save(store, hold_signal(live, live.version), held(live, 4))
    live.refresh_from_db()
    with pytest.raises(FixNotLiveError, match="still live"):
        resume_pipe(pipe=live, by=alice)
    publish_revision(pipe=live, spec=live.revisions.get(number=1).spec, based_on=1, author=alice)
    live.refresh_from_db()
    with pytest.raises(FixNotLiveError):  # requested, not live
        resume_pipe(pipe=live, by=alice)
    live.refresh_from_db()
    assert (live.state, Redrive.objects.count()) == ("paused", 0)


def test_one_held_event_passes_the_steps_before_the_rest_is_released(
    store: LedgerStore, live: Pipe, alice: User, readable: None
):
    save(store, hold_signal(live, live.version), held(live, 4), held(live, 5))
    live.refresh_from_db()
    put_fix_live(live, alice)
    assert resume_pipe(pipe=live, by=alice)
    live.refresh_from_db()
    assert live.state == "paused"
    move = Redrive.objects.get()
    assert (move.destination, move.what, move.total, move.probe, move.through) == ("", "release", 1, True, True)
    assert release_leftovers() == 0
    assert probes.judge_probes(now=timezone.now()) == 0, "the event has not left the steps yet"
    Truth(live).fact(BUCKET, "process", "sent", [4])
    assert probes.judge_probes(now=timezone.now()) == 1
    live.refresh_from_db()
    assert (live.state, Alert.objects.get().probe) == ("active", "accepted")
    assert release_leftovers() == 1
    assert Redrive.objects.get(probe=False).total == 1


def test_event_that_fails_in_the_fix_leaves_the_rest_held(store: LedgerStore, live: Pipe, alice: User, readable: None):
    save(store, hold_signal(live, live.version), held(live, 4), held(live, 5))
    live.refresh_from_db()
    put_fix_live(live, alice)
    resume_pipe(pipe=live, by=alice)
    Truth(live).fact(BUCKET, "process", "sent", [4])
    Truth(live).fact(BUCKET, "transform:crm", "dead", [4], "step")
    assert probes.judge_probes(now=timezone.now()) == 1
    live.refresh_from_db()
    alert = Alert.objects.get()
    assert (live.state, alert.probe, alert.probe_says) == ("paused", "refused", "step at transform")
    assert release_leftovers() == 0
    assert resume_pipe(pipe=live, by=alice), "the next test may run"


def test_person_who_corrected_the_events_tests_one_without_a_new_revision(
    store: LedgerStore, live: Pipe, alice: User, readable: None
):
    save(store, hold_signal(live, live.version), held(live, 4))
    Alert.objects.all().delete()  # the test opens it again
    live.refresh_from_db()
    assert resume_pipe(pipe=live, by=alice, without_fix=True)
    assert (Redrive.objects.get().probe, Alert.objects.get().probe) == (True, "running")


def test_person_resumes_the_pipe_without_held_messages_at_once(store: LedgerStore, live: Pipe, alice: User):
    save(store, hold_signal(live, live.version))
    live.refresh_from_db()
    put_fix_live(live, alice)
    assert resume_pipe(pipe=live)
    live.refresh_from_db()
    assert (live.state, live.state_cause, live.state_reason) == ("active", "", "")
    later = datetime.now(UTC) + WELL_AFTER + timedelta(seconds=1)
    assert resolve_recovered(now=later) == 1
    assert Alert.objects.get().resolution == "the pipe was resumed"


def test_pages_show_the_cause_the_held_messages_and_their_release(
    store: LedgerStore, live: Pipe, alice: User, client: Client, readable: None
):
    save(store, hold_signal(live, live.version), held(live, 4))
    client.force_login(alice)
    live.refresh_from_db()
    page = client.get(f"/pipes/{live.id}/").content.decode()
    assert "too many messages fail in the pipe&#x27;s steps" in page
    assert WHY in page
    assert "Resume</button>" not in page
    assert "Resume is possible once it is live" in page
    assert "Test one held event</button>" in page
    client.post(f"/pipes/{live.id}/resume/")
    live.refresh_from_db()
    assert live.state == "paused"
    assert 'value="at-once" checked' in client.get(f"/pipes/{live.id}/edit/").content.decode()
    put_fix_live(live, alice)
    page = client.get(f"/pipes/{live.id}/").content.decode()
    assert "Revision 2 is live: resume the pipe" in page
    assert "Resume</button>" in page
    assert "1 held before the first step" in client.get(f"/pipes/{live.id}/held/").content.decode()
    alert = client.get(f"/pipes/{live.id}/alerts/{Alert.objects.get().id}/").content.decode()
    assert "Test one event, then resume</button>" in alert
    client.post(f"/pipes/{live.id}/resume/")
    assert "One held event is running through the steps" in client.get(f"/pipes/{live.id}/").content.decode()
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
