"""A receiver verifies the sender's own signature over a form, XML and JSON: at once, after a retry, and of a replay.

The receiver knows nothing of Penstock: it computes the signatures with the standard library, as each provider says.
"""

import base64
import hmac
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import parse_qsl

import pytest

from dataplane.addresses import DEFAULT_INGEST
from loadgen.scripted import Received
from tests.support.data_plane import DataPlane, running_plane
from tests.support.patience import until

SECRET: Final = "shared-with-the-sender"
FORM: Final = "application/x-www-form-urlencoded; charset=UTF-8"
SMS: Final = b"SmsSid=SM7&Body=hello+there%21&Body=%C3%BC&From=%2B1555"
XML: Final = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<order id="7"><item>Käse</item>\n</order>'.encode("latin-1")
PUSH: Final = b'{ "ref" : "refs/heads/main",\n "n": 1.0e0, "by": "\\u00fc" }'  # no encoder writes it like this
RETRY: Final = {"local_tries": 1, "span_s": 600, "delays_s": [1]}  # a second attempt has passed the retry topics


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    """Kafka, two ingest replicas, the cell under its keeper, and a receiver."""
    with running_plane(tmp_path_factory.mktemp("originals")) as plane:
        yield plane


def add_sender(plane: DataPlane, pipe: str, preset: str, header: str) -> str:
    """Publish a pipe with a webhook URL, a destination that sends originals and one that does not; return its path."""
    crm = {"url": plane.receiver.url(f"/{pipe}"), "retry": RETRY, "original_body": True, "forward_headers": [header]}
    path = plane.cluster.add_webhook(pipe, preset, SECRET)
    log = {"url": plane.receiver.url(f"/{pipe}-json"), "forward_headers": [header]}
    plane.add_pipe(pipe, {"crm": crm, "log": log}, normalize=[{"op": "filter", "when": "true"}])
    return path


def post(plane: DataPlane, path: str, body: bytes, headers: dict[str, str]) -> None:
    connection = HTTPConnection("127.0.0.1", plane.port, timeout=15)
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        assert answer.status in (200, 202), answer.read()
    finally:
        connection.close()


def twilio_signature(url: str, body: bytes) -> str:
    """Return the signature that Twilio documents: HMAC-SHA1 over the URL and the sorted parameters."""
    text = url + "".join(name + value for name, value in sorted(set(parse_qsl(body.decode(), keep_blank_values=True))))
    return base64.b64encode(hmac.digest(SECRET.encode(), text.encode(), "sha1")).decode()


def shopify_signature(body: bytes) -> str:
    """Return the signature that Shopify documents: HMAC-SHA256 over the body, in base64."""
    return base64.b64encode(hmac.digest(SECRET.encode(), body, "sha256")).decode()


def github_signature(body: bytes) -> str:
    """Return the signature that GitHub documents: HMAC-SHA256 over the body, in hex."""
    return "sha256=" + hmac.new(SECRET.encode(), body, "sha256").hexdigest()


def replay(plane: DataPlane, pipe: str, since_us: int) -> None:
    plane.cluster.publish_replay(f"replay_{pipe}", pipe, ["crm"], since_us, 100.0)


def deliveries(plane: DataPlane, path: str, count: int) -> list[Received]:
    until(lambda: len(plane.receiver.got[path]) >= count, f"{count} requests at {path}", 120)
    return list(plane.receiver.got[path])


def delivered_thrice(plane: DataPlane, pipe: str, path: str, body: bytes, headers: dict[str, str]) -> list[Received]:
    """Return an attempt that was refused, its retry, and the delivery of a replay."""
    since_us = time.time_ns() // 1_000
    plane.receiver.answers[f"/{pipe}"] = 503
    post(plane, path, body, headers)
    deliveries(plane, f"/{pipe}", 1)
    plane.receiver.answers[f"/{pipe}"] = 204
    deliveries(plane, f"/{pipe}", 2)
    replay(plane, pipe, since_us)
    found = deliveries(plane, f"/{pipe}", 3)
    assert ["penstock-replay" in one.headers for one in found] == [False, False, True]
    assert len({one.id for one in found}) == 1
    return found


def check_json(plane: DataPlane, pipe: str, value: bytes) -> None:
    """Check that the other destination gets the converted event."""
    (one,) = deliveries(plane, f"/{pipe}-json", 1)
    assert (one.body, one.headers["content-type"]) == (value, "application/json")


@pytest.mark.timeout(900)  # includes the start of the data plane
def test_receiver_verifies_the_signature_of_twilio_over_the_form(plane: DataPlane):
    path = add_sender(plane, "sms", "twilio", "X-Twilio-Signature")
    url = DEFAULT_INGEST + path
    headers = {"Content-Type": FORM, "X-Twilio-Signature": twilio_signature(url, SMS)}
    for one in delivered_thrice(plane, "sms", path, SMS, headers):
        assert one.headers["content-type"] == FORM
        assert one.headers["x-twilio-signature"] == twilio_signature(url, one.body)
        assert one.body == SMS
    check_json(plane, "sms", '{"SmsSid":"SM7","Body":["hello there!","ü"],"From":"+1555"}'.encode())


@pytest.mark.timeout(900)
def test_receiver_verifies_the_signature_of_shopify_over_the_xml(plane: DataPlane):
    path = add_sender(plane, "orders", "shopify", "X-Shopify-Hmac-SHA256")
    headers: dict[str, Any] = {"Content-Type": "application/xml", "X-Shopify-Hmac-SHA256": shopify_signature(XML)}
    for one in delivered_thrice(plane, "orders", path, XML, headers):
        assert one.headers["content-type"] == "application/xml"
        assert one.headers["x-shopify-hmac-sha256"] == shopify_signature(one.body)
        assert one.body == XML
    check_json(plane, "orders", '{"order":{"@id":"7","item":"Käse"}}'.encode())


@pytest.mark.timeout(900)
def test_receiver_verifies_the_signature_of_github_over_the_json(plane: DataPlane):
    """JSON keeps its bytes, at a destination without `original_body`, too."""
    path = add_sender(plane, "pushes", "github", "X-Hub-Signature-256")
    headers = {"Content-Type": "application/json", "X-Hub-Signature-256": github_signature(PUSH)}
    found = delivered_thrice(plane, "pushes", path, PUSH, headers)
    for one in (*found, *deliveries(plane, "/pushes-json", 1)):
        assert one.headers["x-hub-signature-256"] == github_signature(one.body)
        assert one.body == PUSH
    check_json(plane, "pushes", PUSH)
