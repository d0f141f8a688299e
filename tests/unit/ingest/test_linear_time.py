"""Any request is read in time linear in its size, because one event loop serves all senders."""

import base64
import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.ingest.events import read_events
from dataplane.ingest.gunzip import MAX_MEMBERS, gunzip
from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.strictjson import parse
from tests.support.cpu import cpu_s, grows_faster
from tests.support.reference import REFERENCE_S, reference_s

CAP = 5 * 1024 * 1024
SIZES = (1_024, 8 * 1024, 64 * 1024, 512 * 1024)
BATCHES = (8 * 1024, 64 * 1024, 512 * 1024, CAP)
JSON, NDJSON = "application/json", "application/x-ndjson"
EVENT, BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"
CE = b'{"specversion":"1.0","id":"1","source":"s","type":"t"'
Shape = Callable[[int], bytes]


def filled(begin: bytes, unit: bytes, end: bytes) -> Shape:
    """Return a shape with as many units as fit."""
    return lambda size: begin + unit * ((size - len(begin) - len(end)) // len(unit)) + end


def numbered(begin: bytes, unit: bytes, end: bytes) -> Shape:
    """Return a shape whose units are numbered, so that all are different."""

    def shape(size: int) -> bytes:
        count = (size - len(begin) - len(end)) // (len(unit) + 6)
        return begin + b"".join(unit % number for number in range(1_000_000, 1_000_000 + count)) + end

    return shape


def parsed(body: bytes) -> None:
    with suppress(EventRejectedError):
        parse(body)


def read(media_type: str) -> Callable[[bytes], None]:
    def work(body: bytes) -> None:
        with suppress(EventRejectedError):
            for _ in read_events(media_type, body, {}, len(body)).items:
                pass

    return work


VALUES = {
    "an open string of escaped quotes below 70 levels": filled(b'{"a":' + b"[" * 70 + b'"', b'\\"', b""),
    "the same, closed": filled(b'{"a":' + b"[" * 70 + b'"', b'\\"', b'"' + b"]" * 70 + b"}"),
    "a late key twice": numbered(b"{", b'"k%d":1,', b'"z":1,"z":2}'),
    "the same key everywhere": filled(b"{", b'"":1,', b'"":1}'),
    "a key twice behind many objects": filled(b"[", b'{"a":1},', b'{"a":1,"a":2}]'),
    "a key twice behind many empty objects": filled(b"[", b"{},", b'{"a":1,"a":2}]'),
    "an escaped colon and many objects": filled(b'["\\u003a",', b'{"a":1},', b"1]"),
    "brackets only": lambda size: b"[" * (size // 2) + b"]" * (size // 2),
    "opening brackets only": filled(b"", b"[", b""),
    "closing brackets in strings": filled(b"", b'["]",', b""),
    "empty lists": filled(b"[", b"[],", b"1]"),
    "64 levels again and again": filled(b"[", b"[" * 62 + b"]" * 62 + b",", b"1]"),
    "backslashes": filled(b'["', b"\\\\", b'"]'),
    "an odd run of backslashes": filled(b'["', b"\\", b'"]'),
    "quotes": filled(b"", b'"', b""),
    "quotes and brackets": filled(b"[", b'"["', b""),
    "escaped characters": filled(b'["', b"\\u0041", b'"]'),
    "one long number": filled(b"[", b"9", b"]"),
    "one long fraction": filled(b"[0.", b"0", b"1]"),
    "one long exponent": filled(b"[1e", b"9", b"]"),
    "whole numbers of 4,300 digits": filled(b"[", b"9" * 4_300 + b",", b"1]"),
    "numbers halfway between two doubles": filled(b"[", b"8.40438436419143923950e300,", b"1]"),
    "white space": filled(b"", b" ", b"1"),
    "a long key twice": lambda size: b'{"%b":1,"%b":1}' % (b"k" * (size // 2), b"k" * (size // 2)),
    "bytes that are not UTF-8 at the end": filled(b'["', b"a", b'\xff"]'),
}


@pytest.mark.parametrize("shape", VALUES.values(), ids=VALUES.keys())
def test_parse_time_of_an_event_is_linear_in_its_size(shape: Shape):
    assert grows_faster(parsed, shape, SIZES) == ""


REQUESTS = {
    "numbers": (JSON, filled(b"[", b"1,", b"1]")),
    "10,000 numbers": (JSON, filled(b"[" + b"1," * 9_990, b" ", b"1]")),
    "a broken last item": (JSON, filled(b"[", b'{"a":[1,2,3],"b":"some text, of a usual length"},', b"]")),
    "items with a key twice": (JSON, filled(b"[", b'{"a":"' + b"x" * 600 + b'","a":1},', b"1]")),
    "items that are too deep": (JSON, filled(b"[", b"[" * 300 + b"]" * 300 + b",", b"1]")),
    "items full of commas": (JSON, filled(b"[", b"[" + b"1," * 300 + b"1],", b"1]")),
    "white space before an array": (JSON, filled(b"", b" ", b"[]")),
    "line feeds": (NDJSON, filled(b"", b"\n", b"1")),
    "blank lines": (NDJSON, filled(b"", b" \n", b"1")),
    "carriage returns": (NDJSON, filled(b"", b"\r", b"1")),
    "one blank line": (NDJSON, filled(b"", b" ", b"\n")),
    "lines of one character": (NDJSON, filled(b"", b"1\n", b"")),
    "lines that are broken": (NDJSON, filled(b"", b'{"a":"' + b"x" * 600 + b"\n", b"")),
    "attributes": (EVENT, numbered(CE, b',"a%d":1', b"}")),
    "a long attribute": (EVENT, filled(b'{"specversion":"1.0","id":"', b"x", b'","source":"s","type":"t"}')),
    "an attribute that is a list": (EVENT, filled(b'{"specversion":"1.0","id":[', b"1,", b'1],"source":"s"}')),
    "a long content type": (EVENT, filled(b'{"specversion":"1.0","datacontenttype":"', b"x", b'"}')),
    "base64": (EVENT, filled(CE + b',"data_base64":"', b"AAAA", b'"}')),
    "broken base64": (EVENT, filled(CE + b',"data_base64":"', b"A=", b'"}')),
    "a batch of CloudEvents": (BATCH, filled(b"[", CE + b',"data":[' + b"1," * 250 + b"1]},", b"1]")),
}  # fmt: skip


@pytest.mark.parametrize(("media_type", "shape"), REQUESTS.values(), ids=REQUESTS.keys())
def test_read_time_of_a_request_is_linear_in_its_size(media_type: str, shape: Shape):
    assert grows_faster(read(media_type), shape, BATCHES) == ""


pieces = st.text(st.sampled_from('[]{}":,\\ue019.-a \n\t'), max_size=6).map(str.encode)


@settings(max_examples=150, derandomize=True)
@given(pieces, pieces.filter(bool), pieces, st.sampled_from((JSON, NDJSON, EVENT, BATCH)))
def test_read_time_is_linear_for_any_repeated_content(begin: bytes, unit: bytes, end: bytes, media_type: str):
    for before, after in ((b"", b""), (b'["', b'"]'), (b"[", b"1]")):
        shape = filled(before + begin, unit, end + after)
        assert grows_faster(parsed, shape, (2_048, 16_384, 131_072)) == ""
        assert grows_faster(read(media_type), shape, (2_048, 16_384, 131_072)) == ""


def test_no_step_of_a_request_at_the_size_limit_blocks_the_event_loop():
    """Items are decoded one by one, so that the event loop can serve other requests between them."""
    large = b"[" + b"[]," * 87_000 + b"1]"
    body = b"[" + b",".join([large] * 20) + b"]"
    events = read_events(JSON, body, {}, 256 * 1024)
    before_s = reference_s()
    longest_s = max(cpu_s(lambda: next(events.items), tries=1) for _ in range(events.count))
    slowness = max(1.0, (before_s + reference_s()) / (2 * REFERENCE_S))
    assert longest_s < 0.05 * slowness


# -- gzip ----------------------------------------------------------------------------------------------------------

EMPTY_BLOCK = b"\x00\x00\x00\xff\xff"  # a stored block of no bytes


def members(size: int) -> bytes:
    one = gzip.compress(b"")
    return one * (size // len(one))


def blocks(size: int) -> bytes:
    head = gzip.compress(b"")[:10]
    return head + EMPTY_BLOCK * (size // len(EMPTY_BLOCK)) + b"\x03\x00" + bytes(8)


def inflated(body: bytes) -> None:
    with suppress(EventRejectedError):
        for _ in gunzip(body):
            pass


PACKED: dict[str, Shape] = {
    "empty members": members,
    "empty blocks": blocks,
    "a bomb": lambda size: gzip.compress(bytes(size * 20)),
    "stored bytes": lambda size: gzip.compress(base64.b85encode(bytes(range(256)) * (size // 320)), 0),
    "no gzip": lambda size: b"x" * size,
}


@pytest.mark.parametrize("shape", PACKED.values(), ids=PACKED.keys())
def test_decompression_time_is_linear_in_the_size(shape: Shape):
    assert grows_faster(inflated, shape, SIZES) == ""


@pytest.mark.parametrize("level", [0, 1, 9])
@pytest.mark.parametrize("size", [0, 1, 70_000, 400_000])
def test_gzip_is_decompressed_completely_in_small_chunks(level: int, size: int):
    plain = bytes(number * 7 % 251 for number in range(size))
    packed = gzip.compress(plain[: size // 2], level) + gzip.compress(plain[size // 2 :], level)
    parts = list(gunzip(packed))
    assert b"".join(parts) == plain
    assert max(map(len, parts)) <= 64 * 1024


def test_body_with_too_many_gzip_members_is_refused():
    one = gzip.compress(b"")
    assert list(filter(None, gunzip(one * MAX_MEMBERS))) == []
    with pytest.raises(EventRejectedError, match="gzip members"):
        list(gunzip(one * (MAX_MEMBERS + 1)))


@pytest.mark.parametrize(
    "body",
    [b"", b"\x1f", gzip.compress(b"x")[:-1], gzip.compress(b"x") + b"x", zlib.compress(b"x")],
    ids=["nothing", "a byte", "without its last byte", "with one more", "zlib"],
)
def test_incomplete_or_invalid_gzip_is_refused(body: bytes):
    with pytest.raises(EventRejectedError) as refused:
        list(gunzip(body))
    assert (refused.value.status, refused.value.code) == (400, "encoding-invalid")
