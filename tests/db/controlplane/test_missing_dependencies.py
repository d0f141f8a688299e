"""Pipe with a dependency missing in a lane: paused with its cause, resumed automatically when complete."""

from datetime import timedelta

from django.test import Client
from django.utils import timezone

from controlplane.observer.store import LedgerStore
from controlplane.provisioner.records import desired_records
from dataplane.causes import Cause
from dataplane.tables.records import PipeRecord
from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal, encode_signal, signal_key
from mgmt.deliveries.services.redrives import release_leftovers
from mgmt.models import Alert, LaneSignal, Pipe, Redrive, User
from mgmt.pipes.services.pipes import LACKING_FOR, resume_complete_pipes
from mgmt.services import pause_pipe
from tests.db.controlplane.test_dead_rate_pause import SIGNALS, held, live, store
from tests.db.controlplane.test_observer_outcomes import Message, save

__all__ = ["live", "store"]  # fixtures
WHY = "The look-up table 'prices' has not been loaded yet."


def hold_signal(
    pipe: Pipe, offset: int, *, missing: bool = True, writer: str = "process-0", version: int | None = None
) -> Message:
    """Return a process lane's current signal about the pipe's dependencies."""
    signal = DestinationSignal(
        SIGNAL_VERSION, "c1", writer, pipe.id, "", int(timezone.now().timestamp() * 1e6),
        breaker="open" if missing else "closed",
        suspended=Cause.DEPENDENCY_MISSING if missing else "",
        reason=WHY if missing else "",
        of_version=pipe.version if version is None else version,
    )  # fmt: skip
    return Message(SIGNALS, offset, key=signal_key(signal).encode(), value=encode_signal(signal))


def resumed(pipe: Pipe, **later: float) -> bool:
    count = resume_complete_pipes(now=timezone.now() + timedelta(**later))
    pipe.refresh_from_db()
    return count == 1


def test_pipe_is_paused_with_its_cause_and_an_alert_and_published_to_the_lanes(store: LedgerStore, live: Pipe):
    save(store, hold_signal(live, 0))
    live.refresh_from_db()
    assert (live.state, live.state_cause, live.state_reason) == ("paused", Cause.DEPENDENCY_MISSING, WHY)
    alert = Alert.objects.get()
    assert (alert.destination, alert.cause, alert.sample["reason"]) == ("", Cause.DEPENDENCY_MISSING, WHY)
    (record,) = desired_records([f"pipe/{live.id}"]).records
    assert isinstance(record, PipeRecord)
    assert (record.state, record.cause) == ("paused", Cause.DEPENDENCY_MISSING)


def test_signal_of_a_lane_that_does_not_know_the_pipe_is_accepted(store: LedgerStore, live: Pipe):
    save(store, hold_signal(live, 0, version=0))
    live.refresh_from_db()
    assert live.state_cause == Cause.DEPENDENCY_MISSING


def test_pipe_resumes_and_releases_held_messages_once_no_lane_lacks_the_dependency(store: LedgerStore, live: Pipe):
    save(store, hold_signal(live, 0), hold_signal(live, 1, writer="process-1"), held(live, 4))
    assert not resumed(live)
    save(store, hold_signal(live, 2, missing=False))
    assert not resumed(live), "another lane still lacks the dependency"
    assert release_leftovers() == 0
    save(store, hold_signal(live, 3, missing=False, writer="process-1"))
    assert resumed(live)
    assert (live.state, live.state_cause) == ("active", "")
    assert release_leftovers() == 1
    assert Redrive.objects.get().destination == ""


def test_pipe_resumes_when_the_lane_that_lacked_the_dependency_is_gone(store: LedgerStore, live: Pipe):
    save(store, hold_signal(live, 0))
    assert not resumed(live, seconds=LACKING_FOR.total_seconds() - 5)
    assert resumed(live, seconds=LACKING_FOR.total_seconds() + 5)


def test_pipe_paused_by_a_person_stays_paused(store: LedgerStore, live: Pipe):
    pause_pipe(pipe=live)
    save(store, hold_signal(live, 0), hold_signal(live, 1, missing=False))
    assert not resumed(live)
    assert (live.state, live.state_cause) == ("paused", "")


def test_pages_show_the_missing_dependency_and_that_no_action_is_needed(
    store: LedgerStore, live: Pipe, alice: User, client: Client
):
    save(store, hold_signal(live, 0), held(live, 4))
    client.force_login(alice)
    page = client.get(f"/pipes/{live.id}/").content.decode()
    assert "a dependency of its steps is missing" in page
    assert "The look-up table &#x27;prices&#x27; has not been loaded yet." in page
    assert "resumes automatically" in page
    assert client.get(f"/help/causes/{Cause.DEPENDENCY_MISSING}/").status_code == 200
    assert LaneSignal.objects.get().breaker == "open"
