"""Corpus of hostile inputs from `data`: each is a request, an event or a record, optionally with a spec."""

import gzip
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, json

EVENT_BYTES: Final = 256 * 1024
REQUEST_BYTES: Final = 5 * 1024 * 1024
LONG: Final = "x" * 1_000
CASTS: Final = ("int", "decimal", "bool", "string", "datetime", "uuid", "money")
JSON: Final = "application/json"
CLOUDEVENT: Final = "application/cloudevents+json"
_DATA: Final = Path(__file__).parent / "data"


class Input(Struct, kw_only=True):
    """One input; omitted fields have their usual values.

    body:    makes the body of the request; also of an event, unless `is_request`
    headers: of the request
    record:  headers of a record from a customer's Kafka, or of one written before names were checked
    spec:    steps, routes and destinations of the pipe
    preset:  of the webhook URL to which the request is posted; "" for /v1/events
    """

    name: str
    body: Callable[[], bytes]
    media_type: str = JSON
    query: str = ""
    headers: Mapping[str, str] = {}
    record: Sequence[tuple[str, bytes]] = ()
    spec: Mapping[str, Any] = {}
    is_request: bool = False
    preset: str = ""


def inputs() -> Iterator[Input]:
    """Yield all inputs, each with a unique name."""
    yield from _shapes()
    yield from _numbers()
    yield from _expressions()
    yield from _steps()
    yield from _headers()
    yield from _cloudevents()
    yield from _queries()
    yield from _requests()
    yield from _webhooks()


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_DATA / f"{name}.toml").read_text())


def filled(begin: bytes, unit: bytes, end: bytes, size_bytes: int) -> bytes:
    """Return begin, as many units as fit, and end; a unit may hold a number, which makes all of them different."""
    count = max(0, size_bytes - len(begin) - len(end)) // (len(unit % 0 if b"%07d" in unit else unit) or 1)
    many = b"".join(unit % number for number in range(count)) if b"%07d" in unit else unit * count
    return begin + many + end


def _bytes(recipe: Mapping[str, Any], part: str) -> bytes:
    text = str(recipe.get(part, "")).replace("LONG", LONG).replace("LARGE", f"[{'[],' * 87_000}1]")
    return bytes.fromhex(recipe.get(f"{part}_hex", "")) + text.encode()


def _made(recipe: Mapping[str, Any], size_bytes: int) -> bytes:
    begin, unit, end = (_bytes(recipe, part) for part in ("begin", "unit", "end"))
    return filled(begin, unit, end, recipe.get("bytes", size_bytes))


# -- events --------------------------------------------------------------------------------------------------------


def _shapes() -> Iterator[Input]:
    for recipe in _read("shapes")["shape"]:
        yield Input(name=f"shape: {recipe['name']}", body=partial(_made, recipe, EVENT_BYTES))


def _numbers() -> Iterator[Input]:
    data = _read("numbers")
    destinations = {to: {"type": "http", "url": f"https://{to}.example/"} for to in CASTS}
    each = {to: [_cast("v", "decimal"), _cast("v", to)] for to in CASTS}
    for text in data["numbers"] + [before + digit * count for digit, count, before in data["long"]]:
        shown = text if len(text) < 40 else f"{text[:10]}... of {len(text)} characters"
        one = b'{"v":%b}' % json.encode(text)
        spec = {"transform": each, "destinations": destinations}
        yield Input(name=f"number {shown} to every type", body=partial(bytes, one), spec=spec)
        for kind, written in (("text", json.encode(text)), ("number", text.encode())):
            many = filled(b'{"l":[', written + b",", b"1]}", EVENT_BYTES)
            spec = {"normalize": [_cast("l.*", "decimal"), _cast("l.*", "int")]}
            yield Input(name=f"number {shown} as a {kind}, many", body=partial(bytes, many), spec=spec)


