"""Each number that is shown twice is the same on all pages and in the API, while messages move.

Two destinations fail in part: one answers 503 at first, one answers 422 until it is repaired. A third of the events
are 45 seconds late, and dead letters are redriven under load. A page and the API cannot be read in one moment, so the
API is read before and after the page, and the page counts when both answers are the same. Events come in bursts, so
that the ledger is still now and then.
"""

import csv
import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Self

import pytest
import requests
from playwright.sync_api import Browser

from loadgen.events import Payload
from loadgen.scripted import Behaviour, Received, Receiver, status
from localbox.testing import Box
from tests.e2e.incident import Incident, begin_incident
from tests.support.page_figures import OUTCOMES, has_table, number, outcomes, outcomes_of, plain, table
from tests.support.patience import Patience, until
from tests.support.sender import Sender

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_200)]
LATE_S: Final = 45.0  # less than the grace: such an event counts in an older minute, which is still open
AWAY_S: Final = 15.0  # longer than the local retries
STILL_S: Final = 120.0  # limit for two equal readings
WALKS: Final = 6
REPAIRED_AT: Final = 3
DESTINATIONS: Final = ("fine", "busy", "strict")
BETWEEN_S: Final = 15.0
# On a slow machine, the breaker of busy may be open for the whole load. What waited is released as fast as it came.
DRAIN_S: Final = 480.0
RATE, BURST_S, REST_S = 40.0, 3.0, 4.0
Json = dict[str, Any]


class UnevenSender(Sender):
    """Sender of events with a time of their own: every third is LATE_S late."""

    def _event(self, number: int) -> Payload:
        at = time.time() - (LATE_S if number % 3 == 0 else 0.0)
        return Payload.of(json.dumps({"n": number, "at": at, "note": "x" * 200}).encode())


class Bursts:
    """Events in bursts, until the block ends. `positions`: those of the ACKed events of complete bursts."""

    def __init__(self, port: int, key: str) -> None:
        self.positions: set[str] = set()
        self._port, self._key = port, key
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bursts")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            with UnevenSender(self._port, self._key, RATE) as sender:
                self._is_over.wait(BURST_S)
            self.positions |= sender.positions
            self._is_over.wait(REST_S)


def _n(received: Received) -> int:
    return int(json.loads(received.body)["n"])


def failing_at_first() -> Behaviour:
    """Answer 503 to every fifth event for AWAY_S after its first attempt, then 204."""
    first_s: dict[str, float] = {}
    busy, fine = status(503), status(204)

    async def behave(writer: Any, received: Received) -> bool:
        tried_for_s = time.monotonic() - first_s.setdefault(received.position, time.monotonic())
        is_away = _n(received) % 5 == 0 and tried_for_s < AWAY_S
        return await (busy if is_away else fine)(writer, received)

    return behave


def refusing_some() -> Behaviour:
    """Answer 422 to every twentieth event."""
    refused, fine = status(422), status(204)

    async def behave(writer: Any, received: Received) -> bool:
        return await (refused if _n(received) % 20 == 0 else fine)(writer, received)

    return behave


class Reader:
    """The pages and the API of one pipe, read by its owner."""

    def __init__(self, incident: Incident, password: str) -> None:
        self.incident, self.path = incident, f"/pipes/{incident.id}/"
        self._api = requests.Session()
        self._api.auth = ("alice", password)

    def page(self, path: str) -> str:
        """Return a page of the console."""
        answer = self.incident.page.request.get(f"{self.incident.base}{path}")
        assert answer.ok, answer.text()
        return answer.text()

    def api(self, path: str) -> Json:
        """Return the answer of a path below that of the pipe."""
        answer = self._api.get(f"{self.incident.base}/api/v1{self.path}{path}", timeout=30)
        answer.raise_for_status()
        found: Json = answer.json()
        return found

    def post(self, path: str, body: Json) -> Json:
        """Post to a path below that of the pipe."""
        answer = self._api.post(f"{self.incident.base}/api/v1{self.path}{path}", json=body, timeout=30)
        answer.raise_for_status()
        found: Json = answer.json()
        return found

    def both(self, api: Callable[[], Any], *paths: str) -> tuple[Any, list[str]]:
        """Return the API's answer and pages of the same state: `api` returned the same before and after them."""
        patience = Patience(STILL_S)
        while not patience.is_over:
            before = api()
            pages = [self.page(path) for path in paths]
            if api() == before:
                return before, pages
        pytest.fail(f"no two equal readings within {STILL_S:g} s around {paths}")


