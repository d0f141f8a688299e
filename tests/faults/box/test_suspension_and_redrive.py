"""A destination that refuses everything is suspended, repaired and probed, and gets the held and the dead messages:
by the API alone, on the whole box. A paused pipe accepts, holds, and finally delivers."""

import http.cookiejar
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from loadgen.scripted import Receiver
from localbox.testing import ROOT, Box
from tests.support.patience import Patience
from tests.support.sender import Sender

pytestmark = pytest.mark.timeout(900)
LIVE_S = 120.0
SOON_S = 60.0
STORM = 20


class Api:
    """The API as alice uses it, signed in by link."""

    def __init__(self, box: Box) -> None:
        self._base = box.env["PENSTOCK_WEB_URL"]
        self._cookies = http.cookiejar.CookieJar()
        self._open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies)).open
        command = [sys.executable, "manage.py", "bootstrap"]
        printed = subprocess.run(command, cwd=ROOT, env=box.env, check=True, capture_output=True, text=True).stdout
        with self._open(json.loads(printed.splitlines()[-1])["sign_in_url"], timeout=20) as page:
            page.read()

    def get(self, path: str) -> Any:
        """Return the response's JSON."""
        with self._open(f"{self._base}/api/v1/{path}", timeout=20) as answer:
            return json.load(answer)

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the response's JSON. Raises HTTPError."""
        token = next(cookie.value for cookie in self._cookies if cookie.name == "penstock_csrf")
        headers = {"X-CSRFToken": str(token), "Content-Type": "application/json", "Referer": self._base}
        url = f"{self._base}/api/v1/{path}"
        request = urllib.request.Request(url, json.dumps(body or {}).encode(), headers)  # noqa: S310 (the box's own)
        with self._open(request, timeout=20) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def api(box: Box) -> Api:
    return Api(box)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    listening = Receiver()
    yield listening
    listening.close()


def until(seen: Callable[[], Any], what: str, within_s: float = SOON_S, now: Callable[[], Any] = str) -> Any:
    """Poll until `seen` returns a true value, and return that; `now` describes the state after a timeout."""
    patience = Patience(within_s)
    while not (found := seen()):
        assert not patience.is_over, f"{what}: not within {within_s} s {now()}"
        time.sleep(0.25)
    return found


def live_pipe(api: Api, name: str, url: str) -> tuple[str, str]:
    """Create a pipe and wait until it is live; return its API path and a key."""
    spec = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": url}}}
    pipe = api.post("pipes/", {"name": name, "spec": spec})["id"]
    key = api.post(f"pipes/{pipe}/keys/", {"source": "shop"})["key"]
    until(lambda: api.get(f"pipes/{pipe}/")["live_revision"], "live", LIVE_S)
    return f"pipes/{pipe}", key


def send(box: Box, key: str, count: int) -> set[str]:
    """Send at least that many events; return the ids that were ACKed."""
    with Sender(int(box.env["PENSTOCK_INGEST_PORT"]), key, 50) as sender:
        until(lambda: len(sender.acked) >= count, "ACKs", 30)
    return {acked.id for acked in sender.acked}


def standing(api: Api, pipe: str) -> Any:
    """Return the delivery state of the pipe's one destination."""
    return api.get(f"{pipe}/standings/")[0]


def waiting(api: Api, pipe: str) -> int:
    """Return the number of messages that are held or dead there."""
    now = standing(api, pipe)
    return int(now["held"]) + sum(int(dead["count"]) for dead in now["dead"])


def open_alert(api: Api, pipe: str) -> Any:
    """Return the pipe's newest alert, if it is open."""
    alerts = api.get(f"{pipe}/alerts/")["results"]
    return alerts[0] if alerts and alerts[0]["state"] != "resolved" else None


def taken(receiver: Receiver, status: int = 204) -> list[str]:
    """Return the ids that were answered with that status."""
    return [one.id for one in receiver.got["/crm"] if one.answered == status]


def redrive(api: Api, pipe: str, chosen: dict[str, Any]) -> None:
    """Redrive the chosen dead letters, and wait until that is done."""
    move = api.post(f"{pipe}/moves/", chosen)
    assert move["total"] == len(chosen["ids"])
    until(lambda: api.get(f"{pipe}/moves/{move['id']}/")["state"] == "done", "the redrive is done")