def _cast(path: str, to: str) -> dict[str, str]:
    return {"op": "cast", "path": path, "to": to} | ({"currency": "EUR"} if to == "money" else {})


_FIELDS: Final[dict[str, tuple[bytes, bytes, bytes]]] = {
    "text": (b'"', b"a", b'"'),
    "wide": (b'"', "\u20ac".encode(), b'"'),
    "list": (b"[", b"1,", b"1]"),
    "objects": (b"[", b"{},", b"{}]"),
    "map": (b"{", b'"k%07d":1,', b'"z":1}'),
    "numbers": (b"[", b"9" * 4_300 + b",", b"1]"),
}


def _expressions() -> Iterator[Input]:
    for number, one in enumerate(_read("expressions")["expression"]):
        begin, unit, end = _FIELDS[one["on"]]
        few = b"[" + b"1," * 5_000 + b"1]"
        made = filled(b'{"l":' + few + b',"v":' + begin, unit, end + b"}", EVENT_BYTES)
        spec = {"normalize": [{"op": "map", "path": "made", "expr": one["text"]}]}
        yield Input(
            name=f"expression {number} on {one['on']}: {one['text'][:80]}", body=partial(bytes, made), spec=spec
        )


def _steps() -> Iterator[Input]:
    for number, one in enumerate(_read("steps")["steps"]):
        unit = one["on"].encode() + b","
        room = EVENT_BYTES - 20 if "padding" not in one else 2 * len(unit) * one["count"]
        count = one.get("count", room // len(unit))
        body = b'{"l":[' + (unit * count)[:-1] + b"]}"
        if "padding" in one:
            padding = filled(b'"r":[', one["padding"].encode(), b"1]", EVENT_BYTES - len(body) - 5)
            body = body[:-1] + b"," + padding + b"}"
        steps = [_filled_in(step, turn) for turn in range(one.get("repeat", 1)) for step in one["steps"]][:100]
        name = f"steps {number} on {one['on']}: {', '.join(step['op'] for step in one['steps'])}"
        yield Input(name=name, body=partial(bytes, body), spec={"normalize": steps})


def _filled_in(step: Mapping[str, Any], turn: int) -> dict[str, Any]:
    text = json.encode(step).replace(b'"LONG"', json.encode(LONG * 60)).replace(b"%d", b"%d" % turn)
    made: dict[str, Any] = json.decode(text)
    return made


# -- headers, paths ------------------------------------------------------------------------------------------------


def _headers() -> Iterator[Input]:
    data = _read("headers")
    for name in [*data["names"], *(name + "a" * count for name, count in data["long"])]:
        shown = f"{name[:40]!r} of {len(name)} characters"
        headers = {f"ce-{name[3:]}": "v", "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t"}
        yield Input(name=f"header name {shown}", body=lambda: b"{}", headers=headers, record=[(name, b"v")])
    for value in data["values"]:
        headers = {
            "ce-x": value,
            "ce-specversion": "1.0",
            "ce-id": "1",
            "ce-source": "s",
            "ce-type": "t",
            "traceparent": value,
        }
        record = [("ce_x", value.encode()), ("content-type", value.encode()), ("traceparent", value.encode())]
        yield Input(name=f"header value {value[:40]!r}", body=lambda: b"{}", headers=headers, record=record)
    for scheme, unit, count in data["authorizations"]:
        yield Input(
            name=f"authorization {scheme}{unit!r} {count} times",
            body=lambda: b"{}",
            headers={"authorization": scheme + unit * count},
        )
    for number, headers in enumerate(data["requests"]):
        yield Input(name=f"request headers {number}: {headers}", body=lambda: b"{}", headers=headers)
    many = [(f"ce_a{number}", b"v" * 1_000) for number in range(5_000)]
    yield Input(name="five thousand headers of a kilobyte", body=lambda: b"{}", record=many)
    yield Input(name="a header of a megabyte", body=lambda: b"{}", record=[("ce_x", b"\xff" * 1_000_000)])


def _cloudevents() -> Iterator[Input]:
    data = _read("cloudevents")
    for one in data["event"]:
        begin = data["begin"].encode() + _bytes(one, "before")
        end = _bytes(one, "after") + (b"" if one.get("open") else b"}")
        made = filled(begin, _bytes(one, "unit"), end, one.get("bytes", EVENT_BYTES))
        yield Input(name=f"CloudEvent: {one['name']}", body=partial(bytes, made), media_type=CLOUDEVENT)


_TEMPLATE: Final = {
    "path": "/a/${body.v}/b?q=${body.v}",
    "headers": {"X-V": "v ${body.v}"},
    "body": '{"v": body.v, "w": [body.v, body.v]}',
}


def _queries() -> Iterator[Input]:
    data = _read("queries")
    destinations = {"crm": {"type": "http", "url": "https://crm.example/in", "template": _TEMPLATE}}
    for value in data["values"] + [unit * count for unit, count in data["long"]]:
        body = json.encode({"v": value})
        yield Input(
            name=f"query {value[:40]!r} of {len(value)} characters",
            body=partial(bytes, body),
            query=value,
            spec={"destinations": destinations},
        )


# -- requests ------------------------------------------------------------------------------------------------------


def _requests() -> Iterator[Input]:
    for one in _read("requests")["request"]:
        packing = one.get("gzip", "")
        yield Input(
            name=f"request: {one['name']}",
            body=partial(_packed, packing, one),
            media_type=one["type"],
            headers={"content-encoding": "gzip"} if packing else {},
            is_request=True,
        )


def _webhooks() -> Iterator[Input]:
    for one in _read("webhooks")["webhook"]:
        yield Input(
            name=f"webhook: {one['name']}",
            body=partial(_made, one, EVENT_BYTES),
            media_type=one["type"],
            headers=one.get("headers", {}),
            is_request=True,
            preset=one["preset"],
        )


def _packed(packing: str, recipe: Mapping[str, Any]) -> bytes:
    return _PACKED[packing](_made(recipe, REQUEST_BYTES))


def _empty_codes(count: int) -> bytes:
    """Return empty deflate blocks, each with its own codes (RFC 1951, 3.2.7), so that each needs new tables."""
    lengths = {18: 1, 1: 2, 0: 2}
    order = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1)
    bits = "0" + "01" + "00000" + "00000" + "0111"  # not final, dynamic; 257 and 1 codes; 18 code lengths
    bits += "".join(f"{lengths.get(one, 0):03b}"[::-1] for one in order)
    bits += "0" + f"{138 - 11:07b}"[::-1] + "0" + f"{118 - 11:07b}"[::-1]  # 256 zeros
    bits += "11" + "10" + "0"  # end-of-block: 1-bit code; distance: no code; end of block
    stream = bits * (8 * (count // 8))
    return bytes(int(stream[at : at + 8][::-1], 2) for at in range(0, len(stream), 8))


_GZIP_HEAD: Final = gzip.compress(b"", mtime=0)[:10]
_PACKED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "": lambda plain: plain,
    "none": lambda plain: plain,
    "once": lambda plain: gzip.compress(plain, mtime=0),
    "twice": lambda plain: gzip.compress(gzip.compress(plain, mtime=0), mtime=0),
    "cut": lambda plain: gzip.compress(plain, mtime=0)[:-9],
    "wrong": lambda plain: gzip.compress(plain, mtime=0)[:-8] + bytes(8),
    "zlib": zlib.compress,
    "members": lambda _: gzip.compress(b"", mtime=0) * (REQUEST_BYTES // 20),
    "blocks": lambda _: _GZIP_HEAD + b"\x00\x00\x00\xff\xff" * (REQUEST_BYTES // 5 - 10),
    "codes": lambda _: _GZIP_HEAD + _empty_codes(REQUEST_BYTES // 12),
    "name": lambda _: b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * (REQUEST_BYTES - 10),
}
