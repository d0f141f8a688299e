"""Wire formats of audit, attempts and headers: round trips, and records of the next and previous release."""

from typing import Any

import msgspec
import pytest

from dataplane.ledger.audit import (
    AUDIT_VERSION,
    AttemptBatch,
    AttemptRecord,
    AuditRecord,
    FactSet,
    LagSet,
    OffsetMark,
    decode_attempts,
    decode_audit,
    encode,
)
from dataplane.ledger.meta import META_HEADER, MessageMeta, decode_meta, encode_meta, read_meta
from dataplane.names import WIRE_VERSION

AUDIT = AuditRecord(
    AUDIT_VERSION,
    "c1",
    "process-0",
    "process",
    1_790_000_000_000_000,
    [OffsetMark("in", 0, 5)],
    [OffsetMark("out", 1, 2**40)],
    [FactSet("p", "normalize", 29_833_333, "dead", "step", 0, b"\x00\x01")],
    [LagSet("p", "normalize", 29_833_333, "in", b"")],
)
ATTEMPT = AttemptRecord("id", 1, "p", 7, "crm", 2, 1, 10, 1, 2, 3, 4, 5, 503, "retry", "server-error", "127.0.0.1", 99)
ATTEMPTS = AttemptBatch(AUDIT_VERSION, "c1", "transmit-0", 4, [ATTEMPT])
META = MessageMeta(
    version=WIRE_VERSION,
    id="id",
    pipe="p",
    revision=7,
    source="shop",
    event_time_us=-5,
    ingest_time_us=6,
    bucket=29_833_333,
    off_time=True,
)


def of_the_next_release(encoded: bytes) -> bytes:
    """Return the same record with two more fields at its end."""
    fields: list[Any] = msgspec.msgpack.decode(encoded)
    return msgspec.msgpack.encode([*fields, "new", {"deep": [1]}])


def test_audit_and_attempts_are_unchanged_by_encoding_and_decoding():
    assert decode_audit(encode(AUDIT)) == AUDIT
    assert decode_attempts(encode(ATTEMPTS)) == ATTEMPTS


def test_records_of_the_next_release_are_readable():
    assert decode_audit(of_the_next_release(encode(AUDIT))) == AUDIT
    assert decode_attempts(of_the_next_release(encode(ATTEMPTS))) == ATTEMPTS
    assert decode_meta(of_the_next_release(encode_meta(META))) == META


def test_parts_of_a_record_may_have_new_fields_too():
    fields: list[Any] = msgspec.msgpack.decode(encode(AUDIT))
    for place in (5, 6, 7, 8):
        fields[place] = [[*part, "new"] for part in fields[place]]
    assert decode_audit(msgspec.msgpack.encode(fields)) == AUDIT


class LagSetBefore(msgspec.Struct, array_like=True, frozen=True):
    """Lag set as the release before breakdowns reads it."""

    pipe: str
    node: str
    bucket: int
    way: str
    sketch: bytes


def test_lag_sets_are_compatible_with_the_release_before_breakdowns_in_both_directions():
    ours = LagSet("p", "transmit:crm", 29_833_333, "out", b"sketch", b"breakdown")
    before = LagSetBefore("p", "transmit:crm", 29_833_333, "out", b"sketch")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(ours), type=LagSetBefore) == before
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(before), type=LagSet).breakdown == b""


@pytest.mark.parametrize(
    "value", [b"", b"\xc1", b"junk", msgspec.msgpack.encode({}), msgspec.msgpack.encode([1, "c1"])]
)
def test_invalid_record_raises_a_decode_error(value: bytes):
    for decode in (decode_audit, decode_attempts, decode_meta):
        with pytest.raises(msgspec.DecodeError):
            decode(value)


def test_meta_is_unchanged_by_encoding_and_decoding():
    assert decode_meta(encode_meta(META)) == META


def test_meta_of_the_previous_release_gets_defaults_for_newer_fields():
    fields: list[Any] = msgspec.msgpack.decode(encode_meta(META))
    old = decode_meta(msgspec.msgpack.encode(fields[:8]))
    assert old == MessageMeta(*fields[:8])
    assert (old.off_time, old.position, old.destination, old.attempt) == (False, 0, "", 0)


def test_meta_header_is_read_only_if_it_is_the_first():
    header = (META_HEADER, encode_meta(META))
    assert read_meta([header, ("content-type", b"x")]) == META
    for headers in ([], [("content-type", b"x")], [("content-type", b"x"), header]):
        with pytest.raises(KeyError):
            read_meta(headers)
    with pytest.raises(msgspec.DecodeError):
        read_meta([(META_HEADER, b"junk")])
