"""Replays: what can be replayed, one at a time per tenant, its states, and the repeat of its failed events."""

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError
from pyroaring import BitMap64

from controlplane.provisioner.records import desired_records
from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.units import place_of, position_of
from dataplane.record_limits import CLIENT_MAX_BYTES
from dataplane.tables.records import encode_record, pipe_key, record_key, replay_key
from mgmt.messages.queries.readers import BrokersUnavailableError, ReadRightMissingError
from mgmt.messages.queries.records import RecordUnavailableError, StoredRecord
from mgmt.models import Cell, Destination, Pipe, PipeMigration, PipeRevision, Replay, SettledOffset, Tenant, User
from mgmt.replays.services import repeats
from mgmt.services import (
    InvalidValue,
    MigrationInProgressError,
    NothingToReplayError,
    PipeClosedError,
    PipePausedError,
    ReplayInProgressError,
    abort_replay,
    close_pipe,
    create_pipe,
    pause_destination,
    pause_pipe,
    pause_replay,
    publish_revision,
    repeat_failed,
    resume_replay,
    set_quota,
    start_replay,
)
from tests.db.cast import MakeSpec
from tests.db.replays import NOW, SINCE, UNTIL, a_replay, a_request, publish, replay_fact, replay_facts


@pytest.fixture
def live(pipe: Pipe) -> Pipe:
    publish(pipe)
    return pipe


def refusal(pipe: Pipe, **changes: Any) -> tuple[str, str]:
    """Return the field and the reason with which a request is refused; nothing is stored."""
    with pytest.raises(InvalidValue) as refused:
        start_replay(pipe=pipe, request=a_request(**changes), by=None, now=NOW)
    assert not Replay.objects.exists()
    return refused.value.field, refused.value.reason


def test_replay_is_stored_as_it_was_requested(live: Pipe, alice: User):
    request = a_request(where='body.kind == "paid"', keys=["a", "b", "a"], ids=["m1"], rate_per_s=20, rehearsal=True)
    row = start_replay(pipe=live, request=request, by=alice, now=NOW)
    row.refresh_from_db()
    assert row.id.startswith("replay_")
    assert (row.tenant, row.cell_id, row.by, row.state) == (live.tenant, "c1", alice, "running")
    assert (row.revision, row.destinations, row.since, row.until) == (1, ["crm"], SINCE, UNTIL)
    assert (row.where, row.keys, row.ids) == ('body.kind == "paid"', ["a", "b"], ["m1"])
    assert (row.rate_per_s, row.rehearsal, row.created_at) == (20, True, NOW)
    assert row.bucket == int(NOW.timestamp()) // 60
    assert row.is_waiting


def test_range_that_revisions_limit_may_be_long(live: Pipe):
    row = a_replay(live, since=UNTIL - timedelta(days=30), revisions=[1, 3])
    row.refresh_from_db()
    assert row.revisions == [1, 3]


def test_replay_has_a_moderate_rate_by_default(live: Pipe):
    assert a_replay(live).rate_per_s == 50


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"since": UNTIL}, "until", "after `since`"),
        ({"until": NOW + timedelta(seconds=1)}, "until", "in the past"),
        ({"since": UNTIL - timedelta(days=7, seconds=1)}, "since", "at most 7 days"),
        ({"revisions": range(10_001)}, "revisions", "at most 10000"),
        ({"rate_per_s": 0.5}, "rate_per_s", "needs 1 to 500"),
        ({"rate_per_s": 501}, "rate_per_s", "needs 1 to 500"),
        ({"rate_per_s": float("nan")}, "rate_per_s", "needs 1 to 500"),
        ({"revision": 7}, "revision", "got 7"),
        ({"destinations": ["erp"]}, "destinations", "needs destinations of revision 1, crm; got erp"),
        ({"keys": ["k"] * 1_001}, "keys", "at most 1000"),
        ({"ids": ["m"] * 10_001}, "ids", "at most 10000"),
        ({"ids": [""]}, "ids", "1 to 64 characters"),
        ({"keys": ["a\x00"]}, "keys", "without U+0000"),
        ({"where": "body."}, "where", "line 1"),
        ({"where": "table.x == 1"}, "where", "table"),
        ({"where": "true" + " " * 2_048}, "where", "at most 2048"),
    ],
)
def test_invalid_request_is_refused_by_its_field(live: Pipe, changes: dict[str, Any], field: str, words: str):
    found, reason = refusal(live, **changes)
    assert found == field
    assert words in reason


