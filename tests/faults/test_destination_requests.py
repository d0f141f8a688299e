"""One pipe to destinations with different demands: authentication, batches, rules of their own."""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from ssl import CERT_REQUIRED
from typing import Any, Final, NamedTuple

import pytest

from dataplane.ledger.bins import Bin
from loadgen.scripted import Behaviour, Received, Receiver, status
from tests.support import behaviours as so
from tests.support.attempts import attempts_of
from tests.support.certificates import server_tls
from tests.support.cluster import Credentials
from tests.support.data_plane import DataPlane
from tests.support.ledger_checks import Whole
from tests.support.messages import DeadLetter, dead_letters
from tests.support.patience import until

pytestmark = pytest.mark.timeout(900)
EVENTS: Final = 10
PIPE: Final = "particular"
BAD: Final = 3  # the event that one destination refuses in its batch
LIFE_S: Final = 11  # of a token: renewed six seconds after it was fetched
BASIC: Final = "Basic " + b64encode(b"shop:s3cret").decode()
SIGNED_IN: Final = {
    "by-header": ({"type": "header", "name": "X-Key"}, {"value": "s3cret"}, "x-key", "s3cret"),
    "by-basic": ({"type": "basic", "username": "shop"}, {"password": "s3cret"}, "authorization", BASIC),
    "by-bearer": ({"type": "bearer"}, {"value": "s3cret"}, "authorization", "Bearer s3cret"),
}
BATCHES: Final = {"in-arrays": "json-array", "in-lines": "ndjson", "in-cloudevents": "cloudevents"}
MOST: Final = 4  # events per batch


class Outcome(NamedTuple):
    """Observations after everything has settled."""

    positions: list[str]  # in the order of the events
    whole: Whole
    got: dict[str, list[Received]]
    letters: list[DeadLetter]


def issue(life_s: int, tokens: list[str]) -> Behaviour:
    """Return a token endpoint: each response has a new token, which is appended to `tokens`."""

    async def behave(writer: Any, received: Received) -> bool:
        tokens.append(f"token-{len(tokens)}")
        answer = {"access_token": tokens[-1], "token_type": "Bearer", "expires_in": life_s}
        return await status(200, "content-type: application/json\r\n", json.dumps(answer).encode())(writer, received)

    return behave


def bearers(tokens: list[str]) -> set[str]:
    return {f"Bearer {token}" for token in tokens}


async def refuse_one(writer: Any, received: Received) -> bool:
    """Answer 207: one event of a batch is refused, the others are accepted."""
    bad = [{"id": event["id"], "status": 422} for event in json.loads(received.body) if event["data"]["n"] == BAD]
    return await status(207, body=json.dumps({"items": bad}).encode())(writer, received)


def set_up(plane: DataPlane, certified: Receiver, tokens: list[str]) -> tuple[dict[str, dict[str, Any]], Credentials]:
    """Return the destinations and their secrets; set how each answers."""
    at, answers = plane.receiver, plane.receiver.answers
    credentials = {name: secret for name, (_, secret, _, _) in SIGNED_IN.items()}
    destinations: dict[str, dict[str, Any]] = {
        name: {"url": at.url(f"/{name}"), "auth": auth} for name, (auth, *_) in SIGNED_IN.items()
    }
    for name, (_, _, header, value) in SIGNED_IN.items():
        answers[f"/{name}"] = so.asking_for(header, lambda value=value: {value})  # type: ignore[misc]

    oauth = {"type": "oauth2", "token_url": at.url("/token"), "client_id": "shop", "scope": "events"}
    destinations["by-token"] = {"url": at.url("/by-token"), "auth": oauth}
    credentials["by-token"] = {"client_secret": "s3cret"}
    answers["/token"] = so.once(status(503), issue(3_600, tokens))
    answers["/by-token"] = so.asking_for("authorization", lambda: bearers(tokens))

    destinations["by-certificate"] = {"url": certified.url("/by-certificate"), "auth": {"type": "mtls"}}
    key, certificate = plane.trust.made("shop")
    credentials["by-certificate"] = {"certificate": certificate, "key": key}

    for name, format_ in BATCHES.items():
        batch = {"max_events": MOST, "max_wait_ms": 500, "format": format_}
        destinations[name] = {"url": at.url(f"/{name}"), "batch": batch}
    answers["/in-cloudevents"] = refuse_one

    quota = [{"when": {"status": "2xx", "body": "over quota"}, "then": "retry"}]
    destinations["by-rule"] = {"url": at.url("/by-rule"), "rules": quota, "headers": {"X-Shop": "7"}}
    answers["/by-rule"] = so.once(status(200, body=b"over quota"), status(200, body=b"taken"))
    for destination in destinations.values():
        destination["retry"] = {"local_tries": 1, "delays_s": [1]}
    return destinations, credentials


