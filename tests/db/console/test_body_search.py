"""Search of events by their body, on the page and in the API: what is found, its limits, and what it must not find."""

import re
import time
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from django.test import Client
from django.urls import reverse
from pyroaring import BitMap64
from rest_framework.test import APIClient

from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.units import format_position, position_of
from mgmt.ledger.queries.bucket_range import start_of
from mgmt.messages.queries import body_search
from mgmt.messages.queries.readers import BrokersUnavailableError
from mgmt.messages.queries.records import StoredRecord
from mgmt.models import FactRow, Pipe, PipeRevision, User
from mgmt.services import publish_revision
from mgmt.web import throttling
from tests.db.cast import MakeClient
from tests.db.console.truth import BrowserOf, Truth, go_live, id_as_of_ingest, plain

pytestmark = pytest.mark.django_db
TOPIC = "penstock.c1.ingest.g1"


class Broker:
    """Ingest topic in memory, with the ledger's rows of its events; it notes the offsets that were read."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.records: dict[tuple[int, int], StoredRecord] = {}
        self.read: list[tuple[int, int]] = []
        self.late: set[tuple[int, int]] = set()  # not read in time
        self.is_away = False

    def store(self, bucket: int, *bodies: Any, partition: int = 0, first: int = 0, revision: int = 1) -> None:
        """Store events of one minute; a body that is not bytes is stored as JSON."""
        offsets = range(first, first + len(bodies))
        at_us = int(start_of(bucket).timestamp()) * 1_000_000
        for offset, body in zip(offsets, bodies, strict=True):
            text = body if isinstance(body, bytes) else msgspec.json.encode(body)
            id_ = id_as_of_ingest(start_of(bucket), offset)
            meta = MessageMeta(1, id_, self.pipe.id, revision, "shop", at_us, at_us + offset, bucket)
            cut = text[: body_search.MOST_EVENT_BYTES + 1]
            self.records[partition, offset] = StoredRecord(
                meta, (), cut, len(text), datetime.now(UTC), partition, offset
            )
        positions = BitMap64(position_of(1, partition, offset) for offset in offsets)
        FactRow.objects.create(
            pipe_id=self.pipe.id, bucket=bucket, node="ingest", fact="sent", detail="acked", audit_partition=partition,
            positions=positions.serialize(), count=len(positions),
        )  # fmt: skip

    def read_within(
        self,
        topic: str,
        offsets: Mapping[int, Iterable[int]],
        *,
        pipes: Container[str],
        most_bytes: int,
        wait_s: float,
    ) -> tuple[list[StoredRecord], Mapping[int, Collection[int]]]:
        assert (topic, most_bytes) == (TOPIC, body_search.MOST_EVENT_BYTES + 1)
        assert 0 < wait_s <= body_search.SEARCH_S
        if self.is_away:
            raise BrokersUnavailableError
        places = [(partition, offset) for partition, some in offsets.items() for offset in some]
        self.read += places
        found = [self.records[place] for place in places if place in self.records and place not in self.late]
        late: dict[int, list[int]] = {}
        for partition, offset in self.late & set(places):
            late.setdefault(partition, []).append(offset)
        return [one for one in found if one.meta.pipe in pipes], late


@pytest.fixture
def broker(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> Broker:
    go_live(pipe)
    made = Broker(pipe)
    monkeypatch.setattr(body_search, "read_within", made.read_within)
    return made


def search(api: APIClient, broker: Broker, where: str, **query: str) -> Any:
    answer = api.get(f"/api/v1/pipes/{broker.pipe.id}/messages/search/", {"where": where, **query})
    assert answer.status_code == 200, answer.content
    return answer.json()


def positions(found: Any) -> list[str]:
    return [one["position"] for one in found["results"]]


def mask(pipe: Pipe, author: User, *steps: dict[str, Any]) -> None:
    """Publish a revision with these steps, and set it live."""
    spec = pipe.revisions.latest("number").spec | {"normalize": list(steps)}
    publish_revision(pipe=pipe, spec=spec, based_on=pipe.revisions.latest("number").number, author=author)
    PipeRevision.objects.filter(pipe=pipe).update(state="retired")
    go_live(pipe)


def test_events_are_found_by_a_condition_newest_minute_first(api: APIClient, broker: Broker, bucket: int):
    broker.store(bucket - 1, {"total": 1}, {"total": 200}, b"not JSON", {"sum": 5})
    broker.store(bucket, {"total": 300}, {"total": 250.5}, {"total": "300"}, first=10)
    broker.store(bucket, {"total": 900}, partition=1)
    found = search(api, broker, "body.total > 100")
    assert positions(found) == ["1-1-0", "1-0-11", "1-0-10", "1-0-1"]
    assert (found["searched"], found["skipped"], found["total"], found["left"]) == (8, 0, 8, 0)
    assert (found["cursor"], found["stopped"]) == (None, "")
    assert positions(search(api, broker, 'meta.source == "shop" && has(body.sum)')) == ["1-0-3"]
    assert positions(search(api, broker, "body.total > 1000")) == []


def test_rows_have_the_state_and_where_a_lost_message_was_last_seen(
    api: APIClient, alices: Client, truth: Truth, broker: Broker, bucket: int
):
    FactRow.objects.filter(node="ingest", detail="acked").delete()
    broker.store(bucket, *({"n": number} for number in range(10)))
    rows = {one["position"]: one for one in search(api, broker, "body.n >= 6")["results"]}
    states = {position: (one["state"], one["last_seen"]) for position, one in rows.items()}
    assert states == {
        "1-0-6": ("delivered", ""),
        "1-0-7": ("dead", ""),
        "1-0-8": ("retrying", ""),
        "1-0-9": ("lost", "transform:crm"),
    }
    journey = api.get(rows["1-0-9"]["url"], {"minute": str(bucket)}).json()
    assert journey["destinations"][0]["last_seen_words"] == rows["1-0-9"]["last_seen_words"] != ""
    assert rows["1-0-7"]["message_id"] == id_as_of_ingest(start_of(bucket), 7)
    page = by_field(alices, broker.pipe, "n", "above", "5")
    assert [re.findall(r"<code>([^<]+)", row)[0] for row in rows_of(page)] == [
        rows[f"1-0-{number}"]["message_id"] for number in (9, 8, 7, 6)
    ]
    assert "lost" in plain(rows_of(page)[0])
    assert f"transform:crm, {rows['1-0-9']['last_seen_words']}" in plain(rows_of(page)[0])


def test_range_limits_the_search(api: APIClient, broker: Broker, bucket: int):
    for number in range(3):
        broker.store(bucket - 10 * number, {"n": number}, first=number)
    since, until = (start_of(one).isoformat() for one in (bucket - 10, bucket))
    found = search(api, broker, "body.n >= 0", since=since, until=until)
    assert (positions(found), found["total"]) == (["1-0-1"], 1)
    assert broker.read == [(0, 1)]


@pytest.mark.parametrize("limit", ["MOST_SEARCHED", "SEARCH_S", "MOST_READ_BYTES"])
def test_limited_search_continues_with_its_cursor_and_each_event_is_found_once(
    api: APIClient, broker: Broker, bucket: int, limit: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(body_search, "BATCH", 4)
    monkeypatch.setattr(body_search, limit, {"MOST_SEARCHED": 8, "SEARCH_S": 1e-6, "MOST_READ_BYTES": 1}[limit])
    if limit == "SEARCH_S":
        monkeypatch.setattr(broker, "read_within", _patient(broker.read_within))
        monkeypatch.setattr(body_search, "read_within", broker.read_within)
    for number in range(3):
        broker.store(bucket - number, *({"n": one} for one in range(5)), first=10 * number)
        broker.store(bucket - number, {"n": 9}, {"n": 9}, partition=1, first=10 * number)
    found, cursor, lefts = [], "", []
    for _ in range(30):
        answer = search(api, broker, "body.n > 2", **({"cursor": cursor} if cursor else {}))
        found += positions(answer)
        lefts.append(answer["left"])
        cursor = answer["cursor"] or ""
        if not cursor:
            break
        assert 0 < answer["searched"] <= 8
    expected = [
        f"1-{partition}-{10 * number + offset}"
        for number in range(3)
        for partition, offset in ((1, 1), (1, 0), (0, 4), (0, 3))
    ]
    assert found == expected
    assert lefts == sorted(lefts, reverse=True)
    assert (lefts[-1], len(lefts) > 2) == (0, True)


def _patient(read: Callable[..., Any]) -> Callable[..., Any]:
    """Return the read, given time: only the search's own clock is over."""
    return lambda *args, wait_s, **more: read(*args, wait_s=min(wait_s, 1e-6), **more)


