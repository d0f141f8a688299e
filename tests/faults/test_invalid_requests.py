"""Wrong HTTP inputs get a clear problem+json answer from real replicas, and the good items are kept."""

import gzip
import http.client
import json
import re
import socket
from base64 import b64encode
from typing import Any

import pytest

from dataplane.names import Purpose
from tests.support.cluster import key_of
from tests.support.data_plane import DataPlane
from tests.support.messages import stored
from tests.support.patience import until

LIMIT = 5 * 1024 * 1024
EVENT_LIMIT = 256 * 1024
TOO_LARGE = "event-too-large"


@pytest.fixture(scope="module")
def key(plane: DataPlane) -> str:
    return plane.add_pipe("inputs", {"crm": {"url": plane.receiver.url("/inputs")}})


def problem(answer: tuple[int, dict[str, str], bytes], status: int, code: str) -> dict[str, Any]:
    assert answer[0] == status, answer[2][:300]
    assert answer[1]["content-type"] == "application/problem+json"
    body: dict[str, Any] = json.loads(answer[2])
    assert set(body) == {"type", "title", "status", "detail", "code", "request_id"}
    assert (body["status"], body["code"]) == (status, code)
    return body


def test_missing_key_is_401(plane: DataPlane, key: str):
    answer = plane.post(key, b"{}", authorization="")
    problem(answer, 401, "key-missing")
    assert answer[1]["www-authenticate"].startswith("Bearer, Basic ")


def test_key_is_accepted_as_the_password_of_basic_auth(plane: DataPlane, key: str):
    basic = b64encode(f"events:{key}".encode()).decode()
    assert plane.post(key, b"{}", authorization=f"Basic {basic}")[0] == 202


@pytest.mark.parametrize("value", ["Bearer psk_nobody", f"Bearer {key_of('nobody')}", "Bearer " + "x" * 4_000])
def test_unknown_key_is_401(plane: DataPlane, key: str, value: str):
    problem(plane.post(key, b"{}", authorization=value), 401, "key-invalid")


@pytest.mark.parametrize("value", ["Basic abc", "Bearer", "Bearer "])
def test_authorization_without_a_key_is_401(plane: DataPlane, key: str, value: str):
    problem(plane.post(key, b"{}", authorization=value), 401, "key-missing")


def test_body_over_the_limit_is_413_before_any_byte_is_read(plane: DataPlane, key: str):
    connection = http.client.HTTPConnection("127.0.0.1", plane.port, timeout=10)
    connection.putrequest("POST", "/v1/events")
    for name, value in (("authorization", f"Bearer {key}"), ("content-type", "application/json")):
        connection.putheader(name, value)
    connection.putheader("content-length", str(LIMIT + 1))
    connection.endheaders()  # no byte of the body is sent
    answer = connection.getresponse()
    problem(
        (answer.status, {"content-type": answer.getheader("content-type", "")}, answer.read()), 413, "body-too-large"
    )
    connection.close()


def test_chunked_body_is_413_as_soon_as_it_crosses_the_limit(plane: DataPlane, key: str):
    head = f"POST /v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    with socket.create_connection(("127.0.0.1", plane.port), timeout=20) as connection:
        connection.sendall(head.encode() + b"transfer-encoding: chunked\r\n\r\n")
        for _ in range(LIMIT // 65_536):
            connection.sendall(chunk)
        connection.sendall(chunk)  # crosses the limit; the end of the body is never sent
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        media_type = answer.getheader("content-type", "")
        problem((answer.status, {"content-type": media_type}, answer.read()), 413, "body-too-large")


def test_chunked_body_within_the_limit_is_accepted(plane: DataPlane, key: str):
    connection = http.client.HTTPConnection("127.0.0.1", plane.port, timeout=20)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json", "transfer-encoding": "chunked"}
    connection.request("POST", "/v1/events", iter([b'{"a"', b":1}"]), headers, encode_chunked=True)
    assert connection.getresponse().status == 202
    connection.close()


def test_gzip_bomb_is_413(plane: DataPlane, key: str):
    bomb = gzip.compress(b" " * (LIMIT * 20), 9)
    assert len(bomb) < LIMIT // 10
    problem(plane.post(key, bomb, content_encoding="gzip"), 413, "body-too-large")


def test_gzip_within_the_limit_is_accepted(plane: DataPlane, key: str):
    assert plane.post(key, gzip.compress(b'{"a":1}'), content_encoding="gzip")[0] == 202


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a":1}', id="plain"),
        pytest.param(gzip.compress(b'{"a":1}')[:-4], id="without its end"),
        pytest.param(gzip.compress(b'{"a":1}')[:12], id="its beginning"),
    ],
)
def test_invalid_gzip_is_400(plane: DataPlane, key: str, body: bytes):
    problem(plane.post(key, body, content_encoding="gzip"), 400, "encoding-invalid")


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_unsupported_encoding_is_415(plane: DataPlane, key: str, encoding: str):
    problem(plane.post(key, b"{}", content_encoding=encoding), 415, "encoding-invalid")


