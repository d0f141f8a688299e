"""Offsets of copies, delays and consistent cuts, decided without Kafka."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.mirror.positions import (
    ConsistentCut,
    DivergedError,
    GroupOffset,
    PartitionCopy,
    TopicDelay,
    by_topic,
    new_offsets,
    start_of,
)

PLACE = ("penstock.c1.ingest.g1", 0)
OTHER = ("penstock.c1.egress.g1", 0)
SECOND = 1_000_000


def test_partition_advances_only_with_delivery_reports():
    copy = PartitionCopy(PLACE, 10, is_exact=True)
    assert [copy.take(offset) for offset in (10, 11)] == [0, 0]
    assert copy.stored == 10
    copy.reported(10)
    assert (copy.stored, copy.copied) == (11, 1)


def test_copy_at_another_offset_than_its_original_ends_the_partition():
    copy = PartitionCopy(PLACE, 10, is_exact=True)
    copy.take(10)
    copy.take(11)
    copy.reported(12)
    copy.reported(13)
    assert copy.stored == 10, "nothing is known to be at its place from there on"
    assert copy.error == "penstock.c1.ingest.g1 [0]: offset 10 was stored as 12"


def test_gap_of_an_exact_topic_is_filled_and_each_filler_has_a_report():
    copy = PartitionCopy(PLACE, 0, is_exact=True)
    assert copy.take(3) == 3
    for offset in range(4):
        copy.reported(offset)
    assert (copy.stored, copy.error) == (4, "")


def test_gap_that_compaction_left_is_not_filled():
    copy = PartitionCopy(PLACE, 0, is_exact=False)
    assert copy.take(7) == 0
    copy.reported(2)
    assert (copy.stored, copy.error) == (8, ""), "the offset of the copy does not matter"


def test_record_that_is_read_twice_is_refused():
    copy = PartitionCopy(PLACE, 5, is_exact=True)
    with pytest.raises(DivergedError, match="offset 4 was read twice"):
        copy.take(4)


@given(st.integers(0, 50), st.lists(st.booleans(), max_size=60))
def test_stored_is_always_the_longest_prefix_with_reports(start: int, steps: list[bool]):
    copy = PartitionCopy(PLACE, start, is_exact=True)
    taken = reported = start
    for is_take in steps:
        if is_take:
            copy.take(taken)
            taken += 1
        elif reported < taken:
            copy.reported(reported)
            reported += 1
        assert copy.stored == reported
        assert copy.taken == taken


@pytest.mark.parametrize(
    ("begin", "end", "standby_end", "fillers"),
    [
        pytest.param(0, 9, 0, 0, id="new topic"),
        pytest.param(100, 200, 0, 100, id="retention has deleted records before the mirror began"),
        pytest.param(100, 200, 150, 0, id="restart"),
        pytest.param(100, 200, 40, 60, id="retention overtook the mirror"),
        pytest.param(7, 7, 7, 0, id="nothing to copy"),
    ],
)
def test_fillers_take_the_offsets_of_deleted_records(begin: int, end: int, standby_end: int, fillers: int):
    assert start_of(PLACE, begin=begin, end=end, standby_end=standby_end) == fillers


def test_standby_cluster_with_more_records_has_diverged():
    with pytest.raises(DivergedError, match="has records up to 11, the active one up to 10"):
        start_of(PLACE, begin=0, end=10, standby_end=11)


def test_delay_is_measured_by_the_ends_of_an_earlier_look():
    delay = TopicDelay(0)
    delay.look(1 * SECOND, {PLACE: 100}, {PLACE: 40})
    assert (delay.behind, delay.behind_s(3 * SECOND)) == (60, 3.0)
    delay.look(2 * SECOND, {PLACE: 200}, {PLACE: 99})
    assert delay.complete_us == 0
    delay.look(5 * SECOND, {PLACE: 300}, {PLACE: 100})
    assert delay.complete_us == 1 * SECOND, "it has all that was stored before the first look, and no more is known"
    assert delay.behind_s(6 * SECOND) == 5.0


def test_delay_of_a_topic_without_new_records_is_the_age_of_the_last_look():
    delay = TopicDelay(0)
    delay.look(8 * SECOND, {PLACE: 100}, {PLACE: 100})
    assert (delay.behind, delay.behind_s(8 * SECOND), delay.behind_s(9 * SECOND)) == (0, 0.0, 1.0)


def test_cut_waits_for_the_outputs_of_what_is_committed():
    cut = ConsistentCut({"penstock.c1.process": {PLACE: GroupOffset(50)}}, {PLACE: 60, OTHER: 48}, 0)
    assert not cut.is_complete({PLACE: 60, OTHER: 47}), "an output of a committed record may be missing"
    assert not cut.is_complete({PLACE: 60}), "a partition that is not copied yet"
    assert cut.is_complete({PLACE: 61, OTHER: 48})


def test_only_offsets_that_changed_are_committed_and_none_where_there_is_none():
    five = GroupOffset(5, "metadata counts, too")
    cut = {"process": {PLACE: five}, "transmit": {OTHER: GroupOffset(-1001)}, "retrier": {OTHER: GroupOffset(7)}}
    known = {"process": {PLACE: GroupOffset(5)}, "retrier": {OTHER: GroupOffset(7)}}
    assert new_offsets(cut, known) == {"process": {PLACE: five}}


def test_offsets_are_grouped_by_the_named_topics():
    assert by_topic({PLACE: 5, OTHER: 6}, [PLACE[0]]) == {PLACE[0]: {0: 5}}
