"""Requests of a template are signed as sent; a message that yields no request is dead, unsent."""

from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from dataplane.ledger.deadletter import dead_letter_reason
from dataplane.spec import RequestTemplate
from dataplane.transmit.destinations.targets import STORM
from tests.support.memory_lane import message
from tests.support.transmitting import NODE, SECRET, destination, opened, without_kafka

TEMPLATE = RequestTemplate(path="/c/${body.id}", headers={"X-Id": "${meta.id}"}, body='{"is": body.id}')


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kafka(monkeypatch)


def headers_of(lines: list[str]) -> dict[str, str]:
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


def test_rendered_request_is_sent_and_signed(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(template=TEMPLATE))
    lane.take(message(5, b'{"id": "a/b"}'))
    work.poll()
    ((url, lines, body, _),) = sender.requests
    headers = headers_of(lines)
    assert (url, headers["x-id"], body) == ("http://crm.example/c/a%2Fb", "id-0-5", b'{"is":"a/b"}')
    assert headers["content-type"] == "application/json"
    Webhook(SECRET).verify(body, headers)
    work.close()


def test_message_that_yields_no_request_is_dead_unsent_and_blocks_no_other(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(template=TEMPLATE))
    lane.take(message(5), message(6, b'{"id": 1}'))
    work.poll()
    assert [url for url, *_ in sender.requests] == ["http://crm.example/c/1"]
    sender.answer(204)
    work.poll()
    lane.store()
    assert lane.filed() == {(NODE, "dead", "template"): 1, (NODE, "delivered", ""): 1}
    (letter,) = lane.producer.of(lane.cell.topics["dead"].name)
    death = dead_letter_reason(letter["headers"])
    assert (death.node, death.cause, death.detail) == (NODE, "template", "path: no such field: id")
    assert letter["value"] == b"{}", "unchanged"
    assert lane.unsettled() == 0
    work.close()


def test_many_failures_in_a_row_are_held_and_not_all_dead_lettered(tmp_path: Path):
    lane, work, _ = opened(tmp_path, destination(template=TEMPLATE, concurrency=1_000))
    for offset in range(STORM * 2):
        lane.take(message(offset))
        work.poll()
    lane.store()
    filed: dict[Any, int] = lane.filed()
    assert filed[NODE, "dead", "template"] == STORM
    assert filed[NODE, "held", "1"] == STORM
    work.close()
