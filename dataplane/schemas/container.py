"""Read Avro's object container files: a schema, and blocks of encoded values, which may be compressed. Pure.

Opening a file reads its header and finds its blocks. The items are read one by one, so that a caller can yield to
others in between. Everything is bounded: bytes, blocks, items, and the size of what the blocks decompress to.
"""

import json
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final, NamedTuple, cast

import fastavro

from dataplane.schemas.avro import tree_of
from dataplane.schemas.bad_value import BadValueError
from dataplane.schemas.binary import Walk, compiled, read_long
from dataplane.schemas.parse import parse
from dataplane.schemas.types import ParsedSchema, SchemaRejectedError, SchemaType
from dataplane.schemas.wire import JsonEvent, avro_tree, presented_as_json
from dataplane.spec.effort import MAX_BYTES

SYNC_BYTES: Final = 16
MAX_CONTAINER_BYTES: Final = 4 * MAX_BYTES  # of all blocks together, decompressed
MAX_ITEMS: Final = 10_000  # of a container
MAX_BLOCKS: Final = 10_000  # of a container; a block may be empty
_HEADER_TEXT: Final = (
    '{"type": "record", "name": "org.apache.avro.file.Header", "fields": ['
    '{"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}}, '
    '{"name": "meta", "type": {"type": "map", "values": "bytes"}}, '
    '{"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": 16}}]}'
)
_HEADER: Final = tree_of(_HEADER_TEXT)
_HEADER_CODEC: Final[Any] = fastavro.parse_schema(json.loads(_HEADER_TEXT), {})
ContainerItem = JsonEvent | SchemaRejectedError


class ContainerBlock(NamedTuple):
    """Block of a container: how many items it states, and where its bytes begin and end."""

    items: int
    begin: int
    end: int


class Container:
    """Object container file. `schema`: its own; `count`: number of items that its blocks state."""

    def __init__(self, data: bytes) -> None:
        """Read the header and find the blocks. Raises SchemaRejectedError with the index of an item as the path."""
        if len(data) > MAX_BYTES:
            raise SchemaRejectedError("", f"needs at most {MAX_BYTES} bytes, got {len(data)}")
        self._data = data
        walk = Walk(data, None)
        try:
            pos = compiled(_HEADER)(walk, 0)
        except BadValueError as exc:
            raise SchemaRejectedError("", f"the header of the container {exc.reason}") from exc
        header = cast("dict[str, Any]", fastavro.schemaless_reader(BytesIO(data[:pos]), _HEADER_CODEC, None))
        self._is_deflated = _is_deflated(header["meta"])
        self.schema = _schema_in(header["meta"])
        self._blocks = list(_blocks(walk, pos, header["sync"]))
        self.count = sum(block.items for block in self._blocks)

    def read(self, schema: ParsedSchema, now_us: int | None = None) -> Iterator[ContainerItem]:
        """Yield each item as JSON, or the error that it met, `count` altogether.

        schema: has the canonical form of the container's own schema, and decides about logical types
        now_us: our clock, for the clocks of TimeUuids

        The bytes of items have no separators: after an invalid one, the others of its block cannot be found.
        """
        left = MAX_CONTAINER_BYTES
        for block in self._blocks:
            try:
                content = self._content(block, left)
            except SchemaRejectedError as exc:
                yield from [exc] * block.items
                continue
            left -= len(content)
            yield from _items(content, block.items, schema, now_us)

    def _content(self, block: ContainerBlock, most: int) -> bytes:
        content = self._data[block.begin : block.end]
        if not block.items:
            return b""
        if self._is_deflated:
            content = _inflated(content, most)
        if len(content) > most:
            raise SchemaRejectedError("", f"needs at most {MAX_CONTAINER_BYTES} bytes in all blocks")
        return content


def _items(content: bytes, count: int, schema: ParsedSchema, now_us: int | None) -> Iterator[ContainerItem]:
    tree, end = avro_tree(schema), 0
    step = compiled(tree)
    for number in range(count):
        walk, begin = Walk(content, now_us), end
        try:
            end = step(walk, begin)
            if number == count - 1 and end != len(content):
                raise BadValueError("the block has more bytes than its items")
            yield presented_as_json(tree, content[begin:end], walk.branches)
        except SchemaRejectedError as exc:
            yield exc
        except BadValueError as exc:
            yield exc.rejected()
            lost = SchemaRejectedError("", "cannot be read, because an item before it in the same block is invalid")
            yield from [lost] * (count - number - 1)
            return


def _is_deflated(meta: dict[str, bytes]) -> bool:
    codec = meta.get("avro.codec", b"null")
    if codec not in (b"null", b"deflate"):
        raise SchemaRejectedError("", "needs the codec null or deflate")
    return codec == b"deflate"


def _schema_in(meta: dict[str, bytes]) -> ParsedSchema:
    try:
        text = meta.get("avro.schema", b"").decode()
    except UnicodeDecodeError as exc:
        raise SchemaRejectedError("", "the schema of the container needs text in UTF-8") from exc
    try:
        return parse(SchemaType.AVRO, text)
    except SchemaRejectedError as exc:
        raise SchemaRejectedError("", f"the schema of the container: {exc}") from exc


def _blocks(walk: Walk, pos: int, sync: bytes) -> Iterator[ContainerBlock]:
    """Yield the blocks, whose sizes and sync markers are checked, but not their items. Raises SchemaRejectedError."""
    items = blocks = 0
    while pos < walk.end:
        place = f"/{items}"
        try:
            count, pos = read_long(walk, pos)
            size, pos = read_long(walk, pos)
        except BadValueError as exc:
            raise SchemaRejectedError(place, f"a block {exc.reason}") from exc
        items, blocks = items + count, blocks + 1
        if count < 0 or items > MAX_ITEMS:
            raise SchemaRejectedError(place, f"needs at most {MAX_ITEMS} items in one container")
        if blocks > MAX_BLOCKS:
            raise SchemaRejectedError(place, f"needs at most {MAX_BLOCKS} blocks in one container")
        begin, end = pos, pos + size
        if size < 0 or end + SYNC_BYTES > walk.end:
            raise SchemaRejectedError(place, f"a block states {size} bytes, and the container ends before")
        if walk.data[end : end + SYNC_BYTES] != sync:
            raise SchemaRejectedError(place, "the sync marker after a block differs from that of the container")
        pos = end + SYNC_BYTES
        yield ContainerBlock(count, begin, end)


def _inflated(block: bytes, most: int) -> bytes:
    """Return a block without its compression; one byte more than `most` if it has more. Raises SchemaRejectedError."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        found = inflater.decompress(block, most + 1)
    except zlib.error as exc:
        raise SchemaRejectedError("", "a block is not compressed with deflate") from exc
    if len(found) <= most and not inflater.eof:
        raise SchemaRejectedError("", "a compressed block is cut off")
    return found