def test_number_of_results_is_limited_and_the_rest_follows(api: APIClient, broker: Broker, bucket: int):
    broker.store(bucket, *({"n": one} for one in range(7)))
    first = search(api, broker, "body.n >= 0", limit="3")
    assert (positions(first), first["left"]) == (["1-0-6", "1-0-5", "1-0-4"], 4)
    second = search(api, broker, "body.n >= 0", limit="3", cursor=first["cursor"])
    third = search(api, broker, "body.n >= 0", limit="3", cursor=second["cursor"])
    assert (positions(second), positions(third), third["cursor"]) == (["1-0-3", "1-0-2", "1-0-1"], ["1-0-0"], None)


def test_newer_events_of_a_minute_do_not_move_the_cursor(api: APIClient, broker: Broker, bucket: int):
    broker.store(bucket, *({"n": one} for one in range(4)))
    first = search(api, broker, "body.n >= 0", limit="2")
    broker.store(bucket, {"n": 7}, partition=1)
    rest = search(api, broker, "body.n >= 0", cursor=first["cursor"])
    assert positions(first) + positions(rest) == ["1-0-3", "1-0-2", "1-0-1", "1-0-0"]


def test_sparse_events_are_read_in_small_batches(
    api: APIClient, broker: Broker, bucket: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(body_search, "BATCH_RECORDS", 1_500)
    batches: list[int] = []
    read = broker.read_within

    def counted(topic: str, offsets: Any, **more: Any) -> Any:
        batches.append(len(offsets[0]))
        return read(topic, offsets, **more)

    monkeypatch.setattr(body_search, "read_within", counted)
    for number in range(6):
        broker.store(bucket - number, {"n": number}, first=10_000 * (9 - number))
    assert len(search(api, broker, "body.n >= 0")["results"]) == 6
    assert batches == [3, 3], "a distant record costs as much as 500 that are read through"


def test_records_that_are_gone_too_large_or_late_are_told_apart(api: APIClient, broker: Broker, bucket: int):
    broker.store(bucket, *({"n": one} for one in range(6)))
    del broker.records[0, 5]
    broker.store(bucket, {"n": 1, "text": "x" * body_search.MOST_EVENT_BYTES}, partition=1)
    broker.late = {(0, 2)}
    found = search(api, broker, "body.n >= 0")
    assert (positions(found), found["searched"], found["skipped"]) == (["1-0-4", "1-0-3"], 2, 2)
    assert found["left"] == 3, "the late one is searched by the next request"
    broker.late = set()
    assert positions(search(api, broker, "body.n >= 0", cursor=found["cursor"])) == ["1-0-2", "1-0-1", "1-0-0"]


def test_brokers_that_do_not_answer_are_reported(api: APIClient, alices: Client, broker: Broker, bucket: int):
    broker.store(bucket, {"n": 1})
    api.raise_request_exception = False
    for broker.is_away, broker.late in ((True, set()), (False, {(0, 0)})):
        answer = api.get(f"/api/v1/pipes/{broker.pipe.id}/messages/search/", {"where": "body.n == 1"})
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert "The events cannot be read" in by_field(alices, broker.pipe, "n", "is", "1")


MAIL = {"person": {"email": "ada@example.com", "name": "Ada"}, "card": "4111111111111234", "n": 1}
MASKS = [
    {"op": "mask", "path": "person.email", "how": "hash"},
    {"op": "mask", "path": "card", "how": "partial"},
]
PROBES = [
    'body.person.email == "ada@example.com"',
    'body.person.email.startsWith("a")',
    'string(body.person).contains("ada")',
    'body.exists(key, key == "card" && body[key].startsWith("4111"))',
    'body.card > "4"',
    "size(body.card) == 16",
    'body["person"]["email"].matches("@")',
]


@pytest.mark.parametrize("steps", [MASKS, [{"op": "rename", "path": "person", "to": "who"}, *[
    step | {"path": step["path"].replace("person", "who")} for step in MASKS
]]], ids=["masked where it came", "masked after it was moved"])  # fmt: skip
def test_viewer_cannot_find_a_masked_value(
    client_of: MakeClient, browser_of: BrowserOf, viewer: User, alice: User, broker: Broker, bucket: int,
    steps: list[dict[str, Any]],
):  # fmt: skip
    mask(broker.pipe, alice, *steps)
    broker.store(bucket, MAIL, revision=2)
    api = client_of(viewer)
    assert [where for where in PROBES if positions(search(api, broker, where))] == []
    assert positions(search(api, broker, 'body.person.name == "Ada"')) == ["1-0-0"]
    assert positions(search(api, broker, 'body.card == "***1234" && body.person.email == "***"')) == ["1-0-0"]
    browser = browser_of(viewer)
    for path, operator, value in (
        ("person.email", "is", "ada@example.com"), ("person.email", "contains", "ada"), ("card", "above", "4"),
        ("person.*", "is", "ada@example.com"),
    ):  # fmt: skip
        assert not rows_of(by_field(browser, broker.pipe, path, operator, value)), (path, operator)
    assert rows_of(by_field(browser, broker.pipe, "person.name", "is", "Ada"))


def test_field_that_is_masked_later_is_hidden_in_earlier_events(
    api: APIClient, broker: Broker, alice: User, bucket: int
):
    broker.store(bucket, MAIL, revision=1)
    assert positions(search(api, broker, PROBES[0])) == ["1-0-0"]
    mask(broker.pipe, alice, *MASKS)
    assert positions(search(api, broker, PROBES[0])) == []


def test_event_whose_masked_value_cannot_be_located_is_not_searched(
    api: APIClient, alices: Client, broker: Broker, alice: User, bucket: int
):
    mask(broker.pipe, alice, {"op": "map", "path": "mail", "expr": "body.person.email"}, {"op": "mask", "path": "mail"})
    broker.store(bucket, MAIL, revision=2)
    found = search(api, broker, "body.n == 1")
    assert (positions(found), found["searched"], found["skipped"]) == ([], 0, 1)
    assert "1 could not be searched" in plain(by_field(alices, broker.pipe, "n", "is", "1"))


def test_event_of_an_unknown_revision_is_not_searched(api: APIClient, broker: Broker, bucket: int):
    broker.store(bucket, MAIL, revision=99)
    assert search(api, broker, "body.n == 1")["skipped"] == 1


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ({}, "where"),
        ({"where": ""}, "where"),
        ({"where": "body.total >"}, "where"),
        ({"where": "secret.total > 1"}, "where"),
        ({"where": "x" * 3_000}, "where"),
        ({"where": "true", "cursor": "x"}, "cursor"),
        ({"where": "true", "cursor": "1-9999-99999-1"}, "cursor"),
        ({"where": "true", "range": "1y"}, "range"),
        ({"where": "true", "limit": "201"}, "limit"),
        ({"where": "true", "since": "2026-01-01T00:00:00Z"}, "until"),
    ],
)
def test_parameter_that_cannot_be_used_is_named(api: APIClient, broker: Broker, query: dict[str, str], parameter: str):
    answer = api.get(f"/api/v1/pipes/{broker.pipe.id}/messages/search/", query)
    assert (answer.status_code, answer.json()["code"]) == (400, "parameter-invalid")
    assert [error["parameter"] for error in answer.json()["errors"]] == [parameter]
    assert broker.read == []


