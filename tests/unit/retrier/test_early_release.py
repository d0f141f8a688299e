"""While a destination fails, the retrier forwards only probes; the early release after it returns each message once."""

import pytest

from dataplane.retrier import covered_messages
from dataplane.retrier import work as module
from dataplane.retrier.work import WINDOW, WINDOW_BYTES
from dataplane.tables.redrives import (
    REDRIVES_VERSION,
    EarlyReleaseProgress,
    early_release_key,
    encode_progress,
    format_place,
)
from tests.support.memory_lane import MemoryLane
from tests.support.retrying import NOW, S, hear, in_tier, known, metas, parked, passed_on, release
from tests.support.transmitting import Clock


def test_unhealthy_destination_receives_only_probes(lane: MemoryLane):
    known(lane)
    hear(lane, "open", until_us=NOW + 5 * S)
    lane.take(*(parked(lane, offset, NOW) for offset in range(1_000)))
    assert passed_on(lane) == [], "none before the open period of the breaker ends"
    probes = [meta for meta in metas(lane, "delay-10s") if meta.paced]
    assert len(probes) <= 130
    assert all(NOW + 5 * S <= meta.not_before_us <= NOW + 30 * S for meta in probes)
    others = metas(lane, "delay-5m")
    assert len(probes) + len(others) == 1_000
    assert not any(meta.paced for meta in others)


def test_elapsed_retry_after_does_not_exclude_a_message_from_early_release(lane: MemoryLane):
    known(lane)
    hear(lane, "open", until_us=NOW + 5 * S)
    lane.take(*(parked(lane, offset, NOW - S, asked_us=NOW - S) for offset in range(200)))
    assert {meta.asked_us for meta in metas(lane, "delay-5m")} == {0}


def test_signal_of_an_older_destination_version_is_ignored(lane: MemoryLane):
    known(lane, version=2)
    hear(lane, "open", until_us=NOW + 60 * S)
    lane.take(parked(lane, 0, NOW))
    assert len(passed_on(lane)) == 1


def test_early_released_message_is_settled_in_the_tier_where_it_waited(lane: MemoryLane, clock: Clock):
    place = format_place((lane.cell.topics["delay-5m"].name, 0))
    ahead = EarlyReleaseProgress(REDRIVES_VERSION, "p", "crm", NOW, {place: 2})
    waits = [in_tier(lane, offset, NOW + 9 * S, topic="delay-5m") for offset in range(3)]
    lane.take(waits[0])
    lane.work._signal_state.apply(early_release_key("p", "crm"), encode_progress(ahead), NOW)
    asked = in_tier(lane, 1, NOW + 9 * S, topic="delay-5m", asked_us=NOW + 9 * S)
    lane.take(asked, waits[2])
    lane.work.poll()
    assert lane.unsettled() == 2, "settled as soon as the early release is known"
    assert lane.filed() == {("transmit:crm", "released", "2"): 1}
    clock.advance(9)
    lane.work.poll()
    assert passed_on(lane) == ["id-0-1", "id-0-2"], "the requested wait, and the message after the release"


def next_refresh(lane: MemoryLane, clock: Clock) -> None:
    clock.advance(1)
    lane.work.poll()


def test_due_message_waits_for_the_running_release_that_returns_it(lane: MemoryLane, clock: Clock):
    release(lane, 0, end=2)
    lane.take(*(in_tier(lane, offset, NOW - S, topic="delay-5m") for offset in range(3)))
    next_refresh(lane, clock)
    assert [meta.id for meta in metas(lane, "delay-10s")] == ["id-0-2"], "the release did not find this one"
    lane.store()
    assert lane.unsettled() == 2, "the release returns the others; a copy would be returned twice"
    release(lane, 1, end=2, at_us=clock.wall_us)
    next_refresh(lane, clock)
    assert lane.unsettled() == 1
    release(lane, 2, running=False, at_us=clock.wall_us)
    next_refresh(lane, clock)
    assert (lane.unsettled(), passed_on(lane)) == (0, [])


def test_message_that_waited_for_an_interrupted_release_is_forwarded(lane: MemoryLane, clock: Clock):
    release(lane, 0)
    lane.take(*(in_tier(lane, offset, NOW - S, topic="delay-5m") for offset in range(3)))
    next_refresh(lane, clock)
    assert passed_on(lane) == []
    clock.advance(31)  # without a report: the lane of the release was killed
    next_refresh(lane, clock)
    assert passed_on(lane) == ["id-0-0", "id-0-1", "id-0-2"]


