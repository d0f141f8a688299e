"""Stopwatches: the slices of a message's time add up, even if the clocks of our hosts differ."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ledger.breakdown import SLICES, Slice
from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.stopwatch import delivery, departure_stamp, forward_stamp, spent_until, stamp
from dataplane.names import WIRE_VERSION

CAME = 1_790_000_000_000_000  # a whole millisecond
NOTHING = [0] * SLICES


def meta(**changes: Any) -> MessageMeta:
    made = MessageMeta(WIRE_VERSION, "m", "p", 1, "shop", CAME, CAME, 1)
    return msgspec.structs.replace(made, **changes)


def named(spent_us: list[int] | None) -> dict[str, int]:
    return {Slice(number).name: took for number, took in enumerate(spent_us or []) if took}


def steps(**slices_us: int) -> list[int]:
    row = NOTHING.copy()
    for name, took_us in slices_us.items():
        row[Slice[name.upper()]] = took_us
    return row


def test_messages_processed_together_share_one_stamp():
    """Two messages arrive at different times, are stored at different times and leave process at the same time."""
    shared = stamp(Slice.TRANSMIT_QUEUE, CAME + 20_000, steps(normalize=300, transform=40))
    early = meta(stopwatch=shared, stored_ms=CAME // 1_000 + 2)
    late = meta(stopwatch=shared, ingest_time_us=CAME + 15_000, stored_ms=CAME // 1_000 + 16)
    assert named(spent_until(early, CAME + 21_000)) == {
        "INGEST": 2_500,
        "PROCESS_QUEUE": 17_160,
        "NORMALIZE": 300,
        "TRANSFORM": 40,
        "TRANSMIT_QUEUE": 1_000,
    }
    assert named(spent_until(late, CAME + 21_000))["PROCESS_QUEUE"] == 20_000 - 340 - 15_000 - 1_500


@pytest.mark.parametrize(
    ("stored_ms", "ingest", "queue"),
    [
        pytest.param(0, 0, 9_000, id="not known"),
        pytest.param(CAME // 1_000 - 5_000, 0, 9_000, id="the broker's clock is behind ours"),
        pytest.param(CAME // 1_000 + 5_000, 9_000, 0, id="the broker's clock is ahead of ours"),
    ],
)
def test_impossible_storage_time_moves_the_border_of_two_slices_not_the_sum(stored_ms: int, ingest: int, queue: int):
    one = meta(stopwatch=stamp(Slice.TRANSMIT_QUEUE, CAME + 9_000, NOTHING), stored_ms=stored_ms)
    spent = spent_until(one, CAME + 9_000)
    assert spent is not None
    assert (spent[Slice.INGEST], spent[Slice.PROCESS_QUEUE], sum(spent)) == (ingest, queue, 9_000)


def test_host_with_a_slow_clock_adds_no_negative_wait_and_loses_no_time():
    one = meta(stopwatch=stamp(Slice.TRANSMIT_QUEUE, CAME + 9_000, NOTHING))
    behind = spent_until(one, CAME - 60_000_000)
    assert named(behind) == {"PROCESS_QUEUE": 9_000}
    one.stopwatch = departure_stamp(one, behind, Slice.RETRY)
    assert named(spent_until(one, CAME + 9_700)) == {"PROCESS_QUEUE": 9_000, "RETRY": 700}


WAITS = st.sampled_from([Slice.RETRY, Slice.HELD, Slice.DEAD_LETTER, Slice.TRANSMIT_QUEUE, Slice.LAKE])
HOPS = st.lists(st.tuples(WAITS, st.integers(-10_000_000, 10_000_000), st.integers(0, 10**9)), max_size=6)


@given(st.integers(-(10**8), 10**8), st.integers(0, 10**8), HOPS)
def test_slices_add_up_to_the_whole_time_for_any_clock_skew(
    skew_us: int, process_us: int, hops: list[tuple[Slice, int, int]]
):
    """Each host reads its own wall clock with an offset; a message's own time only moves forward."""
    one = meta(event_time_us=CAME - skew_us, stopwatch=stamp(Slice.TRANSMIT_QUEUE, CAME + process_us, NOTHING))
    moment, own = CAME + process_us, CAME + process_us
    for waiting, off_us, waited_us in hops:
        moment += waited_us
        spent = spent_until(one, moment + off_us)
        assert spent is not None
        assert min(spent) >= 0
        own = max(own, moment + off_us)
        assert one.ingest_time_us + sum(spent) == own
        one.stopwatch = departure_stamp(one, spent, waiting)


def test_forwarding_host_names_the_slice_in_which_the_message_waits_next():
    one = meta(stopwatch=stamp(Slice.RETRY, CAME + 5, NOTHING))
    one.stopwatch = forward_stamp(one, CAME + 15, Slice.DEAD_LETTER)
    assert named(spent_until(one, CAME + 1_015)) == {"PROCESS_QUEUE": 5, "RETRY": 10, "DEAD_LETTER": 1_000}


def test_message_of_an_earlier_release_has_no_stopwatch_and_gets_none():
    unstamped = meta()
    assert spent_until(unstamped, CAME + 9) is None
    assert forward_stamp(unstamped, CAME + 9, Slice.HELD) == b""


@pytest.mark.parametrize("junk", [b"junk", msgspec.msgpack.encode([1]), msgspec.msgpack.encode({"a": 1})])
def test_unreadable_stopwatch_is_ignored(junk: bytes):
    assert spent_until(meta(stopwatch=junk), CAME + 9) is None


def test_stopwatch_of_the_next_release_is_read_without_its_new_slices():
    of_the_next = msgspec.msgpack.encode([99, CAME + 700, [0] * SLICES + [200], "new"])
    assert named(spent_until(meta(stopwatch=of_the_next), CAME + 1_000)) == {"PROCESS_QUEUE": 500, "RETRY": 300}


def test_time_until_a_window_closed_is_a_slice_of_its_result():
    result = meta(source="window:sales", event_time_us=CAME - 4_000)
    source_us, spent = delivery(result, steps(transmit=5))
    assert (source_us, named(spent)) == (0, {"TRANSMIT": 5, "WINDOW": 4_000})
    assert delivery(meta(event_time_us=CAME - 4_000), steps(transmit=5))[0] == 4_000