def test_range_may_end_now_and_may_be_a_week_long(live: Pipe):
    assert a_replay(live, since=NOW - timedelta(days=7), until=NOW).until == NOW


def test_rate_is_limited_by_the_quota_of_the_tenant(live: Pipe, alice: User):
    set_quota(tenant=live.tenant, limits={"replay_units_per_s": 40}, reason="trial", by=alice, now=NOW)
    assert refusal(live) == ("rate_per_s", "needs 1 to 40, which is your quota")
    assert a_replay(live, rate_per_s=40).rate_per_s == 40


def test_revision_needs_a_published_plan(live: Pipe, alice: User, a_spec: MakeSpec):
    publish_revision(pipe=live, spec=a_spec(crm="https://new.example.com/"), based_on=1, author=alice)
    assert "not published yet" in refusal(live, revision=2)[1]
    PipeRevision.objects.filter(number=2).update(published_offset=9)
    assert a_replay(live, revision=2).revision == 2


def test_failed_revision_is_refused(live: Pipe, alice: User, a_spec: MakeSpec):
    publish_revision(pipe=live, spec=a_spec(crm="https://new.example.com/"), based_on=1, author=alice)
    PipeRevision.objects.filter(number=2).update(published_offset=9, state="failed")
    assert "failed" in refusal(live, revision=2)[1]


def test_pipe_without_a_live_revision_needs_a_number(live: Pipe):
    PipeRevision.objects.update(state="retired")
    assert "no live revision" in refusal(live)[1]
    assert a_replay(live, revision=1).revision == 1


@pytest.mark.parametrize("state", ["paused", "suspended", "removed"])
def test_destination_that_takes_no_messages_is_refused(live: Pipe, state: str):
    Destination.objects.update(state=state)
    assert refusal(live, destinations=["crm"])[1].startswith(f"crm is {state}")
    assert "no active destination" in refusal(live)[1]


def test_only_requests_objects_and_topics_can_be_replayed_to(tenant: Tenant, alice: User):
    config = {
        "crm": {"type": "http", "url": "https://crm.example.com/in"},
        "erp": {"type": "http", "url": "https://erp.example.com/in"},
        "orders": {"type": "topic"},
        "past": {"type": "lake"},
        "files": {"type": "s3", "url": "https://s3.example.com/b", "region": "auto", "access_key_id": "k"},
        "rows": {"type": "postgres", "host": "db.example.com", "database": "d", "user": "u", "table": "t"},
    }
    config["newest"] = config["rows"] | {"on_conflict": "update"}
    spec = {"sources": {"shop": {"type": "http"}}, "destinations": config}
    made = create_pipe(tenant=tenant, name="all kinds", spec=spec, author=alice)
    publish(made)
    assert refusal(made, destinations=["past"])[1].startswith(
        "needs type http, s3, postgres or topic, and past is a lake"
    )
    assert refusal(made, destinations=["newest"])[1].endswith("newest is a table whose rows are updated")
    pause_destination(destination=made.destinations.get(name="erp"), by=alice)
    assert sorted(a_replay(made).destinations) == ["crm", "files", "orders", "rows"]


def test_expression_must_be_possible_with_the_event_types(live: Pipe, monkeypatch: pytest.MonkeyPatch):
    from dataplane.schemas.shapes import EMPTY, TEXT, plain
    from mgmt.replays.services import replays

    shape = EMPTY.put(("status",), plain(TEXT))
    monkeypatch.setattr(replays, "event_shapes_of", lambda _pipe: {"shop": shape})
    assert "stat" in refusal(live, where='body.stat == "paid"')[1]
    assert a_replay(live, where='body.status == "paid"').where == 'body.status == "paid"'


