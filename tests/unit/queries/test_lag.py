"""How cumulative lags become durations, hops and shares: the talk's own figures and the edges around them."""

import pytest

from mgmt.queries.lag import Hop, Passage, end_to_end_us, hops, process_duration_us, shares, side_by_side

MS = 1_000
TALK = [Passage("a", 1 * MS, 3 * MS), Passage("b", 5 * MS, 8 * MS), Passage("c", 10 * MS, 12 * MS)]


def test_the_talks_process_durations_are_2_3_and_2_ms():
    assert [process_duration_us(passage) for passage in TALK] == [2 * MS, 3 * MS, 2 * MS]


def test_the_talks_end_to_end_lag_is_12_ms():
    assert end_to_end_us(TALK) == 12 * MS


def test_hops_add_up_to_the_end_to_end_lag():
    assert hops(TALK) == [
        Hop("source", "source", 1 * MS),
        Hop("a", "process", 2 * MS),
        Hop("a to b", "transit", 2 * MS),
        Hop("b", "process", 3 * MS),
        Hop("b to c", "transit", 2 * MS),
        Hop("c", "process", 2 * MS),
    ]
    assert sum(hop.took_us for hop in hops(TALK)) == end_to_end_us(TALK)


def test_shares_add_up_to_one():
    assert sum(share for _, share in shares(hops(TALK))) == pytest.approx(1)


def test_a_first_node_without_lag_in_takes_everything_up_to_its_departure():
    way = hops([Passage("ingest", None, 2 * MS), Passage("normalize", 3 * MS, 4 * MS)])
    assert way == [
        Hop("ingest", "process", 2 * MS),
        Hop("ingest to normalize", "transit", 1 * MS),
        Hop("normalize", "process", 1 * MS),
    ]


def test_a_node_that_was_not_measured_is_left_out_and_its_time_is_transit():
    way = hops([Passage("a", 0, MS), Passage("b", None, None), Passage("c", 4 * MS, 5 * MS)])
    assert way[2] == Hop("a to c", "transit", 3 * MS)


def test_a_negative_difference_is_kept_as_hop_and_counts_as_nothing_in_shares():
    way = hops([Passage("a", 5 * MS, 4 * MS), Passage("b", 6 * MS, 9 * MS)])
    assert way[1].took_us == -MS
    assert [round(share, 2) for _, share in shares(way)] == [0.5, 0.0, 0.2, 0.3]


def test_nothing_measured_gives_no_hops_no_shares_no_end():
    assert hops([]) == []
    assert shares([]) == []
    assert end_to_end_us([Passage("a", None, None)]) is None
    assert process_duration_us(Passage("a", 1, None)) is None


def test_a_node_read_before_the_report_of_the_one_before_takes_the_overlap():
    """Seen on a cold box: Kafka's report took 62 ms, and process had the record after 8 ms."""
    way = [Passage("ingest", 0, 62 * MS), Passage("normalize", 8 * MS, 9 * MS), Passage("transmit", 14 * MS, 18 * MS)]
    straight = hops(side_by_side(way))
    assert [hop.took_us for hop in straight] == [0, 8 * MS, 0, 1 * MS, 5 * MS, 4 * MS]
    assert sum(hop.took_us for hop in straight) == end_to_end_us(way)


def test_a_way_without_overlaps_stays_as_it_is():
    assert side_by_side(TALK) == TALK
    assert side_by_side([Passage("a", None, None)]) == [Passage("a", None, None)]