def minutes(reader: Reader) -> Json:
    return reader.api("minutes/?range=1h")


def check_minutes(reader: Reader) -> list[Json]:
    """Compare the pipe page's table, plots and figures and the exports with the API; return the API's minutes."""
    ours = f"{reader.path}?range=1h"
    said, (page, text) = reader.both(lambda: minutes(reader), ours, f"{ours}&format=csv")
    *lines, foot = table(page, "Loss by minute")
    rows = [line for line in lines if line["State"]]
    exported = list(csv.DictReader(io.StringIO(text)))
    listed: list[Json] = said["results"]
    assert len(listed) == len(rows) == len(exported)
    for one, row, line in zip(listed, rows, exported, strict=True):
        shown = {name: one["bins"][name] for name in OUTCOMES}
        assert outcomes(row) == outcomes(line) == shown, one["minute"]
        assert number(row["Accepted"]) == int(line["accepted"]) == one["accepted"]
        assert number(row["Changed after seal"]) == int(line["late"]) == one["late"]
    by_destination = [outcomes(line) for line in lines if not line["State"]]
    parts = [part["bins"] for one in listed for part in one["destinations"] if part["name"]]
    assert by_destination == [{name: bins.get(name, 0) for name in OUTCOMES} for bins in parts]
    total = said["total"]
    assert outcomes(foot) == {name: total["bins"][name] for name in OUTCOMES}
    assert outcomes(foot) == {name: sum(one["bins"][name] for one in listed) for name in OUTCOMES}
    assert number(foot["Accepted"]) == total["accepted"] == sum(one["accepted"] for one in listed)
    plotted = table(page, "Throughput, lag and outcomes, as a table")
    for name in ("delivered", "dead", "retrying", "lost"):
        assert sum(number(point[name.capitalize()]) for point in plotted) == outcomes_of(foot, name), name
    assert f"Delivered {total['bins']['delivered']} " in plain(page)
    return listed


def check_minute(reader: Reader, minute: int) -> None:
    """Compare the page of one minute with the API's minute, its losses and its lists of messages."""

    def said() -> tuple[Json, Json]:
        return reader.api(f"minutes/{minute}/"), reader.api(f"minutes/{minute}/losses/")

    (one, losses), (page,) = reader.both(said, f"{reader.path}minutes/{minute}/")
    rows = table(page, "Messages by destination")
    by_destination = [row for row in rows if row["Destination"] not in ("Now", "At seal")]
    shown = {name: one["bins"][name] for name in OUTCOMES}
    assert {name: sum(outcomes(row)[name] for row in by_destination) for name in OUTCOMES} == shown
    for row in rows:
        if row["Destination"] == "Now":
            assert outcomes(row) == shown
        if row["Destination"] == "At seal":
            assert outcomes(row) == {name: one["bins_at_seal"][name] for name in OUTCOMES}
    if one["late"]:
        assert f"{one['late']} message" in plain(page)
    assert losses["loss"] == one["loss"]
    assert len(losses["results"]) == one["loss"]["lost"] == one["bins"]["lost"]


def check_home(reader: Reader) -> None:
    """Compare the home page's line and causes with the pipe's minutes and its undelivered messages."""

    def said() -> tuple[Json, Json]:
        return minutes(reader)["total"], reader.api("undelivered/")

    (total, undelivered), (home,) = reader.both(said, "/?range=1h")
    (line,) = [row for row in table(home, "Pipes") if row["Pipe"].split()[0] == reader.incident.name]
    assert number(line["Delivered (1 h)"].split()[0]) == total["bins"]["delivered"]
    assert number(line["Undelivered"]) == undelivered["messages"]
    assert number(line["Lost (sealed minutes)"]) == total["bins"]["lost"] == 0
    rows = table(home, "Causes") if has_table(home, "Causes") else []
    causes = [row for row in rows if row["Pipe"] == reader.incident.name]
    listed = sorted((one["bin"], one["summary"], one["count"]) for one in undelivered["results"])
    assert sorted((row["Status"], row["Cause"], number(row["Messages"])) for row in causes) == listed
    for name in ("dead", "retrying"):
        assert sum(count for of, _, count in listed if of == name) == total["bins"][name], name


