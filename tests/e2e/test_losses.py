"""Loss as in the talk, with real records that Kafka deletes: of ten messages five arrive.

The minute's page, the alert and its mail name each lost message with the node that saw it last.

A lane never jumps over deleted records: its partition stops. So each lane is stopped first, and its offset is committed
behind the deleted records before it starts again, as `docs/operations.md` describes.

Between two nodes of one process lane there is no topic: no record can vanish between route and transform.
"""

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from playwright.sync_api import Browser

from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import format_position, position_of
from dataplane.names import LaneKind, Purpose, lane_group
from loadgen.scripted import Receiver
from localbox.testing import Box, box_of
from tests.e2e.conftest import QUICK, said_by
from tests.e2e.incident import Incident, begin_incident
from tests.support.kafka import admin_consumer, broker_admin
from tests.support.patience import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_800)]
GRACE_S: Final = 60
GENERATION: Final = 1  # of the new box's topics
PRODUCE_S: Final = 60  # a minute ends so long after its grace
MOVED_S: Final = 120
SEALED_S: Final = 600
NODES: Final = ["ingest", "normalize", "enrich", "route", "transform:crm", "transmit:crm"]
PATH: Final = "/talk"


@pytest.fixture(scope="module")
def mails(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder to which the box's mails are written."""
    return tmp_path_factory.mktemp("mails")


@pytest.fixture(scope="module")
def box(mails: Path) -> Iterator[Box]:
    """A box of its own, because records of its topics are deleted; one partition, so that the order is known."""
    more = {"PENSTOCK_PARTITIONS": "1", "PENSTOCK_GRACE_S": str(GRACE_S), "PENSTOCK_MAIL_URL": f"filemail:///{mails}"}
    with box_of(env=QUICK | more) as running:
        yield running


class Topics:
    """The topics of the box's cell, between whose writers and readers records can vanish."""

    def __init__(self, box: Box) -> None:
        self._box, self._kafka = box, box.env["PENSTOCK_KAFKA"]
        self._admin = broker_admin(self._kafka)
        found = said_by(box, "tests/e2e/scene.py", "lanes", "{}")
        self._cell, self._names = str(found["cell"]), dict(found["topics"])

    def start(self, *kinds: LaneKind) -> None:
        """Start a lane of each kind."""
        said_by(self._box, "tests/e2e/scene.py", "lanes", json.dumps(dict.fromkeys(kinds, 1)))

    def stop(self, reads: Mapping[LaneKind, Purpose]) -> None:
        """Stop the lanes of each kind, and wait until they have left their group. `reads`: a topic of each."""
        said_by(self._box, "tests/e2e/scene.py", "lanes", json.dumps(dict.fromkeys(reads, 0)))
        for kind, purpose in reads.items():
            until(partial(self._is_left, kind, purpose), f"{kind} has drained", MOVED_S)

    def unread(self, kind: LaneKind, purpose: Purpose) -> int:
        """Return how many records the lanes have not committed."""
        with self._reader(kind) as reader:
            place = self._committed(reader, purpose)
            return int(reader.get_watermark_offsets(place, timeout=10)[1] - place.offset)

    def vanish(self, kind: LaneKind, purpose: Purpose, count: int) -> set[str]:
        """Delete the next records of a stopped lane, which then continues behind them; return their positions."""
        with self._reader(kind) as reader:
            place = self._committed(reader, purpose)
            reader.assign([place])
            records = reader.consume(count, 30)
            assert [record.offset() for record in records] == [place.offset + number for number in range(count)]
            behind = TopicPartition(place.topic, place.partition, place.offset + count)
            (deleted,) = self._admin.delete_records([behind]).values()
            assert deleted.result(30).low_watermark == behind.offset
            reader.commit(offsets=[behind], asynchronous=False)
        if purpose == "ingest":  # the offset there becomes the position
            return {format_position(position_of(GENERATION, 0, record.offset() or 0)) for record in records}
        return {format_position(read_meta(record.headers() or []).position) for record in records}

    def _reader(self, kind: LaneKind) -> Consumer:
        """Return a client of the lanes' group that never joins it."""
        group = lane_group(self._cell, kind)
        told = {"bootstrap.servers": self._kafka, "group.id": group, "enable.auto.commit": False}
        return admin_consumer(told | {"log_level": 3})

    def _committed(self, reader: Consumer, purpose: str) -> TopicPartition:
        (place,) = reader.committed([TopicPartition(self._names[purpose], 0)], timeout=10)
        assert place.error is None
        assert place.offset >= 0
        return place

    def _is_left(self, kind: LaneKind, purpose: str) -> bool:
        """Return True if the group has no member: only then Kafka takes a commit of another client."""
        with self._reader(kind) as reader:
            try:
                reader.commit(offsets=[self._committed(reader, purpose)], asynchronous=False)
            except KafkaException:
                return False
            return True


def send(incident: Incident, events: list[dict[str, object]]) -> list[str]:
    """Send events in one request; return their positions."""
    with closing(http.client.HTTPConnection("127.0.0.1", incident.port, timeout=15)) as connection:
        headers = {"authorization": f"Bearer {incident.key}", "content-type": "application/json"}
        connection.request("POST", "/v1/events", json.dumps(events), headers)
        answer = connection.getresponse()
        text = answer.read()
    assert answer.status == 202, text
    return [str(item["position"]) for item in json.loads(text)["items"]]


def events_of(bucket: int, count: int) -> list[dict[str, object]]:
    """Return events of this minute."""
    moment = datetime.fromtimestamp(bucket * 60, UTC).isoformat()
    return [{"n": number, "created_at": moment} for number in range(count)]


def delivered(receiver: Receiver) -> set[str]:
    return {one.position for one in receiver.got[PATH] if one.answered == 204}


def lose_half(box: Box, incident: Incident, receiver: Receiver) -> tuple[int, dict[str, set[str]], set[str]]:
    """Send ten messages of one minute and let five vanish on their way.

    Return the minute, the positions that were lost by the node that saw them last, and those that arrive. The minute is
    sealed only when the process lane, which is stopped again, has passed the one later message.
    """
    topics = Topics(box)
    receiver.answers[PATH] = 503
    topics.stop({"process": "ingest", "transmit": "egress", "retrier": "retry-in"})
    bucket = int(time.time() // 60)
    sent = set(send(incident, events_of(bucket, 10)))
    lost = {"ingest": topics.vanish("process", "ingest", 1)}
    topics.start("process")
    until(lambda: topics.unread("transmit", "egress") == 9, "nine records are on egress", MOVED_S)
    topics.stop({"process": "ingest"})
    send(incident, events_of(bucket + 1, 1))
    assert time.time() < (bucket + 1) * 60 + GRACE_S + PRODUCE_S, "the later message is too late to delay the seal"
    lost["transform:crm"] = topics.vanish("transmit", "egress", 2)
    topics.start("transmit")
    until(lambda: topics.unread("retrier", "retry-in") == 7, "seven records are on retry-in", MOVED_S)
    lost["transmit:crm"] = topics.vanish("retrier", "retry-in", 2)
    receiver.answers[PATH] = 204
    topics.start("retrier")
    rest = sent.difference(*lost.values())
    until(lambda: delivered(receiver) == rest, "the others are delivered", MOVED_S)
    topics.start("process")
    return bucket, lost, rest


def table_of(incident: Incident) -> dict[str, list[str]]:
    """Return the rows of the loss table by their first cell."""
    region = incident.main.get_by_role("region", name="Lost messages by node")
    rows = region.get_by_role("row").evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.innerText))")
    return {row[0].strip(): [cell.replace("\u202f", " ").strip() for cell in row[1:]] for row in rows}