def test_refusing_destination_is_suspended_reported_probed_and_gets_everything(box: Box, api: Api, receiver: Receiver):
    pipe, key = live_pipe(api, "repaired", receiver.url("/crm"))
    receiver.answers["/crm"] = 401
    patience = Patience(60)
    sent = send(box, key, 100)
    alert = until(lambda: open_alert(api, pipe), "alert")
    assert not patience.is_over
    assert (alert["cause"], alert["sample"]["status"]) == ("rejected", 401)
    until(lambda: standing(api, pipe)["destination"]["state"] == "suspended", "suspended")
    stored = until(
        lambda: (count := waiting(api, pipe)) >= len(sent) and count,
        "everything is held or dead",
        120,  # retries scheduled just before return from a delay tier first
        now=lambda: (len(sent), standing(api, pipe), len(taken(receiver, 401))),
    )
    assert standing(api, pipe)["held"] > 0
    refused = len(taken(receiver, 401))
    assert STORM <= refused <= STORM + 64, "the stream was held instead of dead-lettered"
    assert open_alert(api, pipe)["suspended"]

    path = f"{pipe}/alerts/{alert['id']}/"
    api.post(f"{path}probe/")  # the destination is not repaired yet
    until(lambda: api.get(path)["probe"] == "refused", "the probe is refused", 120)
    assert len(taken(receiver, 401)) == refused + 1, "exactly one message"
    assert standing(api, pipe)["destination"]["state"] == "suspended"

    receiver.answers["/crm"] = 204
    api.post(f"{path}probe/")
    until(lambda: api.get(path)["state"] == "resolved", "resolved", 120)
    until(lambda: sent <= set(taken(receiver)), "all delivered", now=lambda: sent - set(taken(receiver)))
    assert len(taken(receiver)) == stored, "no message twice"
    now = until(lambda: (now := standing(api, pipe))["held"] == 0 and not now["dead"] and now, "nothing waits")
    assert now["destination"]["state"] == "active"
    more = send(box, key, 5)
    until(lambda: more <= set(taken(receiver)), "new events are delivered at once")
    assert len(taken(receiver)) == stored + len(more), "no message twice, later either"


def test_paused_pipe_accepts_holds_and_finally_delivers(box: Box, api: Api, receiver: Receiver):
    pipe, key = live_pipe(api, "paused", receiver.url("/crm"))
    first = send(box, key, 5)
    until(lambda: set(taken(receiver)) >= first, "delivered")
    api.post(f"{pipe}/pause/")
    while not standing(api, pipe)["held"]:  # until lanes have read the pause
        first |= send(box, key, 1)
    held = send(box, key, 50)
    until(lambda: standing(api, pipe)["held"] >= len(held) + 1, "held", 120)
    assert not held & set(taken(receiver))
    api.post(f"{pipe}/resume/")
    until(lambda: set(taken(receiver)) >= first | held, "released", 90)
    assert len(taken(receiver)) == len(first | held), "no message twice"
    moves = api.get(f"{pipe}/moves/")["results"]
    until(lambda: {m["state"] for m in api.get(f"{pipe}/moves/")["results"]} == {"done"}, "the releases are done")
    assert {move["what"] for move in moves} == {"release"}


def test_dead_letter_is_shown_with_its_message_and_redriven_once(box: Box, api: Api, receiver: Receiver):
    pipe, key = live_pipe(api, "dead", receiver.url("/crm"))
    receiver.answers["/crm"] = 422
    with Sender(int(box.env["PENSTOCK_INGEST_PORT"]), key, 5) as sender:
        until(lambda: len(sender.acked) >= 4, "ACKs", 30)
    sent = {acked.id for acked in sender.acked}
    letters = until(
        lambda: len(rows := api.get(f"{pipe}/dead-letters/")["results"]) == len(sent) and rows, "dead letters"
    )
    shown = api.get(f"{pipe}/dead-letters/{letters[0]['id']}/")
    assert json.loads(shown["message"]["body"])["note"] == "x" * 200
    receiver.answers["/crm"] = 204
    ids = [letter["message_id"] for letter in letters[:3]]
    chosen = {"destination": "crm", "ids": ids[:2]}
    redrive(api, pipe, chosen)
    until(lambda: set(taken(receiver)) >= set(ids[:2]), "both are delivered")
    with pytest.raises(urllib.error.HTTPError, match="409"):
        api.post(f"{pipe}/moves/", chosen)
    redrive(api, pipe, {"destination": "crm", "ids": ids[2:]})  # takes the same way: a repeat would come before it
    until(lambda: ids[2] in taken(receiver), "another one is delivered")
    assert sorted(taken(receiver)) == sorted(ids), "each is delivered once, and no other"
