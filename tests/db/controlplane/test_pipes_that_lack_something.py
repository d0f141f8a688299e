"""A pipe of which a lane lacks something: it is paused with its cause, and goes on automatically when all is there."""

from datetime import timedelta

from django.test import Client
from django.utils import timezone

from controlplane.observer.store import Store
from controlplane.provisioner.records import desired_records
from dataplane.tables.records import DEPENDENCY_MISSING, PipeRecord
from dataplane.tables.signals import SIGNAL_VERSION, Signal, encode_signal, signal_key
from mgmt.models import Alert, LaneSignal, Move, Pipe, User
from mgmt.services import pause_pipe
from mgmt.services.moves import release_leftovers
from mgmt.services.pipes import LACKING_FOR, resume_complete_pipes
from tests.db.controlplane.test_observer_ends import Message, save
from tests.db.controlplane.test_pipes_held import SIGNALS, held, live, store

__all__ = ["live", "store"]  # fixtures
WHY = "The look-up table 'prices' has not been loaded yet."


def word(
    pipe: Pipe, offset: int, *, missing: bool = True, writer: str = "process-0", version: int | None = None
) -> Message:
    """What a process lane says of the pipe now."""
    signal = Signal(
        SIGNAL_VERSION, "c1", writer, pipe.id, "", int(timezone.now().timestamp() * 1e6),
        breaker="open" if missing else "closed",
        suspended=DEPENDENCY_MISSING if missing else "",
        reason=WHY if missing else "",
        of_version=pipe.version if version is None else version,
    )  # fmt: skip
    return Message(SIGNALS, offset, key=signal_key(signal).encode(), value=encode_signal(signal))


def resumed(pipe: Pipe, **later: float) -> bool:
    count = resume_complete_pipes(now=timezone.now() + timedelta(**later))
    pipe.refresh_from_db()
    return count == 1


def test_it_is_paused_with_its_cause_and_an_alert_and_lanes_are_told(store: Store, live: Pipe):
    save(store, word(live, 0))
    live.refresh_from_db()
    assert (live.state, live.state_cause, live.state_reason) == ("paused", DEPENDENCY_MISSING, WHY)
    alert = Alert.objects.get()
    assert (alert.destination, alert.cause, alert.sample["reason"]) == ("", DEPENDENCY_MISSING, WHY)
    (record,) = desired_records([f"pipe/{live.id}"]).records
    assert isinstance(record, PipeRecord)
    assert (record.state, record.cause) == ("paused", DEPENDENCY_MISSING)


def test_a_lane_that_does_not_know_the_pipe_at_all_is_heard(store: Store, live: Pipe):
    save(store, word(live, 0, version=0))
    live.refresh_from_db()
    assert live.state_cause == DEPENDENCY_MISSING


def test_it_goes_on_when_the_last_lane_has_what_was_missing_and_what_is_held_follows(store: Store, live: Pipe):
    save(store, word(live, 0), word(live, 1, writer="process-1"), held(live, 4))
    assert not resumed(live)
    save(store, word(live, 2, missing=False))
    assert not resumed(live), "another lane lacks it still"
    assert release_leftovers() == 0
    save(store, word(live, 3, missing=False, writer="process-1"))
    assert resumed(live)
    assert (live.state, live.state_cause) == ("active", "")
    assert release_leftovers() == 1
    assert Move.objects.get().destination == ""


def test_it_goes_on_when_the_lane_that_lacked_something_is_gone(store: Store, live: Pipe):
    save(store, word(live, 0))
    assert not resumed(live, seconds=LACKING_FOR.total_seconds() - 5)
    assert resumed(live, seconds=LACKING_FOR.total_seconds() + 5)


def test_what_a_person_paused_stays_paused(store: Store, live: Pipe):
    pause_pipe(pipe=live)
    save(store, word(live, 0), word(live, 1, missing=False))
    assert not resumed(live)
    assert (live.state, live.state_cause) == ("paused", "")


def test_people_see_what_is_missing_and_that_nothing_is_to_be_done(
    store: Store, live: Pipe, alice: User, client: Client
):
    save(store, word(live, 0), held(live, 4))
    client.force_login(alice)
    page = client.get(f"/pipes/{live.id}/").content.decode()
    assert "something that its steps need is not there yet" in page
    assert "The look-up table &#x27;prices&#x27; has not been loaded yet." in page
    assert "goes on automatically" in page
    assert client.get(f"/help/causes/{DEPENDENCY_MISSING}/").status_code == 200
    assert LaneSignal.objects.get().breaker == "open"
