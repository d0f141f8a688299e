"""Ramps as the Provisioner reads them from rows and publishes them to the data plane."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.provisioner.ramps import open_ramps
from controlplane.provisioner.records import desired_records
from dataplane.tables.records import PipeRecord
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Pipe, PipeRevision, Ramp, User
from mgmt.ramps.queries import RampFigures, recently_ramped_units
from mgmt.services import begin_ramp, hold_ramp, publish_revision, raise_share, roll_back_ramp
from tests.db.cast import MakeSpec
from tests.db.console.truth import Truth, go_live

NOW = datetime(2026, 11, 21, 12, 0, 10, tzinfo=UTC)
BUCKET = bucket_at(NOW)


@pytest.fixture
def ramp(pipe: Pipe, alice: User, a_spec: MakeSpec) -> Ramp:
    go_live(pipe)
    second = publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=alice)
    begin_ramp(revision=second, share=50, now=NOW)
    return Ramp.objects.select_related("revision", "stable").get()


def fact(pipe: Pipe, node: str, fact: str, offsets: range, detail: str = "") -> None:
    Truth(pipe).fact(BUCKET, node, fact, [*offsets], detail)


def lag(pipe: Pipe, node: str, lags_us: list[int]) -> None:
    Truth(pipe).lag(BUCKET, node, "out", lags_us)


def some_traffic(pipe: Pipe) -> None:
    """Store messages 0-9 of revision 2, two of them dead, and 10-29 of revision 1."""
    for detail in ("acked", "seen"):
        fact(pipe, "ingest", "sent", range(30), detail)
    fact(pipe, "ramp:50:2", "sent", range(10))
    fact(pipe, "ramp:50:1", "sent", range(10, 30))
    fact(pipe, "normalize", "dead", range(2), "step")
    lag(pipe, "ramp:50:2", [2_000] * 8)
    lag(pipe, "ramp:50:1", [1_000] * 20)


def record_of(pipe: Pipe) -> PipeRecord:
    (record,) = desired_records([f"pipe/{pipe.id}"]).records
    assert isinstance(record, PipeRecord)
    return record


def test_both_revisions_have_their_own_figures(ramp: Ramp, pipe: Pipe):
    some_traffic(pipe)
    view = open_ramps(NOW)[ramp.revision_id]
    assert (view.ramping.taken, view.ramping.failed, view.stable.taken, view.stable.failed) == (10, 2, 20, 0)
    assert view.ramping.p95_us == pytest.approx(2_000, rel=0.02)
    assert view.stable.p95_us == pytest.approx(1_000, rel=0.02)


def test_ramps_are_read_with_a_constant_query_count_for_any_number_of_steps(ramp: Ramp, pipe: Pipe):
    some_traffic(pipe)
    with CaptureQueriesContext(
        connection,
    ) as few:
        open_ramps(NOW)
    raise_share(ramp=ramp, share=100, figures={}, now=NOW)
    with CaptureQueriesContext(connection) as more:
        open_ramps(NOW)
    assert len(more) <= len(few)


def test_last_figures_of_the_stable_revision_count_after_its_traffic_has_ended(ramp: Ramp, pipe: Pipe):
    some_traffic(pipe)
    raise_share(ramp=ramp, share=100, figures={"stable": {"taken": 20, "failed": 1, "p95_us": 7}}, now=NOW)
    view = open_ramps(NOW)[ramp.revision_id]
    assert view.stable == RampFigures(taken=20, failed=1, p95_us=7)


def test_holder_of_a_ramp_is_named(ramp: Ramp, bob: User):
    hold_ramp(ramp=ramp, by=bob, now=NOW)
    assert open_ramps(NOW)[ramp.revision_id].held_by == "bob"


def test_pipe_record_has_the_share_of_each_revision_the_ramping_one_first(ramp: Ramp, pipe: Pipe):
    assert ramp.share == 50
    assert (record_of(pipe).weights, record_of(pipe).run_as) == ([(2, 50), (1, 50)], {})


def test_stable_revision_also_runs_messages_of_the_rolled_back_one(ramp: Ramp, pipe: Pipe):
    roll_back_ramp(ramp=ramp, reason="bad", now=NOW)
    assert (record_of(pipe).weights, record_of(pipe).run_as) == ([(1, 100)], {2: 1})
    assert not open_ramps(NOW)


def test_rolled_back_revision_stays_redirected_after_later_revisions_are_live(
    ramp: Ramp, pipe: Pipe, alice: User, a_spec: MakeSpec
):
    roll_back_ramp(ramp=ramp, reason="bad", now=NOW)
    publish_revision(pipe=pipe, spec=a_spec(), based_on=2, author=alice)
    go_live(pipe)
    assert PipeRevision.objects.get(pipe=pipe, number=3).state == "live"
    assert (record_of(pipe).weights, record_of(pipe).run_as) == ([(3, 100)], {2: 1})


def test_recent_messages_of_a_pipe_are_counted_once(pipe: Pipe):
    hour_ago = NOW - timedelta(hours=1)
    assert recently_ramped_units({pipe.id}, hour_ago) == {}
    some_traffic(pipe)
    assert recently_ramped_units({pipe.id}, hour_ago) == {pipe.id: 30}
    assert recently_ramped_units({pipe.id}, NOW + timedelta(minutes=2)) == {}
    assert recently_ramped_units(set(), hour_ago) == {}


def test_ramp_from_lanes_to_bulk_is_known_as_a_change_of_execution(pipe: Pipe, alice: User, a_spec: MakeSpec):
    go_live(pipe)
    second = publish_revision(pipe=pipe, spec=a_spec() | {"execution": "bulk"}, based_on=1, author=alice)
    begin_ramp(revision=second, share=50, now=NOW)
    assert open_ramps(NOW)[second.id].changes_execution


def test_ramp_between_two_lane_revisions_is_no_change_of_execution(ramp: Ramp):
    assert not open_ramps(NOW)[ramp.revision_id].changes_execution
