"""Sequences of keys: gaps, reorderings and repeats, compared with a model that remembers every number."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ledger.facts import GAP, OUT_OF_ORDER, REPEATED
from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.sequence_breaks import SequenceBreak
from dataplane.ledger.units import position_of
from dataplane.plan import compile_plan
from dataplane.plan.sequence import (
    MOST_GAPS,
    MOST_RANGES,
    SequenceState,
    SequenceTap,
    compare_event,
    decode_sequence_break,
    decode_sequence_state,
    decode_sequence_tap,
    encode,
    sequence_key,
    sequence_number,
    sequence_tap,
)
from dataplane.spec import parse_pipe_spec

MOST = (1 << 63) - 1
NOW_US = 1_790_000_000_000_000
V1 = ("b4cc8000-a838-11ee-80b4-00c04fd430c8", "b4cc8001-a838-11ee-80b4-00c04fd430c8")
V7 = ("018f3b5e-7c00-7000-8000-000000000000", "018f3b5e-7c01-7000-8000-000000000000")


def tap(
    number: int, offset: int, *, is_clock: bool = False, generation: int = 1, partition: int = 0, revision: int = 1
) -> SequenceTap:
    return SequenceTap(
        "p", revision, "shop", "k", 7, position_of(generation, partition, offset), offset, is_clock, number
    )


def judged(
    *taps: SequenceTap, state: SequenceState | None = None
) -> tuple[SequenceState, list[str | None], dict[tuple[int, str], SequenceBreak]]:
    """Return the state after these events, the kind of each, and the newest report of each break."""
    kinds: list[str | None] = []
    rows: dict[tuple[int, str], SequenceBreak] = {}
    for one in taps:
        found = compare_event(state, one)
        state = decode_sequence_state(encode(found.state))  # as Spark keeps it between batches
        kinds.append(found.kind)
        rows |= {(row.position, row.kind): decode_sequence_break(encode(row)) for row in found.breaks}
    assert state is not None
    return state, kinds, rows


def numbered(*numbers: int) -> list[SequenceTap]:
    return [tap(number, offset) for offset, number in enumerate(numbers)]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        pytest.param(0, (False, 0), id="zero"),
        pytest.param(-3, (False, -3), id="negative"),
        pytest.param(MOST, (False, MOST), id="the highest"),
        pytest.param(MOST + 1, None, id="over 64 bits"),
        pytest.param(str(MOST), (False, MOST), id="digits as text"),
        pytest.param("9" * 19, None, id="digits over 64 bits"),
        pytest.param("9" * 5_000, None, id="more digits than Python converts"),
        pytest.param("٣", None, id="digits of another script"),
        pytest.param("-", None, id="a sign"),
        pytest.param("", None, id="empty text"),
        pytest.param(True, None, id="a boolean"),
        pytest.param(4.0, None, id="a float"),
        pytest.param(None, None, id="null"),
        pytest.param([1], None, id="an array"),
        pytest.param(V7[0], (True, 0x018F3B5E7C00 * 1_000), id="a UUID of version 7"),
        pytest.param("ffffffff-ffff-7000-8000-000000000000", None, id="a clock far ahead"),
        pytest.param("6ba7b810-9dad-41d1-80b4-00c04fd430c8", None, id="a UUID of version 4"),
    ],
)
def test_number_of_an_event(value: Any, found: tuple[bool, int] | None):
    assert sequence_number(value, NOW_US) == found


@pytest.mark.parametrize("pair", [V1, V7])
def test_clocks_of_time_uuids_are_ordered(pair: tuple[str, str]):
    first, second = (sequence_number(one, NOW_US) for one in pair)
    assert first is not None
    assert second is not None
    assert second.number - first.number in (0, 1_000)  # version 1 counts tenths of a microsecond


def test_tap_has_the_key_without_the_pipe_and_survives_the_wire():
    meta = MessageMeta(1, "id", "p", 3, "shop", 5, NOW_US, 7, False)
    meta.position = 9
    found = sequence_tap(meta, b"p\0berlin", {"order": {"seq": 41}}, ("order", "seq"))
    assert found == SequenceTap("p", 3, "shop", "berlin", 7, 9, NOW_US, False, 41)
    assert decode_sequence_tap(encode(found)) == found
    assert sequence_tap(meta, b"p\0\x80\x81", {"order": {"seq": 41}}, ("order", "seq")) is None, "a binary key"
    assert sequence_tap(meta, b"p\0berlin", {"order": {}}, ("order", "seq")) is None


def test_sequences_are_separate_by_source_key_path_and_kind():
    one = tap(1, 0)
    others = [
        sequence_key(msgspec.structs.replace(one, source="other"), b"seq"),
        sequence_key(msgspec.structs.replace(one, key="z"), b"seq"),
        sequence_key(tap(1, 0, is_clock=True), b"seq"),
        sequence_key(one, b"other"),
    ]
    assert len({sequence_key(one, b"seq"), *others}) == 5
    assert sequence_key(tap(99, 3), b"seq") == sequence_key(one, b"seq")


@pytest.mark.parametrize(
    "source",
    [{"key": "other", "sequence": "seq"}, {"key": "id", "sequence": "n"},
     {"type": "kafka", "cluster": "main", "topic": "orders", "key": "id", "sequence": "seq"}],
)  # fmt: skip
def test_sequence_of_another_key_path_number_path_or_topic_is_a_new_one(source: dict[str, Any]):
    def origin(one: dict[str, Any]) -> bytes:
        spec = {"sources": {"shop": one}, "destinations": {"crm": {"url": "https://crm.example/"}}}
        return compile_plan(parse_pipe_spec(spec)).sequences["shop"].origin

    assert origin(source) != origin({"key": "id", "sequence": "seq"})


def test_consecutive_numbers_break_nothing():
    state, kinds, rows = judged(*numbered(5, 6, 7))
    assert (kinds, rows) == ([None] * 3, {})
    assert (state.last, state.gaps) == (7, [])


def test_gap_names_the_missing_numbers_and_shrinks_as_they_arrive():
    state, kinds, rows = judged(*numbered(40, 44, 42, 41, 43, 45))
    assert kinds == [None, GAP, OUT_OF_ORDER, OUT_OF_ORDER, OUT_OF_ORDER, None]
    gap = rows[position_of(1, 0, 1), GAP]
    assert (gap.previous, gap.number, gap.missing) == (40, 44, 0)
    late = rows[position_of(1, 0, 2), OUT_OF_ORDER]
    assert (late.previous, late.number, late.missing) == (44, 42, 0)
    assert state.gaps == []
    assert judged(*numbered(40, 44, 42))[2][position_of(1, 0, 1), GAP].missing == 2


def test_number_that_arrived_before_is_repeated():
    _, kinds, rows = judged(*numbered(1, 2, 2, 1))
    assert kinds == [None, None, REPEATED, REPEATED]
    assert [row.previous for row in rows.values()] == [2, 2]


def test_number_below_the_first_is_out_of_order_because_it_may_be_new():
    assert judged(*numbered(5, 4))[1] == [None, OUT_OF_ORDER]


def test_event_that_is_read_again_breaks_nothing():
    taps = numbered(1, 2, 4, 5)
    state, kinds, rows = judged(*taps)
    again, no_kinds, no_rows = judged(*taps, state=state)
    assert (no_kinds, no_rows) == ([None] * 4, {})
    assert again.last == 5
    assert kinds[2] == GAP
    assert len(rows) == 1


def test_event_that_penstock_held_up_fills_its_gap_and_is_not_out_of_order():
    _, kinds, rows = judged(tap(1, 0), tap(3, 2), tap(2, 1))
    assert kinds == [None, GAP, None]
    assert rows[position_of(1, 0, 2), GAP].missing == 0


def test_sequence_continues_in_the_next_generation_of_the_topic():
    _, kinds, _ = judged(
        tap(1, 90), tap(2, 0, generation=2, partition=3), tap(3, 91), tap(4, 1, generation=2, partition=3)
    )
    assert kinds == [None, None, None, GAP], "an older generation is no longer newer"


def test_first_event_of_another_revision_opens_no_gap_because_others_may_have_processed_events():
    taps = [tap(1, 0), tap(4, 1), tap(9, 2, revision=3), tap(2, 3, revision=3), tap(7, 4, revision=3)]
    state, kinds, rows = judged(*taps, tap(11, 5, revision=3))
    assert kinds == [None, GAP, None, OUT_OF_ORDER, OUT_OF_ORDER, GAP]
    assert rows[position_of(1, 0, 1), GAP].missing == 1, "a gap from before is still filled"
    assert (state.revision, state.last) == (3, 11)


def test_repeat_of_a_number_from_before_a_publish_is_a_repeat():
    assert judged(tap(9, 0), tap(10, 1), tap(11, 2, revision=2), tap(10, 3, revision=2))[1][3] == REPEATED


def test_clock_that_goes_back_is_out_of_order_and_no_clock_makes_a_gap():
    _, kinds, rows = judged(*(tap(number, at, is_clock=True) for at, number in enumerate((10, 500, 500, 400, 501))))
    assert kinds == [None, None, None, OUT_OF_ORDER, None]
    (row,) = rows.values()
    assert (row.is_clock, row.previous, row.number) == (True, 500, 400)


def test_state_of_a_key_is_bounded_and_forgotten_numbers_are_not_called_repeated():
    jumps = [number * 100 for number in range(MOST_GAPS + 5)]
    state, _, _ = judged(*numbered(*jumps))
    assert len(state.gaps) == MOST_GAPS
    _, kinds, _ = judged(tap(1, 99), state=state)
    assert kinds == [OUT_OF_ORDER]
    every_second = [0, 1_000, *range(2, 900, 2)]
    state, kinds, rows = judged(*numbered(*every_second))
    assert sum(len(gap.ranges) for gap in state.gaps) <= MOST_RANGES
    assert set(kinds[2:]) == {OUT_OF_ORDER}
    assert len(encode(state)) < 10_000
    assert not next(iter(rows.values())).is_tracked, "it would stay open although its numbers arrive"


def test_largest_gap_is_counted():
    _, _, rows = judged(tap(-MOST, 0), tap(MOST, 1))
    assert [row.missing for row in rows.values()] == [2 * MOST - 1]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=40))
def test_kinds_and_missing_numbers_are_those_of_a_model_that_remembers_everything(numbers: list[int]):
    arrived, first, kinds = set[int](), numbers[0], []
    for number in numbers:
        highest = max(arrived, default=number - 1)
        if number > highest:
            kinds.append(None if number == highest + 1 else GAP)
        elif number in arrived and number >= first:
            kinds.append(REPEATED)
        else:
            kinds.append(OUT_OF_ORDER)
        arrived.add(number)
    _, found, rows = judged(*numbered(*numbers))
    assert found == kinds
    missing = set(range(first, max(arrived))) - arrived
    assert sum(row.missing for row in rows.values() if row.kind == GAP) == len(missing)