def test_closed_paused_and_unplaced_pipes_are_refused(live: Pipe):
    pause_pipe(pipe=live)
    with pytest.raises(PipePausedError):
        a_replay(live)
    close_pipe(pipe=live)
    with pytest.raises(PipeClosedError):
        a_replay(live)
    live.state, live.cell = Pipe.State.ACTIVE, None
    with pytest.raises(NothingToReplayError):
        a_replay(live)


def test_paused_pipe_can_be_rehearsed(live: Pipe):
    pause_pipe(pipe=live)
    assert a_replay(live, rehearsal=True).rehearsal


def test_events_from_before_a_migration_are_refused(live: Pipe):
    cells = {"source": Cell.objects.create(id="c0"), "target": Cell.objects.get(id="c1")}
    row = PipeMigration.objects.create(pipe=live, reason="r", asked_at=NOW, **cells)
    with pytest.raises(MigrationInProgressError):
        a_replay(live)
    PipeMigration.objects.update(state="done", switched_at=SINCE + timedelta(minutes=5))
    assert refusal(live)[0] == "since"
    assert a_replay(live, since=SINCE + timedelta(minutes=5)).pk
    assert row.pipe == live


def test_tenant_has_one_replay_under_way(live: Pipe, tenant: Tenant, alice: User, a_spec: MakeSpec):
    first = a_replay(live)
    other = create_pipe(tenant=tenant, name="other", spec=a_spec(), author=alice)
    publish(other)
    with pytest.raises(ReplayInProgressError, match=first.id):
        a_replay(other)
    for state in Replay.UNDER_WAY:
        Replay.objects.update(state=state)
        with pytest.raises(ReplayInProgressError):
            a_replay(other)
    for state in set(Replay.State) - set(Replay.UNDER_WAY):
        Replay.objects.filter(id=first.id).update(state=state)
        Replay.objects.exclude(id=first.id).delete()
        assert a_replay(other).pk


def test_database_refuses_a_second_replay_of_a_tenant(live: Pipe, monkeypatch: pytest.MonkeyPatch):
    a_replay(live)
    monkeypatch.setattr("mgmt.replays.services.replays._refuse_second", lambda _pipe: None)  # both passed the check
    with pytest.raises(ReplayInProgressError) as refused:
        a_replay(live)
    assert isinstance(refused.value.__cause__, IntegrityError)


def test_another_tenant_may_replay_at_the_same_time(live: Pipe, charlie: User, a_spec: MakeSpec):
    a_replay(live)
    theirs = create_pipe(tenant=charlie.tenants.get(), name="theirs", spec=a_spec(), author=charlie)
    publish(theirs)
    assert a_replay(theirs).state == "running"


def test_replay_is_paused_resumed_and_aborted_and_each_change_is_published(live: Pipe):
    row = a_replay(live)
    later = NOW + timedelta(minutes=1)
    assert pause_replay(replay=row, now=later)
    assert not pause_replay(replay=row, now=later)
    assert (row.state, row.version, row.state_since) == ("paused", 2, later)
    assert resume_replay(replay=row, now=later)
    assert not resume_replay(replay=row, now=later)
    assert (row.state, row.version) == ("running", 3)
    assert abort_replay(replay=row, now=later)
    assert not abort_replay(replay=row, now=later)
    assert not resume_replay(replay=row, now=later)
    assert not pause_replay(replay=row, now=later)
    assert (row.state, row.version) == ("aborting", 4)


def test_paused_replay_can_be_aborted(live: Pipe):
    row = a_replay(live)
    pause_replay(replay=row, now=NOW)
    assert abort_replay(replay=row, now=NOW)


def test_estimate_of_the_end_leaves_pauses_out(live: Pipe):
    row = a_replay(live)
    assert [row.expected_end, row.share] == [None, None]
    Replay.objects.update(
        started_at=NOW, progress_at=NOW + timedelta(seconds=60), read=600, reached={"t/0": 600}, ends={"t/0": 2_400}
    )
    row.refresh_from_db()
    assert (row.share, row.unread) == (0.25, 1_800)
    assert row.expected_end == NOW + timedelta(seconds=60 + 180)
    pause_replay(replay=row, now=NOW + timedelta(seconds=30))
    assert [row.state, row.expected_end] == ["paused", None]
    resume_replay(replay=row, now=NOW + timedelta(seconds=50))
    assert row.paused_s == 20
    assert row.expected_end == NOW + timedelta(seconds=60 + 40 * 3)


