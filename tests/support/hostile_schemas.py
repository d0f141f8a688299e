"""Hostile Avro schemas and messages: each is refused, with a reason and the place, before it costs anything."""

import json
from typing import Any, Final, NamedTuple


class HostileSchema(NamedTuple):
    """A schema that is refused: at a path, with a reason that has this part."""

    title: str
    text: str
    path: str
    reason: str


class HostileMessage(NamedTuple):
    """A message that its schema refuses."""

    title: str
    schema: Any
    data: bytes
    path: str
    reason: str


def long(number: int) -> bytes:
    """Return a number in zig-zag coding."""
    number = (number << 1) ^ (number >> 63)
    built = bytearray()
    while number > 0x7F:
        built.append((number & 0x7F) | 0x80)
        number >>= 7
    built.append(number)
    return bytes(built)


def nested(kind: str, depth: int) -> str:
    word = {"array": "items", "map": "values"}[kind]
    return f'{{"type": "{kind}", "{word}": ' * depth + '"int"' + "}" * depth


def record(*fields: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields)} | more


def field(kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": "f", "type": kind} | more


def schemas() -> list[HostileSchema]:
    """Return the hostile schemas."""
    fixed = {"type": "fixed", "name": "F", "size": 4}
    chain = {"type": "record", "name": "R0", "fields": [field("int")]}
    for number in range(1, 30):
        chain = {"type": "record", "name": f"R{number}", "fields": [field(chain)]}
    maze = [record(field(["null", "R", f"S{n}"]), name=f"S{n}") for n in range(3)]
    cases: list[tuple[str, Any, str, str]] = [
        ("no JSON", "{", "", "needs JSON"),
        ("empty", "", "", "needs JSON"),
        ("number", 7, "", "needs a type"),
        ("null", None, "", "needs a type"),
        ("true", True, "", "needs a type"),
        ("duplicate key", '{"type": "int", "type": "long"}', "", "duplicate key"),
        ("more bytes than allowed", json.dumps({"type": "int", "doc": "x" * 70_000}), "", "at most 65536 bytes"),
        ("ten thousand levels of arrays", nested("array", 10_000), "", "bytes"),
        ("two thousand levels of lists", "[" * 2_000 + "]" * 2_000, "", "levels"),
        ("a hundred levels of arrays", nested("array", 100), "", "at most 64 levels"),
        ("a hundred levels of maps", nested("map", 100), "", "at most 64 levels"),
        (
            "a hundred levels of objects in a default",
            {"type": "int", "x": json.loads('{"a":' * 99 + "1" + "}" * 99)},
            "",
            "levels",
        ),
        ("more types than allowed", json.dumps([["null"]] * 6_000), "/0", "a union cannot contain a union"),
        ("three thousand equal branches", json.dumps([{"type": "int"}] * 3_000), "/1", "int twice"),
        ("a chain of records in each other", chain, "", "at most 64 levels"),
        ("unknown type", "Unknown", "", "not defined"),
        ("unknown type in a field", record(field("Unknown")), "/fields/0/type", "not defined"),
        ("type of a later branch", maze, "/0/fields/0/type/1", "not defined"),
        ("no type", {}, "/type", "needs the name of a type"),
        ("type that is a number", {"type": 1}, "/type", "needs the name of a type"),
        ("type in a type", {"type": {"type": "int"}}, "/type", "needs the name of a type"),
        ("record without fields", {"type": "record", "name": "R"}, "/fields", "list of fields"),
        ("fields that are an object", record() | {"fields": {}}, "/fields", "list of fields"),
        ("field that is a text", record("f"), "/fields/0", "needs an object"),
        ("field without a type", record({"name": "f"}), "/fields/0", "needs a type"),
        ("field without a name", record({"type": "int"}), "/fields/0/name", "needs a name"),
        ("two fields of one name", record(field("int"), field("long")), "/fields/1/name", "already"),
        ("order that is none", record(field("int", order="up")), "/fields/0/order", "ascending"),
        ("name with a line end", record(name="R\n"), "/name", "needs a name"),
        ("name of other letters", record(name="Заказ"), "/name", "needs a name"),
        ("name of a hundred thousand characters", record(name="R" * 60_000), "/name", "needs a name"),
        ("name with two dots", record(name="a..R"), "/name", "needs a name"),
        ("name of a primitive", record(name="int"), "/name", "primitive"),
        ("namespace that is a number", record(namespace=7), "/namespace", "needs names"),
        ("namespace with a slash", record(namespace="a/b"), "/namespace", "needs names"),
        ("aliases that are a text", record(aliases="x"), "/aliases", "list of names"),
        ("alias of control characters", record(aliases=["\u0000"]), "/aliases/0", "needs a name"),
        (
            "one alias of two fields",
            record(field("int", aliases=["x"]), field("int", name="g", aliases=["x"])),
            "/fields/1/aliases",
            "alias of another",
        ),
        ("name that is defined twice", [fixed, fixed], "/1/name", "already defined"),
        ("enum without symbols", {"type": "enum", "name": "E"}, "", "needs symbols"),
        ("symbol that is a number", {"type": "enum", "name": "E", "symbols": [1]}, "/symbols", "list of names"),
        ("symbol with a space", {"type": "enum", "name": "E", "symbols": ["a b"]}, "/symbols/0", "needs letters"),
        ("symbol twice", {"type": "enum", "name": "E", "symbols": ["A", "A"]}, "/symbols/1", "A twice"),
        (
            "default that is no symbol",
            {"type": "enum", "name": "E", "symbols": ["A"], "default": "B"},
            "/default",
            "symbols",
        ),
        ("fixed of negative size", fixed | {"size": -1}, "/size", "whole number"),
        ("fixed of a trillion bytes", fixed | {"size": 10**12}, "/size", "whole number"),
        ("fixed whose size is a text", fixed | {"size": "4"}, "/size", "whole number"),
        ("array without items", {"type": "array"}, "", "array needs items"),
        ("map without values", {"type": "map"}, "", "map needs values"),
        ("union in a union", ["null", ["int"]], "/1", "cannot contain a union"),
        ("default of another type", record(field("int", default="x")), "/fields/0/default", "does not fit"),
        ("default beyond 32 bits", record(field("int", default=2**31)), "/fields/0/default", "does not fit"),
        (
            "default that is infinite",
            '{"type": "record", "name": "R", "fields": [{"name": "f", "type": "double", "default": Infinity}]}',
            "/fields/0/default",
            "does not fit",
        ),
        (
            "number of five thousand digits",
            '{"type": "fixed", "name": "F", "size": ' + "9" * 5_000 + "}",
            "",
            "needs JSON",
        ),
        (
            "default of a record that contains itself",
            record(field("R", default={})),
            "/fields/0/default",
            "does not fit",
        ),
        ("decimal without a precision", {"type": "bytes", "logicalType": "decimal"}, "/precision", "whole number"),
        (
            "decimal of a billion digits",
            {"type": "bytes", "logicalType": "decimal", "precision": 10**9},
            "/precision",
            "whole number",
        ),
        (
            "scale above the precision",
            {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3},
            "/scale",
            "whole number",
        ),
        (
            "decimal that its bytes do not hold",
            fixed | {"logicalType": "decimal", "precision": 10},
            "/precision",
            "4 bytes hold at most 9",
        ),
        ("date in a long", {"type": "long", "logicalType": "date"}, "/logicalType", "needs the type int"),
        ("UUID in fifteen bytes", fixed | {"size": 15, "logicalType": "uuid"}, "/logicalType", "string or fixed of 16"),
        ("money without a currency", record(logicalType="money"), "/logicalType", "money needs"),
        ("doc that is a list", {"type": "int", "doc": []}, "/doc", "needs a text"),
    ]
    return [
        HostileSchema(title, one if isinstance(one, str) and one[:1] in "{[" else json.dumps(one), path, reason)
        for title, one, path, reason in cases
        if title != "empty"
    ] + [HostileSchema("empty", "", "", "needs JSON")]


# A type, values that are refused, the place below the value and a part of the reason.
_STRING: Final = [
    ("cut off length", b"", "bytes end"),
    ("cut off length of many bytes", b"\x80\x80", "bytes end"),
    ("length beyond the end", long(4) + b"abc", "states 4 bytes, and 3 are left"),
    ("length of two gigabytes", long(2**31), "states 2147483648 bytes"),
    ("length of eight exabytes", long(2**63 - 1), "states 9223372036854775807"),
    ("negative length", long(-1) + b"abc", "states -1 bytes"),
    ("most negative length", long(-(2**63)), "states -9223372036854775808"),
    ("length of more than 64 bits", b"\xff" * 9 + b"\x7f", "more than 64 bits"),
    ("length that never ends", b"\x80" * 1_000, "more than 64 bits"),
]
_DECIMAL: Final = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
_ZERO_ITEMS: Final[list[tuple[str, Any]]] = [
    ("null", "null"),
    ("records of nothing", record(name="Z")),
    ("fixed of no bytes", {"type": "fixed", "name": "Z", "size": 0}),
    ("records of nulls", record(field("null"), name="Z")),
]
_VALUES: Final[list[tuple[str, Any, list[tuple[str, bytes, str]]]]] = [
    (
        "string",
        "string",
        [*_STRING, ("half a character", long(1) + b"\xc3", "UTF-8"), ("surrogate", long(3) + b"\xed\xa0\x80", "UTF-8")],
    ),
    ("bytes", "bytes", _STRING),
    ("boolean", "boolean", [("nothing", b"", "bytes end"), ("seven", b"\x07", "0 or 1"), ("255", b"\xff", "0 or 1")]),
    (
        "int",
        "int",
        [
            ("nothing", b"", "bytes end"),
            ("33 bits", long(2**31), "32 bits"),
            ("64 bits", long(-(2**63)), "32 bits"),
            ("70 bits", b"\xff" * 10, "64 bits"),
            ("endless", b"\xff" * 5_000, "64 bits"),
        ],
    ),
    (
        "long",
        "long",
        [("nothing", b"", "bytes end"), ("half", b"\x80", "bytes end"), ("70 bits", b"\xff" * 9 + b"\x02", "64 bits")],
    ),
    ("float", "float", [("nothing", b"", "bytes end"), ("three bytes", b"abc", "bytes end")]),
    ("double", "double", [("nothing", b"", "bytes end"), ("seven bytes", b"abcdefg", "bytes end")]),
    (
        "fixed",
        {"type": "fixed", "name": "X", "size": 4},
        [("nothing", b"", "bytes end"), ("three bytes", b"abc", "bytes end")],
    ),
    (
        "enum",
        {"type": "enum", "name": "E", "symbols": ["A", "B"]},
        [
            ("nothing", b"", "bytes end"),
            ("minus one", long(-1), "symbol -1 of an enum of 2"),
            ("two", long(2), "symbol 2"),
            ("huge", long(2**62), "symbol"),
        ],
    ),
    (
        "union",
        ["null", "int"],
        [
            ("nothing", b"", "bytes end"),
            ("minus one", long(-1) + long(1), "branch -1 of a union of 2"),
            ("two", long(2), "branch 2"),
            ("huge", long(2**62), "branch"),
            ("cut off value", long(1), "bytes end"),
        ],
    ),
    (
        "decimal",
        _DECIMAL,
        [
            ("no bytes", long(0), "at least one byte"),
            ("five digits", long(2) + (10_000).to_bytes(2), "more than 4 digits"),
            ("negative", long(3) + (-10_000).to_bytes(3, signed=True), "more than 4 digits"),
            ("a hundred kilobytes", long(100_000) + b"\x7f" * 100_000, "more than 4 digits"),
            ("a megabyte of signs", long(900_000) + b"\x00" * 900_000, "more than 4 digits"),
            ("beyond the end", long(9) + b"\x01", "states 9"),
        ],
    ),
    (
        "uuid",
        {"type": "string", "logicalType": "uuid"},
        [
            ("empty", long(0), "needs a UUID"),
            ("no hyphens", long(32) + b"0" * 32, "needs a UUID"),
            ("braces", long(38) + b"{6ba7b810-9dad-11d1-80b4-00c04fd430c8}", "needs a UUID"),
            ("a line end", long(37) + b"6ba7b810-9dad-11d1-80b4-00c04fd430c8\n", "needs a UUID"),
        ],
    ),
    (
        "time-uuid",
        {"type": "fixed", "name": "T", "size": 16, "logicalType": "time-uuid"},
        [
            ("version 4", bytes.fromhex("6ba7b8109dad41d180b400c04fd430c8"), "version 1 or 7"),
            ("no variant", bytes.fromhex("6ba7b8109dad11d100b400c04fd430c8"), "version 1 or 7"),
            ("version 7 of 1970", bytes.fromhex("00000000000170008000000000000000"), "before 2000"),
            ("version 7 of the year 10889", bytes.fromhex("ffffffffffff70008000000000000000"), "24 hours ahead"),
            ("version 1 of 5236", bytes.fromhex("ffffffffffff1fff8000000000000000"), "24 hours ahead"),
            ("version 1 of 1582", bytes.fromhex("00000000000010008000000000000000"), "before 2000"),
        ],
    ),
    (
        "date",
        {"type": "int", "logicalType": "date"},
        [("year 10000", long(2_932_897), "is not a date"), ("before year 1", long(-719_163), "is not a date")],
    ),
    (
        "time",
        {"type": "int", "logicalType": "time-millis"},
        [("25 hours", long(90_000_000), "is not a time-millis"), ("negative", long(-1), "is not a time-millis")],
    ),
    (
        "timestamp",
        {"type": "long", "logicalType": "timestamp-micros"},
        [
            ("year 292277", long(2**63 - 1), "is not a timestamp"),
            ("before year 1", long(-(2**63)), "is not a timestamp"),
        ],
    ),
    (
        "money",
        record({"name": "amount", "type": _DECIMAL}, {"name": "currency", "type": "string"}, logicalType="money"),
        [
            ("small letters", long(1) + b"\x01" + long(3) + b"eur", "three capital letters"),
            ("no currency", long(1) + b"\x01" + long(0), "three capital letters"),
            ("cut off", long(1) + b"\x01", "bytes end"),
        ],
    ),
    (
        "array",
        {"type": "array", "items": "long"},
        [
            ("nothing", b"", "bytes end"),
            ("no end", long(1) + long(7), "bytes end"),
            ("two billion items", long(2**31) + long(1), "at most 10000 values"),
            ("eight exa-items", long(2**63 - 1), "at most 10000"),
            ("most negative count", long(-(2**63)) + long(0), "at most 10000"),
            ("negative count without a size", long(-1), "bytes end"),
            ("negative size", long(-1) + long(-1) + long(1) + b"\x00", "a block states -1"),
            ("size beyond the end", long(-1) + long(99) + long(1) + b"\x00", "a block states 99"),
            ("wrong size", long(-1) + long(2) + long(1) + long(0), "another size"),
            ("blocks without number", long(5_000) + b"\x02" * 5_000 + long(5_001) + b"\x02" * 5_001, "at most 10000"),
        ],
    ),
    (
        "map",
        {"type": "map", "values": "int"},
        [
            ("nothing", b"", "bytes end"),
            ("two billion entries", long(2**31), "at most 10000"),
            ("key beyond the end", long(1) + long(90) + b"k", "states 90"),
            ("key that is no text", long(1) + long(1) + b"\xff", "UTF-8"),
            ("key twice", long(2) + (long(1) + b"k" + long(1)) * 2 + b"\x00", "a key twice"),
        ],
    ),
    (
        "recursion",
        {"type": "record", "name": "L", "fields": [field(["null", "L"])]},
        [
            ("a hundred levels", long(1) * 100 + long(0), "at most 64 levels"),
            ("a million levels", long(1) * 1_000_000, "at most 64 levels"),
            ("cut off", long(1) * 10, "bytes end"),
        ],
    ),
    (
        "recursion without an end",
        {"type": "record", "name": "L", "fields": [field("L")]},
        [("nothing", b"", "at most 64 levels"), ("bytes", b"\x00" * 99, "at most 64 levels")],
    ),
    (
        "recursion in arrays",
        {"type": "record", "name": "L", "fields": [field({"type": "array", "items": "L"})]},
        [("a hundred levels", long(1) * 100, "at most 64 levels"), ("wide", (long(200) + long(100)) * 99, "64 levels")],
    ),
    (
        "recursion in maps",
        {"type": "record", "name": "L", "fields": [field({"type": "map", "values": "L"})]},
        [("a hundred levels", (long(1) + long(0)) * 100, "at most 64 levels")],
    ),
]


def _doubling(depth: int) -> dict[str, Any]:
    """Return a schema whose only value has no bytes and 2 to the power of `depth` records."""
    built = record(field("null"), name="D0")
    for number in range(1, depth):
        built = record(field(built), {"name": "g", "type": f"D{number - 1}"}, name=f"D{number}")
    return built


def messages() -> list[HostileMessage]:
    """Return the hostile messages; most types occur alone and in a field of a record, where the path names them."""
    found = []
    for kind, schema, values in _VALUES:
        for title, data, reason in values:
            path = inner_path(schema, title)
            found.append(HostileMessage(f"{kind}: {title}", schema, data, path, reason))
            inside = record(field("int", name="id"), {"name": "inner", "type": schema}, name="Outer")
            found.append(HostileMessage(f"field of {kind}: {title}", inside, long(1) + data, "/inner" + path, reason))
    for title, item in _ZERO_ITEMS:
        for count in (2**31, 20_000, 2**63 - 1):
            array = {"type": "array", "items": item}
            found.append(HostileMessage(f"{count} {title}", array, long(count) + b"\x00", "", "at most 10000 values"))
    found.append(HostileMessage("2^20 records of no bytes", _doubling(20), b"", "*", "at most 10000 values"))
    for kind, schema, data in (
        ("int", "int", long(1)),
        ("null", "null", b""),
        ("string", "string", long(0)),
        ("array", {"type": "array", "items": "int"}, b"\x00"),
    ):
        found.append(HostileMessage(f"bytes after {kind}", schema, data + b"\x00\x00", "", "2 bytes follow the value"))
    found.append(
        HostileMessage("more than a megabyte", "bytes", long(2**20) + b"x" * 2**20, "", "at most 1048576 bytes")
    )
    found.append(
        HostileMessage(
            "a megabyte of ints",
            {"type": "array", "items": "int"},
            long(2**20 - 10) + b"\x02" * (2**20 - 10),
            "",
            "at most 10000",
        )
    )
    return found


def inner_path(schema: Any, title: str) -> str:
    """Return the path of the error below the value; "*" for a recursion, whose path is its depth."""
    kind = schema.get("logicalType", schema["type"]) if isinstance(schema, dict) else ""
    if kind == "money":
        return "/currency"
    if isinstance(schema, dict) and schema.get("name") == "L":
        return "*"
    return {"array: no end": "", "map: key twice": ""}.get(f"{kind}: {title}", "")