@pytest.mark.parametrize("cursor", ["0-0-0-0", "999999999-1-0-0", "1-1-0-5", "29000000-1-0-9999999999999"])
def test_any_cursor_is_safe(api: APIClient, broker: Broker, bucket: int, cursor: str):
    broker.store(bucket, {"n": 1})
    assert search(api, broker, "true", cursor=cursor)["cursor"] is None


def test_expensive_condition_is_refused(api: APIClient, broker: Broker, bucket: int):
    broker.store(bucket, {"list": list(range(5_000))})
    found = search(api, broker, "body.list.all(n, body.list.exists(m, m == n + 1))")
    assert (found["results"], found["searched"]) == ([], 1), "its cost limit ends it, and it does not match"


def test_user_runs_one_search_at_a_time_and_others_are_served(
    api: APIClient, client_of: MakeClient, broker: Broker, bob: User, bucket: int, alice: User
):
    broker.store(bucket, {"n": 1})
    with body_search._alone(f"user {alice.pk}"):
        answer = api.get(f"/api/v1/pipes/{broker.pipe.id}/messages/search/", {"where": "true"})
        assert (answer.status_code, answer.json()["code"]) == (429, "too-many-at-once")
        assert positions(search(client_of(bob), broker, "true")) == ["1-0-0"]
    assert positions(search(api, broker, "true")) == ["1-0-0"]


