"""Refusals of a failover, and the records on the mirror's topic, without Kafka."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dataplane.mirror.clusters import mirror_addresses
from dataplane.mirror.failover import SILENT_US, RegionState, failover_refusals, has_stopped
from dataplane.mirror.records import (
    PROGRESS_KEY,
    PROMOTION_KEY,
    MirrorProgress,
    MirrorRecords,
    Promotion,
    TopicProgress,
)
from tests.support.box_programs import box_programs
from tests.support.memory_lane import MemoryMessage

PROGRESS = MirrorProgress("copying", "a:1", at_us=1_000, complete_us=900, checkpoint_us=800)
BEGUN = Promotion(2_000, "a:1")
DONE = Promotion(2_000, "a:1", stored={"penstock.c1.ingest.g1": {0: 5}})


def state(**changes: Any) -> RegionState:
    usual: dict[str, Any] = {
        "now_us": 2_000,
        "records": MirrorRecords(PROGRESS),
        "is_active_up": False,
        "is_quiet": False,
        "behind": 0,
    }
    return RegionState(**(usual | changes))


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        pytest.param({}, "", id="the active cluster is gone"),
        pytest.param({"is_active_up": True, "is_quiet": True}, "", id="planned, and everything is mirrored"),
        pytest.param({"is_active_up": True}, "processes write to the active cluster", id="in use"),
        pytest.param({"is_active_up": True, "is_quiet": True, "behind": 3}, "3 messages", id="planned too early"),
        pytest.param({"records": MirrorRecords()}, "no mirror has written", id="no mirror"),
        pytest.param(
            {"records": MirrorRecords(msgspec.structs.replace(PROGRESS, checkpoint_us=0))},
            "first copy is not complete",
            id="no committed offsets",
        ),
        pytest.param({"records": MirrorRecords(PROGRESS, BEGUN)}, "", id="an interrupted failover is completed"),
        pytest.param({"records": MirrorRecords(PROGRESS, DONE)}, "active one already", id="done"),
    ],
)
def test_failover_is_refused_while_it_would_lose_more_than_it_must(changes: dict[str, Any], refusal: str):
    refusals = failover_refusals(state(**changes), accept_loss=False)
    assert bool(refusals) == bool(refusal)
    assert refusal in "; ".join(refusals)


def test_accepted_loss_allows_a_failover_from_a_cluster_that_answers():
    assert failover_refusals(state(is_active_up=True, behind=3), accept_loss=True) == []
    incomplete = MirrorRecords(msgspec.structs.replace(PROGRESS, checkpoint_us=0))
    assert failover_refusals(state(records=incomplete), accept_loss=True), "loss of everything is not accepted"


@pytest.mark.parametrize(
    ("progress", "stopped"),
    [
        pytest.param(None, True, id="never ran"),
        pytest.param(PROGRESS, False, id="still copies"),
        pytest.param(msgspec.structs.replace(PROGRESS, state="stopped"), False, id="stopped before the promotion"),
        pytest.param(msgspec.structs.replace(PROGRESS, state="stopped", at_us=3_000), True, id="stopped since"),
    ],
)
def test_promotion_waits_for_the_mirror(progress: MirrorProgress | None, *, stopped: bool):
    assert has_stopped(progress, 2_000, 4_000) is stopped


def test_silent_mirror_counts_as_stopped():
    assert not has_stopped(PROGRESS, 2_000, 1_000 + SILENT_US)
    assert has_stopped(PROGRESS, 2_000, 1_001 + SILENT_US)


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
