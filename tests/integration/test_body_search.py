"""Search of events by their body on a real broker: a topic that tenants share, masks, and records that are gone."""

import time
from collections.abc import Iterator

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from pyroaring import BitMap64

from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.units import position_of
from mgmt.ledger.queries.bucket_range import BucketRange
from mgmt.messages.queries.body_search import BodySearch, search_bodies
from mgmt.messages.queries.message_search import find_messages
from mgmt.models import FactRow
from mgmt.services import publish_revision
from tests.integration.test_message_journey import BODY, SPEC, Story

pytestmark = [pytest.mark.django_db, pytest.mark.kafka_role("web")]


@pytest.fixture
def story(kafka_servers: str, settings: LazySettings) -> Iterator[Story]:
    settings.PENSTOCK_KAFKA = kafka_servers
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]
    made = Story(kafka_servers)
    yield made
    made.close()


def accept(story: Story, *numbers: int) -> list[tuple[MessageMeta, int]]:
    """Store events with these totals, and the ledger's fact that ingest accepted them."""
    found = [story.ingest(BODY | {"total": number}) for number in numbers]
    for meta, position in found:
        story.tell(meta, position, "ingest", "sent", "acked")
    story.flush()
    return found


def search(story: Story, where: str) -> BodySearch:
    last = int(time.time()) // 60
    return search_bodies(story.pipe, where, span=BucketRange("", last - 60, last + 1), owner="user 1")


def test_events_are_found_among_those_of_other_pipes(story: Story):
    story.fill(3_000)
    first = accept(story, 100, 200)
    story.fill(3_000)
    second = accept(story, 300)
    found = search(story, "body.total >= 200")
    assert {one.position for one in found.found} == {first[1][1], second[0][1]}
    assert {one.meta.id for one in found.found} == {first[1][0].id, second[0][0].id}
    assert (found.searched, found.skipped, found.total, found.cursor) == (3, 0, 3, None)


def test_offset_that_holds_no_event_of_the_pipe_is_skipped(story: Story):
    (kept,) = accept(story, 100)
    foreign, place = story.ingest(BODY | {"total": 100}, pipe="pipe_of_another_tenant")
    row = FactRow.objects.get(pipe_id=story.pipe.id, node="ingest")
    units = BitMap64.deserialize(bytes(row.positions)) | BitMap64([place, position_of(1, 0, 900_000)])
    FactRow.objects.filter(pk=row.pk).update(positions=units.serialize(), count=len(units))
    found = search(story, "body.total == 100")
    assert [one.position for one in found.found] == [kept[1]]
    assert (found.searched, found.skipped, found.total) == (1, 2, 3)
    assert foreign.pipe != story.pipe.id


def test_masked_value_is_found_neither_in_the_body_nor_as_the_customers_own_id(story: Story):
    (kept,) = accept(story, 100)
    where = 'body.order.number == "A-1001"'
    assert [one.position for one in search(story, where).found] == [kept[1]]
    assert [one.position for one in find_messages([story.pipe], "A-1001")] == [kept[1]]
    masked = [*SPEC["normalize"], {"op": "mask", "path": "order.number"}]
    publish_revision(pipe=story.pipe, spec=SPEC | {"normalize": masked}, based_on=1, author=story.alice)
    assert search(story, where).found == []
    assert find_messages([story.pipe], "A-1001") == []
    assert [one.position for one in search(story, 'body.order.number == "***"').found] == [kept[1]]