# -- repeats


def ended(pipe: Pipe, **changes: Any) -> Replay:
    """Return an ended replay of the events 0 to 9: 0 to 5 were delivered, 6 is dead, 7 to 9 are lost."""
    row = a_replay(pipe, **changes)
    replay_facts(row, range(10), delivered=range(6), dead=[6])
    for purpose in ("ingest", "egress"):
        SettledOffset.objects.create(topic=f"penstock.c1.{purpose}.g1", partition=0, offset=100)
    Replay.objects.update(state="done", finished_at=NOW, result_at=NOW)
    row.refresh_from_db()
    return row


def read(_replay: Replay, positions: Iterable[int]) -> list[str]:
    return [f"m{place_of(position).offset}" for position in positions]


def test_failed_events_of_a_replay_are_repeated_by_their_ids(live: Pipe, alice: User):
    first = ended(live, rate_per_s=7, where="true", keys=["k"])
    later = NOW + timedelta(minutes=9)
    row = repeat_failed(replay=first, by=alice, now=later, read_ids=read)
    assert (row.ids, row.destinations, row.repeats) == (["m6", "m7", "m8", "m9"], ["crm"], first)
    assert (row.since, row.until, row.revision, row.rate_per_s) == (SINCE, UNTIL, 1, 7)
    assert (row.where, row.keys, row.rehearsal, row.created_at) == ("", [], False, later)


def test_cancelled_units_are_repeated(live: Pipe):
    first = a_replay(live)
    replay_facts(first, range(3), delivered=range(2))
    replay_fact(first, "transmit:crm", "cancelled", [2])
    Replay.objects.update(state="aborted", finished_at=NOW)
    first.refresh_from_db()
    assert repeat_failed(replay=first, by=None, now=NOW, read_ids=read).ids == ["m2"]


def test_lost_units_are_not_repeated_before_the_result_is_final(live: Pipe):
    """Until then a unit that counts as lost may still arrive."""
    first = ended(live)
    first.result_at = None
    assert repeat_failed(replay=first, by=None, now=NOW, read_ids=read).ids == ["m6"]


def test_only_destinations_with_failures_are_repeated(tenant: Tenant, alice: User, a_spec: MakeSpec):
    made = create_pipe(
        tenant=tenant, name="two", spec=a_spec(crm="https://a.example.com/", erp="https://b.example.com/"), author=alice
    )
    publish(made)
    first = ended(made)
    replay_fact(first, "transform:erp", "sent", range(10))
    replay_fact(first, "transmit:erp", "delivered", range(10))
    assert first.destinations == ["crm", "erp"]
    row = repeat_failed(replay=first, by=None, now=NOW, read_ids=read)
    assert row.destinations == ["crm"]
    Replay.objects.filter(id=row.id).update(state="done")
    replay_fact(first, "normalize", "dead", [40])
    replay_fact(first, "ingest", "sent", [40], "seen")
    assert repeat_failed(replay=first, by=None, now=NOW, read_ids=read).destinations == ["crm", "erp"]


def test_replay_that_has_not_ended_is_not_repeated(live: Pipe):
    with pytest.raises(ReplayInProgressError, match="Wait until it has ended"):
        repeat_failed(replay=a_replay(live), by=None, now=NOW, read_ids=read)


def test_replay_without_failures_is_not_repeated(live: Pipe):
    row = a_replay(live)
    replay_facts(row, range(3), delivered=range(3))
    Replay.objects.update(state="done")
    row.refresh_from_db()
    with pytest.raises(NothingToReplayError, match="No event"):
        repeat_failed(replay=row, by=None, now=NOW, read_ids=read)
    row.result = {"asked": 3, "bins": {"crm": {"dead": 1}}, "nodes": []}
    type(row).objects.filter(pk=row.pk).update(bucket=row.bucket + 9)  # the facts are past their retention
    row.bucket += 9
    with pytest.raises(NothingToReplayError, match="no longer lists"):
        repeat_failed(replay=row, by=None, now=NOW, read_ids=read)