@pytest.mark.parametrize("media_type", ["text/plain", "", "application/xml"])
def test_unsupported_media_type_is_415(plane: DataPlane, key: str, media_type: str):
    problem(plane.post(key, b"{}", content_type=media_type), 415, "media-type")


def test_broken_json_is_400_with_its_position(plane: DataPlane, key: str):
    detail = problem(plane.post(key, b'{"a":1}x'), 400, "json-invalid")["detail"]
    assert "byte 8" in detail


def test_event_over_the_limit_is_413_and_the_rest_of_its_batch_is_accepted(plane: DataPlane, key: str):
    large = json.dumps("x" * EVENT_LIMIT).encode()
    problem(plane.post(key, large), 413, "event-too-large")
    status, _, text = plane.post(key, b'[{"a":1},' + large + b',{"a":3}]')
    body = json.loads(text)
    assert (status, body["accepted"], body["rejected"]) == (207, 2, 1)
    assert [item["status"] for item in body["items"]] == [202, 413, 202]
    assert body["items"][1]["code"] == "event-too-large"


def test_one_bad_line_in_a_thousand_does_not_reject_the_others(plane: DataPlane, key: str):
    lines = [b'{"n":%d}' % n for n in range(1_000)]
    lines[500] = b'{"n":'
    status, headers, text = plane.post(key, b"\n".join(lines), content_type="application/x-ndjson")
    body = json.loads(text)
    assert headers["content-type"] == "application/json"
    assert (status, body["accepted"], body["rejected"]) == (207, 999, 1)
    assert (body["items"][500]["status"], body["items"][500]["code"]) == (400, "json-invalid")
    assert len({item["id"] for item in body["items"] if item["status"] == 202}) == 999


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_405_with_the_allowed_one(plane: DataPlane, method: str):
    connection = http.client.HTTPConnection("127.0.0.1", plane.port, timeout=10)
    connection.request(method, "/v1/events")
    answer = connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    problem((answer.status, headers, answer.read()), 405, "method-not-allowed")
    assert headers["allow"] == "POST"
    connection.close()


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", 10**18, "yesterday"])
def test_extreme_or_invalid_event_time_is_accepted_and_does_not_break_the_ledger(plane: DataPlane, time: str | int):
    key = plane.add_pipe("times", {"crm": {"url": plane.receiver.url("/times")}}, sources={"shop": {"event_time": "t"}})
    status, _, text = plane.post(key, json.dumps({"t": time}).encode())
    assert status == 202, text
    assert json.loads(text)["bucket"] > 29_000_000
    plane.settled("times", {json.loads(text)["position"]})


def test_event_that_no_step_can_read_does_not_stop_its_lane(plane: DataPlane):
    steps = [{"op": "set", "path": "seen", "value": True}]
    key = plane.add_pipe("binary", {"crm": {"url": plane.receiver.url("/binary")}}, normalize=steps)
    ce = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "s", "ce_type": "t"}
    status, _, text = plane.post(key, b'"\xff"', content_type="application/octet-stream", **ce)
    assert status == 202
    good = json.loads(plane.post(key, b'{"a":1}')[2])["position"]
    plane.settled("binary", {good, json.loads(text)["position"]})
    assert [received.position for received in plane.receiver.got["/binary"]] == [good]


def cloud_event(attributes: int, body: int = 10) -> bytes:
    """Return a structured CloudEvent with so many additional attributes of 1,000 characters."""
    needed = {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}
    return json.dumps(needed | {f"x{n}": "v" * 1_000 for n in range(attributes)} | {"data": "d" * body}).encode()


def test_event_with_too_many_attributes_is_413_and_the_rest_of_its_batch_is_accepted(plane: DataPlane, key: str):
    refused = problem(plane.post(key, cloud_event(90), content_type="application/cloudevents+json"), 413, TOO_LARGE)
    assert re.fullmatch(r"needs at most 65536 bytes of attributes and headers, got \d+", refused["detail"])
    batch = b"[" + b",".join(map(cloud_event, (1, 90, 60))) + b"]"
    status, _, text = plane.post(key, batch, content_type="application/cloudevents-batch+json")
    items = json.loads(text)["items"]
    assert (status, [item["status"] for item in items]) == (207, [202, 413, 202])
    assert items[1]["code"] == TOO_LARGE


