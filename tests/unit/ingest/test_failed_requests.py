"""Requests that fail before their body is complete: the response, and what is counted."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataplane.ingest.app import IngestApp
from dataplane.runtime.web.errors import ClientGoneError, HttpError
from tests.support.http_exchange import MemoryExchange
from tests.support.typed_ingest import KEY, Ingest, Opened, opened_ingest

SLOW = HttpError(408, "needs the whole body within 30 s")
INVALID = HttpError(400, "needs valid HTTP/1.1: Invalid character in chunk size")
KEYED = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    yield from opened_ingest(tmp_path, monkeypatch)


def failed(ingest: Ingest, failure: HttpError | ClientGoneError, chunks: int = 0) -> MemoryExchange:
    """Send a request whose body fails when it is read."""
    app = IngestApp(ingest.replica)
    exchange = MemoryExchange(b"x" * 1_000, KEYED, chunks=chunks, failure=failure)
    ingest.run(lambda: app(exchange.request))
    return exchange


@pytest.mark.parametrize("chunks", [0, 3])
@pytest.mark.parametrize(("failure", "code"), [(SLOW, "body-slow"), (INVALID, "http-invalid")])
def test_body_that_fails_gets_a_problem_is_counted_once_and_noted(
    opened: Opened, failure: HttpError, code: str, chunks: int
):
    ingest = opened()
    exchange = failed(ingest, failure, chunks)
    assert (exchange.status, exchange.answer["code"], exchange.answer["detail"]) == (failure.status, code, str(failure))
    assert ingest.replica.responses == {failure.status: 1}
    assert ingest.replica.meters.in_flight == 0
    assert [one.code for one in ingest.reported()] == [code]
    assert ingest.stored.records == []


def test_client_that_leaves_gets_nothing_and_holds_no_quota(opened: Opened):
    ingest = opened()
    with pytest.raises(ClientGoneError):
        failed(ingest, ClientGoneError())
    assert ingest.replica.meters.in_flight == 0
    assert ingest.replica.meters.of("t").in_flight == 0
    assert ingest.reported() == []


def test_request_that_is_not_valid_http_is_counted_once(opened: Opened):
    replica = opened().replica
    app = IngestApp(replica)
    headers, body = app.error_response(HttpError(431, "needs at most 128 headers, got 129"))
    assert dict(headers)["content-type"] == "application/problem+json"
    assert b'"code":"http-invalid"' in body
    assert replica.responses == {431: 1}


def test_failure_within_the_application_is_answered_and_counted_once(opened: Opened, monkeypatch: pytest.MonkeyPatch):
    ingest = opened()

    def broken(*_: object) -> None:
        raise RuntimeError("of the test")

    monkeypatch.setattr(ingest.replica, "within_quota", broken)
    app, exchange = IngestApp(ingest.replica), MemoryExchange(b"{}", KEYED)
    ingest.run(lambda: app(exchange.request))
    assert (exchange.status, exchange.answer["code"]) == (500, "internal")
    assert ingest.replica.responses == {500: 1}
    assert ingest.replica.meters.in_flight == 0


def test_routes_that_store_nothing(opened: Opened):
    app = IngestApp(opened().replica)

    def get(target: str, method: str = "GET") -> MemoryExchange:
        exchange = MemoryExchange(target=target, method=method)
        asyncio.run(app(exchange.request))
        return exchange

    assert get("/livez").answer == {"status": "alive"}
    assert get("/readyz").status == 200
    assert (get("/nowhere").status, get("/v1/events").status) == (404, 405)
    assert get("/v1/events").headers["allow"] == "POST"
