"""Attributes and addresses of customers reach libcurl as ASCII: other text would end the lane."""

import contextlib

import pytest

from dataplane.plan.outbound import ascii_value
from dataplane.transmit.http.sender import HttpPolicy, HttpRequest, HttpSender


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"order.created", "order.created"),
        ("Größe 5".encode(), "Gr%C3%B6%C3%9Fe 5"),
        (b"100%", "100%"),
        (b"\xff", "%FF"),
    ],
)
def test_non_ascii_value_is_percent_encoded(value: bytes, shown: str):
    assert ascii_value(value) == shown


@pytest.mark.parametrize(
    "host", ["bücher.invalid", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "xn--.invalid"]
)
def test_non_ascii_address_is_a_failed_attempt_and_no_error(host: str):
    with contextlib.closing(HttpSender(HttpPolicy())) as sender:
        sender.begin(HttpRequest("it", f"http://{host}:1/", ["Expect:"], b"{}", 3_000))
        answers = []
        while sender.active:
            answers += list(sender.poll(0.05))
    assert [(answer.token, answer.status) for answer in answers] == [("it", 0)]