def test_due_message_of_a_recovered_destination_waits_for_its_release_to_begin(lane: MemoryLane, clock: Clock):
    lane.work._background = []  # another lane releases
    hear(lane, "open", until_us=NOW + 5 * S)
    hear(lane, "closed", at_us=clock.wall_us)
    lane.take(*(in_tier(lane, offset, NOW - S, topic="delay-5m") for offset in range(3)))
    next_refresh(lane, clock)
    assert (lane.unsettled(), passed_on(lane)) == (3, []), "the scan for the release runs"
    release(lane, 0, end=2, at_us=clock.wall_us)
    next_refresh(lane, clock)
    lane.store()
    assert lane.unsettled() == 2, "the release returns two; the other one was not found"
    release(lane, 2, running=False, at_us=clock.wall_us)
    next_refresh(lane, clock)
    assert (lane.unsettled(), passed_on(lane)) == (0, [])


def test_due_message_of_a_recovered_destination_waits_ten_seconds_at_most(lane: MemoryLane, clock: Clock):
    lane.work._background = []  # another lane releases
    hear(lane, "closed", at_us=clock.wall_us)
    lane.take(in_tier(lane, 0, NOW - S, topic="delay-5m"), parked(lane, 7, NOW - S))
    next_refresh(lane, clock)
    assert passed_on(lane) == ["id-0-7"], "one that was not in a tier is not delayed"
    clock.advance(7)
    next_refresh(lane, clock)
    assert len(passed_on(lane)) == 1
    next_refresh(lane, clock)
    assert passed_on(lane) == ["id-0-7", "id-0-0"]


def complete_release(lane: MemoryLane, clock: Clock, reached: int) -> None:
    """Complete a release that found nothing, because the records of all messages still have their Retry-After."""
    release(lane, reached, running=False, at_us=clock.wall_us)
    for _ in range(15):
        next_refresh(lane, clock)


def test_message_that_waits_in_memory_after_its_retry_after_is_in_no_release(lane: MemoryLane, clock: Clock):
    lane.take(*(in_tier(lane, offset, NOW, topic="delay-5m", asked_us=NOW) for offset in range(1_200)))
    lane.work.poll()
    assert len(passed_on(lane)) == 1_000, "the rest waits for its pace"
    complete_release(lane, clock, 1_200)
    assert len(passed_on(lane)) == 1_200


def test_message_after_its_retry_after_does_not_wait_for_an_expected_release(lane: MemoryLane, clock: Clock):
    lane.work._background = []
    known(lane)
    hear(lane, "open", until_us=NOW)
    lane.take(*(in_tier(lane, offset, NOW, topic="delay-5m", asked_us=NOW) for offset in range(20)))
    lane.work.poll()
    hear(lane, "closed", at_us=clock.wall_us)
    next_refresh(lane, clock)
    complete_release(lane, clock, 20)
    assert len(passed_on(lane)) + len(metas(lane, "delay-5m")) + len(metas(lane, "delay-10s")) == 20


def test_wall_clock_that_is_set_back_does_not_prolong_the_wait_for_an_expected_release(lane: MemoryLane, clock: Clock):
    lane.work._background = []
    hear(lane, "closed", at_us=clock.wall_us)
    lane.take(in_tier(lane, 0, NOW - S, topic="delay-5m"))
    clock.wall_us -= 3_600 * S
    for _ in range(10):
        next_refresh(lane, clock)
    assert passed_on(lane) == ["id-0-0"]


def test_no_message_waits_for_an_expected_release_beyond_its_horizon(lane: MemoryLane, clock: Clock):
    lane.work._background = []
    known(lane, span_s=5)
    hear(lane, "closed", at_us=clock.wall_us)
    lane.take(*(in_tier(lane, offset, NOW - S, topic="delay-5m", first_us=NOW - (3 - offset) * S) for offset in (0, 3)))
    for _ in range(3):
        next_refresh(lane, clock)
    assert passed_on(lane) == ["id-0-0"], "first tried three seconds ago"