def test_searches_of_page_and_api_have_one_limit_for_a_user(
    api: APIClient, alices: Client, broker: Broker, bucket: int, monkeypatch: pytest.MonkeyPatch
):
    limit = throttling.SEARCHES._replace(most=2)
    monkeypatch.setattr(throttling.SearchThrottle, "limit", limit)
    monkeypatch.setattr("mgmt.messages.pages.find.SEARCHES", limit)
    broker.store(bucket, {"n": 1})
    search(api, broker, "true")
    assert rows_of(by_field(alices, broker.pipe, "n", "is", "1"))
    assert "You searched too often" in by_field(alices, broker.pipe, "n", "is", "1")
    assert api.get(f"/api/v1/pipes/{broker.pipe.id}/messages/search/", {"where": "true"}).status_code == 429


def test_search_stops_at_its_time(api: APIClient, broker: Broker, bucket: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(body_search, "SEARCH_S", 0.2)
    monkeypatch.setattr(body_search, "BATCH", 1)
    read = broker.read_within

    def slow(*args: Any, **more: Any) -> Any:
        time.sleep(0.15)
        return read(*args, **more)

    monkeypatch.setattr(body_search, "read_within", slow)
    broker.store(bucket, *({"n": one} for one in range(30)))
    found = search(api, broker, "true")
    assert 1 <= found["searched"] <= 3
    assert found["left"] == 30 - found["searched"]


# -- the page --------------------------------------------------------------------------------------------------------


def by_field(browser: Client, pipe: Pipe, path: str, operator: str, value: str, **more: str) -> str:
    query = {"pipe": pipe.id, "field": path, "op": operator, "value": value, "range": "1h", **more}
    answer = browser.get(reverse("console:find"), query)
    assert answer.status_code == 200
    return answer.content.decode()


def rows_of(page: str) -> list[str]:
    body = page.split("<tbody>")[1].split("</tbody>", maxsplit=1)[0] if "<tbody>" in page else ""
    return [row for row in body.split("<tr>") if "<th" in row]


def test_page_finds_events_by_a_field_and_continues(alices: Client, broker: Broker, bucket: int):
    broker.store(bucket, *({"order": {"total": 100 + number}} for number in range(60)))
    broker.store(bucket - 1, {"order": {"total": 5}}, first=100)
    page = by_field(alices, broker.pipe, "order.total", "above", "99")
    assert len(rows_of(page)) == 50
    assert re.search(r"Searched 50 of 61 events, back to \d{4}-\d\d-\d\d \d\d:\d\d:00", plain(page))
    older = re.findall(r'href="(\?[^"]*after=[^"]*)"', page)[0].replace("&amp;", "&")
    page = alices.get(reverse("console:find") + older).content.decode()
    assert len(rows_of(page)) == 10
    assert "Searched all 61 events of the time range." in plain(page)
    assert "Search older events" not in page
    assert reverse("console:message", args=[broker.pipe.id, "1-0-9"]) in page


def test_page_and_its_curl_command_find_the_same(alices: Client, api: APIClient, broker: Broker, bucket: int):
    broker.store(bucket, {"order": {"id": "A-1"}}, {"order": {"id": "A-2"}}, {"order": {"id": "A-12"}})
    page = by_field(alices, broker.pipe, "order.id", "contains", "A-1")
    command = re.findall(r"<code>(curl .*?)</code>", page, re.DOTALL)[0]
    path = re.findall(r"http[^ ]*?(/api/v1/[^ ]*?)&#x27;", command)[0].replace("&amp;", "&")
    assert positions(api.get(path).json()) == ["1-0-2", "1-0-0"]
    assert len(rows_of(page)) == 2


def test_page_without_a_match_says_what_was_searched(alices: Client, broker: Broker, bucket: int):
    assert "The pipe has no events in this time range." in by_field(alices, broker.pipe, "n", "is", "1")
    broker.store(bucket, {"n": 1})
    assert "No event of the time range has this field and value." in by_field(alices, broker.pipe, "n", "is", "2")
    assert "No event of the time range" not in by_field(alices, broker.pipe, "n", "is", "1")


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ({"field": ""}, "field", "Enter the path of a field"),
        ({"op": "like"}, "op", "Choose one of"),
        ({"value": ""}, "value", "Enter a value"),
        ({"pipe": "pipe_00000000000000000000"}, "pipe", "Choose a pipe."),
        ({"from": "2026-05-03T11:00"}, "from", "This time range cannot be used"),
        ({"from": "' OR 1=1 --", "to": "x"}, "from", "This time range cannot be used"),
    ],
)
def test_page_names_the_field_that_cannot_be_used(
    alices: Client, broker: Broker, query: dict[str, str], field: str, words: str
):
    page = alices.get(
        reverse("console:find"), {"pipe": broker.pipe.id, "field": "n", "op": "above", "value": "1"} | query
    ).content.decode()
    assert re.search(rf'id="{field}-error"[^>]*>{words}', page)
    assert broker.read == []


