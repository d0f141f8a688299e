"""A destination fails under load: it gets few requests, then everything once, at a limited rate."""

import itertools
import time
from collections import Counter
from typing import Any, Final

import pytest

from dataplane.ledger.bins import Bin
from loadgen.scripted import Behaviour, Received, status
from tests.support.data_plane import DataPlane
from tests.support.messages import stored
from tests.support.patience import until
from tests.support.sizes import OUTAGE_S

AT_ONCE: Final = 4
MANY: Final = 400
FEW: Final = 50  # ten open the breaker, with as many local retries and those in flight; then a probe now and then
FAILURES: Final = (500, 502, 503, 504)
STRETCH_S: Final = 10  # over which the rate of returning messages is measured
FOUND_S: Final = 90.0  # a breaker is open for little more than 60 s, then it sends probes


def failing() -> Behaviour:
    """Return a behaviour that answers with each failure in turn."""
    codes = itertools.cycle(FAILURES)

    async def behave(writer: Any, received: Received) -> bool:
        return await status(next(codes))(writer, received)

    return behave


def fastest_per_s(got: list[Received]) -> float:
    """Return the highest rate of accepted messages over any stretch of `STRETCH_S` seconds."""
    stretches = Counter(received.at_ns // (STRETCH_S * 10**9) for received in got if received.answered == 204)
    return max(stretches.values()) / STRETCH_S


def returned_per_s(plane: DataPlane, pipe: str) -> float:
    """Return the highest rate at which the retrier returned a pipe's messages, over any such stretch."""
    stretches = Counter(record.at_ms // (STRETCH_S * 1_000) for record in stored(plane, "retry-out", pipe))
    return max(stretches.values()) / STRETCH_S


def begin(plane: DataPlane, name: str) -> str:
    """Create a pipe with a failing and a healthy destination; return its key."""
    plane.receiver.answers[f"/{name}"] = failing()
    crm = {"url": plane.receiver.url(f"/{name}"), "concurrency": AT_ONCE, "retry": {"local_tries": 2}}
    return plane.add_pipe(name, {"crm": crm, "well": {"url": plane.receiver.url(f"/{name}-well")}})


def check_delivered_once(plane: DataPlane, name: str, positions: set[str], limit_s: float) -> None:
    got = plane.receiver.got[f"/{name}"]
    whole = plane.settled(name, positions, limit_s)
    assert whole.lost() == 0
    assert whole.at("crm", Bin.DELIVERED) == whole.at("well", Bin.DELIVERED) == positions
    taken = Counter(received.position for received in got if received.answered == 204)
    assert taken == Counter(positions), "each is delivered exactly once"
    assert len({(r.position, r.id, r.digest) for r in got}) == len(positions), "same id and body each time"


@pytest.mark.timeout(900)
def test_outage_costs_its_destination_few_requests_and_ends_with_everything_delivered(plane: DataPlane):
    key = begin(plane, "outage")
    with plane.sender(key, 100) as sender:
        until(lambda: len(sender.acked) >= MANY, "enough to tell", 60)
    until(lambda: plane.whole("outage").at("crm", Bin.RETRYING) == sender.positions, "every unit is parked", 60)
    requests = len(plane.receiver.got["/outage"])
    assert requests <= FEW, "retries are scheduled without an attempt"
    assert {r.position for r in plane.receiver.got["/outage-well"]} == sender.positions
    plane.receiver.answers["/outage"] = 204
    check_delivered_once(plane, "outage", sender.positions, 180)


@pytest.mark.long
@pytest.mark.timeout(6_000)
def test_long_outage_ends_with_everything_delivered_at_no_more_than_twice_the_rate(plane: DataPlane):
    long_outage(plane, away_s=OUTAGE_S, rate=50.0)


def long_outage(plane: DataPlane, *, away_s: float, rate: float) -> None:
    """Run a long outage: while the waiting messages return, new ones keep arriving."""
    key = begin(plane, "long-outage")
    got = plane.receiver.got["/long-outage"]
    with plane.sender(key, rate) as sender:
        time.sleep(away_s)
        assert len(got) <= 0.1 * len(sender.acked), "retries are a small part of the sends"
        waiting = sender.positions
        plane.receiver.answers["/long-outage"] = 204

        def is_drained() -> bool:
            time.sleep(1)
            return waiting <= {received.position for received in list(got) if received.answered == 204}

        drained_s = until(is_drained, "what waited is delivered", 1.5 * away_s + FOUND_S)
    returned, accepted = returned_per_s(plane, "long-outage"), fastest_per_s(got)
    print(f"away {away_s:g} s at {rate:g}/s: drained in {drained_s:.0f} s")  # noqa: T201
    print(f"at most {returned:.0f}/s returned, {accepted:.0f}/s accepted in {STRETCH_S} s")  # noqa: T201
    assert returned <= 1.1 * rate, "with the new messages, twice the usual load"
    check_delivered_once(plane, "long-outage", sender.positions, 120)
