"""Event log of a pipe on a real broker: shared topics, cursors over new topics and lost records, masks."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import TopicPartition
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.test import Client

from mgmt.messages.event_cursor import EventCursor, cursor_of
from mgmt.messages.queries import event_log
from mgmt.messages.queries.event_log import EventPage, events_after
from mgmt.services import publish_revision
from tests.integration.test_message_journey import BODY, SPEC, Story
from tests.support.kafka import broker_admin

pytestmark = [pytest.mark.django_db, pytest.mark.kafka_role("web")]


@pytest.fixture
def story(kafka_servers: str, settings: LazySettings) -> Iterator[Story]:
    settings.PENSTOCK_KAFKA = kafka_servers
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]
    made = Story(kafka_servers)
    yield made
    made.close()


def read(story: Story, cursor: EventCursor | None = None, *, source: str = "", most: int = 500) -> EventPage:
    now = datetime.now(UTC)
    return events_after(story.pipe, cursor, since=now - timedelta(minutes=5), source=source, most=most, now=now)


def totals(page: EventPage) -> list[int]:
    return [json.loads(one.body or "")["total"] for one in page.events]


def ingest(story: Story, *numbers: int) -> None:
    for number in numbers:
        story.ingest(BODY | {"total": number})
    story.flush()


def test_events_among_those_of_other_pipes_are_read_once_from_cursor_to_cursor(story: Story):
    story.fill(3_000)
    ingest(story, 1, 2)
    story.fill(3_000)
    first = read(story)
    assert (totals(first), first.more, first.gap) == ([1, 2], False, False)
    assert read(story, first.cursor).events == []
    ingest(story, 3)
    assert totals(read(story, first.cursor)) == [3]
    assert totals(read(story, read(story, first.cursor).cursor)) == []


def test_limit_ends_a_page_and_the_next_one_continues(story: Story):
    ingest(story, *range(5))
    found, cursor = [], None
    for _ in range(3):
        page = read(story, cursor, most=2)
        found += totals(page)
        cursor = page.cursor
    assert found == [0, 1, 2, 3, 4]
    assert not page.more


def test_bytes_of_a_page_are_limited(story: Story, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(event_log, "MOST_BODY_BYTES", 1)
    ingest(story, 1, 2)
    page = read(story)
    assert (totals(page), page.more) == ([1], True)
    assert totals(read(story, page.cursor)) == [2]


def test_cursor_taken_before_the_first_event_has_all_later_ones(story: Story):
    now = datetime.now(UTC)
    page = events_after(story.pipe, None, since=now, now=now)
    assert page.events == []
    ingest(story, 1)
    assert totals(read(story, page.cursor)) == [1]


def test_topic_that_the_cursor_does_not_know_is_read_from_the_time_of_the_cursor(story: Story):
    ingest(story, 1)
    before = cursor_of(datetime.now(UTC) - timedelta(minutes=1), {})
    assert totals(read(story, before)) == [1]
    after = cursor_of(datetime.now(UTC) + timedelta(minutes=1), {})
    assert totals(read(story, after)) == []


def test_deleted_events_are_a_gap(story: Story, kafka_servers: str):
    start = cursor_of(datetime.now(UTC), {(1, 0): 0, (1, 1): 0})
    ingest(story, 1, 2)
    admin = broker_admin(kafka_servers)
    for future in admin.delete_records([TopicPartition(story.topics["ingest"], 1, 1)]).values():
        future.result(20)
    page = read(story, start)
    assert (totals(page), page.gap) == ([2], True)
    assert not read(story, page.cursor).gap


def test_only_events_of_the_source_are_listed(story: Story):
    ingest(story, 1)
    assert totals(read(story, source="shop")) == [1]
    assert totals(read(story, source="web")) == []


def test_masked_values_are_not_shown(story: Story):
    ingest(story, 1)
    masked = [*SPEC["normalize"], {"op": "mask", "path": "order.number"}]
    publish_revision(pipe=story.pipe, spec=SPEC | {"normalize": masked}, based_on=1, author=story.alice)
    (event,) = read(story).events
    assert event.is_masked
    assert json.loads(event.body or "")["order"]["number"] == "***"


def test_api_lists_events_and_continues(story: Story, client: Client):
    client.force_login(story.alice)
    url = f"/api/v1/pipes/{story.pipe.id}/events/"
    first = client.get(url).json()
    assert (first["results"], first["more"]) == ([], False)
    meta, _ = story.ingest(BODY)
    story.flush()
    (event,) = client.get(url, {"after": first["cursor"]}).json()["results"]
    assert (event["id"], event["source"], json.loads(event["body"])) == (meta.id, "shop", BODY)
    assert client.get(url, {"after": "x"}).json()["code"] == "parameter-invalid"
    both = {"after": first["cursor"], "since": "2026-01-01T00:00:00Z"}
    assert client.get(url, both).json()["errors"][0]["parameter"] == "since"
