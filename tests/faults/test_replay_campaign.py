"""A large replay to a topic while drivers and executors are killed: asked equals accounted for, by position and id."""

import json
import logging
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest
from pyroaring import BitMap64

from dataplane.ledger.bins import Bin, derive, united_facts
from dataplane.ledger.meta import REPLAY_HEADER, read_meta
from dataplane.ledger.units import parse_position
from dataplane.names import REPLAY_ID_PREFIX, output_topic
from tests.support.data_plane import DataPlane, running_plane
from tests.support.patience import until
from tests.support.replay_campaign import (
    VICTIMS,
    ReplayKill,
    copies_by_position,
    end_of,
    history_of,
    kill,
    records,
    task_workers,
    unexplained,
)
from tests.support.sizes import REPLAY_EVENTS, REPLAY_KILLS

log = logging.getLogger(__name__)
PIPE, FEED, REPLAY = "replayed-long", "feed", f"{REPLAY_ID_PREFIX}campaign"
BATCH: Final = 500
BETWEEN_KILLS_S: Final = 8.0  # of replaying, at the rate of the replay
WAIT_S: Final = 1_800.0


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    """A plane of its own: the egress and output topics have nothing else."""
    with running_plane(tmp_path_factory.mktemp("replay")) as plane:
        yield plane


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_every_asked_event_of_a_replay_is_accounted_for_although_driver_and_executors_are_killed(plane: DataPlane):
    plane.cluster.make_output_topic(PIPE, FEED)
    key = plane.add_pipe(PIPE, {FEED: {"type": "topic"}})
    since_us = time.time_ns() // 1_000
    asked = sent(plane, key)
    assert len(asked) == REPLAY_EVENTS
    topic = output_topic(PIPE, FEED)
    until(lambda: end_of(plane, topic) >= REPLAY_EVENTS, "the originals are on the topic", WAIT_S)

    rate_per_s = REPLAY_EVENTS / (BETWEEN_KILLS_S * (REPLAY_KILLS + 1))
    plane.cluster.publish_replay(REPLAY, PIPE, [FEED], since_us, rate_per_s)
    kills = [killed(plane, number) for number in range(REPLAY_KILLS)]
    until(lambda: history_of(plane, REPLAY)[-1].progress.done, "the end of the replay", WAIT_S)
    history = history_of(plane, REPLAY)
    progress = history[-1].progress
    assert (progress.error, progress.asked, progress.units) == ("", REPLAY_EVENTS, {FEED: REPLAY_EVENTS})

    check_account(plane, BitMap64(asked.values()))
    counts = Counter(
        headers["penstock-id"].decode()
        for headers in (dict(message.headers()) for message in records(plane, topic, 1))
        if headers.get(REPLAY_HEADER) == REPLAY.encode()
    )
    assert counts.keys() == asked.keys(), "the topic has each id that was asked for, and no other"
    copies = copies_by_position(plane, topic, REPLAY)
    assert copies.keys() == set(asked.values())
    assert unexplained(copies, kills, history, plane.cluster.topics["ingest"].name) == []
    repeated = sum(map(len, copies.values())) - REPLAY_EVENTS
    assert counts.total() - REPLAY_EVENTS == repeated
    egress = plane.cluster.topics["egress"]
    passed = [m for m in records(plane, egress.name, egress.partitions) if read_meta(m.headers()).replay]
    assert passed == [], "copies for a topic are in no lane's queue"
    log.info("%d events; %s; repeated %d", REPLAY_EVENTS, kills, repeated)


def sent(plane: DataPlane, key: str) -> dict[str, int]:
    """Send the events and return their positions by id; a request that exceeds the quota is repeated."""
    found: dict[str, int] = {}
    for start in range(0, REPLAY_EVENTS, BATCH):
        numbers = range(start, min(start + BATCH, REPLAY_EVENTS))
        body = b"\n".join(b'{"n":%d}' % number for number in numbers)
        while (answer := plane.post(key, body, content_type="application/x-ndjson"))[0] == 429:
            time.sleep(0.1)
        assert answer[0] in (200, 202), answer
        items = json.loads(answer[2])["items"]
        assert {item["status"] for item in items} == {202}
        found |= {item["id"]: parse_position(item["position"]) for item in items}
    return found


def killed(plane: DataPlane, number: int) -> ReplayKill:
    """Wait until the replay has read its next part and a task runs, then kill a driver or the executors in turn."""
    due = REPLAY_EVENTS * (number + 1) // (REPLAY_KILLS + 2)

    def is_due() -> bool:
        history = history_of(plane, REPLAY)
        return bool(history) and history[-1].progress.asked >= due and plane.is_running() and bool(task_workers(plane))

    until(is_due, f"{due} events are replayed", WAIT_S, seen=lambda: history_of(plane, REPLAY)[-1:])
    assert not history_of(plane, REPLAY)[-1].progress.done
    return kill(plane, VICTIMS[number % len(VICTIMS)])


def check_account(plane: DataPlane, asked: BitMap64) -> None:
    """Wait until the ledger has settled the replay, and compare its sets with the events that were asked for."""

    def is_settled() -> bool:
        plane.books.refresh()
        accounts = list(plane.books.accounts(REPLAY).values())
        return bool(accounts) and not any(one.count(Bin.QUEUED) + one.count(Bin.RETRYING) for one in accounts)

    until(is_settled, "the copies are settled", WAIT_S)
    account = derive(united_facts(plane.books.facts_by_bucket(REPLAY).values()))
    assert account.acked.positions() == asked
    assert account.destinations[FEED][Bin.DELIVERED].positions() == asked
    assert {bin_: account.count(bin_) for bin_ in Bin if account.count(bin_)} == {Bin.DELIVERED: len(asked)}