def check_minute(incident: Incident, lost: dict[str, set[str]]) -> None:
    """Check which message was last seen where, and the loss of each node and end to end."""
    table = table_of(incident)
    assert table.pop("Message") == [*NODES, "Last seen"]
    assert table.pop("Expected")[:-1] == ["10", "10", "9", "9", "9", "9"]
    assert table.pop("Lost")[:-1] == ["0", "1", "0", "0", "0", "4"]
    assert table.pop("Loss")[:-1] == ["0.0 %", "10.0 %", "0.0 %", "0.0 %", "0.0 %", "44.4 %"]
    last_seen = {position: node for node, positions in lost.items() for position in positions}
    assert {position: cells[-1] for position, cells in table.items()} == last_seen
    for position, cells in table.items():
        passed = NODES.index(last_seen[position]) + 1
        assert [bool(cell) for cell in cells[:-1]] == [True] * passed + [False] * (len(NODES) - passed)
    incident.sees("end to end 50.0\u202f%: 5 of 10 messages")


def check_alert(incident: Incident, lost: dict[str, set[str]]) -> None:
    """Check which message was last seen where on the alert's page."""
    region = incident.main.get_by_role("region", name="Lost messages", exact=True)
    rows = region.locator("tbody tr")
    cells = rows.evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))")
    found = {(position, node) for position, _, node in cells}
    assert found == {(position, node) for node, positions in lost.items() for position in positions}


