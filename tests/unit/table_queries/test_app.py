"""Table queries: rows of the token's table and no others, bounded answers, and refusals that a client can act on."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dataplane.runtime.lookups import Lookups
from dataplane.runtime.telemetry.metrics_registry import MetricsRegistry
from dataplane.table_queries import app
from dataplane.table_queries.app import TableQueries
from dataplane.table_queries.reader import TableReader
from dataplane.tables.access_tokens import TableAccess, sign_access
from dataplane.tables.lookup_store import LookupStore
from dataplane.tables.lookups import MAX_ROW_BYTES, TableRecord, encode_row, encode_table, row_key, table_key
from dataplane.tables.query_protocol import MOST_BYTES, changed_at, row_path, rows_path, table_path

KEY = "a key of both planes"
NOW_S = 1_800_000_000
MINE, OTHERS = "tab_01", "tab_02"
AT_US = 1_799_999_999_250_000
VERSION = AT_US * 1_024 + 7


def record(table: str, tenant: str, version: int = 1, **more: Any) -> tuple[bytes, bytes]:
    return table_key(table), encode_table(TableRecord(table, version, tenant, "users", **more))


def row(key: str, body: str | None, version: int = VERSION, table: str = MINE) -> tuple[bytes, bytes]:
    return row_key(table, key), encode_row(version, None if body is None else body.encode())


class Service:
    """The application over a store in a folder, at a fixed time."""

    def __init__(self, folder: Path) -> None:
        self.lookups = Lookups(folder)
        assert self.lookups.store is not None
        self.store: LookupStore = self.lookups.store
        self.store.recount()
        self.store.apply([record(MINE, "ten"), record(OTHERS, "another")], 1)
        self.store.confirm((NOW_S - 2) * 1_000_000)
        self.app = TableQueries(TableReader(self.lookups, [KEY], lambda: NOW_S), MetricsRegistry())

    def get(self, target: str, token: str | None = None, method: str = "GET") -> tuple[int, dict[bytes, bytes], Any]:
        """Return status, headers and decoded body. `token`: of the table MINE by default."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(self.scope(target, token, method), self.receive, send))
        headers, body = dict(sent[0]["headers"]), sent[1]["body"]
        return sent[0]["status"], headers, json.loads(body) if b"json" in headers[b"content-type"] else body

    async def receive(self) -> Any:
        raise AssertionError("no body is read")

    def scope(self, target: str, token: str | None = None, method: str = "GET") -> dict[str, Any]:
        path, _, query = target.partition("?")
        authorization = f"Bearer {token if token is not None else token_for()}".encode()
        return {
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "method": method,
            "headers": [(b"authorization", authorization)] if token != "" else [],
        }

    def code(self, target: str, token: str | None = None) -> tuple[int, str]:
        status, headers, body = self.get(target, token)
        assert headers[b"content-type"] == b"application/problem+json"
        assert body["status"] == status
        return status, body["code"]


def token_for(table: str = MINE, tenant: str = "ten", until_s: int = NOW_S + 1, key: str = KEY) -> str:
    return sign_access([key], TableAccess(tenant, table, "users", until_s))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    yield made
    made.lookups.close()


def test_row_has_its_key_content_version_and_time_of_change(service: Service):
    service.store.apply([row("u/1", '{"n": 1.50}')], 2)
    status, headers, body = service.get(row_path(MINE, "u/1"))
    expected = {"key": "u/1", "row": {"n": 1.5}, "version": str(VERSION), "changed_at": "2027-01-15T07:59:59.250000Z"}
    assert (status, body) == (200, expected)
    assert headers[b"cache-control"] == b"no-store"


def test_row_that_no_event_wrote_has_no_time_of_change(service: Service):
    service.store.apply([row("u", "{}", version=3)], 2)
    assert service.get(row_path(MINE, "u"))[2] == {"key": "u", "row": {}, "version": "3", "changed_at": None}
    assert changed_at(2_000_000 * 1_000) is None


def test_removed_or_unknown_row_is_not_found(service: Service):
    service.store.apply([row("u", "{}"), row("u", None, VERSION + 1)], 3)
    assert service.code(row_path(MINE, "u")) == (404, "row-not-found")
    assert service.code(row_path(MINE, "v")) == (404, "row-not-found")


def test_row_does_not_wait_for_the_pages_before_it(service: Service):
    service.store.apply([row("u", "{}")], 2)
    ended: list[str] = []

    async def ask(target: str) -> None:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                ended.append(target)

        await service.app(service.scope(target), service.receive, send)

    async def ask_all() -> None:
        await asyncio.gather(*(ask(rows_path(MINE)) for _ in range(20)), ask(row_path(MINE, "u")))

    asyncio.run(ask_all())
    assert len(ended) == 21
    assert row_path(MINE, "u") in ended[:2]


def test_pages_by_prefix_have_every_row_once(service: Service):
    service.store.apply([row(f"{letter}{n:03}", "{}") for letter in "ab" for n in range(25)], 51)
    found: list[str] = []
    after = ""
    while True:
        body = service.get(f"{rows_path(MINE)}?prefix=b&limit=10&after={after}")[2]
        found += [one["key"] for one in body["rows"]]
        after = body["after"]
        if not after:
            break
    assert found == [f"b{n:03}" for n in range(25)]


