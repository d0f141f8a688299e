"""A bucket is sealed when it has ended and every reader has passed it, and not before."""

from datetime import UTC, datetime

import pytest

from controlplane.observer.seal import SealProgress, first_open_bucket, seal_row, why_open
from dataplane.ledger.bins import Bin, BucketAccount
from dataplane.ledger.unitset import UnitSet

INGEST = ("penstock.c1.ingest.g1", 0)
EGRESS = ("penstock.c1.egress.g1", 0)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("passed", "why"),
    [
        pytest.param({}, "process has passed 0 of 10 on penstock.c1.ingest.g1/0", id="nobody has reported"),
        pytest.param({INGEST: 9, EGRESS: 99}, "process has passed 9 of 10 on penstock.c1.ingest.g1/0", id="one short"),
        pytest.param({INGEST: 10, EGRESS: 4}, "its reader has passed 4 of 5 on penstock.c1.egress.g1/0", id="queued"),
        pytest.param({INGEST: 10, EGRESS: 5}, "", id="all have passed"),
    ],
)
def test_bucket_stays_open_until_every_reader_has_passed_it(passed: dict[tuple[str, int], int], why: str):
    assert why_open(SealProgress(ends={INGEST: 10}, reach={EGRESS: 4}, passed=passed)) == why


def test_bucket_of_a_cell_without_known_topics_is_not_sealed():
    assert why_open(SealProgress(ends={}, reach={}, passed={})) == "no ingest topic of its cell is known"


def test_empty_partition_delays_no_seal():
    assert why_open(SealProgress(ends={INGEST: 0}, reach={}, passed={})) == ""


def test_bucket_ends_after_its_minute_grace_period_and_produce_time():
    minute = int(NOON.timestamp() // 60)
    assert first_open_bucket(NOON, grace_s=60) == minute - 2
    assert first_open_bucket(NOON, grace_s=61) == minute - 3


def test_seal_counts_units_per_destination_and_bin():
    nobody = {name: UnitSet() for name in Bin}
    account = BucketAccount(
        acked=UnitSet.of([1, 2, 3]),
        unacked=UnitSet.of([4]),
        upstream=nobody | {Bin.LOST: UnitSet.of([3])},
        destinations={"crm": nobody | {Bin.DELIVERED: UnitSet.of([1, 4]), Bin.RETRYING: UnitSet.of([2])}},
    )
    seal = seal_row("p1", 7, account, NOON)
    assert (seal.accepted, seal.unacked, seal.lost) == (3, 1, 1)
    assert seal.bins == {"": {"lost": 1}, "crm": {"delivered": 2, "retrying": 1}}