def test_number_of_repeated_events_is_limited(live: Pipe, monkeypatch: pytest.MonkeyPatch):
    first = ended(live)
    monkeypatch.setattr(repeats, "MOST_IDS", 3)
    with pytest.raises(NothingToReplayError, match="4 events failed, and at most 3"):
        repeat_failed(replay=first, by=None, now=NOW, read_ids=read)
    monkeypatch.setattr(repeats, "MOST_IDS", 4)
    assert len(repeat_failed(replay=first, by=None, now=NOW, read_ids=read).ids) == 4


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (BrokersUnavailableError(), "the brokers do not respond. Try again."),
        (ReadRightMissingError(), "contact the operator of this installation."),
    ],
)
def test_events_that_the_log_lacks_or_does_not_return_are_not_repeated(
    live: Pipe, error: RecordUnavailableError, advice: str
):
    first = ended(live)

    def away(_replay: Replay, _positions: BitMap64) -> list[str]:
        raise error

    with pytest.raises(NothingToReplayError, match=f"{re.escape(advice)}$"):
        repeat_failed(replay=first, by=None, now=NOW, read_ids=away)
    with pytest.raises(NothingToReplayError, match="no longer in the log"):
        repeat_failed(replay=first, by=None, now=NOW, read_ids=lambda _replay, _positions: [])


def test_ids_are_read_from_the_ingest_topic_at_their_positions(live: Pipe, monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[str, dict[int, list[int]], tuple[str, ...]]] = []
    late: dict[int, list[int]] = {}

    def read_within(
        topic: str, offsets: dict[int, list[int]], *, pipes: tuple[str, ...], most_bytes: int, wait_s: float
    ) -> tuple[list[StoredRecord], dict[int, list[int]]]:
        assert (most_bytes, wait_s) == (0, repeats.READ_S)
        asked.append((topic, offsets, pipes))
        found = [(partition, offset) for partition, some in offsets.items() for offset in some if offset != 8]
        metas = [MessageMeta(1, f"m{p}-{o}", live.id, 1, "shop", 0, 0, 0) for p, o in found]
        return [StoredRecord(meta, (), b"", 0) for meta in metas], late

    monkeypatch.setattr(repeats, "read_within", read_within)
    row = a_replay(live)
    positions = [position_of(1, 0, 7), position_of(1, 0, 8), position_of(1, 3, 9)]
    assert repeats.ids_at(row, positions) == ["m0-7", "m3-9"], "the event at offset 8 is past its retention"
    assert asked == [("penstock.c1.ingest.g1", {0: [7, 8], 3: [9]}, (live.id,))]
    late[3] = [9]
    with pytest.raises(RecordUnavailableError, match="not read in time"):
        repeats.ids_at(row, positions)


def test_record_of_the_largest_accepted_selection_fits_the_control_topic(live: Pipe):
    ids = [f"{number:064}" for number in range(10_000)]
    row = start_replay(pipe=live, request=a_request(ids=ids, keys=["k" * 256] * 999 + ["l"]), by=None, now=NOW)
    (record,) = desired_records([replay_key(row.id)]).records
    assert len(encode_record(record)) < CLIENT_MAX_BYTES


def test_record_that_is_too_large_stops_no_other_record(live: Pipe):
    """Kafka's client refuses it, and with it all that is published in the same step."""
    row = start_replay(pipe=live, request=a_request(), by=None, now=NOW)
    Replay.objects.update(ids=["x" * CLIENT_MAX_BYTES])
    built = desired_records([replay_key(row.id), pipe_key(live.id)])
    assert [record_key(record) for record in built.records] == [pipe_key(live.id)]
    assert built.broken == {replay_key(row.id): "the record is too large for the control topic"}


@pytest.mark.parametrize("character", ["\U0001f600", "\x01"])
def test_selection_that_is_too_large_for_a_record_is_refused(live: Pipe, character: str):
    field, reason = refusal(live, ids=[f"{character * 60}{number:04}" for number in range(10_000)])
    assert (field, "KiB" in reason) == ("ids", True)
