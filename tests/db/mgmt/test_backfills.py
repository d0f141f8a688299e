"""Backfills: a new destination gets the earlier events by one replay; the reason why it waits or ends is stored."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Final

import pytest
from django.db import connection

from controlplane.observer.tasks import tend
from controlplane.provisioner.records import desired_records
from dataplane.spec import DestinationSpec, SpecError, destination_of
from dataplane.tables.records import ReplayRecord, replay_key
from mgmt.models import Backfill, Cell, Destination, Pipe, PipeMigration, PipeRevision, Ramp, Replay, Tenant, User
from mgmt.replays.services import backfills
from mgmt.replays.services.replays import LONGEST
from mgmt.services import (
    abort_replay,
    adopt_live_spec,
    begin_ramp,
    close_pipe,
    create_pipe,
    finish_ramp,
    pause_destination,
    pause_pipe,
    publish_revision,
    raise_share,
    repeat_failed,
    roll_back_ramp,
    set_quota,
    start_backfills,
)
from tests.db.backfills import LIVE_AT, NOW
from tests.db.cast import MakeSpec
from tests.db.replays import publish, replay_facts

CREATED: Final = LIVE_AT - timedelta(days=30)
FEED: Final = {"type": "topic", "from": "earliest"}
State = PipeRevision.State
NextRevision = Callable[..., PipeRevision]


@pytest.fixture
def live(pipe: Pipe) -> Pipe:
    """A pipe with the destination crm, which is a month old."""
    Pipe.objects.filter(id=pipe.id).update(created_at=CREATED)
    publish(pipe)
    return pipe


@pytest.fixture
def next_revision(live: Pipe, alice: User, a_spec: MakeSpec) -> NextRevision:
    """Factory of live revisions with further destinations besides crm."""

    def make(*, is_live: bool = True, **more: Any) -> PipeRevision:
        spec = a_spec()
        spec["destinations"] |= more
        newest = live.revisions.latest("number").number
        row = publish_revision(pipe=live, spec=spec, based_on=newest, author=alice)
        PipeRevision.objects.filter(id=row.id).update(published_offset=1)
        if is_live:
            PipeRevision.objects.filter(id=row.id).update(state=State.RAMPING)
            assert adopt_live_spec(revision=row, now=LIVE_AT)
        return row

    return make


def started(now: Any = NOW) -> Replay:
    """Start the backfill that is due and return its replay."""
    assert start_backfills(now=now) == 1
    return Replay.objects.get(backfill__isnull=False, state="running")


def done(replay: Replay) -> None:
    Replay.objects.filter(id=replay.id).update(state="done", finished_at=NOW)


def waits_for(now: Any = NOW) -> str:
    """Return the reason why the only backfill still waits."""
    assert start_backfills(now=now) == 0
    row = Backfill.objects.get(replay=None)
    assert row.is_waiting
    return row.reason


# -- the replay


def test_new_destination_gets_one_replay_of_the_events_of_the_revisions_before(live: Pipe, next_revision: NextRevision):
    next_revision()
    next_revision(feed=FEED)
    replay = started()
    assert (replay.revision, replay.destinations, replay.revisions) == (3, ["feed"], [1, 2])
    assert (replay.since, replay.until, replay.by) == (CREATED, NOW, None)
    assert (replay.where, replay.keys, replay.ids, replay.rehearsal) == ("", [], [], False)
    assert replay.backfill.destination == "feed"
    (record,) = desired_records([replay_key(replay.id)]).records
    assert isinstance(record, ReplayRecord)
    assert record.revisions == [1, 2]
    assert start_backfills(now=NOW) == 0
    done(replay)
    assert start_backfills(now=NOW + timedelta(days=1)) == 0
    assert Replay.objects.count() == 1


def test_it_starts_only_when_no_ingest_replica_stamps_with_the_revision_before(next_revision: NextRevision):
    next_revision(feed=FEED)
    assert start_backfills(now=NOW - timedelta(milliseconds=1)) == 0
    assert not Replay.objects.exists()
    started()


def test_revision_that_ramps_requests_it_only_at_the_end_of_the_ramp(next_revision: NextRevision):
    row = next_revision(is_live=False, feed=FEED)
    begin_ramp(revision=row, share=50, now=LIVE_AT)
    raise_share(ramp=Ramp.objects.get(revision=row), share=100, figures={}, now=LIVE_AT)
    assert not Backfill.objects.exists()
    assert finish_ramp(revision=row, figures={}, now=LIVE_AT)
    assert started().revisions == [1]


def test_periodic_task_of_the_observer_starts_it(next_revision: NextRevision):
    next_revision(feed=FEED)
    Backfill.objects.update(created_at=CREATED)
    assert "backfills 1" in tend()
    assert Replay.objects.get().backfill.destination == "feed"


def test_adopting_a_live_revision_again_requests_no_second_backfill(next_revision: NextRevision):
    row = next_revision(feed=FEED)
    assert adopt_live_spec(revision=row, now=NOW)
    assert Backfill.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_runs_at_once_start_one_replay(next_revision: NextRevision):
    next_revision(feed=FEED)

    def run(_: int) -> int:
        try:
            return start_backfills(now=NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(run, range(2))) == 1
    assert Replay.objects.count() == 1


@pytest.mark.parametrize(
    ("beginning", "days"),
    [("earliest", 30), ((LIVE_AT - timedelta(days=3)).isoformat(), 3), ("2001-01-01T00:00Z", 30)],
    ids=["earliest", "three days before", "before the pipe"],
)
def test_events_start_at_the_time_but_not_before_the_pipe(next_revision: NextRevision, beginning: str, days: int):
    next_revision(feed=FEED | {"from": beginning})
    replay = started()
    assert replay.since == LIVE_AT - timedelta(days=days)
    assert replay.until - replay.since > LONGEST or days == 3


def test_events_that_a_migrated_pipe_left_in_its_former_cell_are_not_read(live: Pipe, next_revision: NextRevision):
    next_revision(feed=FEED)
    moved = LIVE_AT - timedelta(days=2)
    other = Cell.objects.create(id="c2")
    PipeMigration.objects.create(
        pipe=live, source=other, target_id="c1", state="done", switched_at=moved, asked_at=moved
    )
    assert started().since == moved


def test_rate_is_the_quota(tenant: Tenant, alice: User, next_revision: NextRevision):
    set_quota(tenant=tenant, limits={"replay_units_per_s": 300}, reason="trial", by=alice, now=NOW)
    next_revision(feed=FEED)
    assert started().rate_per_s == 300


# -- new or not


def test_destination_that_exists_is_not_sent_earlier_events_by_a_later_from(next_revision: NextRevision):
    next_revision(feed={"type": "topic"})
    next_revision(feed=FEED)
    assert not Backfill.objects.exists()


def test_pipe_without_earlier_events_needs_no_backfill(tenant: Tenant, alice: User, a_spec: MakeSpec):
    spec = a_spec()
    spec["destinations"]["feed"] = FEED
    publish(create_pipe(tenant=tenant, name="fresh", spec=spec, author=alice))
    assert not Backfill.objects.exists()


def test_destination_that_comes_back_gets_only_what_it_has_missed(next_revision: NextRevision):
    next_revision(feed=FEED)  # 2
    done(started())
    next_revision()  # 3
    next_revision(feed=FEED)  # 4
    assert started().revisions == [3]


def test_destination_that_comes_back_gets_what_an_aborted_backfill_has_not_sent(next_revision: NextRevision):
    next_revision(feed=FEED)
    Replay.objects.filter(id=started().id).update(state="aborted", finished_at=NOW)
    next_revision()
    next_revision(feed=FEED)
    assert started().revisions == [1, 3]


def test_destination_that_changes_its_type_is_not_new(next_revision: NextRevision):
    next_revision(feed={"type": "lake"})
    next_revision(feed=FEED)
    assert not Backfill.objects.exists()


def test_events_of_a_rolled_back_revision_with_the_destination_are_sent(live: Pipe, next_revision: NextRevision):
    failed = next_revision(is_live=False, feed=FEED)
    begin_ramp(revision=failed, share=5, now=LIVE_AT)
    roll_back_ramp(ramp=Ramp.objects.get(revision=failed), reason="worse", now=LIVE_AT)
    next_revision(feed=FEED)
    assert started().revisions == [1, 2]


# -- waiting and ending


def test_it_waits_for_the_tenants_other_replay(next_revision: NextRevision):
    next_revision(feed=FEED)
    first = started()
    next_revision(feed=FEED, extra=FEED)
    assert waits_for() == f"Replay {first.id} of orders is running, and a tenant has one at a time. Wait until it " + (
        "has ended, or abort it."
    )
    abort_replay(replay=first, now=NOW)
    assert waits_for()
    Replay.objects.filter(id=first.id).update(state="aborted", finished_at=NOW)
    assert started().destinations == ["extra"]
    assert Backfill.objects.get(destination="extra").reason == ""


def test_many_that_wait_for_one_replay_cost_no_more_than_one(
    next_revision: NextRevision, django_assert_max_num_queries: Any
):
    """A tenant may have a backfill for each destination of each pipe, and its first replay may run for days."""
    names = [f"feed-{number}" for number in range(12)]
    next_revision(**dict.fromkeys(names, FEED))
    first = started()
    with django_assert_max_num_queries(24):
        assert start_backfills(now=NOW) == 0
    reasons = set(Backfill.objects.filter(replay=None).values_list("reason", flat=True))
    assert len(reasons) == 1
    assert first.id in reasons.pop()
    done(first)
    second = started()
    reasons = set(Backfill.objects.filter(replay=None).values_list("reason", flat=True))
    assert len(reasons) == 1
    assert second.id in reasons.pop()


def test_paused_destination_is_named_also_while_a_replay_is_under_way(
    live: Pipe, next_revision: NextRevision, alice: User
):
    next_revision(feed=FEED)
    started()
    next_revision(feed=FEED, extra=FEED)
    next_revision(feed=FEED, extra=FEED, last=FEED)
    pause_destination(destination=live.destinations.get(name="extra"), by=alice)
    for _ in range(2):
        assert start_backfills(now=NOW) == 0
        reasons = dict(Backfill.objects.filter(replay=None).values_list("destination", "reason"))
        assert reasons["extra"] == "The destination is paused."
        assert reasons["last"].startswith("Replay ")


def test_replay_of_one_tenant_delays_no_backfill_of_another(
    next_revision: NextRevision, charlie: User, a_spec: MakeSpec
):
    next_revision(feed=FEED)
    started()
    next_revision(feed=FEED, extra=FEED)
    theirs = create_pipe(tenant=charlie.tenants.get(), name="theirs", spec=a_spec(), author=charlie)
    publish(theirs)
    Pipe.objects.filter(id=theirs.id).update(created_at=CREATED)
    spec = a_spec()
    spec["destinations"]["feed"] = FEED
    row = publish_revision(pipe=theirs, spec=spec, based_on=1, author=charlie)
    PipeRevision.objects.filter(id=row.id).update(published_offset=1, state=State.RAMPING)
    assert adopt_live_spec(revision=row, now=LIVE_AT)
    assert start_backfills(now=NOW) == 1
    assert Backfill.objects.get(pipe=theirs).replay is not None


def test_it_waits_while_the_destination_or_the_pipe_is_paused(live: Pipe, next_revision: NextRevision, alice: User):
    next_revision(feed=FEED)
    feed = live.destinations.get(name="feed")
    pause_destination(destination=feed, by=alice)
    assert waits_for() == "The destination is paused."
    Destination.objects.filter(id=feed.id).update(state="active")
    pause_pipe(pipe=live)
    assert "orders is paused" in waits_for()
    Pipe.objects.filter(id=live.id).update(state="active")
    started()


def test_closed_pipe_ends_it_with_the_reason(live: Pipe, next_revision: NextRevision):
    next_revision(feed=FEED)
    close_pipe(pipe=live)
    assert start_backfills(now=NOW) == 1
    row = Backfill.objects.get()
    assert (row.ended_at, row.is_waiting) == (NOW, False)
    assert row.reason.startswith("orders is closed")
    assert start_backfills(now=NOW) == 0


def test_spec_that_this_release_refuses_ends_it_and_stops_no_other(
    next_revision: NextRevision, monkeypatch: pytest.MonkeyPatch
):
    next_revision(feed=FEED | {"partitions": 2}, other=FEED)

    def strict(config: dict[str, Any]) -> DestinationSpec:
        if config.get("partitions") == 2:
            raise SpecError("$.partitions", "needs 1")
        return destination_of(config)

    monkeypatch.setattr(backfills, "destination_of", strict)
    assert start_backfills(now=NOW) == 2
    assert Backfill.objects.get(destination="feed").reason.startswith("This release does not accept feed: ")
    assert Backfill.objects.get(destination="other").replay is not None


@pytest.mark.parametrize("later", [{}, {"feed": {"type": "lake"}}], ids=["removed", "a lake"])
def test_removed_destination_ends_it_with_the_reason(next_revision: NextRevision, later: dict[str, Any]):
    next_revision(feed=FEED)
    next_revision(**later)
    assert start_backfills(now=NOW) == 1
    assert Backfill.objects.get().reason == "The live revision has no destination feed of type http or topic."
    assert not Replay.objects.exists()


def test_one_that_waits_needs_few_queries(next_revision: NextRevision, django_assert_max_num_queries: Any):
    next_revision(feed=FEED)
    started()
    next_revision(feed=FEED, extra=FEED)
    assert waits_for()
    with django_assert_max_num_queries(22):
        start_backfills(now=NOW)


def test_failed_messages_of_a_long_backfill_can_be_repeated(next_revision: NextRevision):
    next_revision(feed=FEED)
    replay = started()
    replay_facts(replay, range(3), delivered=range(2), dead=[2])
    done(replay)
    replay.refresh_from_db()
    repeat = repeat_failed(replay=replay, by=None, now=NOW, read_ids=lambda *_: ["m2"])
    assert (repeat.ids, repeat.revisions, repeat.since) == (["m2"], replay.revisions, CREATED)
