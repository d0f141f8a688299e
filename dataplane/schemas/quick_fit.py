"""Recognise events in JSON that certainly fit an Avro schema, several times as fast as reading them. Pure; a hot path.

The check only accepts: an event that it does not accept may fit nevertheless, and is read by from_values.ValueReader,
which decides and names the place of an error. Each schema is compiled to a type of msgspec, whose decoder checks an
event while it reads it. What such a type cannot express is a type of our own with a function.
"""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from contextvars import ContextVar
from functools import lru_cache, reduce
from operator import or_
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from dataplane.schemas.avro import INT_BITS, NO_DEFAULT, AvroField, AvroType, LogicalType
from dataplane.schemas.bad_value import BadValueError
from dataplane.schemas.from_values import ValueReader, accepts_leaf, exact_number, money_problem
from dataplane.schemas.tree_compiler import TreeCompiler
from dataplane.spec.effort import MAX_VALUES

MOST_FIELDS: Final = 300  # of all records of a schema; the type of a field takes about a kilobyte
EXACT_CHARACTERS: Final = 16  # a number of 15 digits and a point is exactly a double
# A type that msgspec decodes. None has a pattern: with msgspec 0.22, a union with one corrupts memory.
JsonType = Any
Accepts = Callable[[Any], bool]
# Our clock, for the clocks of TimeUuids: a hook of a decoder has no other argument than the value.
_now_us: ContextVar[int | None] = ContextVar("now_us", default=None)


class QuickFit(NamedTuple):
    """Compiled check of one schema. `most_fields`: of one of its records."""

    decode: Callable[[bytes], Any]
    most_fields: int

    def __call__(self, text: bytes, now_us: int | None) -> bool:
        """Return True if an event certainly fits. Raises BadValueError for a number of too many characters.

        text:   JSON without a duplicate key and with few levels
        now_us: our clock, for the clocks of TimeUuids
        """
        if len(text) * (self.most_fields + 2) > MAX_VALUES and self._most_values(text) > MAX_VALUES:
            return False
        _now_us.set(now_us)
        try:
            self.decode(text)
        except msgspec.ValidationError:
            return False
        return True

    def _most_values(self, text: bytes) -> int:
        """Return how many values a reader counts at most: of a record all fields, also missing ones."""
        return 1 + text.count(b",") + text.count(b"[") + text.count(b"{") * (self.most_fields + 1)


@lru_cache(maxsize=1_000)
def quick_fit(tree: AvroType) -> QuickFit | None:
    """Return the check of a schema; None for one that only a reader can check."""
    compiler = _Compiler()
    try:
        decoder = msgspec.json.Decoder(
            compiler.compile(tree), dec_hook=_accepted, float_hook=exact_number if compiler.has_floats else _number
        )
    except (_NeedsReaderError, TypeError):  # msgspec refuses some unions with a type that it does not know
        return None
    return QuickFit(decoder.decode, compiler.most_fields)


def _number(text: str) -> Any:
    """Return a double if it is exactly the number, else a Decimal, whose type then needs a closer look."""
    if len(text) <= EXACT_CHARACTERS and "e" not in text and "E" not in text:
        return float(text)
    return exact_number(text)


class _NeedsReaderError(Exception):
    """Raised for a schema with parts that no type expresses, or that have to be tried one after another."""


class _Checked:
    """Value of a type that msgspec does not know; a subclass for each has the function that accepts it."""

    accepts: Accepts


def _accepted(type_: type[_Checked], value: Any) -> _Checked:
    if not type_.accepts(value):
        raise ValueError("does not certainly fit")  # msgspec makes a ValidationError of it
    return type_()


def _checked(accepts: Accepts) -> JsonType:
    return type("Checked", (_Checked,), {"accepts": staticmethod(accepts)})


