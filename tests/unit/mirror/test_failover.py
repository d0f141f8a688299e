"""Refusals of a failover, and the records on the mirror's topic, without Kafka."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dataplane.mirror.__main__ import check_identities
from dataplane.mirror.clusters import mirror_addresses
from dataplane.mirror.failover import count_behind, has_stopped
from dataplane.mirror.positions import MirrorError
from dataplane.mirror.records import (
    PROGRESS_KEY,
    PROMOTION_KEY,
    MirrorProgress,
    MirrorRecords,
    Promotion,
    TopicProgress,
)
from dataplane.mirror.refusals import (
    SAME_CLUSTER,
    SILENT_US,
    Accepted,
    ActiveState,
    RegionState,
    failover_refusals,
    former_refusals,
)
from dataplane.mirror.selection import TopicLayout
from tests.support.box_programs import box_programs
from tests.support.memory_lane import MemoryMessage

INGEST, CONTROL = "penstock.c1.ingest.g1", "penstock.control"
PROGRESS = MirrorProgress("copying", "a:1", at_us=1_000, complete_us=900, checkpoint_us=800, active_id="A")
STOPPED = msgspec.structs.replace(PROGRESS, state="stopped")
BEGUN = Promotion(2_000, "a:1")
DONE = Promotion(2_000, "a:1", stored={INGEST: {0: 5}}, former_id="A")
DOWN = ActiveState()
QUIET = ActiveState("A", is_up=True, is_quiet=True, has_ingest=True)


def state(active: ActiveState = DOWN, **changes: Any) -> RegionState:
    usual: dict[str, Any] = {"now_us": 2_000, "records": MirrorRecords(PROGRESS), "standby_id": "B", "active": active}
    return RegionState(**(usual | changes))


def reported(**changes: Any) -> dict[str, Any]:
    return {"records": MirrorRecords(msgspec.structs.replace(PROGRESS, **changes))}


def changed(**changes: Any) -> dict[str, Any]:
    return {"active": msgspec.structs.replace(QUIET, **changes)}


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        pytest.param({}, "", id="the active cluster is gone"),
        pytest.param({"active": QUIET}, "", id="planned, and everything is mirrored"),
        pytest.param(changed(is_quiet=False), "processes write to the active cluster", id="in use"),
        pytest.param(changed(behind=3), "3 messages", id="planned too early"),
        pytest.param(changed(error="no leader"), "responds with an error: no leader", id="one partition has no leader"),
        pytest.param(changed(id="C"), "not the cluster that was mirrored", id="another cluster"),
        pytest.param(changed(has_ingest=False), "no ingest topics", id="empty"),
        pytest.param({"active": QUIET} | reported(state="waiting"), "does not copy: waiting", id="planned, no mirror"),
        pytest.param({"active": QUIET} | reported(error="no answer"), "copying: no answer", id="planned, an error"),
        pytest.param({"active": QUIET, "now_us": SILENT_US + 950}, "does not copy", id="planned, complete long ago"),
        pytest.param(reported(diverged="audit [0]"), "has diverged: audit [0]", id="diverged"),
        pytest.param({"now_us": SILENT_US + 1_001}, "add --mirror-is-dead", id="silent"),
        pytest.param({"now_us": SILENT_US + 1_001} | reported(state="stopped"), "", id="stopped in order"),
        pytest.param({"without_offsets": {"process": 7}}, "process 7 messages", id="a group lost its offsets"),
        pytest.param({"records": MirrorRecords()}, "no mirror has written", id="no mirror"),
        pytest.param(reported(checkpoint_us=0), "first copy is not complete", id="no committed offsets"),
        pytest.param({"records": MirrorRecords(PROGRESS, BEGUN)}, "", id="an interrupted failover is completed"),
        pytest.param(
            {"active": QUIET, "records": MirrorRecords(STOPPED, BEGUN)}, "", id="an interrupted move is completed"
        ),
        pytest.param({"records": MirrorRecords(PROGRESS, DONE)}, "active one already", id="done"),
    ],
)
def test_failover_is_refused_while_it_would_lose_more_than_it_must(changes: dict[str, Any], refusal: str):
    refusals = failover_refusals(state(**changes), Accepted())
    assert bool(refusals) == bool(refusal)
    assert refusal in "; ".join(refusals)


@pytest.mark.parametrize(
    ("changes", "accepted"),
    [
        (changed(is_quiet=False, behind=3), Accepted(loss=True)),
        (changed(error="no leader"), Accepted(loss=True)),
        (reported(diverged="audit [0]"), Accepted(loss=True)),
        ({"without_offsets": {"process": 7}}, Accepted(repeats=True)),
        ({"now_us": SILENT_US + 1_001}, Accepted(mirror_is_dead=True)),
    ],
)
def test_each_acceptance_allows_what_it_names_and_nothing_else(changes: dict[str, Any], accepted: Accepted):
    assert failover_refusals(state(**changes), accepted) == []
    others = Accepted(*(not one for one in msgspec.structs.astuple(accepted)))
    assert failover_refusals(state(**changes), others)


def test_loss_of_everything_is_not_accepted():
    everything = Accepted(loss=True, repeats=True, mirror_is_dead=True)
    assert failover_refusals(state(**reported(checkpoint_us=0)), everything)


def test_one_cluster_under_two_addresses_is_refused_by_the_mirror_and_by_both_commands():
    everything = Accepted(loss=True, repeats=True, mirror_is_dead=True)
    assert failover_refusals(state(QUIET, standby_id="A"), everything) == [SAME_CLUSTER]
    assert former_refusals(DONE, "A", "A", DONE) == [SAME_CLUSTER]
    with pytest.raises(MirrorError, match="same cluster"):
        check_identities("A", "A", None)


def test_mirror_does_not_continue_the_copy_of_another_cluster():
    check_identities("A", "B", PROGRESS)
    with pytest.raises(MirrorError, match="copy of another cluster"):
        check_identities("C", "B", PROGRESS)


@pytest.mark.parametrize(
    ("former_id", "former_promotion", "refusal"),
    [
        pytest.param("A", None, "", id="former active cluster"),
        pytest.param("A", Promotion(1_000, "b:1", former_id="B"), "", id="promoted before"),
        pytest.param("A", Promotion(3_000, "b:1", former_id="B"), "promoted later", id="variables not exchanged"),
        pytest.param("C", None, "not the cluster that was active before", id="a third cluster"),
    ],
)
def test_only_the_cluster_that_was_active_before_is_emptied(
    former_id: str, former_promotion: Promotion | None, refusal: str
):
    refusals = former_refusals(DONE, "B", former_id, former_promotion)
    assert bool(refusals) == bool(refusal)
    assert refusal in "; ".join(refusals)


@pytest.mark.parametrize(
    ("stored", "standby_ends", "behind"),
    [
        pytest.param({INGEST: {0: 10}, CONTROL: {0: 8}}, {(INGEST, 0): 10, (CONTROL, 0): 3}, 0, id="all"),
        pytest.param({INGEST: {0: 10}, CONTROL: {0: 6}}, {(INGEST, 0): 10, (CONTROL, 0): 8}, 2, id="keyed states"),
        pytest.param({INGEST: {0: 10}, CONTROL: {0: 8}}, {(CONTROL, 0): 8}, 10, id="the copy was deleted"),
        pytest.param({INGEST: {0: 7}, CONTROL: {0: 8}}, {(INGEST, 0): 12, (CONTROL, 0): 8}, 3, id="foreign records"),
        pytest.param({}, {(INGEST, 0): 10, (CONTROL, 0): 8}, 18, id="nothing is reported"),
    ],
)
def test_messages_behind_are_what_the_mirror_has_not_stored(
    stored: dict[str, dict[int, int]], standby_ends: dict[tuple[str, int], int], behind: int
):
    layouts = {
        INGEST: TopicLayout(INGEST, 1, 1, {}),
        CONTROL: TopicLayout(CONTROL, 1, 1, {"cleanup.policy": "compact"}),
    }
    ends = {(INGEST, 0): 10, (CONTROL, 0): 8}
    progress = msgspec.structs.replace(PROGRESS, stored=stored)
    assert count_behind(layouts, ends, standby_ends, progress) == behind


@pytest.mark.parametrize(
    ("progress", "silent_us", "stopped"),
    [
        pytest.param(None, 0, True, id="never ran"),
        pytest.param(PROGRESS, 0, False, id="still copies"),
        pytest.param(PROGRESS, SILENT_US, False, id="silent, perhaps only cut off"),
        pytest.param(STOPPED, 0, False, id="stopped before the promotion, and may have been started again"),
        pytest.param(STOPPED, SILENT_US, True, id="stopped before, and silent"),
        pytest.param(msgspec.structs.replace(STOPPED, at_us=3_000), 0, True, id="stopped since"),
    ],
)
def test_promotion_waits_for_the_mirror(progress: MirrorProgress | None, silent_us: int, *, stopped: bool):
    assert has_stopped(progress, 2_000, 4_000 + silent_us, mirror_is_dead=False) is stopped


def test_silent_mirror_has_stopped_only_if_a_person_says_so():
    assert not has_stopped(PROGRESS, 2_000, 1_000 + SILENT_US, mirror_is_dead=True)
    assert has_stopped(PROGRESS, 2_000, 1_001 + SILENT_US, mirror_is_dead=True)


def test_newest_record_of_each_kind_counts_and_fields_of_later_releases_are_skipped():
    records = MirrorRecords()
    later = msgspec.json.encode(msgspec.to_builtins(PROGRESS) | {"at_us": 7, "later": 1})
    rows = [(PROGRESS_KEY, msgspec.json.encode(PROGRESS)), (PROMOTION_KEY, msgspec.json.encode(DONE))]
    records.apply(MemoryMessage(0, n, value, [], key) for n, (key, value) in enumerate([*rows, (PROGRESS_KEY, later)]))
    assert records.progress is not None
    assert records.progress.at_us == 7
    assert records.promotion == DONE


def test_addresses_need_two_clusters():
    with pytest.raises(ValueError, match="PENSTOCK_STANDBY_KAFKA: needs the bootstrap servers"):
        mirror_addresses({"PENSTOCK_KAFKA": "a:1"})
    with pytest.raises(ValueError, match="is the active cluster"):
        mirror_addresses({"PENSTOCK_KAFKA": "a:1", "PENSTOCK_STANDBY_KAFKA": "a:1"})


def test_each_cluster_has_its_own_settings_of_security():
    plain, tls = '{"security.protocol": "PLAINTEXT"}', '{"security.protocol": "SSL"}'
    addresses = mirror_addresses(
        {
            "PENSTOCK_KAFKA": "a:1",
            "PENSTOCK_KAFKA_SETTINGS": plain,
            "PENSTOCK_STANDBY_KAFKA": "b:1",
            "PENSTOCK_STANDBY_KAFKA_SETTINGS": tls,
        }
    )
    assert addresses.active.security["security.protocol"] == "PLAINTEXT"
    assert addresses.standby.security["security.protocol"] == "SSL"


@pytest.mark.parametrize(
    ("records", "line"),
    [
        pytest.param(MirrorRecords(), "has never reported", id="no mirror"),
        pytest.param(
            MirrorRecords(PROGRESS), "copying, 0 behind, complete 0.0 s ago, reported 0.0 s ago", id="copying"
        ),
        pytest.param(
            MirrorRecords(
                MirrorProgress("waiting", "a:1", at_us=1_000, topics={"t": TopicProgress(7, 0)}, error="why")
            ),
            "waiting, 7 behind, complete never, reported 0.0 s ago: why",
            id="first copy has a problem",
        ),
        pytest.param(MirrorRecords(PROGRESS, DONE), "the standby cluster was promoted 0.0 s ago", id="promoted"),
    ],
)
def test_summary_is_one_line(records: MirrorRecords, line: str):
    assert records.summary(2_000) == line


def test_box_runs_a_mirror_only_with_a_standby_cluster(tmp_path: Path):
    assert "mirror" not in {program.name for program in box_programs(tmp_path)}
    (mirror,) = (one for one in box_programs(tmp_path, PENSTOCK_STANDBY_KAFKA="z:1") if one.name == "mirror")
    assert mirror.env["PENSTOCK_METRICS"]
