"""Live tail through the API: the newest copies, and a stream that continues after the client's last event."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections
from pytest_django import Settings
from rest_framework.test import APIClient

from mgmt.models import Pipe, Tenant, Topic, User
from mgmt.quotas.queries import quotas_for
from mgmt.tail import seats
from mgmt.tail.hub import MOST_VIEWERS, TailCapacityError
from mgmt.tail.seats import Seat
from mgmt.tail.viewer import TailTopic, TailViewer
from tests.db.cast import MakeClient
from tests.db.console.truth import go_live
from tests.support.copies import copy_at

pytestmark = pytest.mark.django_db
STREAM: Any = {"HTTP_ACCEPT": "text/event-stream"}


class MemoryHub:
    """Hub whose topic holds five copies of the pipe in memory, instead of a topic in Kafka."""

    trouble = ""

    def __init__(self, pipe: str) -> None:
        self._topic = TailTopic()
        self._topic.begin(0, 0)
        for offset in range(5):
            self._topic.add(copy_at(offset, {"n": offset}, pipe=pipe))

    def join(self, _name: str, viewer: TailViewer) -> None:
        if len(self._topic.viewers) >= MOST_VIEWERS:
            raise TailCapacityError
        self._topic.join(viewer)

    def leave(self, _name: str, viewer: TailViewer) -> None:
        if viewer in self._topic.viewers:
            self._topic.viewers.remove(viewer)


@pytest.fixture
def url(pipe: Pipe) -> str:
    """URL of the tail of a deployed pipe."""
    go_live(pipe)
    Topic.objects.create(cell_id="c1", purpose="tail", name="penstock.c1.tail.g1", topic_id="t", partitions=1)
    return f"/api/v1/pipes/{pipe.id}/tail/"


@pytest.fixture
def memory_hub(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> MemoryHub:
    hub = MemoryHub(pipe.id)
    monkeypatch.setattr("mgmt.tail.opening.hub", lambda: hub)
    # A stream closes its connection to Postgres: here it is that of the test's transaction.
    monkeypatch.setattr(connections["default"], "close_if_unusable_or_obsolete", lambda: None)
    return hub


def copies_of(answer: Any, count: int) -> list[tuple[str, Any]]:
    """Return the (cursor, body) of the first `count` copies of a stream, and close it."""
    found = list(_events(answer.streaming_content, count))
    answer.close()
    return found


def _events(chunks: Iterator[bytes], count: int) -> Iterator[tuple[str, Any]]:
    for chunk in chunks:
        for block in chunk.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if fields.get("event") == "copy":
                count -= 1
                yield fields["id"], json.loads(json.loads(fields["data"])["body"])
        if count <= 0:
            return


def test_stream_continues_after_the_last_event_id(api: APIClient, url: str, memory_hub: MemoryHub):
    answer = api.get(f"{url}?after=1-0", **STREAM)
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/event-stream")
    assert answer["Cache-Control"] == "no-store"
    first = copies_of(answer, 4)
    assert first == [(f"1-{n}", {"n": n}) for n in range(1, 5)]
    again = api.get(f"{url}?after=1-0", HTTP_LAST_EVENT_ID=first[1][0], **STREAM)
    assert copies_of(again, 2) == first[2:]


def test_stream_sends_only_copies_that_pass_the_filter(api: APIClient, url: str, memory_hub: MemoryHub):
    answer = api.get(url, {"after": "1-0", "filter": "body.n > 3"}, **STREAM)
    assert copies_of(answer, 1) == [("1-4", {"n": 4})]


def test_user_with_as_many_streams_as_the_quota_allows_is_refused_until_one_ends(
    api: APIClient, url: str, memory_hub: MemoryHub, tenant: Tenant
):
    most = quotas_for(tenant.id).live_tails_per_user
    streams = [api.get(f"{url}?after=1-0", **STREAM) for _ in range(most)]
    refused = api.get(url, **STREAM)
    assert (refused.status_code, refused.json()["code"]) == (429, "too-many-tails")
    assert refused["Content-Type"] == "application/problem+json"
    assert int(refused["Retry-After"]) > 0
    for stream in streams:
        stream.close()
    assert copies_of(api.get(f"{url}?after=1-0", **STREAM), 1)
    assert seats().open_by(tenant.id) == 0


def test_streams_of_the_console_and_the_api_share_one_quota(api: APIClient, url: str, tenant: Tenant, alice: User):
    most = quotas_for(tenant.id).live_tails_per_user
    taken: list[Seat] = [
        seats().take(tenant=tenant.id, user=str(alice.pk), most=99, most_per_user=most) for _ in range(most)
    ]
    assert api.get(url, **STREAM).status_code == 429
    for seat in taken:
        seat.leave()


@pytest.mark.parametrize(
    ("query", "headers", "parameter"),
    [
        ({"filter": "body.a >"}, {}, "filter"),
        ({"after": "yesterday"}, {}, "after"),
        ({}, {"HTTP_LAST_EVENT_ID": "x"}, "Last-Event-ID"),
    ],
)
@pytest.mark.parametrize("accept", [{}, STREAM], ids=["json", "stream"])
def test_invalid_filter_or_cursor_is_a_problem(
    api: APIClient, url: str, query: dict[str, str], headers: Any, parameter: str, accept: Any
):
    answer = api.get(url, query, **headers, **accept)
    assert (answer.status_code, answer.json()["code"]) == (400, "parameter-invalid")
    assert answer.json()["errors"][0]["parameter"] == parameter


def test_undeployed_pipe_has_no_copies_and_no_stream(api: APIClient, pipe: Pipe):
    url, api.raise_request_exception = f"/api/v1/pipes/{pipe.id}/tail/", False
    assert api.get(url).json() == {"cursor": None, "results": []}
    assert (api.get(url, **STREAM).status_code, api.get(url, **STREAM).json()["code"]) == (503, "unavailable")


def test_newest_copies_without_brokers_are_unavailable(api: APIClient, url: str):
    api.raise_request_exception = False
    assert api.get(url).json()["code"] == "unavailable"


def test_other_tenant_gets_the_same_404_for_a_stream_as_for_a_missing_pipe(
    client_of: MakeClient, charlie: User, url: str, settings: Settings
):
    client = client_of(charlie)
    foreign = client.get(url, **STREAM).json()
    missing = client.get("/api/v1/pipes/pipe_00000000000000000000/tail/", **STREAM).json()
    assert {**foreign, "instance": "", "request_id": ""} == {**missing, "instance": "", "request_id": ""}
    assert foreign["status"] == 404
