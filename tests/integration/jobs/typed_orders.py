"""Orders with typed columns: two versions of their schema, events that fit and that do not, and their rows."""

from datetime import date
from decimal import Decimal
from typing import Any, Final

ORDERS: Final = "pipe_orders"
PROBES: Final = 1_000  # orders from this number on


def _order(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": list(fields)}


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def _lines(*more: dict[str, Any]) -> dict[str, Any]:
    item = {"type": "record", "name": "Line", "fields": [_field("sku", "string"), *more]}
    return {"name": "lines", "type": {"type": "array", "items": item}, "default": []}


DECIMAL: Final = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
BASIC: Final = (
    _field("id", "string"),
    _field("total", DECIMAL),
    _field("at", {"type": "long", "logicalType": "timestamp-micros"}),
    _field("day", ["null", {"type": "int", "logicalType": "date"}]) | {"default": None},
)
NOTE: Final = _field("note", ["null", "string"]) | {"default": None}
VERSIONS: Final = {
    1: _order(*BASIC, _field("count", "int") | {"default": 0}, _lines()),
    2: _order(*BASIC, _field("count", "long") | {"default": 0}, _lines(_field("price", DECIMAL)), NOTE),
}


def encoded(version: int) -> dict[str, Any]:
    """Return the destination of the orders with typed columns."""
    return {"type": "lake", "encoding": {"format": "columns", "subject": "orders-value", "version": version}}


BIG: Final = "999999999999999999999999999999999999.99"  # 38 digits
FIRST: Final = {
    0: f'{{"id":"a","total":"{BIG}","at":"9999-12-31T23:59:59.999999Z","day":"9999-12-31"}}'.encode(),
    1: b'{"id":"b","total":-0.01,"at":"0001-01-01T00:00:00Z","count":7,"lines":[{"sku":"x"},{"sku":"y"}]}',
    2: b'{"id":"c","total":"1.005","at":0}',
    3: b"\xff{",
}
SECOND: Final = {
    4: b'{"id":"e","total":"1.50","at":0,"count":8,"lines":[{"sku":"x","price":"0.10"}],"note":"n"}',
    5: b'{"id":"f","total":"1.50","at":0,"count":4294967296}',
}
WIDER: Final = "/count: not stored, because the column has type integer, and this version long"
END_US: Final = 253_402_300_800_000_000  # the year 10000
# Event, its `at` in microseconds, version and error.
TYPED: Final = {
    "id-0": (
        {"id": "a", "total": Decimal(BIG), "day": date(9999, 12, 31), "count": 0, "lines": []},
        END_US - 1,
        1,
        None,
    ),
    "id-1": (
        {"id": "b", "total": Decimal("-0.01"), "day": None, "count": 7}
        | {"lines": [{"sku": "x", "price": None}, {"sku": "y", "price": None}]},
        -62_135_596_800_000_000,
        1,
        None,
    ),
    "id-2": (None, None, 1, "/total: needs at most 2 digits after the point"),
    "id-3": (None, None, 1, "needs JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    "id-4": (
        {"id": "e", "total": Decimal("1.50"), "day": None, "count": 8}
        | {"lines": [{"sku": "x", "price": Decimal("0.10")}], "note": "n"},
        0,
        2,
        None,
    ),
    "id-5": ({"id": "f", "total": Decimal("1.50"), "day": None, "count": None, "lines": []}, 0, 2, WIDER),
}
