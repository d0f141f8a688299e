"""Framings of events on the wire: Confluent's, Gilt's and Avro's object container file."""

import io
import json
import time
import zlib
from typing import Any

import fastavro
import pytest

from dataplane.schemas.container import MAX_BLOCKS, MAX_CONTAINER_BYTES, MAX_ITEMS, Container
from dataplane.schemas.parse import parse
from dataplane.schemas.types import SchemaRejectedError, SchemaType
from dataplane.schemas.wire import (
    FramedValue,
    Framing,
    JsonEvent,
    check,
    confluent_framed,
    decode,
    encode,
    fingerprint_framed,
    framing_of,
    split,
)
from tests.support.cpu import no_collector
from tests.support.hostile_schemas import long

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}'
NOTHING = '{"type": "record", "name": "Z", "fields": []}'
SYNC = bytes(range(16))


def container(items: list[Any], codec: str = "null", schema: str = ORDER) -> bytes:
    written = io.BytesIO()
    fastavro.writer(written, json.loads(schema), items, codec=codec, sync_marker=SYNC)
    return written.getvalue()


def raw_container(*blocks: tuple[int, bytes], codec: str = "null", schema: str = ORDER, sync: bytes = SYNC) -> bytes:
    """Return a container whose blocks state what a writer would not."""
    data = container([], codec, schema)
    for count, block in blocks:
        data += long(count) + long(len(block)) + block + sync
    return data


def deflated(data: bytes) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflater.compress(data) + deflater.flush()


@pytest.mark.parametrize(
    ("data", "framing"),
    [
        (b"", None),
        (b'{"a": 1}', None),
        (b"[1]", None),
        (b"\x00", Framing.CONFLUENT),
        (b"\x81", Framing.FINGERPRINT),
        (b"Obj\x01", Framing.CONTAINER),
        (b"Obj\x02", None),
        (b"Obj", None),
    ],
)
def test_first_bytes_name_the_framing(data: bytes, framing: Framing | None):
    assert framing_of(data) is framing


def test_framed_events_are_split():
    schema = parse(SchemaType.AVRO, ORDER)
    payload = encode(schema, {"id": 7})
    confluent = confluent_framed(258, payload)
    assert confluent == b"\x00\x00\x00\x01\x02\x0e"
    assert split(confluent) == FramedValue(Framing.CONFLUENT, payload, schema_id=258)
    gilt = fingerprint_framed(schema.fingerprint, payload)
    assert gilt[:1] == b"\x81"
    assert len(gilt) == 33 + len(payload)
    assert split(gilt) == FramedValue(Framing.FINGERPRINT, payload, fingerprint=schema.fingerprint)
    assert decode(schema, split(gilt).payload) == {"id": 7}
    assert split(b"Obj\x01x").payload == b"Obj\x01x"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "needs to begin with the byte 0x00 or 0x81, or with Obj and 0x01"),
        (b"{}", "needs to begin"),
        (b"\x00\x00\x00\x01", "needs 4 bytes of the id of its schema, got 3"),
        (b"\x81" + b"x" * 31, "needs 32 bytes of the fingerprint of its schema, got 31"),
    ],
)
def test_event_without_a_whole_framing_is_refused(data: bytes, reason: str):
    with pytest.raises(SchemaRejectedError, match=reason):
        split(data)


def test_framing_alone_has_an_empty_payload():
    assert split(b"\x00\x00\x00\x00\x07") == FramedValue(Framing.CONFLUENT, b"", schema_id=7)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_container_is_read_to_its_items(codec: str):
    orders = [{"id": number} for number in range(5_000)]
    found = Container(container(orders, codec))
    assert (found.schema.name, found.count) == ("Order", 5_000)
    assert [one.value for one in found.read(found.schema) if isinstance(one, JsonEvent)] == orders


@pytest.mark.parametrize("data", [container([]), raw_container((0, b""))], ids=["no block", "an empty block"])
def test_container_without_items(data: bytes):
    found = Container(data)
    assert (found.count, list(found.read(found.schema))) == (0, [])


@pytest.mark.parametrize(
    ("data", "path", "reason"),
    [
        (b"Obj\x01", "", "the header of the container the bytes end"),
        (container([{"id": 1}])[:-1], "/0", "a block states 1 bytes, and the container ends before"),
        (raw_container((1, long(1)), sync=b"x" * 16), "/0", "the sync marker after a block"),
        (raw_container((MAX_ITEMS + 1, b"")), "/0", "at most 10000 items"),
        (raw_container((-1, long(1))), "/0", "at most 10000 items"),
        (raw_container((2**40, b""), schema=NOTHING), "/0", "at most 10000 items"),
        (raw_container(*[(0, b"")] * (MAX_BLOCKS + 1)), "/0", "at most 10000 blocks"),
        (raw_container() + long(1) + long(-5), "/0", "a block states -5 bytes"),
        (raw_container() + b"\x80", "/0", "a block the bytes end"),
        (container([{"id": 1}], "bzip2"), "", "needs the codec null or deflate"),
        (container([{"id": 1}]).replace(b'"int"', b'"xxx"'), "", "container: /fields/0/type: type xxx is not defined"),
        (container([{"id": 1}]).replace(b"avro.schema", b"avro.Schema"), "", "needs JSON"),
        (b"x" * (2**20 + 1), "", "at most 1048576 bytes"),
    ],
)  # fmt: skip
def test_container_is_refused_with_place_and_reason(data: bytes, path: str, reason: str):
    with no_collector():
        begin = time.process_time()
        with pytest.raises(SchemaRejectedError) as refused:
            Container(data)
        assert time.process_time() - begin < 0.1
    assert (refused.value.path, reason in refused.value.reason) == (path, True), refused.value


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (raw_container((1, long(1)), (1, long(2**40)), (1, long(3))), [1, "/id: has a number of more than 32 bits", 3]),
        (raw_container((3, long(1) + long(2**40) + long(2)), (1, long(3))),
         [1, "/id: has a number of more than 32 bits", "cannot be read, because an item before it", 3]),
        (raw_container((2, long(1))), [1, "/id: the bytes end"]),
        (raw_container((2, long(1) * 3)), [1, "the block has more bytes than its items"]),
        (raw_container((1, b"no deflate"), (1, deflated(long(3))), codec="deflate"), ["not compressed with", 3]),
        (raw_container((2, deflated(long(1))[:-1]), codec="deflate"), ["cut off", "cut off"]),
        (raw_container((1, deflated(b"\x00" * 100_000_000)), codec="deflate"), [f"{MAX_CONTAINER_BYTES} bytes"]),
    ],
)  # fmt: skip
def test_each_item_of_a_container_has_its_own_error(data: bytes, expected: list[int | str]):
    found = Container(data)
    assert found.count == len(expected)
    with no_collector():
        begin = time.process_time()
        items = list(found.read(found.schema))
        assert time.process_time() - begin < 0.1
    for one, want in zip(items, expected, strict=True):
        if isinstance(want, int):
            assert isinstance(one, JsonEvent)
            assert one == ({"id": want}, b'{"id":%d}' % want)
        else:
            assert isinstance(one, SchemaRejectedError)
            assert want in str(one)


def test_items_of_a_container_are_read_on_demand():
    found = Container(raw_container((2, deflated(long(1) * 2)), (1, b"no deflate"), codec="deflate"))
    items = found.read(found.schema)
    assert [next(items), next(items)] == [({"id": 1}, b'{"id":1}')] * 2


def test_check_accepts_what_encode_wrote():
    schema = parse(SchemaType.AVRO, ORDER)
    check(schema, encode(schema, {"id": -1}))
