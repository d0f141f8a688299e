"""Requests to buckets over real sockets: the store accepts their signature, and handles keep their identity."""

import sys
from ipaddress import ip_network

from dataplane.transmit.http.sender import MOST_IDENTITIES, AwsKey, HttpPolicy, HttpRequest, HttpSender
from tests.support.sigv4 import Store, signature_of

KEY = AwsKey("eu-central-1", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
LOOPBACK = (ip_network("127.0.0.0/8"),)


def statuses(sender: HttpSender, *requests: HttpRequest) -> list[int]:
    for request in requests:
        sender.begin(request)
    found: dict[str, int] = {}
    while sender.active:
        found |= {answer.token: answer.status for answer in sender.poll(0.05)}
    return [found[request.token] for request in requests]


def put(store: Store, name: str, key: AwsKey = KEY, body: bytes = b"\xff\x00{}\n") -> HttpRequest:
    headers = ["Expect:", "Content-Type: application/x-ndjson", "x-amz-meta-penstock-messages: 1"]
    return HttpRequest(name, f"{store.url}/events/{name}", headers, body, 5_000, identity=key, method="PUT")


def test_verifier_gives_the_signature_of_the_documented_example():
    """PUT Object in "Authenticating Requests (AWS Signature Version 4)" of the S3 API reference."""
    headers = {
        "date": "Fri, 24 May 2013 00:00:00 GMT",
        "host": "examplebucket.s3.amazonaws.com",
        "x-amz-content-sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
        "x-amz-date": "20130524T000000Z",
        "x-amz-storage-class": "REDUCED_REDUNDANCY",
    }
    scope = "20130524/us-east-1/s3/aws4_request"
    found = signature_of(
        "PUT", "/test%24file.text", headers, b"Welcome to Amazon S3.", ";".join(headers), scope, KEY.secret
    )
    assert found == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"


def test_store_accepts_the_signature_and_stores_the_exact_bytes():
    with Store(KEY.access_key_id, KEY.secret) as store:
        sender = HttpSender(HttpPolicy(LOOPBACK))
        path = "shop/date%3D2026-11-29/hour%3D06/batch_1.jsonl"
        assert statuses(sender, put(store, path)) == [200]
        sender.close()
        (name,) = store.objects
        assert (name, store.objects[name]) == ("/events/shop/date=2026-11-29/hour=06/batch_1.jsonl", b"\xff\x00{}\n")
        assert store.headers[name]["content-type"] == "application/x-ndjson"
        assert store.headers[name]["x-amz-meta-penstock-messages"] == "1"


def test_idle_handles_keep_neither_bodies_nor_many_identities():
    body = b"x" * 100_000
    with Store(KEY.access_key_id, KEY.secret) as store:
        sender = HttpSender(HttpPolicy(LOOPBACK))
        before = sys.getrefcount(body)
        for number in range(MOST_IDENTITIES + 5):
            key = AwsKey(KEY.region, f"AKIA{number}", KEY.secret)
            assert statuses(sender, put(store, "a", key, body)) == [403]
        assert sys.getrefcount(body) == before
        assert len(sender._free_as) == MOST_IDENTITIES
        sender.close()


def test_key_of_one_destination_is_never_used_for_another():
    wrong = AwsKey(KEY.region, KEY.access_key_id, "another secret")
    with Store(KEY.access_key_id, KEY.secret) as store:
        sender = HttpSender(HttpPolicy(LOOPBACK))
        for _ in range(3):  # handles are reused
            assert statuses(sender, put(store, "a"), put(store, "b", wrong), put(store, "c")) == [200, 403, 200]
            plain = HttpRequest("d", f"{store.url}/events/d", ["Expect:"], b"{}", 5_000, method="PUT")
            assert statuses(sender, plain) == [403]
        sender.close()
        assert store.objects.keys() == {"/events/a", "/events/c"}
