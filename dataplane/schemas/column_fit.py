"""Evolution of a typed column: the type of a table and of a version together, and values that fit it. Pure.

A column keeps its type for ever, because its files have it. A version adds columns; where it has another type, a value
is stored if the column holds it exactly.
"""

import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from dataplane.schemas.avro import LogicalType
from dataplane.schemas.columns import ColumnType, field_of
from dataplane.schemas.standard import unscaled_number

ITEM: Final = "*"  # stands for every item in a place
Fit = Callable[[Any, list[str]], Any]
_BITS: Final = {"integer": 31, "long": 63}
_FRACTIONS: Final = ("float", "double")
_NUMBERS: Final = (*_BITS, *_FRACTIONS)


def evolved(held: ColumnType, new: ColumnType) -> ColumnType:
    """Return the type of a column that held one type and shall hold another: the old columns, then the new ones.

    Names of columns are compared without case, as Delta does.
    """
    if isinstance(held, str) or isinstance(new, str) or held["type"] != new["type"]:
        return held
    match held["type"]:
        case "array":
            return held | {"elementType": evolved(held["elementType"], new["elementType"])}
        case "map":
            return held | {"valueType": evolved(held["valueType"], new["valueType"])}
    coming = {one["name"].lower(): one for one in new["fields"]}
    fields = []
    for one in held["fields"]:
        other = coming.pop(one["name"].lower(), None)
        fields.append(one if other is None else one | {"type": evolved(one["type"], other["type"])})
    return held | {"fields": [*fields, *(field_of(one["name"], one["type"]) for one in coming.values())]}


def fit_of(new: ColumnType, held: ColumnType, place: str = "") -> Fit | None:
    """Return a function that makes values of one type fit the `evolved` type of the table; None if all fit as they are.

    It takes a value and a list, to which it adds the place and the reason of each value that the table cannot hold;
    that value is null. `place`: JSON pointer of the value
    """
    if isinstance(new, str) or isinstance(held, str) or new["type"] != held["type"]:
        return None if new == held else _scalar(new, held, place)
    match held["type"]:
        case "array":
            return _array(fit_of(new["elementType"], held["elementType"], f"{place}/{ITEM}"))
        case "map":
            return _map(fit_of(new["valueType"], held["valueType"], f"{place}/{ITEM}"))
    columns = {one["name"].lower(): one for one in held["fields"]}
    fits, renamed = [], {}
    for one in new["fields"]:
        name, column = one["name"], columns[one["name"].lower()]
        if name != column["name"]:
            renamed[name] = column["name"]
        if (fit := fit_of(one["type"], column["type"], f"{place}/{name}")) is not None:
            fits.append((name, fit))
    return _struct(fits, renamed) if fits or renamed else None


def shown(kind: ColumnType) -> str:
    """Return the name of a column type, for people."""
    return kind if isinstance(kind, str) else str(kind["type"])


def _array(inner: Fit | None) -> Fit | None:
    if inner is None:
        return None
    return lambda value, misfits: None if value is None else [inner(one, misfits) for one in value]


def _map(inner: Fit | None) -> Fit | None:
    if inner is None:
        return None
    return lambda value, misfits: None if value is None else {key: inner(one, misfits) for key, one in value.items()}


def _struct(fits: list[tuple[str, Fit]], renamed: dict[str, str]) -> Fit:
    def fit(value: dict[str, Any] | None, misfits: list[str]) -> dict[str, Any] | None:
        if value is None:
            return None
        # A union's struct has only the column of its branch.
        value = value | {name: inner(value[name], misfits) for name, inner in fits if name in value}
        return {renamed.get(name, name): one for name, one in value.items()} if renamed else value

    return fit


def _scalar(new: ColumnType, held: ColumnType, place: str) -> Fit:
    reason = (
        f"{place or 'the event'}: not stored, because the column has type {shown(held)}, and this version {shown(new)}"
    )

    def fit(value: Any, misfits: list[str]) -> Any:
        if value is None:
            return None
        if is_held(value, new, held):
            return float(value) if held in _FRACTIONS else value  # Spark takes no integer for a fraction
        if reason not in misfits:
            misfits.append(reason)
        return None

    return fit


def is_held(value: Any, new: ColumnType, held: ColumnType) -> bool:
    """Return True if a column of type `held` holds a value of type `new` exactly: numbers of another size."""
    if not isinstance(new, str) or not isinstance(held, str):
        return False
    if new.startswith("decimal") and held.startswith("decimal"):
        return _is_decimal(value, held)
    if new not in _NUMBERS or held not in _NUMBERS:
        return False
    if isinstance(value, float):
        return held == "double" or (held == "float" and _is_single(value))
    if held in _BITS:
        limit = 1 << _BITS[held]
        return -limit <= int(value) < limit
    return abs(int(value)) <= 1 << (24 if held == "float" else 53)


def _is_decimal(value: Decimal, held: str) -> bool:
    precision, scale = map(int, held.removeprefix("decimal(").removesuffix(")").split(","))
    try:
        unscaled_number(LogicalType("decimal", precision, scale), value)
    except ValueError:
        return False
    return True


def _is_single(value: float) -> bool:
    if not math.isfinite(value):
        return True
    try:
        (single,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return False
    return bool(single == value)
