"""Redrives on the wire: offsets packed and unpacked, records keyed, invalid bitmaps refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from dataplane.tables.records import RedriveRecord, decode_record, encode_record, record_key
from dataplane.tables.redrives import (
    REDRIVES_VERSION,
    EarlyReleaseProgress,
    RedriveProgress,
    decode_early_release,
    decode_offsets,
    decode_progress,
    early_release_key,
    encode_offsets,
    encode_progress,
    format_place,
    parse_place,
    redrive_key,
)

PLACES = st.tuples(st.sampled_from(["penstock.c1.held.g1", "penstock.c1.dead.g1"]), st.integers(0, 100))


@given(st.dictionaries(PLACES, st.sets(st.integers(0, 2**40), max_size=20).map(BitMap64), max_size=4))
def test_offsets_survive_a_round_trip(offsets: dict[tuple[str, int], BitMap64]):
    assert decode_offsets(encode_offsets(offsets)) == offsets


def test_place_survives_a_round_trip_as_topic_and_partition():
    assert parse_place(format_place(("penstock.c1.held.g1", 3))) == ("penstock.c1.held.g1", 3)


@pytest.mark.parametrize(
    ("offsets", "why"),
    [({"held": "AA=="}, "invalid literal"), ({"held/0": "!"}, "base64"), ({"held/0": ""}, "got an empty value")],
)
def test_invalid_offsets_raise_a_value_error(offsets: dict[str, str], why: str):
    with pytest.raises(ValueError, match=why):
        decode_offsets(offsets)


def test_redrive_is_a_control_record_with_its_own_key():
    move = RedriveRecord("m1", 2, "c1", "p", "crm", "redrive", {"t/0": "AA=="}, 50.0, "running")
    assert record_key(move) == "move/m1"
    assert decode_record(encode_record(move)) == move


def test_progress_of_redrive_and_early_release_survives_a_round_trip():
    progress = RedriveProgress(REDRIVES_VERSION, "m1", 3, 1, 9, False, 5, {"t/0": 4}, "waits")
    ahead = EarlyReleaseProgress(REDRIVES_VERSION, "p", "crm", 5, {"t/0": 4})
    assert decode_progress(encode_progress(progress)) == progress
    assert decode_early_release(encode_progress(ahead)) == ahead
    assert (redrive_key("m1"), early_release_key("p", "crm")) == ("move/m1", "ahead/p/crm")