def test_hostile_values_are_escaped(alices: Client, broker: Broker, bucket: int):
    broker.store(bucket, {"n": 1})
    page = by_field(alices, broker.pipe, 'n"><script>alert(1)</script>', "is", '"><script>alert(2)</script>')
    assert "<script>alert" not in page


def test_pipe_of_another_tenant_cannot_be_searched_on_the_page(
    browser_of: BrowserOf, charlie: User, broker: Broker, bucket: int
):
    broker.store(bucket, {"n": 1})
    page = by_field(browser_of(charlie), broker.pipe, "n", "is", "1")
    assert broker.pipe.name not in page
    assert broker.read == []


def test_search_costs_the_same_queries_for_few_events_and_many(
    api: APIClient, broker: Broker, bucket: int, django_assert_num_queries: Any
):
    path, query = f"/api/v1/pipes/{broker.pipe.id}/messages/search/", {"where": "body.n >= 0"}
    broker.store(bucket, {"n": 1})
    api.get(path, query)
    with django_assert_num_queries(14):
        api.get(path, query)
    for number in range(1, 20):
        broker.store(bucket - number, {"n": 1}, {"n": 2}, first=10 * number)
    with django_assert_num_queries(14):
        assert len(api.get(path, query).json()["results"]) == 39


def test_format_of_a_cursor_is_that_of_minute_and_position():
    cursor = body_search.SearchCursor(29_000_000, position_of(1, 2, 3))
    assert str(cursor) == f"29000000-{format_position(cursor.position)}"
    assert body_search.parse_search_cursor(str(cursor)) == cursor
