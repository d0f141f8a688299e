"""Moves as they travel: offsets packed and unpacked, records keyed, what is no bitmap refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from dataplane.tables.moves import (
    MOVES_VERSION,
    Ahead,
    MoveProgress,
    ahead_key,
    decode_ahead,
    decode_offsets,
    decode_progress,
    encode_offsets,
    encode_progress,
    format_place,
    move_key,
    parse_place,
)
from dataplane.tables.records import MoveRecord, decode_record, encode_record, record_key

PLACES = st.tuples(st.sampled_from(["penstock.c1.held.g1", "penstock.c1.dead.g1"]), st.integers(0, 100))


@given(st.dictionaries(PLACES, st.sets(st.integers(0, 2**40), max_size=20).map(BitMap64), max_size=4))
def test_offsets_come_back_as_they_went(offsets: dict[tuple[str, int], BitMap64]):
    assert decode_offsets(encode_offsets(offsets)) == offsets


def test_a_place_is_its_topic_and_partition():
    assert parse_place(format_place(("penstock.c1.held.g1", 3))) == ("penstock.c1.held.g1", 3)


@pytest.mark.parametrize(
    ("offsets", "why"),
    [({"held": "AA=="}, "invalid literal"), ({"held/0": "!"}, "base64"), ({"held/0": ""}, "got nothing")],
)
def test_offsets_that_are_none_are_a_value_error(offsets: dict[str, str], why: str):
    with pytest.raises(ValueError, match=why):
        decode_offsets(offsets)


def test_a_move_is_a_control_record_of_its_own():
    move = MoveRecord("m1", 2, "c1", "p", "crm", "redrive", {"t/0": "AA=="}, 50.0, "running")
    assert record_key(move) == "move/m1"
    assert decode_record(encode_record(move)) == move


def test_progress_and_what_was_released_ahead_come_back_as_they_went():
    progress = MoveProgress(MOVES_VERSION, "m1", 3, 1, 9, False, 5, {"t/0": 4}, "waits")
    ahead = Ahead(MOVES_VERSION, "p", "crm", 5, {"t/0": 4})
    assert decode_progress(encode_progress(progress)) == progress
    assert decode_ahead(encode_progress(ahead)) == ahead
    assert (move_key("m1"), ahead_key("p", "crm")) == ("move/m1", "ahead/p/crm")
