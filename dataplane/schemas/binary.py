"""Check Avro's binary encoding before a decoder sees it. Pure; a hot path.

fastavro trusts the bytes: it allocates an array of two billion nulls from six bytes, recurses without a limit, takes
the last symbol for the index -1, and rounds a decimal with too many digits. The check reads the bytes once against the
schema, keeps nothing, and names the place of the first error. Each schema is compiled to one function per node.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from dataplane.schemas.avro import AvroField, AvroType, LogicalType
from dataplane.schemas.bad_value import BadValueError
from dataplane.schemas.standard import (
    RANGES,
    currency_problem,
    decimal_problem,
    number_problem,
    time_uuid_problem,
    uuid_bytes,
    uuid_problem,
)
from dataplane.schemas.tree_compiler import TreeCompiler
from dataplane.schemas.types import SchemaRejectedError
from dataplane.spec.effort import MAX_BYTES, MAX_VALUES

MAX_DEPTH: Final = 64  # of records, arrays and maps in each other
TOO_DEEP: Final = f"needs at most {MAX_DEPTH} levels of values in each other"
TOO_MANY: Final = f"needs at most {MAX_VALUES} values in one event"
_ENDS: Final = "the bytes end in the middle of the value"
_LAST_SHIFT: Final = 63  # of the tenth byte, of which one bit is left


class Walk:
    """One reading of a value: its bytes, our clock, what is left of the limits, and the branches of unions it took."""

    __slots__ = ("branches", "data", "depth", "end", "now_us", "values")

    def __init__(self, data: bytes, now_us: int | None) -> None:
        self.data = data
        self.end = len(data)
        self.now_us = now_us
        self.values = MAX_VALUES
        self.depth = MAX_DEPTH
        self.branches: list[int] = []

    def count(self, values: int) -> None:
        """Count values of an array or map. Raises BadValueError above the limit."""
        self.values -= values
        if self.values < 0:
            raise BadValueError(TOO_MANY)

    def enter(self) -> None:
        """Count a level. Raises BadValueError above the limit."""
        self.depth -= 1
        if self.depth < 0:
            raise BadValueError(TOO_DEEP)


# Reads the value that begins at a position and returns the position after it. Raises BadValueError.
ReadStep = Callable[[Walk, int], int]
BytesCheck = Callable[[bytes, Walk], str | None]
TextCheck = Callable[[str, Walk], str | None]


def check_binary(tree: AvroType, data: bytes, now_us: int | None = None) -> list[int]:
    """Check that the bytes are exactly one value of the schema; return the branches of its unions, in their order.

    now_us: our clock, for the clocks of TimeUuids. Raises SchemaRejectedError with the place of the first error.
    """
    if len(data) > MAX_BYTES:
        raise SchemaRejectedError("", f"needs at most {MAX_BYTES} bytes, got {len(data)}")
    walk = Walk(data, now_us)
    try:
        end = compiled(tree)(walk, 0)
    except BadValueError as exc:
        raise exc.rejected() from exc
    if end != len(data):
        raise SchemaRejectedError("", f"{len(data) - end} bytes follow the value")
    return walk.branches


@lru_cache(maxsize=1_000)
def compiled(tree: AvroType) -> ReadStep:
    """Return the function that reads a value of this schema."""
    return _Compiler().compile(tree)


class _Compiler(TreeCompiler[ReadStep]):
    """Compiles one schema to functions that read its values."""

    def record(self, node: AvroType) -> ReadStep:
        """Return the function of a record."""
        is_money = node.logical is not None and node.logical.name == "money"
        return _fields([(one.name, self._field(one, is_money)) for one in node.fields])

    def later(self, _node: AvroType, cell: list[ReadStep]) -> ReadStep:
        """Return a function that calls the one in `cell`."""
        return _later(cell)

    def union(self, node: AvroType, branches: Sequence[ReadStep]) -> ReadStep:  # noqa: ARG002  # the bytes number them
        """Return the function of a union."""
        return _union(branches)

    def array(self, item: ReadStep) -> ReadStep:
        """Return the function of an array."""
        return _array(item)

    def map(self, inner: ReadStep) -> ReadStep:
        """Return the function of a map."""
        return _map(inner)

    def leaf(self, node: AvroType) -> ReadStep:
        """Return the function of a type without inner types."""
        match node.kind:
            case "enum":
                return _enum(len(node.symbols))
            case "fixed":
                return _fixed(node.size, _check_of_bytes(node.logical))
            case "bytes":
                return _bytes(_check_of_bytes(node.logical))
            case "string":
                return _text(_check_of_text(node.logical))
            case "int" | "long":
                return _number(node.kind, node.logical)
        return _PLAIN[node.kind]

    def _field(self, one: AvroField, is_money: bool) -> ReadStep:
        if is_money and one.name == "currency" and one.type.kind == "string":
            return _text(lambda text, _: currency_problem(text))
        return self.compile(one.type)


def _later(cell: list[ReadStep]) -> ReadStep:
    """Return the function of a record that is being compiled: its own field calls it."""

    def later(walk: Walk, pos: int) -> int:
        return cell[0](walk, pos)

    return later


def _fields(steps: list[tuple[str, ReadStep]]) -> ReadStep:
    count = len(steps)

    def record(walk: Walk, pos: int) -> int:
        walk.enter()
        walk.count(count + 1)  # nested records of no bytes can be a billion
        name = ""
        try:
            for name, step in steps:  # noqa: B007  # the handler names the field
                pos = step(walk, pos)
        except BadValueError as exc:
            exc.parts.append(name)
            raise
        walk.depth += 1
        return pos

    return record


def _union(steps: Sequence[ReadStep]) -> ReadStep:
    count = len(steps)

    def union(walk: Walk, pos: int) -> int:
        index, pos = read_long(walk, pos)
        if not 0 <= index < count:
            raise BadValueError(f"has branch {index} of a union of {count}")
        walk.branches.append(index)
        return steps[index](walk, pos)

    return union


def _array(item: ReadStep) -> ReadStep:
    def array(walk: Walk, pos: int) -> int:
        walk.enter()
        place = 0
        count, after, pos = _block(walk, pos)
        while count:
            try:
                for _ in range(count):
                    pos = item(walk, pos)
                    place += 1
            except BadValueError as exc:
                exc.parts.append(str(place))
                raise
            _check_end(pos, after)
            count, after, pos = _block(walk, pos)
        walk.depth += 1
        return pos

    return array


def _map(value: ReadStep) -> ReadStep:
    read_key = _text(None)

    def mapping(walk: Walk, pos: int) -> int:
        walk.enter()
        seen: set[bytes] = set()
        count, after, pos = _block(walk, pos)
        while count:
            for _ in range(count):
                begin, pos = pos, read_key(walk, pos)
                key = walk.data[begin:pos]
                if key in seen:
                    raise BadValueError("has a key twice")
                seen.add(key)
                try:
                    pos = value(walk, pos)
                except BadValueError as exc:
                    exc.parts.append(_key_of(key))
                    raise
            _check_end(pos, after)
            count, after, pos = _block(walk, pos)
        walk.depth += 1
        return pos

    return mapping


def _key_of(encoded: bytes) -> str:
    """Return the text of an encoded key, which has been checked."""
    length = 1
    while encoded[length - 1] & 0x80:
        length += 1
    return encoded[length:].decode()


def _block(walk: Walk, pos: int) -> tuple[int, int | None, int]:
    """Return the count of a block of items, the position at which it says that it ends, and where its items begin."""
    count, pos = read_long(walk, pos)
    if count >= 0:
        walk.count(count)
        return count, None, pos
    walk.count(-count)
    size, pos = read_long(walk, pos)
    if not 0 <= size <= walk.end - pos:
        raise BadValueError(_beyond("a block", size, walk.end - pos))
    return -count, pos + size, pos


def _check_end(pos: int, after: int | None) -> None:
    if after is not None and pos != after:
        raise BadValueError("a block of items has another size than it states")


def _enum(count: int) -> ReadStep:
    def enum(walk: Walk, pos: int) -> int:
        index, pos = read_long(walk, pos)
        if not 0 <= index < count:
            raise BadValueError(f"has symbol {index} of an enum of {count}")
        return pos

    return enum


def _fixed(size: int, check: BytesCheck | None) -> ReadStep:
    def fixed(walk: Walk, pos: int) -> int:
        after = pos + size
        if after > walk.end:
            raise BadValueError(_ENDS)
        if check is not None and (problem := check(walk.data[pos:after], walk)):
            raise BadValueError(problem)
        return after

    return fixed


def _bytes(check: BytesCheck | None) -> ReadStep:
    def read(walk: Walk, pos: int) -> int:
        begin, after = _length(walk, pos)
        if check is not None and (problem := check(walk.data[begin:after], walk)):
            raise BadValueError(problem)
        return after

    return read


def _text(check: TextCheck | None) -> ReadStep:
    def text(walk: Walk, pos: int) -> int:
        begin, after = _length(walk, pos)
        try:
            found = walk.data[begin:after].decode()
        except UnicodeDecodeError as exc:
            raise BadValueError("needs text in UTF-8") from exc
        if check is not None and (problem := check(found, walk)):
            raise BadValueError(problem)
        return after

    return text


def _number(kind: str, logical: LogicalType | None) -> ReadStep:
    if logical is not None and logical.name in RANGES:
        ranged = logical

        def dated(walk: Walk, pos: int) -> int:
            number, pos = read_long(walk, pos)
            if problem := number_problem(ranged, number):
                raise BadValueError(problem)
            return pos

        return dated
    return _int if kind == "int" else _skip_long


def _length(walk: Walk, pos: int) -> tuple[int, int]:
    """Return where the bytes after a length begin and end."""
    size, pos = read_long(walk, pos)
    if not 0 <= size <= walk.end - pos:
        raise BadValueError(_beyond("a value", size, walk.end - pos))
    return pos, pos + size


def _beyond(named: str, size: int, left: int) -> str:
    return f"{named} states {size} bytes, and {left} are left"


def read_long(walk: Walk, pos: int) -> tuple[int, int]:
    """Return a number in zig-zag coding and the position after it. Raises BadValueError."""
    if pos >= walk.end:
        raise BadValueError(_ENDS)
    byte = walk.data[pos]
    pos += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos
    number, shift = byte & 0x7F, 7
    while byte & 0x80:
        if pos >= walk.end:
            raise BadValueError(_ENDS)
        byte = walk.data[pos]
        pos += 1
        if shift == _LAST_SHIFT and byte > 1:
            raise BadValueError("has a number of more than 64 bits")
        number |= (byte & 0x7F) << shift
        shift += 7
    return (number >> 1) ^ -(number & 1), pos


def _skip_long(walk: Walk, pos: int) -> int:
    return read_long(walk, pos)[1]


def _int(walk: Walk, pos: int) -> int:
    number, pos = read_long(walk, pos)
    if not -(1 << 31) <= number < 1 << 31:
        raise BadValueError("has a number of more than 32 bits")
    return pos


def _boolean(walk: Walk, pos: int) -> int:
    if pos >= walk.end:
        raise BadValueError(_ENDS)
    if walk.data[pos] > 1:
        raise BadValueError("needs a boolean: 0 or 1")
    return pos + 1


def _check_of_bytes(logical: LogicalType | None) -> BytesCheck | None:
    if logical is None:
        return None
    match logical.name:
        case "decimal":
            return lambda value, _: decimal_problem(logical, value)
        case "time-uuid":
            return lambda value, walk: time_uuid_problem(value, walk.now_us)
    return None


def _check_of_text(logical: LogicalType | None) -> TextCheck | None:
    if logical is None:
        return None
    match logical.name:
        case "uuid":
            return lambda text, _: uuid_problem(text)
        case "time-uuid":
            return lambda text, walk: uuid_problem(text) or time_uuid_problem(uuid_bytes(text), walk.now_us)
    return None


_PLAIN: Final[Mapping[str, ReadStep]] = {
    "null": lambda _, pos: pos,
    "boolean": _boolean,
    "float": _fixed(4, None),
    "double": _fixed(8, None),
}