def test_largest_accepted_event_is_kept_whole_when_dead_retried_or_held_and_stops_no_lane(plane: DataPlane):
    ends: dict[str, tuple[int, Purpose]] = {
        "refuses": (400, "dead"),
        "fails": (503, "retry-in"),
        "gone": (410, "held"),
    }
    plane.receiver.answers |= {f"/largest/{name}": status for name, (status, _) in ends.items()}
    destinations = {
        name: {"url": plane.receiver.url(f"/largest/{name}"), "retry": {"local_tries": 1, "delays_s": [600]}}
        for name in ends
    }
    key = plane.add_pipe("largest", destinations)
    largest = cloud_event(60, EVENT_LIMIT - 2)
    status, _, text = plane.post(key, largest, content_type="application/cloudevents+json")
    assert status == 202, text
    for name, (_, purpose) in ends.items():
        until(lambda purpose=purpose: list(stored(plane, purpose, "largest")), f"{name} on {purpose}", 60)  # type: ignore[misc]
        (found,) = stored(plane, purpose, "largest")
        assert found.meta.destination == name
        assert found.body == b'"' + b"d" * (EVENT_LIMIT - 2) + b'"'
        assert sum(header.startswith("ce_x") for header, _ in found.headers) == 60
    good = json.loads(plane.post(key, b"{}")[2])["position"]
    until(lambda: good in {one.position for one in plane.receiver.got["/largest/refuses"]}, "the lanes go on", 60)


# -- HTTP itself ---------------------------------------------------------------------------------------------------


def exchange(plane: DataPlane, data: bytes) -> list[tuple[int, dict[str, str], bytes]]:
    """Send bytes on one connection, close our half, and return all responses."""
    found: list[tuple[int, dict[str, str], bytes]] = []
    with socket.create_connection(("127.0.0.1", plane.port), timeout=20) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    while received:
        head, _, received = received.partition(b"\r\n\r\n")
        line, *rest = head.decode().split("\r\n")
        headers = dict(one.split(": ", 1) for one in rest)
        length = int(headers["content-length"])
        found.append((int(line.split()[1]), headers, received[:length]))
        received = received[length:]
    return found


def event(key: str, *headers: str, body: bytes = b"{}") -> bytes:
    lines = ["POST /v1/events HTTP/1.1", "host: a", f"authorization: Bearer {key}", "content-type: application/json"]
    return "\r\n".join([*lines, f"content-length: {len(body)}", *headers, "", ""]).encode() + body


def test_pipelined_events_are_all_accepted_in_order(plane: DataPlane, key: str):
    answers = exchange(plane, b"".join(event(key, body=b'{"n":%d}' % n) for n in range(200)))
    assert [status for status, _, _ in answers] == [202] * 200
    assert len({json.loads(body)["id"] for _, _, body in answers}) == 200


def test_event_with_a_request_to_upgrade_to_http_2_is_accepted(plane: DataPlane, key: str):
    """Java's client sends it with its first request."""
    upgrade = ("connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAEAAEAAAAIAAAAAAAMAAAAA")
    answers = exchange(plane, event(key, *upgrade) + event(key))
    assert [status for status, _, _ in answers] == [202, 202]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # TLS on the port without TLS
        (b"GET /livez HTTP/1.1\r\n\r\n", 400),
        (b"GET /livez HTTP/2.0\r\nhost: a\r\n\r\n", 505),
        (b"GET /livez HTTP/1.1\r\nhost: a\r\nx: " + b"a" * 65_536 + b"\r\n\r\n", 431),
        (b"POST /v1/events HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (
            b"POST /v1/events HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
    ],
)
def test_request_that_is_not_valid_http_gets_a_problem_and_its_connection_ends(
    plane: DataPlane, data: bytes, status: int
):
    (answer,) = exchange(plane, data)
    problem(answer, status, "http-invalid")
    assert answer[1]["connection"] == "close"


def test_invalid_chunk_is_refused_and_what_follows_is_not_read_as_a_request(plane: DataPlane, key: str):
    framed = event(key).replace(b"content-length: 2", b"transfer-encoding: chunked").removesuffix(b"{}")
    (answer,) = exchange(plane, framed + b"2\r\n{}" + event(key))
    problem(answer, 400, "http-invalid")