class _Compiler(TreeCompiler[JsonType]):
    """Compiles one schema to a type. Raises _NeedsReaderError. `has_floats`: fractions are needed exactly."""

    def __init__(self) -> None:
        super().__init__()
        self.has_floats = False
        self.most_fields = 0
        self._fields = 0

    def record(self, node: AvroType) -> JsonType:
        """Return the type of a record."""
        self.most_fields = max(self.most_fields, len(node.fields))
        self._fields += len(node.fields)
        if self._fields > MOST_FIELDS:
            raise _NeedsReaderError
        is_money = node.logical is not None
        fields = [
            self._currency(one) if is_money and one.name == "currency" else self._field(one) for one in node.fields
        ]
        return msgspec.defstruct(
            "Fields",
            [(f"field_{number}", *field) for number, field in enumerate(fields)],
            forbid_unknown_fields=True,
            kw_only=True,
            gc=False,
        )

    def later(self, _node: AvroType, cell: list[JsonType]) -> JsonType:
        """Return a type that checks with the one in `cell`."""
        return _checked(lambda value: _converts(value, cell[0]))

    def union(self, node: AvroType, branches: Sequence[JsonType]) -> JsonType:
        """Return the type of a union."""
        names = {one.branch_name for one in node.branches}
        if any(field.name in names for branch in node.branches for field in branch.fields):
            raise _NeedsReaderError  # such an object may be a record or name its branch
        shapes = [_SHAPES.get(one.kind, one.kind) for one in node.branches]
        if len(shapes) > len(set(shapes)):
            raise _NeedsReaderError  # a reader tries one after another, and limits how often
        pairs = zip(node.branches, branches, strict=True)
        return reduce(or_, (_map_without(names, type_) if one.kind == "map" else type_ for one, type_ in pairs))

    def array(self, item: JsonType) -> JsonType:
        """Return the type of an array."""
        return list[item]

    def map(self, inner: JsonType) -> JsonType:
        """Return the type of a map."""
        return dict[str, inner]

    def leaf(self, node: AvroType) -> JsonType:
        """Return the type of a type without inner types."""
        if node.logical is not None:
            return _leaf(node.kind, node.logical, node.size)
        if node.kind in _PLAIN:
            return _PLAIN[node.kind]
        if node.kind == "enum":
            return Literal[node.symbols]
        if node.kind == "float":
            self.has_floats = True
        return _leaf(node.kind, None, node.size)

    def _field(self, one: AvroField) -> tuple[JsonType, Any]:
        default = None if _may_be_missing(one) else msgspec.NODEFAULT
        return self.compile(one.type), msgspec.field(name=one.name, default=default)

    def _currency(self, one: AvroField) -> tuple[JsonType, Any]:
        """Return the field of money that names its currency; it is never missing."""
        currency = _checked(lambda value: accepts_leaf(one.type, value) and money_problem(value) is None)
        return currency, msgspec.field(name=one.name)


def _map_without(names: Set[str], map_: JsonType) -> JsonType:
    """Return the type of a map that has none of these keys: an object with one may name its branch."""
    return _checked(lambda value: type(value) is dict and names.isdisjoint(value) and _converts(value, map_))


def _converts(value: Any, type_: JsonType) -> bool:
    try:
        msgspec.convert(value, type_, dec_hook=_accepted)
    except msgspec.ValidationError:
        return False
    return True


@lru_cache(maxsize=1_000)
def _leaf(kind: str, logical: LogicalType | None, size: int) -> JsonType:
    """Return the type that checks a leaf with a function: one for all schemas, because a class takes kilobytes."""
    node = AvroType(kind, logical=logical, size=size)
    if logical is None:
        if kind == "double":
            return _checked(lambda value: type(value) is float or accepts_leaf(node, value))
        return _checked(lambda value: accepts_leaf(node, value))
    # The usual JSON of a logical type needs no closer look.
    usual = _usual_decimal(logical) if logical.name == "decimal" else _USUAL_MOMENTS.get(logical.name)
    if usual is None:
        return _checked(lambda value: accepts_leaf(node, value, _now_us.get()))
    return _checked(lambda value: (type(value) is str and usual(value) is not None) or accepts_leaf(node, value))


def _usual_decimal(logical: LogicalType) -> Callable[[str], object | None] | None:
    whole = logical.precision - logical.scale
    if not whole:
        return None
    fraction = rf"(?:\.[0-9]{{1,{logical.scale}}})?" if logical.scale else ""
    return re.compile(rf"-?[0-9]{{1,{whole}}}{fraction}").fullmatch


def _usual_moment(digits: int) -> Callable[[str], object | None]:
    """Return a function that recognises times of this century, except on 29 February."""
    day = r"(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31"
    clock = r"(?:[01]\d|2[0-3]):[0-5]\d"
    pattern = rf"20\d\d-(?:{day})T{clock}:[0-5]\d(?:\.\d{{1,{digits}}})?(?:Z|[+-]{clock})"
    return re.compile(pattern, re.ASCII).fullmatch


def _may_be_missing(one: AvroField) -> bool:
    """Return True if a reader accepts the default of a field, which depends on nothing else."""
    if one.default is NO_DEFAULT or isinstance(one.default, dict) or (isinstance(one.default, list) and one.default):
        return False  # what a default contains counts as values, too
    try:
        ValueReader(None).default(one)
    except BadValueError:
        return False
    return True


_USUAL_MOMENTS: Final = {"timestamp-millis": _usual_moment(3), "timestamp-micros": _usual_moment(6)}
# Types that are written as the same kind of value in JSON.
_SHAPES: Final = {
    **dict.fromkeys(("int", "long", "float", "double"), "number"),
    **dict.fromkeys(("string", "bytes", "fixed", "enum"), "text"),
    **dict.fromkeys(("record", "map"), "object"),
}
_PLAIN: Final[Mapping[str, JsonType]] = {"null": None, "boolean": bool, "string": str} | {
    kind: Annotated[int, Meta(ge=-(1 << bits), le=(1 << bits) - 1)] for kind, bits in INT_BITS.items()
}
