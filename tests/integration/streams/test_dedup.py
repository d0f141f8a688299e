"""Dedup on real Kafka and Spark: of events with one id the first goes on, each repeat names it, whatever is killed."""

import json
import os
import random
import signal
from collections import defaultdict
from typing import Any

import pytest

from dataplane.ledger.bins import Bin
from dataplane.ledger.facts import DEDUP, Fact
from tests.rig.data_plane import DataPlane, until

IDS, COPIES, BATCH = 400, 3, 100
DEDUP_BY_ORDER = {"paths": ["order.id"], "window_s": 3600}


def events(seed: int) -> list[dict[str, Any]]:
    """Each id several times, far apart and next to each other."""
    copies = [{"order": {"id": number}, "copy": copy} for number in range(IDS) for copy in range(COPIES)]
    random.Random(seed).shuffle(copies)
    return copies


def post(plane: DataPlane, key: str, batch: list[dict[str, Any]]) -> dict[str, int]:
    """Send events; the order's id by the position that each was given."""
    body = b"\n".join(json.dumps(event).encode() for event in batch)
    status, _, text = plane.post(key, body, content_type="application/x-ndjson")
    assert status in (200, 202, 207), text
    answers = json.loads(text)["items"]
    assert all(answer["status"] == 202 for answer in answers), text
    return {answer["position"]: event["order"]["id"] for answer, event in zip(answers, batch, strict=True)}


def firsts(plane: DataPlane, pipe: str) -> dict[str, str]:
    """For each repeat in the ledger, the position of the first that it names."""
    return {
        position: detail
        for (node, fact, detail), positions in plane.books.details(pipe).items()
        if node == DEDUP and fact == Fact.DUPLICATE
        for position in positions
    }


@pytest.mark.timeout(500)  # the services of the package start in it
def test_each_id_goes_on_once_and_every_repeat_names_it_although_the_application_is_killed(plane: DataPlane):
    target = plane.receiver.url("/dedup")
    key = plane.add_pipe("dedup", {"crm": {"url": target}}, dedup=DEDUP_BY_ORDER)
    sent = events(seed=1)
    ids: dict[str, int] = {}
    for number in range(0, len(sent), BATCH):
        ids |= post(plane, key, sent[number : number + BATCH])
        if number == len(sent) // 2:
            until(lambda: plane.receiver.got["/dedup"], "the first event is delivered", 120)
            os.kill(plane.driver_pid(), signal.SIGKILL)
    whole = plane.settled("dedup", set(ids), 180)

    went_on = whole.at("crm", Bin.DELIVERED)
    repeats = whole.upstream(Bin.DUPLICATE)
    assert went_on | repeats == set(ids)
    assert not went_on & repeats
    assert whole.lost() == 0
    by_id = defaultdict(list)
    for position in went_on:
        by_id[ids[position]].append(position)
    assert {number: len(positions) for number, positions in by_id.items()} == dict.fromkeys(range(IDS), 1)
    named = firsts(plane, "dedup")
    assert set(named) == repeats
    assert all(by_id[ids[position]] == [first] for position, first in named.items())


@pytest.mark.timeout(120)
def test_events_without_the_value_all_go_on(plane: DataPlane):
    key = plane.add_pipe("unknown", {"crm": {"url": plane.receiver.url("/unknown")}}, dedup=DEDUP_BY_ORDER)
    for _ in range(2):
        assert plane.post(key, b'{"order":{"id":null}}')[0] == 202
        assert plane.post(key, b'{"order":7}')[0] == 202
    until(lambda: len(plane.receiver.got["/unknown"]) == 4, "all are delivered", 30)