def test_answer_with_large_rows_is_bounded_in_bytes(service: Service):
    large = json.dumps({"text": "x" * (MAX_ROW_BYTES - 20)})
    service.store.apply([row(f"k{n:03}", large) for n in range(40)], 41)
    body = service.get(f"{rows_path(MINE)}?limit=1000")[2]
    assert 0 < len(json.dumps(body["rows"])) < MOST_BYTES + 2 * MAX_ROW_BYTES
    assert body["after"] == body["rows"][-1]["key"]


def test_state_has_rows_last_change_and_lag(service: Service):
    service.store.apply([row("a", "{}"), row("b", "{}"), row("b", None, VERSION + 1_024 * 1_000_000)], 4)
    body = service.get(table_path(MINE))[2]
    assert body == {"table": MINE, "rows": 1, "changed_at": "2027-01-15T08:00:00.250000Z", "lag_s": 2.0}


def test_rows_of_another_table_are_refused_with_any_token(service: Service):
    service.store.apply([row("secret", "{}", table=OTHERS)], 2)
    assert service.code(row_path(OTHERS, "secret")) == (403, "table-not-allowed")
    assert service.code(table_path(OTHERS)) == (403, "table-not-allowed")
    assert service.code(rows_path(OTHERS)) == (403, "table-not-allowed")
    mixed = token_for(OTHERS, "ten")  # is not issued, and would not work: the table is not this tenant's
    assert service.code(row_path(OTHERS, "secret"), mixed) == (503, "not-ready")
    assert service.get(row_path(OTHERS, "secret"), token_for(OTHERS, "another"))[0] == 200


def test_expired_forged_or_missing_token_is_refused(service: Service):
    target = row_path(MINE, "u")
    assert service.code(target, token_for(until_s=NOW_S)) == (401, "token-invalid")
    assert service.code(target, token_for(key="another key")) == (401, "token-invalid")
    assert service.code(target, "x.y") == (401, "token-invalid")
    assert service.code(target, "") == (401, "token-missing")
    assert service.get(target, "")[1][b"www-authenticate"] == b"Bearer"


def test_removed_table_is_not_found_and_one_that_has_not_arrived_is_not_ready(service: Service):
    assert service.code(rows_path("tab_09"), token_for("tab_09")) == (503, "not-ready")
    service.store.apply([record(MINE, "ten", 2, state="removed")], 2)
    assert service.code(rows_path(MINE)) == (404, "not-found")


def test_nothing_is_answered_before_the_topic_was_read_to_its_end(tmp_path: Path):
    service = Service(tmp_path)
    (tmp_path / "confirmed").unlink()
    assert service.code(row_path(MINE, "u")) == (503, "not-ready")
    assert service.get("/readyz")[0] == 503
    assert service.get("/livez")[0] == 200
    service.store.confirm(1)
    assert service.get("/readyz")[0] == 200
    assert service.code(row_path(MINE, "u")) == (404, "row-not-found")
    service.lookups.close()


def test_only_get_is_allowed(service: Service):
    status, headers, _ = service.get(row_path(MINE, "u"), method="DELETE")
    assert (status, headers[b"allow"]) == (405, b"GET")


def test_snapshot_is_closed_before_the_answer_is_sent(service: Service, monkeypatch: pytest.MonkeyPatch):
    open_when_sent: list[int] = []
    pins: list[Any] = []
    pin = service.store.pin

    def counted() -> Any:
        pinned = pin()
        pins.append(pinned)
        close = pinned.close

        def closed() -> None:
            pins.remove(pinned)
            close()

        monkeypatch.setattr(pinned, "close", closed)
        return pinned

    async def send(*_: Any) -> None:
        open_when_sent.append(len(pins))

    monkeypatch.setattr(service.store, "pin", counted)
    monkeypatch.setattr(app, "answer", send)
    path = row_path(MINE, "u")
    headers = [(b"authorization", f"Bearer {token_for()}".encode())]
    scope = {"path": path, "raw_path": path.encode(), "query_string": b"", "method": "GET", "headers": headers}
    asyncio.run(service.app(scope, lambda: asyncio.sleep(0, {}), send))
    assert open_when_sent == [0]


def test_error_is_answered_and_contains_no_detail(service: Service, monkeypatch: pytest.MonkeyPatch):
    def broken() -> None:
        raise RuntimeError("internal detail")

    monkeypatch.setattr(service.store, "pin", broken)
    status, _, body = service.get(row_path(MINE, "u"))
    assert (status, body["code"]) == (500, "internal")
    assert "detail" not in body["detail"]


def test_answers_are_counted_by_status(service: Service):
    service.get(row_path(MINE, "u"))
    counted = {reading.labels: reading.value for reading in service.app.readings() if reading.labels}
    assert counted["404",] == 1
    others = {reading.name: reading.value for reading in service.app.readings() if not reading.labels}
    assert others["penstock_table_queries_lag_seconds"] == 2.0
    assert others["penstock_table_queries_streams"] == 0