def mail_of(mails: Path, subject: str) -> str:
    """Return the text of the newest mail with this subject; "" if there is none."""
    found = [text for file in sorted(mails.iterdir()) for text in file.read_text().split("-" * 79) if subject in text]
    return found[-1] if found else ""


def check_mail(mails: Path, lost: dict[str, set[str]]) -> None:
    subject = "Subject: [Penstock] Messages of talk were lost"
    until(lambda: mail_of(mails, subject), "the alert is mailed", 60)
    text = mail_of(mails, subject)
    assert "5 messages of talk were lost: 50.0 % end to end" in text
    assert "normalize: 1 of 10 (10.0 %)" in text
    assert "transmit:crm: 4 of 9 (44.4444 %)" in text
    assert "end to end: 5 of 10 (50.0 %)" in text
    for node, positions in lost.items():
        to = "" if node == "ingest" else " to crm"
        for position in positions:
            assert f"{position}{to}, last seen at {node}\n" in text


def test_records_that_kafka_deletes_between_nodes_are_in_the_loss_table_the_alert_and_its_mail(
    box: Box, chrome: Browser, receiver: Receiver, mails: Path
):
    spec = {
        "sources": {"shop": {"event_time": "created_at"}},
        "destinations": {"crm": {"type": "http", "url": receiver.url(PATH), "retry": {"local_tries": 1}}},
    }
    incident = begin_incident(box, chrome, "talk", spec)
    said_by(box, "tests/e2e/scene.py", "channel", "ops@example.com")
    bucket, lost, rest = lose_half(box, incident, receiver)
    until(
        lambda: incident.state_of_alert("lost") == "opened", "the minute is sealed and its loss is an alert", SEALED_S
    )
    incident.begin()
    incident.open_alert("Messages were lost")
    incident.sees("5 messages were lost")
    check_alert(incident, lost)
    incident.click(incident.main.locator(f'a[href*="/minutes/{bucket}/"]').first)
    check_minute(incident, lost)
    incident.back()
    check_mail(mails, lost)

    again = set(send(incident, events_of(bucket, 5)))  # as the page says: the sender sends them once more
    incident.press("Acknowledge")
    incident.sees("Acknowledged by alice.")
    until(lambda: rest | again <= delivered(receiver), "what was sent again is delivered", MOVED_S)
    minute = incident.read(f"minutes/{bucket}/")
    assert (minute["bins_at_seal"]["lost"], minute["loss"]["lost"]) == (5, 5), "a sealed loss does not change"
    incident.end(actions=5)
