"""Every kind of auth: what is sent, what is masked, and behaviour without a usable credential."""

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.fernet import Fernet

from dataplane.ledger.audit import decode_attempts
from dataplane.spec import Auth, BasicAuth, BearerAuth, HeaderAuth, MutualTls, OAuth2
from dataplane.tables.sealed import bind, credential_place
from dataplane.transmit.destinations.targets import LOCKED_WAIT_S
from dataplane.transmit.destinations.token_requests import TokenRequest
from tests.support.memory_lane import MemoryLane, message
from tests.support.transmitting import KEY, NODE, Clock, destination, opened, without_kafka

OAUTH = OAuth2("https://id.example/token", "shop")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    without_kafka(monkeypatch)
    return Clock(monkeypatch)


def sealed(**credential: str) -> str:
    return bound_to("crm", **credential)


def bound_to(name: str, **credential: str) -> str:
    text = bind(msgspec.json.encode(credential).decode(), credential_place("p", name))
    return Fernet(KEY).encrypt(text.encode()).decode()


def token_answer(token: str, life_s: int = 600) -> bytes:
    return msgspec.json.encode({"access_token": token, "expires_in": life_s})


def told_answer(lane: MemoryLane) -> str:
    lane.work.report()
    (record,) = lane.producer.of(lane.cell.topics["attempts"].name)
    return decode_attempts(record["value"]).attempts[0].answer


@pytest.mark.parametrize(
    ("auth", "credential", "header"),
    [
        pytest.param(HeaderAuth("X-Key"), {"value": "s3cret"}, "X-Key: s3cret", id="header"),
        pytest.param(BearerAuth(), {"value": "s3cret"}, "Authorization: Bearer s3cret", id="bearer"),
        pytest.param(
            BasicAuth("me"), {"password": "s3crét"},
            "Authorization: Basic " + base64.b64encode("me:s3crét".encode()).decode(), id="basic",
        ),
    ],
)  # fmt: skip
def test_secret_is_sent_in_its_header_and_masked_where_it_is_echoed(
    tmp_path: Path, auth: Auth, credential: dict[str, str], header: str
):
    lane, work, sender = opened(tmp_path, destination(auth=auth, credential=sealed(**credential)))
    lane.take(message(5))
    work.poll()
    assert header in sender.requests[0][1]
    sender.answer(400, body=f"you sent {header} and {next(iter(credential.values()))}".encode())
    work.poll()
    (letter,) = lane.producer.of(lane.cell.topics["dead"].name)
    secret = header.rpartition(" ")[2]
    for text in (told_answer(lane), dict(letter["headers"])["penstock-answer"].decode()):
        assert secret not in text
        assert credential.get("password", "s3cret") not in text
        assert "***" in text
    work.close()


@pytest.mark.parametrize(
    ("auth", "credential"),
    [
        pytest.param(BearerAuth(), "", id="none at all"),
        pytest.param(BearerAuth(), sealed(password="x"), id="of another kind"),
        pytest.param(BearerAuth(), sealed(value="a\r\nX: y"), id="with a line break"),
        pytest.param(BearerAuth(), "junk", id="that cannot be opened"),
        pytest.param(MutualTls(), sealed(certificate="x"), id="without its key"),
        pytest.param(BearerAuth(), bound_to("other", value="x"), id="of another destination"),
        pytest.param(BearerAuth(), sealed(value="x", endpoint="https://other.example:443"), id="of another endpoint"),
    ],
)
def test_no_message_is_sent_without_a_usable_credential(tmp_path: Path, clock: Clock, auth: Auth, credential: str):
    lane, work, sender = opened(tmp_path, destination(auth=auth, credential=credential))
    lane.take(message(5))
    work.poll()
    clock.advance(LOCKED_WAIT_S + 1)
    work.poll()
    lane.store()
    assert not sender.requests
    assert lane.filed() == {(NODE, "parked", "1"): 1}
    work.close()


def test_client_certificate_is_passed_with_the_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lane, work, sender = opened(tmp_path, destination(auth=MutualTls(), credential=sealed(certificate="c", key="k")))
    posts: list[Any] = []
    monkeypatch.setattr(sender, "begin", posts.append)
    lane.take(message(5))
    work.poll()
    assert (posts[0].identity.certificate, posts[0].identity.key) == ("c", "k")
    work.close()


# -- OAuth2 ----------------------------------------------------------------------------------------------------------


def oauth(tmp_path: Path, **fields: Any) -> Any:
    return opened(tmp_path, destination(auth=OAUTH, credential=sealed(client_secret="s3cret"), **fields))


def test_token_is_fetched_once_and_used_by_all_requests(tmp_path: Path):
    lane, work, sender = oauth(tmp_path)
    lane.take(message(5), message(6))
    work.poll()
    work.poll()
    assert [request[0] for request in sender.requests] == ["https://id.example/token"]
    sender.answer(200, body=token_answer("t0ken"))
    work.poll()
    work.poll()
    assert len(sender.requests) == 3
    assert all("Authorization: Bearer t0ken" in request[1] for request in sender.requests[1:])
    sender.answer(422, body=b"your t0ken is fine, your order is not", count=1)
    work.poll()
    assert told_answer(lane) == "your *** is fine, your order is not"
    work.close()


def test_token_is_renewed_before_it_expires_while_sends_continue(tmp_path: Path, clock: Clock):
    lane, work, sender = oauth(tmp_path)
    lane.take(message(5))
    work.poll()
    sender.answer(200, body=token_answer("one"))
    work.poll()
    work.poll()
    clock.advance(545)
    lane.take(message(6))
    work.poll()
    assert any(isinstance(token, TokenRequest) for token in sender.begun)
    assert sum(request[0] == "http://crm.example/" for request in sender.requests) == 2, "with the old token meanwhile"
    work.close()


def test_messages_without_a_token_are_scheduled_for_retry_and_fetches_stay_rare(tmp_path: Path, clock: Clock):
    lane, work, sender = oauth(tmp_path)
    for number in range(100):
        lane.take(message(number))
        work.poll()
        sender.answer(401, body=b"no")
        work.poll()
        lane.store()
        clock.advance(1)
    fetches = [request for request in sender.requests if request[0] == "https://id.example/token"]
    assert len(fetches) == len(sender.requests)
    assert len(fetches) < 10
    assert lane.unsettled() <= 3
    work.close()


def test_revoked_token_is_fetched_again_and_its_message_retried(tmp_path: Path, clock: Clock):
    lane, work, sender = oauth(tmp_path)
    lane.take(message(5))
    work.poll()
    sender.answer(200, body=token_answer("one"))
    work.poll()
    clock.advance(120)
    work.poll()
    sender.answer(401)
    work.poll()
    lane.store()
    assert lane.filed() == {(NODE, "parked", "1"): 1}
    lane.take(message(6))
    work.poll()
    sender.answer(200, body=token_answer("two"))
    work.poll()
    work.poll()
    assert "Authorization: Bearer two" in sender.requests[-1][1]
    sender.answer(401)
    work.poll()
    lane.store()
    assert lane.filed() == {(NODE, "dead", "rejected"): 1}, "another token does not help if a fresh one is refused"
    work.close()
