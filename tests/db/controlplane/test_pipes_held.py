"""A pipe whose messages die in its steps: a lane's word pauses it, people see why, and what is held comes back."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.observer.store import Store
from controlplane.provisioner.records import desired_records
from dataplane.ledger.meta import META_HEADER, Meta, encode_meta
from dataplane.names import cell_topic
from dataplane.tables.records import DEAD_RATE, PipeRecord
from dataplane.tables.signals import SIGNAL_VERSION, Signal, encode_signal, signal_key
from mgmt.models import Alert, AuditOffset, Cell, LaneSignal, Move, Pipe, Relocation, User
from mgmt.services import pause_pipe, resume_pipe
from mgmt.services.alerts import WELL_AFTER, resolve_what_is_well
from mgmt.services.moves import release_leftovers
from tests.db.console.truth import go_live
from tests.db.controlplane.test_observer_ends import AT, Message, save

HELD, SIGNALS = (cell_topic("c1", purpose, 1) for purpose in ("held", "signals"))
WHY = "100 of 100 messages died within a minute, the last of them at normalize: step"


@pytest.fixture
def live(pipe: Pipe) -> Pipe:
    go_live(pipe)
    pipe.refresh_from_db()
    return pipe


@pytest.fixture
def store(live: Pipe) -> Store:
    store = Store()
    for topic in (HELD, SIGNALS):
        AuditOffset.objects.create(topic=topic, partition=0, next_offset=0)
        store.offsets[topic, 0] = 0
    return store


def word(pipe: Pipe, of_version: int, offset: int = 0) -> Message:
    """What a process lane says of the pipe."""
    at_us = int(AT.timestamp() * 1e6)
    signal = Signal(
        SIGNAL_VERSION, "c1", "process-0", pipe.id, "", at_us,
        breaker="open", suspended=DEAD_RATE, reason=WHY, of_version=of_version,
    )  # fmt: skip
    return Message(SIGNALS, offset, key=signal_key(signal).encode(), value=encode_signal(signal))


def held(pipe: Pipe, offset: int) -> Message:
    meta = Meta(1, f"m{offset}", pipe.id, 1, "shop", 0, 0, 29_000_000, position=offset + 1, attempt=1)
    return Message(HELD, offset, headers=[(META_HEADER, encode_meta(meta))])


def test_a_lane_s_word_pauses_the_pipe_with_its_cause_and_opens_an_alert(store: Store, live: Pipe):
    save(store, word(live, live.version))
    before = live.version
    live.refresh_from_db()
    assert (live.state, live.state_cause, live.state_reason) == ("paused", DEAD_RATE, WHY)
    assert live.version == before + 1
    alert = Alert.objects.get()
    assert (alert.destination, alert.cause, alert.suspended, alert.sample["reason"]) == ("", DEAD_RATE, True, WHY)
    assert not LaneSignal.objects.exists()


def test_of_a_pipe_that_was_changed_since_or_is_paused_already_it_changes_nothing(store: Store, live: Pipe):
    save(store, word(live, live.version - 1))
    live.refresh_from_db()
    assert live.state == "active"
    pause_pipe(pipe=live)
    save(store, word(live, live.version, offset=1))
    live.refresh_from_db()
    assert (live.state, live.state_cause) == ("paused", "")


def test_lanes_are_told_why(store: Store, live: Pipe):
    save(store, word(live, live.version))
    (record,) = desired_records([f"pipe/{live.id}"]).records
    assert isinstance(record, PipeRecord)
    assert (record.state, record.cause) == ("paused", DEAD_RATE)


def test_a_person_resumes_it_and_what_is_held_follows(store: Store, live: Pipe):
    save(store, word(live, live.version), held(live, 4), held(live, 5))
    assert release_leftovers() == 0
    live.refresh_from_db()
    assert resume_pipe(pipe=live)
    assert (live.state, live.state_cause, live.state_reason) == ("active", "", "")
    assert (release_leftovers(), release_leftovers()) == (1, 0)
    move = Move.objects.get()
    assert (move.destination, move.what, move.total) == ("", "release", 2)
    later = datetime.now(UTC) + WELL_AFTER + timedelta(seconds=1)
    assert resolve_what_is_well(now=later) == 1
    assert Alert.objects.get().resolution == "the pipe was resumed"


def test_people_see_why_it_is_held_how_much_is_and_that_it_comes_back(
    store: Store, live: Pipe, alice: User, client: Client
):
    save(store, word(live, live.version), held(live, 4))
    client.force_login(alice)
    page = client.get(f"/pipes/{live.id}/").content.decode()
    assert "too many messages die in the pipe&#x27;s steps" in page
    assert WHY in page
    assert "Resume</button>" in page
    assert "1 held before the pipe's steps" in client.get(f"/pipes/{live.id}/held/").content.decode()
    alert = client.get(f"/pipes/{live.id}/alerts/{Alert.objects.get().id}/").content.decode()
    assert "I fixed it: resume the pipe" in alert
    client.post(f"/pipes/{live.id}/resume/")
    release_leftovers()
    page = client.get(f"/pipes/{live.id}/held/").content.decode()
    assert "the pipe's steps</td>" in page


def test_what_waits_because_its_pipe_is_moved_says_so(store: Store, live: Pipe, client: Client, alice: User):
    save(store, held(live, 4))
    row = Relocation.objects.create(
        pipe=live,
        source_id=str(live.cell_id),
        target=Cell.objects.create(id="c9"),
        state="draining",
        asked_at=timezone.now(),
        held_at=timezone.now(),
    )
    client.force_login(alice)
    says = "The pipe is being moved to another part of the platform"
    assert says in client.get(f"/pipes/{live.id}/held/").content.decode()
    assert release_leftovers() == 0
    Relocation.objects.filter(id=row.id).update(state="done")
    assert says not in client.get(f"/pipes/{live.id}/held/").content.decode()
    assert release_leftovers() == 1
