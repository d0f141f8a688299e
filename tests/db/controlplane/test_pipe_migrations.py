"""Pipe migration between cells, on rows: permission, the writes of each step, references to the old cell."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any, cast

import pytest
from django.core.management import CommandError, call_command
from pyroaring import BitMap64

from controlplane.explain import explain
from controlplane.leases import acquire, release
from controlplane.observer.judging import observations
from controlplane.observer.sealing import Sealer
from controlplane.provisioner.act import Effects
from controlplane.provisioner.apply_step import apply_step
from controlplane.provisioner.migrating import (
    AbandonMigration,
    AnnotateMigration,
    FinishMigration,
    HoldAtTarget,
    MigrationStep,
    RecordIngestLeft,
    RecordSourceEnds,
    RevertMigration,
    SwitchToTarget,
)
from controlplane.provisioner.pipe_migrations import open_migrations
from controlplane.provisioner.records import desired_records
from dataplane.ledger.bins import Bin
from dataplane.ledger.units import position_of
from dataplane.names import cell_topic
from dataplane.tables.records import PipeRecord, RedriveRecord
from mgmt.cells.queries.cells import cells_of, generation_of
from mgmt.deliveries.services.redrives import release_leftovers
from mgmt.ledger.queries.ledger import accounts
from mgmt.models import (
    Admission,
    Cell,
    CellVerdict,
    ControlAction,
    FactRow,
    HighOffset,
    LaneSignal,
    Lease,
    OffsetSet,
    Pipe,
    PipeMigration,
    Redrive,
    Seal,
    SettledOffset,
    Tenant,
    Topic,
    User,
)
from mgmt.services import (
    InvalidValue,
    MigrationInProgressError,
    NotMigratableError,
    cancel_migration,
    pause_controller,
    publish_revision,
    request_migration,
    resume_controller,
)
from tests.db.console.truth import go_live

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MINUTE = int(NOW.timestamp() // 60)
INGEST, EGRESS = (cell_topic("c1", purpose, 1) for purpose in ("ingest", "egress"))


class EndsAt7:
    """Kafka queries of these steps; every partition ends at offset 7."""

    def ends(self, places: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return dict.fromkeys(places, 7)


HANDS = cast(Effects, type("Hands", (), {"topics": EndsAt7()})())


@pytest.fixture
def placed(pipe: Pipe) -> Pipe:
    """Pipe on c1, with c2 as another cell."""
    go_live(pipe)
    cell = Cell.objects.create(id="c2")
    for purpose in ("ingest", "egress", "slow"):
        name = cell_topic("c2", purpose, 2)
        Topic.objects.create(cell=cell, purpose=purpose, generation=2, name=name, topic_id=name, partitions=1)
    pipe.refresh_from_db()
    return pipe


def ask(pipe: Pipe, by: User, to: str = "c2", reason: str = "c1 is full") -> PipeMigration:
    return request_migration(pipe=pipe, target=Cell.objects.get(id=to), reason=reason, by=by, now=NOW)


def do(row: PipeMigration, step: type[MigrationStep], *words: Any) -> PipeMigration:
    apply_step(HANDS, step(row.id, *words), NOW)
    row.refresh_from_db()
    return row


def record_of(pipe: Pipe) -> PipeRecord:
    (record,) = desired_records([f"pipe/{pipe.id}"]).records
    assert isinstance(record, PipeRecord)
    return record


def test_complete_migration_publishes_each_state(placed: Pipe, alice: User):
    row, version = ask(placed, alice), placed.version
    assert (record_of(placed).cell, record_of(placed).leaving) == ("c1", "")
    LaneSignal.objects.create(pipe_id=placed.id, destination="crm", writer="transmit-0", at=NOW, breaker="open")
    assert do(row, SwitchToTarget).state == "draining"
    assert not LaneSignal.objects.exists(), "lanes of the target have reported no signal yet"
    record = record_of(placed)
    assert (record.cell, record.leaving, record.version) == ("c2", "c1", version + 1)
    do(row, RecordIngestLeft)
    assert do(row, RecordSourceEnds).ends == [[INGEST, 0, 7]]
    assert do(row, FinishMigration).state == "done"
    record = record_of(placed)
    assert (record.cell, record.leaving, record.version) == ("c2", "", version + 2)
    noted = ControlAction.objects.filter(pipe=placed, cell="c2").order_by("id")
    assert [(one.action, one.outcome, one.author) for one in noted] == [
        ("move-pipe", "requested", alice),
        ("switch-pipe", "done", None),
        ("move-pipe", "done", None),
    ]
    assert cells_of([placed.id])[placed.id] == {"c1", "c2"}
    assert do(row, FinishMigration).state == "done", "a repeated step changes nothing"
    assert record_of(placed).version == version + 2


def test_migration_is_reverted_automatically_by_the_same_steps(placed: Pipe, alice: User):
    row = do(ask(placed, alice), SwitchToTarget)
    CellVerdict.objects.create(cell_id="c2", state="unstable", reasons=["gone"], since=NOW, at=NOW)
    assert do(row, RevertMigration, "c2 is unstable").state == "turned back"
    back = PipeMigration.objects.get(back_of=row)
    assert (back.source_id, back.target_id, back.state, back.by) == ("c2", "c1", "draining", None)
    assert (record_of(placed).cell, record_of(placed).leaving) == ("c1", "c2")
    (view,) = open_migrations()
    assert view.is_revert
    assert do(back, FinishMigration).state == "done"


@pytest.mark.parametrize(("leased", "other"), [("c1", "c2"), ("c2", "c1")])
def test_lease_of_either_cell_blocks_a_step(placed: Pipe, alice: User, leased: str, other: str):
    row = ask(placed, alice)
    lease = acquire(leased, "deploy", "release 7", NOW)
    assert isinstance(lease, Lease)
    assert do(row, SwitchToTarget).state == "requested"
    free = acquire(other, "scale", "another change", NOW)
    assert isinstance(free, Lease), "the lease of the other cell was released"
    assert (release(lease), release(free)) == (True, True)
    do(row, SwitchToTarget)
    acquire(leased, "deploy", "release 7", NOW)
    assert do(row, FinishMigration).state == "draining"
    assert do(row, RevertMigration, "c2 is unstable").state == "draining"


def test_pause_of_either_cell_between_snapshot_and_action_is_respected(placed: Pipe, alice: User):
    row = ask(placed, alice)
    for cell in ("c1", "c2"):
        where = Cell.objects.get(id=cell)
        pause = pause_controller(controller="provision", cell=where, reason="audit", until=None, by=alice, now=NOW)
        assert do(row, SwitchToTarget).state == "requested"
        resume_controller(pause=pause, by=alice, now=NOW)
    assert do(row, SwitchToTarget).state == "draining"


def test_unstable_target_blocks_the_switch_and_an_unstable_source_does_not(placed: Pipe, alice: User):
    row = ask(placed, alice)
    verdict = CellVerdict.objects.create(cell_id="c2", state="unstable", reasons=["gone"], since=NOW, at=NOW)
    assert do(row, SwitchToTarget).state == "requested"
    verdict.delete()
    CellVerdict.objects.create(cell_id="c1", state="unstable", reasons=["gone"], since=NOW, at=NOW)
    assert do(row, SwitchToTarget).state == "draining"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"dedup": {"paths": ["id"]}}, "has dedup"),
        (
            {"windows": {"w": {"span": {"kind": "tumbling", "size_s": 60}, "values": {"n": {"op": "count"}}}}},
            "has windows",
        ),
        ({"sources": {"shop": {"key": "id", "sequence": "n"}}}, "has a sequence"),
        ({"execution": "bulk"}, "has bulk execution"),
        ({"destinations": {"crm": {"type": "lake"}}}, "is a lake"),
    ],
)
def test_unmigratable_pipe_is_refused_with_the_reason(placed: Pipe, alice: User, changes: dict[str, Any], why: str):
    live = placed.revisions.get()
    publish_revision(pipe=placed, spec=live.spec | changes, based_on=live.number, author=alice)
    go_live(placed)
    with pytest.raises(NotMigratableError, match=why):
        ask(placed, alice)


@pytest.fixture
def in_order(placed: Pipe, alice: User) -> Pipe:
    """Pipe whose destination keeps the order of each key."""
    live = placed.revisions.get()
    ordered = {"crm": {"type": "http", "url": "https://x.example.com/", "ordered": True}}
    publish_revision(pipe=placed, spec=live.spec | {"destinations": ordered}, based_on=live.number, author=alice)
    go_live(placed)
    placed.refresh_from_db()
    return placed


def test_ordered_migration_holds_messages_at_the_target_until_the_source_has_drained(in_order: Pipe, alice: User):
    row, version = ask(in_order, alice), in_order.version
    (view,) = open_migrations()
    assert (view.in_order, view.held) == (True, False)
    assert do(row, SwitchToTarget).state == "requested", "the switch waits until the target holds"
    do(row, HoldAtTarget)
    record = record_of(in_order)
    assert (record.cell, record.held_at, record.version) == ("c1", "c2", version + 1)
    assert open_migrations()[0].held
    assert do(row, SwitchToTarget).state == "draining"
    record = record_of(in_order)
    assert (record.cell, record.leaving, record.held_at) == ("c2", "c1", "c2")
    do(row, RecordIngestLeft)
    do(row, RecordSourceEnds)
    hold_before_steps(in_order)
    assert release_leftovers() == 0, "the source still has earlier messages"
    assert do(row, FinishMigration).state == "done"
    assert record_of(in_order).held_at == ""
    assert release_leftovers() == 1


def test_abandoned_ordered_migration_holds_nothing_any_more(in_order: Pipe, alice: User):
    row = do(ask(in_order, alice), HoldAtTarget)
    version = record_of(in_order).version
    do(row, AbandonMigration, "nobody wants it")
    assert (record_of(in_order).held_at, record_of(in_order).version) == ("", version + 1)


def test_ordered_migration_waits_for_scheduled_retries_on_the_source(in_order: Pipe, alice: User):
    topic = cell_topic("c1", "retry-out", 1)
    HighOffset.objects.create(pipe_id=in_order.id, bucket=1, topic=topic, partition=0, offset=9)
    row = ask(in_order, alice)
    assert open_migrations()[0].busy == f"{topic}/0 is read up to 0 of 10"
    SettledOffset.objects.create(topic=topic, partition=0, offset=10)
    assert open_migrations()[0].busy == ""
    do(do(row, HoldAtTarget), SwitchToTarget)
    PipeMigration.objects.update(ends=[[INGEST, 0, 0]])
    assert open_migrations()[0].behind == ""
    HighOffset.objects.create(pipe_id=in_order.id, bucket=2, topic=topic, partition=0, offset=10)
    assert open_migrations()[0].behind == f"{topic}/0 is read up to 10 of 11"


def hold_before_steps(pipe: Pipe) -> None:
    places = BitMap64([0, 1])
    OffsetSet.objects.create(
        pipe_id=pipe.id,
        destination="",
        kind="held",
        cause="010",
        topic=cell_topic("c2", "held", 2),
        partition=0,
        hour=1,
        offsets=places.serialize(),
        count=2,
        seen=2,
        marks=[[0, 0]],
    )


def test_migration_between_cells_of_one_generation_is_refused(placed: Pipe, alice: User):
    Topic.objects.filter(cell="c2").update(generation=1)
    with pytest.raises(NotMigratableError, match="share generation 1"):
        ask(placed, alice)


def test_migration_is_requested_once_with_a_reason_and_to_another_cell(placed: Pipe, alice: User):
    with pytest.raises(InvalidValue, match="the control audit shows it"):
        ask(placed, alice, reason=" ")
    with pytest.raises(InvalidValue, match="cell other than"):
        ask(placed, alice, to="c1")
    row = ask(placed, alice)
    with pytest.raises(MigrationInProgressError):
        ask(placed, alice)
    assert cancel_migration(migration=row, says="no more", by=alice, now=NOW)
    assert not cancel_migration(migration=row, says="no more", by=alice, now=NOW)
    assert ask(placed, alice).state == "requested"


def test_running_release_ends_first_and_a_later_one_belongs_to_the_new_cell(placed: Pipe, alice: User):
    row = ask(placed, alice)
    move = Redrive.objects.create(
        pipe=placed, destination="crm", what="release", chosen={}, taken=[], total=0, rate_per_s=1
    )
    assert open_migrations()[0].busy == "waiting for the end of a release or redrive"
    assert do(row, SwitchToTarget).state == "requested", "also if the release began after the snapshot"
    Redrive.objects.filter(id=move.id).update(state="done")
    do(row, SwitchToTarget)
    Redrive.objects.filter(id=move.id).update(state="running")
    (record,) = desired_records([f"move/{move.id}"]).records
    assert isinstance(record, RedriveRecord)
    assert record.cell == "c2"


def test_migration_waits_for_the_end_of_the_pipes_admission(placed: Pipe, alice: User):
    row = ask(placed, alice)
    way = Admission.objects.create(pipe=placed, expected_per_s=600, share=20)
    assert open_migrations()[0].busy.startswith("waiting for the end of the pipe's admission")
    assert do(row, SwitchToTarget).state == "requested"
    way.ended_at = NOW
    way.save()
    assert do(row, SwitchToTarget).state == "draining"


def test_source_is_drained_only_when_the_pipes_last_records_are_settled(placed: Pipe, alice: User):
    row = do(do(do(ask(placed, alice), SwitchToTarget), RecordIngestLeft), RecordSourceEnds)

    def behind() -> str:
        return open_migrations()[0].behind

    assert behind() == f"{INGEST}/0 is read up to 0 of 7"
    SettledOffset.objects.create(topic=INGEST, partition=0, offset=7)
    assert behind() == ""
    for bucket, offset in ((MINUTE, 3), (MINUTE + 1, 4)):
        HighOffset.objects.create(pipe_id=row.pipe_id, bucket=bucket, topic=EGRESS, partition=0, offset=offset)
    assert behind() == f"{EGRESS}/0 is read up to 0 of 5"
    SettledOffset.objects.create(topic=EGRESS, partition=0, offset=5)
    HighOffset.objects.create(pipe_id="other", bucket=MINUTE, topic=EGRESS, partition=0, offset=99)
    assert behind() == "", "records of other pipes do not count"


def test_refused_step_is_recorded_for_both_cells_and_mere_waiting_is_not(placed: Pipe, alice: User):
    row = do(ask(placed, alice), AnnotateMigration, "waiting for process-0")
    refused = ControlAction.objects.filter(pipe=placed, outcome="refused").order_by("id")
    assert not refused.exists()
    do(row, AnnotateMigration, "cell c2 is unstable", "cell-unstable")
    do(do(row, SwitchToTarget), AnnotateMigration, "deploying is changing cell c1", "cell-busy")
    assert [(one.cell_id, one.action, one.refusal, one.reason) for one in refused] == [
        ("c1", "switch-pipe", "cell-unstable", "cell c2 is unstable"),
        ("c2", "switch-pipe", "cell-unstable", "cell c2 is unstable"),
        ("c1", "move-pipe", "cell-busy", "deploying is changing cell c1"),
        ("c2", "move-pipe", "cell-busy", "deploying is changing cell c1"),
    ]


def test_explain_shows_what_the_migration_waits_for(placed: Pipe, alice: User):
    row = do(ask(placed, alice), AnnotateMigration, "waiting for process-0")
    assert "migration from cell c1 to c2 requested at 2026-11-21 12:00:00 UTC: waiting for process-0" in explain(
        placed.id, NOW
    )
    do(do(row, SwitchToTarget), AnnotateMigration, "t/0 is read up to 1 of 2")
    said = "\n".join(explain(placed.id, NOW))
    assert "new events are sent to c2 since 2026-11-21 12:00:00 UTC; c1 finishes its backlog: t/0 is read up" in said
    assert do(ask_again(row, alice), AbandonMigration, "too late").says == "too late"


def ask_again(row: PipeMigration, by: User) -> PipeMigration:
    PipeMigration.objects.filter(id=row.id).update(state="done", finished_at=NOW)
    return ask(Pipe.objects.get(), by, to="c1")


def fact(pipe: Pipe, node: str, fact: str, generation: int, offsets: list[int], detail: str = "") -> None:
    positions = BitMap64(position_of(generation, 0, offset) for offset in offsets)
    FactRow.objects.create(
        pipe_id=pipe.id, bucket=MINUTE, node=node, fact=fact, detail=detail, child=0, audit_partition=generation,
        positions=positions.serialize(), count=len(positions),
    )  # fmt: skip


def two_cells_facts(pipe: Pipe) -> None:
    """Store two messages on each cell; the last one on each has not been read."""
    for generation in (1, 2):
        fact(pipe, "ingest", "sent", generation, [0, 1], "acked")
        fact(pipe, "process", "sent", generation, [0])
        fact(pipe, "transform:crm", "sent", generation, [0])
        fact(pipe, "transmit:crm", "delivered", generation, [0])
        SettledOffset.objects.create(topic=cell_topic(f"c{generation}", "ingest", generation), partition=0, offset=1)
        SettledOffset.objects.create(topic=cell_topic(f"c{generation}", "egress", generation), partition=0, offset=1)


def test_account_of_a_minute_covers_both_cells(placed: Pipe, alice: User):
    do(ask(placed, alice), SwitchToTarget)
    two_cells_facts(placed)
    account = accounts(placed.id, [MINUTE])[MINUTE]
    assert (len(account.acked), account.count(Bin.DELIVERED), account.count(Bin.QUEUED)) == (4, 2, 2)
    SettledOffset.objects.filter(topic=INGEST).update(offset=2)
    account = accounts(placed.id, [MINUTE])[MINUTE]
    assert (account.count(Bin.QUEUED), account.count(Bin.LOST)) == (1, 1), "lost on the source cell"


def test_minute_on_both_cells_is_sealed_when_both_have_passed_it(placed: Pipe, alice: User):
    do(ask(placed, alice), SwitchToTarget)
    two_cells_facts(placed)
    for generation in (1, 2):
        fact(placed, "transmit:crm", "delivered", generation, [1], "again")
        fact(placed, "process", "sent", generation, [1], "again")
    sealer = Sealer(grace_s=60)
    sealer.remember({(placed.id, MINUTE): "c2"})
    later = NOW + timedelta(minutes=5)
    SettledOffset.objects.filter(topic=cell_topic("c2", "ingest", 2)).update(offset=2)
    assert sealer.step(later, lambda _: (0, 2)) == 0, "the source cell has not passed the minute"
    SettledOffset.objects.filter(topic=INGEST).update(offset=2)
    assert sealer.step(later, lambda _: (0, 2)) == 1
    assert (Seal.objects.get().accepted, Seal.objects.get().lost) == (4, 0)


def test_later_minutes_ignore_the_source_cell(placed: Pipe, alice: User):
    row = do(ask(placed, alice), SwitchToTarget)
    do(row, FinishMigration)
    PipeMigration.objects.update(finished_at=NOW - timedelta(minutes=10))
    fact(placed, "ingest", "sent", 2, [0], "acked")
    fact(placed, "process", "sent", 2, [0])
    SettledOffset.objects.create(topic=cell_topic("c2", "ingest", 2), partition=0, offset=1)
    sealer = Sealer(grace_s=60)
    sealer.remember({(placed.id, MINUTE): "c2"})
    assert sealer.step(NOW + timedelta(minutes=5), lambda _: (0, 1)) == 1


def test_loss_during_a_migration_counts_for_the_source_cell(placed: Pipe, alice: User):
    row = do(ask(placed, alice), SwitchToTarget)
    Seal.objects.create(
        pipe_id=placed.id, bucket=MINUTE - 5, sealed_at=NOW, accepted=9, unacked=0, lost=3, bins={}, nodes=[]
    )
    assert {look.cell: look.lost for look in observations(NOW)} == {"c1": 3, "c2": 0}
    do(row, FinishMigration)
    assert {look.cell: look.lost for look in observations(NOW + timedelta(minutes=9))} == {"c1": 3, "c2": 0}
    PipeMigration.objects.update(finished_at=NOW - timedelta(minutes=11))
    assert {look.cell: look.lost for look in observations(NOW)} == {"c1": 0, "c2": 3}


def test_command_requests_a_migration(placed: Pipe, alice: User):
    User.objects.filter(id=alice.id).update(is_staff=True)
    out = StringIO()
    call_command("move_pipe", "orders", "c2", by="alice", reason="c1 is full", stdout=out)
    assert json.loads(out.getvalue()) == {"relocation": PipeMigration.objects.get().id, "from": "c1", "to": "c2"}
    for wrong in ({"pipe": "none"}, {"cell": "none"}, {"by": "bob"}, {}):
        words = {"pipe": "orders", "cell": "c2", "by": "alice", "reason": "again"} | wrong
        with pytest.raises(CommandError):
            call_command("move_pipe", words.pop("pipe"), words.pop("cell"), **words)


def test_cell_without_topics_gets_a_unique_generation(placed: Pipe):
    Cell.objects.create(id="c3")
    assert (generation_of("c1"), generation_of("c2"), generation_of("c3")) == (1, 2, 3)


def test_pipe_is_not_migrated_to_a_cell_dedicated_to_another_tenant(placed: Pipe, alice: User):
    other = Tenant.objects.create(id="ten_other", name="Other")
    Cell.objects.filter(id="c2").update(dedicated_to=other)
    with pytest.raises(NotMigratableError, match="cell c2 is dedicated to another tenant"):
        ask(placed, alice)
    Cell.objects.filter(id="c2").update(dedicated_to=placed.tenant)
    assert ask(placed, alice).state == "requested"