def test_destination_that_fails_again_gets_only_probes(lane: MemoryLane, clock: Clock):
    known(lane)
    hear(lane, "closed", at_us=clock.wall_us)
    lane.take(in_tier(lane, 0, NOW - S, topic="delay-5m"))
    hear(lane, "open", at_us=clock.wall_us, until_us=clock.wall_us + 60 * S)
    next_refresh(lane, clock)
    assert (passed_on(lane), len(metas(lane, "delay-5m"))) == ([], 1)


@pytest.mark.parametrize(
    ("number", "size"),
    [
        pytest.param(covered_messages.MOST, 10, id="number"),
        pytest.param(100, covered_messages.MOST_BYTES // 100, id="size"),
    ],
)
def test_messages_that_wait_for_a_release_leave_room_in_the_window_of_their_partition(
    lane: MemoryLane, number: int, size: int
):
    release(lane, 0)
    body = b"x" * size
    lane.take(*(in_tier(lane, offset, NOW - S, topic="delay-5m", body=body) for offset in range(number + 5)))
    lane.work.poll()
    assert len(metas(lane, "delay-10s")) == 5
    assert number < WINDOW
    assert number * size < WINDOW_BYTES


def test_revoked_partition_drops_the_messages_that_wait_for_a_release(lane: MemoryLane, clock: Clock):
    first, other = (in_tier(lane, 0, NOW - S, topic="delay-5m", partition=partition) for partition in (0, 1))
    ends = {format_place((lane.cell.topics["delay-5m"].name, partition)): 9 for partition in (0, 1)}
    report = EarlyReleaseProgress(REDRIVES_VERSION, "p", "crm", NOW, {}, True, ends)
    lane.work._signal_state.apply(early_release_key("p", "crm"), encode_progress(report), NOW)
    lane.take(first, other)
    lane.work.poll()
    lane.work.on_revoked([lane.slots.of(first)])
    clock.advance(31)
    next_refresh(lane, clock)
    assert passed_on(lane) == ["id-1-0"]


def test_new_lane_forwards_no_due_message_before_it_knows_which_breakers_are_open(lane: MemoryLane, clock: Clock):
    known(lane)
    lane.work._reader.at_end = False
    lane.take(parked(lane, 0, NOW - S), in_tier(lane, 0, NOW - S))
    clock.advance(1)
    lane.work.poll()
    assert passed_on(lane) == []
    hear(lane, "open", until_us=NOW + 60 * S)
    lane.work._reader.at_end = True
    clock.advance(1)
    lane.work.poll()
    assert passed_on(lane) == []


def test_new_lane_waits_only_for_a_few_seconds_for_the_signals(lane: MemoryLane, clock: Clock):
    lane.work._reader.at_end = False
    lane.take(parked(lane, 0, NOW - S), in_tier(lane, 1, NOW - S))
    clock.advance(module.SIGNALS_WITHIN_S)
    lane.work.poll()
    assert sorted(passed_on(lane)) == ["id-0-0", "id-0-1"]


@pytest.mark.parametrize(
    ("parked_us", "asked_us", "goes"),
    [
        pytest.param(NOW - S, 0, True, id="before the release, which did not find it in a tier"),
        pytest.param(NOW + S, 0, False, id="after the release: not caused by it"),
        pytest.param(NOW - S, NOW + 60 * S, False, id="it was asked to wait"),
    ],
)
def test_message_not_yet_in_a_tier_at_an_early_release_follows_the_released_ones(
    lane: MemoryLane, parked_us: int, asked_us: int, goes: bool
):
    known(lane)
    ahead = EarlyReleaseProgress(REDRIVES_VERSION, "p", "crm", NOW, {}, False)
    lane.work._signal_state.apply(early_release_key("p", "crm"), encode_progress(ahead), NOW)
    late = parked(lane, 0, NOW + 60 * S, asked_us=asked_us)
    late.at_ms = parked_us // 1_000
    lane.take(late)
    assert (passed_on(lane) == ["id-0-0"]) is goes
    assert (len(metas(lane, "delay-1m")) == 1) is not goes


def test_no_message_follows_an_early_release_while_the_destination_fails_again(lane: MemoryLane):
    known(lane)
    ahead = EarlyReleaseProgress(REDRIVES_VERSION, "p", "crm", NOW, {}, False)
    lane.work._signal_state.apply(early_release_key("p", "crm"), encode_progress(ahead), NOW)
    hear(lane, "open", until_us=NOW + 5 * S)
    lane.take(parked(lane, 0, NOW + 60 * S))
    assert passed_on(lane) == []
