"""Sending: batches, results of events, and repeats within one request's limits, against a server on this machine."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest

from penstock_cli.errors import CliError, ExitCode
from penstock_cli.sender import BATCH, BATCH_BYTES, EventBatches, batches, events_of_document, lines_of, results_of

Answer = tuple[int, dict[str, Any], dict[str, str]]


class ScriptedIngest(BaseHTTPRequestHandler):
    """Gives the scripted answers, in order, and records the bodies."""

    answers: ClassVar[list[Answer]] = []
    bodies: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.answers:
            return  # closes the connection
        status, body, headers = self.answers.pop(0)
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(text))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def ingest() -> Iterator[str]:
    ScriptedIngest.answers, ScriptedIngest.bodies = [], []
    server = HTTPServer(("127.0.0.1", 0), ScriptedIngest)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/events"
    server.shutdown()
    thread.join()
    server.server_close()


def test_busy_ingest_gets_the_event_again_after_the_time_that_it_asks_for(ingest: str):
    ScriptedIngest.answers += [(429, {}, {"Retry-After": "7"}), (503, {}, {}), (202, {"id": "m-1"}, {})]
    waits: list[float] = []
    (result,) = EventBatches(ingest, "key", waits.append).send([b"{}"])
    assert (result.number, result.id) == (1, "m-1")
    assert waits == [7.0, 2.0]
    assert ScriptedIngest.bodies == [b"{}"] * 3


def test_only_events_without_a_final_result_are_sent_again(ingest: str):
    items = [{"status": 202, "id": "m-1"}, {"status": 422, "code": "schema", "detail": "bad"}, {"status": 503}]
    ScriptedIngest.answers += [(207, {"items": items}, {}), (202, {"id": "m-3"}, {})]
    results = list(EventBatches(ingest, "key", lambda _: None).send([b"1", b"2", b"3"]))
    assert [(one.number, one.status, one.id) for one in results] == [(1, 202, "m-1"), (2, 422, ""), (3, 202, "m-3")]
    assert ScriptedIngest.bodies == [b"1\n2\n3", b"3"]


def test_unreachable_ingest_is_reported():
    waits: list[float] = []
    with pytest.raises(CliError) as refused:
        list(EventBatches("http://127.0.0.1:1", "key", waits.append).send([b"{}"]))
    assert refused.value.code == ExitCode.UNAVAILABLE
    assert len(waits) == 7


def test_ids_of_stored_events_are_yielded_before_the_error_if_ingest_becomes_unreachable(ingest: str):
    items: list[dict[str, Any]] = [{"status": 202, "id": "m-1"}, {"status": 503}, {"status": 422, "code": "schema"}]
    items += [{"status": 503}] * (BATCH - 3)
    ScriptedIngest.answers += [(207, {"items": items}, {})]  # and then none: the connection is closed
    sending = EventBatches(ingest, "key", lambda _: None).send([b"1", b"2", b"3", *[b"4"] * BATCH])
    results = [next(sending) for _ in range(BATCH)]
    assert [(one.number, one.status, one.id, one.code) for one in results[:4]] == [
        (1, 202, "m-1", ""),
        (2, 0, "", "unreachable"),
        (3, 422, "", "schema"),
        (4, 0, "", "unreachable"),
    ]
    with pytest.raises(CliError) as failed:
        next(sending)
    assert failed.value.code == ExitCode.UNAVAILABLE
    assert f"those after event {BATCH} were not sent" in str(failed.value)


def test_ids_of_stored_events_are_yielded_if_the_key_ends_between_two_attempts(ingest: str):
    items = [{"status": 202, "id": "m-1"}, {"status": 503}]
    ScriptedIngest.answers += [(207, {"items": items}, {}), (401, {}, {})]
    sending = EventBatches(ingest, "key", lambda _: None).send([b"1", b"2"])
    assert next(sending).id == "m-1"
    with pytest.raises(CliError) as refused:
        next(sending)
    assert refused.value.code == ExitCode.REFUSED


def test_key_that_was_just_created_is_tried_until_ingest_must_know_it(ingest: str):
    ScriptedIngest.answers += [(401, {}, {}), (401, {}, {}), (202, {"id": "m-1"}, {})]
    waits: list[float] = []
    (result,) = EventBatches(ingest, "key", waits.append).send([b"{}"])
    assert (result.id, waits) == ("m-1", [1.0, 2.0])


def test_wrong_key_is_reported_after_the_time_that_a_new_one_needs(ingest: str):
    ScriptedIngest.answers += [(401, {}, {})] * 4
    waits: list[float] = []
    with pytest.raises(CliError, match="not valid"):
        list(EventBatches(ingest, "key", waits.append).send([b"{}"]))
    assert sum(waits) == 5


def test_batches_are_limited_in_number_and_bytes():
    many = list(enumerate([b"x"] * (BATCH + 1), 1))
    assert [len(one) for one in batches(many)] == [BATCH, 1]
    large = list(enumerate([b"x" * BATCH_BYTES, b"y"], 1))
    assert [len(one) for one in batches(large)] == [1, 1]
    assert list(batches([])) == []


def test_refused_request_is_the_result_of_each_event_and_a_wrong_key_ends_the_command():
    assert [one.code for one in results_of(413, b'{"code": "body-too-large"}', [4, 5])] == ["body-too-large"] * 2
    assert results_of(502, b"<html>", [1])[0].status == 502
    with pytest.raises(CliError) as refused:
        results_of(401, b"{}", [1])
    assert refused.value.code == ExitCode.REFUSED


def test_lines_and_documents_become_events():
    assert list(lines_of(['{"a": 1}\n', "\n", '{"a": 2}'])) == [b'{"a": 1}', b'{"a": 2}']
    assert events_of_document('[{"a": 1}, 2]') == [b'{"a": 1}', b"2"]
    assert events_of_document('{"a":\n 1}') == [b'{"a":\n 1}']