def check_destination(reader: Reader, name: str) -> None:
    """Compare the figures of a destination's page with the pipe's minutes."""

    def said() -> dict[str, int]:
        parts = minutes(reader)["total"]["destinations"]
        (bins,) = [part["bins"] for part in parts if part["name"] == name]
        return bins  # type: ignore[no-any-return]

    bins, (page,) = reader.both(said, f"{reader.path}destinations/{name}/")
    for word in ("delivered", "retrying", "held", "dead"):
        assert f"{word.capitalize()} (1 h) {bins[word]} " in plain(page), name


def check_dead(reader: Reader) -> int:
    """Compare the page of dead letters with the preview of a redrive; return their number."""
    chosen = {"destination": "strict"}
    found, (page,) = reader.both(lambda: reader.post("moves/preview/", chosen), f"{reader.path}dead/")
    heaps = (
        [row for row in table(page, "Dead letters by cause") if row["Destination"] == "strict"]
        if found["count"]
        else []
    )
    assert sum(number(row["Messages"]) for row in heaps) == found["count"]
    return int(found["count"])


def check_alerts(reader: Reader) -> int:
    """Compare the list of alerts and the page of each with the API; return the number of alerts."""
    listed, (page,) = reader.both(lambda: reader.api("alerts/")["results"], "/alerts/")
    for alert in listed:

        def said(name: str = alert["id"]) -> Json:
            return reader.api(f"alerts/{name}/")

        one, (page,) = reader.both(said, f"{reader.path}alerts/{alert['id']}/")
        words = plain(page)
        assert f" {one['count']} " in words, one
        if one["cause"] == "rejected":
            assert f"Failures, with repeats {one['count']} " in words
    return len(listed)


def walk(reader: Reader) -> list[Json]:
    """Compare everything once; return the API's minutes."""
    listed = check_minutes(reader)
    for one in listed[:4]:
        check_minute(reader, one["minute"])
    check_home(reader)
    for name in DESTINATIONS:
        check_destination(reader, name)
    check_dead(reader)
    check_alerts(reader)
    return listed


def redrive(reader: Reader) -> None:
    """Redrive the dead letters of strict, and wait for the end."""
    path = f"moves/{reader.post('moves/', {'destination': 'strict'})['id']}/"
    until(lambda: reader.api(path)["state"] == "done", "the redrive is complete", 120)


@pytest.fixture
def reader(whole_box: Box, chrome: Browser, receiver: Receiver) -> Iterator[Reader]:
    receiver.answers |= {"/busy": failing_at_first(), "/strict": refusing_some()}
    spec = {
        "sources": {"shop": {"event_time": "at"}},
        "destinations": {name: {"type": "http", "url": receiver.url(f"/{name}")} for name in DESTINATIONS},
    }
    incident = begin_incident(whole_box, chrome, "figures", spec)
    yield Reader(incident, incident.password)
    incident.page.context.close()
    assert incident.complaints.found == []


def test_numbers_agree_on_all_pages_and_in_the_api_under_load(reader: Reader, receiver: Receiver):
    incident = reader.incident
    with Bursts(incident.port, incident.key) as bursts:
        until(lambda: incident.bins().get("dead", 0) > 10, "there are dead letters", 120)
        seen: set[str] = set()
        for round_ in range(WALKS):
            listed = walk(reader)
            seen |= {name for one in listed for name in OUTCOMES if one["bins"][name]}
            seen |= {"sealed" for one in listed if one["sealed_at"]}
            seen |= {"changed after seal" for one in listed if one["late"]}
            if round_ == REPAIRED_AT:
                receiver.answers["/strict"] = 204
            if round_ in (1, REPAIRED_AT):  # what is redriven before the repair is dead a second time
                redrive(reader)
            time.sleep(BETWEEN_S)
        assert {"delivered", "dead", "retrying", "sealed", "changed after seal"} <= seen, seen
    receiver.answers["/busy"] = 204
    for name in DESTINATIONS:
        if reader.api(f"destinations/{name}/")["state"] == "suspended":  # for its many refusals
            reader.post(f"destinations/{name}/resume/", {})
    sent = 3 * len(bursts.positions)
    until(
        lambda: minutes(reader)["total"]["bins"]["delivered"] == sent,
        "everything is delivered",
        DRAIN_S,
        seen=lambda: minutes(reader)["total"]["bins"],
    )
    walk(reader)
    assert check_dead(reader) == 0
