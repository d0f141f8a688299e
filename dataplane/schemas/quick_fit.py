"""Recognise events in JSON that certainly fit an Avro schema, several times as fast as reading them. Pure; a hot path.

The check only accepts: an event that it does not accept may fit nevertheless, and is read by from_values.ValueReader,
which decides and names the place of an error. Each schema is compiled to one function per node.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from dataplane.schemas.avro import INT_BITS, NO_DEFAULT, AvroField, AvroType, LogicalType
from dataplane.schemas.bad_value import BadValueError
from dataplane.schemas.from_values import ValueReader, accepts_leaf, exact_json, exact_number, money_problem
from dataplane.schemas.tree_compiler import TreeCompiler
from dataplane.spec.effort import MAX_VALUES

EXACT_CHARACTERS: Final = 16  # a number of 15 digits and a point is exactly a double
_BRACKETS: Final = (b",", b"[", b"{")
Accepts = Callable[[Any, int | None], bool]  # of a value and our clock


def _double_or_exact(text: str) -> Any:
    """Return a double if it is exactly the number, else a Decimal, whose type then needs a closer look."""
    if len(text) <= EXACT_CHARACTERS and "e" not in text and "E" not in text:
        return float(text)
    return exact_number(text)


_MISSING: Final = object()
_NO_FRACTIONS, _DOUBLES, _EXACT = range(3)
_DECODERS: Final = {
    _DOUBLES: msgspec.json.Decoder(float_hook=_double_or_exact).decode,
    _EXACT: exact_json,
}


class QuickFit(NamedTuple):
    """Compiled check of one schema.

    decode:       decodes the numbers as the check needs them; None if it accepts no fractions
    most_counted: values that one value of JSON counts as, at most
    """

    decode: Callable[[bytes], Any] | None
    accepts: Accepts
    most_counted: int

    def __call__(self, text: bytes, value: Any, now_us: int | None) -> bool:
        """Return True if an event certainly fits. Raises BadValueError for a number of too many characters.

        text:   JSON without a duplicate key and with few levels
        value:  the same, decoded with inexact numbers
        now_us: our clock, for the clocks of TimeUuids
        """
        values = 1 + sum(text.count(bracket) for bracket in _BRACKETS)
        if values * self.most_counted > MAX_VALUES:
            return False
        return self.accepts(value if self.decode is None else self.decode(text), now_us)


@lru_cache(maxsize=1_000)
def quick_fit(tree: AvroType) -> QuickFit | None:
    """Return the check of a schema; None for one that only a reader can check in bounded time."""
    compiler = _Compiler()
    try:
        accepts = compiler.compile(tree)
    except _NeedsReaderError:
        return None
    return QuickFit(_DECODERS.get(max(compiler.fractions, default=_NO_FRACTIONS)), accepts, compiler.most_counted)


class _NeedsReaderError(Exception):
    """Raised for a schema with parts that a check would have to try one after another, at any cost."""


class _Compiler(TreeCompiler[Accepts]):
    """Compiles one schema. Raises _NeedsReaderError. `fractions`: how exactly numbers with fractions are needed."""

    def __init__(self) -> None:
        super().__init__()
        self.fractions: set[int] = set()
        self.most_counted = 1

    def record(self, node: AvroType) -> Accepts:
        """Return the function of a record."""
        self.most_counted = max(self.most_counted, len(node.fields) + 1)
        accepts = _fields([(one.name, self.compile(one.type), _may_be_missing(one)) for one in node.fields])
        return accepts if node.logical is None else _money(accepts)

    def later(self, _node: AvroType, cell: list[Accepts]) -> Accepts:
        """Return a function that calls the one in `cell`."""
        return _later(cell)

    def union(self, node: AvroType, branches: Sequence[Accepts]) -> Accepts:
        """Return the function of a union."""
        kinds = [one.kind for one in node.branches]
        if kinds.count("record") + kinds.count("map") > 1:
            raise _NeedsReaderError
        return _union(frozenset(one.branch_name for one in node.branches), branches)

    def array(self, item: Accepts) -> Accepts:
        """Return the function of an array."""
        return _array(item)

    def map(self, inner: Accepts) -> Accepts:
        """Return the function of a map."""
        return _map(inner)

    def leaf(self, node: AvroType) -> Accepts:
        """Return the function of a type without inner types."""
        if node.logical is not None:
            return _logical(node, node.logical)
        if node.kind in _PLAIN:
            return _PLAIN[node.kind]
        if node.kind == "enum":
            symbols = frozenset(node.symbols)
            return lambda value, _: type(value) is str and value in symbols
        if node.kind == "double":
            self.fractions.add(_DOUBLES)
            return lambda value, _: type(value) is float or accepts_leaf(node, value)
        if node.kind == "float":
            self.fractions.add(_EXACT)
        return lambda value, now_us: accepts_leaf(node, value, now_us)


def _logical(node: AvroType, logical: LogicalType) -> Accepts:
    """Return the function of a logical type. What JSON usually has for it needs no closer look."""
    usual = _usual_decimal(logical) if logical.name == "decimal" else _USUAL_MOMENTS.get(logical.name)
    if usual is None:
        return lambda value, now_us: accepts_leaf(node, value, now_us)
    return lambda value, _: (type(value) is str and usual(value) is not None) or accepts_leaf(node, value)


def _usual_decimal(logical: LogicalType) -> Callable[[str], object | None] | None:
    whole = logical.precision - logical.scale
    if not whole:
        return None
    fraction = rf"(?:\.[0-9]{{1,{logical.scale}}})?" if logical.scale else ""
    return re.compile(rf"-?[0-9]{{1,{whole}}}{fraction}").fullmatch


def _usual_moment(digits: int) -> Callable[[str], object | None]:
    matches = re.compile(
        rf"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{{1,{digits}}})?(?:Z|[+-]\d\d:\d\d)", re.ASCII
    ).fullmatch

    def moment(text: str) -> datetime | None:
        if matches(text) is None:
            return None
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return None

    return moment


def _later(cell: list[Accepts]) -> Accepts:
    """Return the function of a record that is being compiled: its own field calls it."""

    def later(value: Any, now_us: int | None) -> bool:
        return cell[0](value, now_us)

    return later


def _may_be_missing(one: AvroField) -> bool:
    """Return True if a reader accepts the default of a field, which depends on nothing else."""
    if one.default is NO_DEFAULT:
        return False
    try:
        ValueReader(None).default(one)
    except BadValueError:
        return False
    return True


def _fields(fields: list[tuple[str, Accepts, bool]]) -> Accepts:
    count = len(fields)

    def record(value: Any, now_us: int | None) -> bool:
        if type(value) is not dict:
            return False
        known, get = count, value.get
        for name, accepts, may_be_missing in fields:
            one = get(name, _MISSING)
            if one is _MISSING:
                if not may_be_missing:
                    return False
                known -= 1
            elif not accepts(one, now_us):
                return False
        return known == len(value)

    return record


def _money(record: Accepts) -> Accepts:
    def money(value: Any, now_us: int | None) -> bool:
        return record(value, now_us) and "currency" in value and money_problem(value["currency"]) is None

    return money


def _union(names: frozenset[str], branches: Sequence[Accepts]) -> Accepts:
    def union(value: Any, now_us: int | None) -> bool:
        if type(value) is dict and len(value) == 1 and not names.isdisjoint(value):
            return False  # perhaps it names the branch
        for accepts in branches:  # noqa: SIM110  # without a generator
            if accepts(value, now_us):
                return True
        return False

    return union


def _array(item: Accepts) -> Accepts:
    def array(value: Any, now_us: int | None) -> bool:
        return type(value) is list and all(item(one, now_us) for one in value)

    return array


def _map(inner: Accepts) -> Accepts:
    def mapping(value: Any, now_us: int | None) -> bool:
        return type(value) is dict and all(_is_text(key) and inner(one, now_us) for key, one in value.items())

    return mapping


def _is_text(value: Any, _: int | None = None) -> bool:
    if type(value) is not str:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a character
        return False
    return True


def _whole(bits: int) -> Accepts:
    low, high = -(1 << bits), 1 << bits
    return lambda value, _: type(value) is int and low <= value < high


_USUAL_MOMENTS: Final = {"timestamp-millis": _usual_moment(3), "timestamp-micros": _usual_moment(6)}
_PLAIN: Final[Mapping[str, Accepts]] = {
    "null": lambda value, _: value is None,
    "boolean": lambda value, _: value is True or value is False,
    "string": _is_text,
} | {kind: _whole(bits) for kind, bits in INT_BITS.items()}