@pytest.fixture(scope="module")
def outcome(plane: DataPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    tls = server_tls(plane.trust, tmp_path_factory.mktemp("particular"), "good-tls")
    tls.verify_mode = CERT_REQUIRED
    tls.load_verify_locations(plane.trust.ca_file)
    certified = Receiver(tls=tls)
    destinations, credentials = set_up(plane, certified, [])
    key = plane.add_pipe(PIPE, destinations, credentials=credentials)
    status, _, text = plane.post(key, json.dumps([{"n": n} for n in range(EVENTS)]).encode())
    assert status == 202
    positions = [item["position"] for item in json.loads(text)["items"]]
    whole = plane.settled(PIPE, set(positions), 90)
    got = {name: [*plane.receiver.got[f"/{name}"], *certified.got[f"/{name}"]] for name in (*destinations, "token")}
    yield Outcome(positions, whole, got, dead_letters(plane, PIPE))
    certified.close()


def test_every_destination_gets_every_event(outcome: Outcome):
    assert outcome.whole.lost() == 0
    for name in (*SIGNED_IN, "by-token", "by-certificate", "in-arrays", "in-lines", "by-rule"):
        assert outcome.whole.at(name, Bin.DELIVERED) == set(outcome.positions), name


@pytest.mark.parametrize("name", [*SIGNED_IN, "by-certificate"])
def test_authenticated_destination_receives_each_message_once(outcome: Outcome, name: str):
    assert Counter(received.position for received in outcome.got[name]) == Counter(outcome.positions)


def test_token_is_fetched_with_the_client_secret_and_nothing_is_sent_before_the_token(outcome: Outcome):
    refused, granted = outcome.got["token"]
    assert (refused.answered, granted.answered) == (503, 200)
    for received in (refused, granted):
        assert received.headers["authorization"] == BASIC
        assert received.body == b"grant_type=client_credentials&scope=events"
    sent = outcome.got["by-token"]
    assert {received.headers["authorization"] for received in sent} == {"Bearer token-0"}
    assert min(received.at_ns for received in sent) > granted.at_ns
    assert Counter(received.position for received in sent) == Counter(outcome.positions)


def events_in(name: str, body: bytes) -> list[dict[str, Any]]:
    """Return the events of a received batch."""
    if name == "in-lines":
        return [json.loads(line) for line in body.splitlines()]
    items: list[dict[str, Any]] = json.loads(body)
    return [item["data"] for item in items] if name == "in-cloudevents" else items


@pytest.mark.parametrize("name", BATCHES)
def test_batches_stay_within_max_events_and_each_event_is_in_exactly_one(outcome: Outcome, name: str):
    batches = [events_in(name, received.body) for received in outcome.got[name]]
    assert max(map(len, batches)) <= MOST
    assert Counter(event["n"] for batch in batches for event in batch) == Counter(range(EVENTS))
    assert len({received.id for received in outcome.got[name]}) == len(batches), "each batch has its own id"


def test_event_refused_in_a_batch_is_the_only_one_dead_lettered(outcome: Outcome):
    bad = outcome.positions[BAD]
    assert outcome.whole.at("in-cloudevents", Bin.DEAD) == {bad}
    assert outcome.whole.at("in-cloudevents", Bin.DELIVERED) == set(outcome.positions) - {bad}
    assert [(letter.position, letter.node) for letter in outcome.letters] == [(bad, "transmit:in-cloudevents")]


def test_200_matching_a_retry_rule_is_retried(outcome: Outcome, plane: DataPlane):
    assert Counter(received.position for received in outcome.got["by-rule"]) == Counter([*outcome.positions] * 2)
    assert {received.headers["x-shop"] for received in outcome.got["by-rule"]} == {"7"}
    told = [attempt for attempt in attempts_of(plane, PIPE) if attempt.destination == "by-rule"]
    assert {attempt.reason.partition(":")[0] for attempt in told if attempt.outcome == "parked"} == {"by-rule"}


def test_token_is_renewed_before_its_expiry_while_messages_flow(plane: DataPlane):
    tokens: list[str] = []
    plane.receiver.answers["/short-token"] = issue(LIFE_S, tokens)
    plane.receiver.answers["/renewed"] = so.asking_for("authorization", lambda: bearers(tokens))
    oauth = {"type": "oauth2", "token_url": plane.receiver.url("/short-token"), "client_id": "shop"}
    destination = {"url": plane.receiver.url("/renewed"), "auth": oauth}
    key = plane.add_pipe("renews", {"crm": destination}, credentials={"crm": {"client_secret": "s3cret"}})
    got = plane.receiver.got["/renewed"]
    with plane.sender(key, 20) as sender:
        until(lambda: got and got[-1].headers["authorization"] == "Bearer token-1", "the second token is used", 40)
    whole = plane.settled("renews", sender.positions)
    assert whole.at("crm", Bin.DELIVERED) == sender.positions
    assert Counter(received.position for received in got) == Counter(sender.positions), "no request was refused"
