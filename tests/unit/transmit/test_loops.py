"""Events must not loop: Penstock's own ingest is no destination, and a header counts deliveries."""

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import closing
from ipaddress import ip_network
from pathlib import Path

import pytest

from dataplane.ledger.meta import META_HEADER, encode_meta, read_meta
from dataplane.spec.loops import MAX_HOPS, hops_of, is_own_url, parse_endpoints
from dataplane.transmit.http.sender import HttpPolicy, HttpRequest, HttpResponse, HttpSender
from dataplane.transmit.policy.delivery_verdict import LOOP, DeliveryOutcome, judge
from tests.support.memory_lane import message
from tests.support.transmitting import destination, opened, without_kafka
from tests.unit.ingest.test_quotas import Ingest, make

__all__ = ["make"]
LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
REFUSED = json.dumps({"status": 508, "code": "loop-detected"}).encode()


@pytest.fixture(autouse=True)
def _without_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kafka(monkeypatch)


@pytest.mark.parametrize(
    "url",
    [
        "https://in.penstock.example/v1/events",
        "https://IN.penstock.example.:443/",
        "http://127.0.0.1:8801/",
        "http://localhost:8801/",
        "http://127.1:8801/",
        "http://0x7f000001:8801/",
        "http://[::1]:8801/",
        "http://[::ffff:127.0.0.1]:8801/",
        "http://127.9.9.9:8801/",
        "http://203.0.113.7/",
        "https://203.0.113.7/v1/events",
    ],
)
def test_own_ingest_is_recognized_in_every_spelling(url: str):
    own = parse_endpoints("https://in.penstock.example", "127.0.0.1:8801, 203.0.113.7", "")
    assert is_own_url(url, own)


@pytest.mark.parametrize(
    "url", ["https://crm.example/", "http://127.0.0.1:8800/", "http://in.penstock.example/", "http://203.0.113.8/"]
)
def test_other_hosts_and_ports_are_not_recognized_as_own_ingest(url: str):
    assert not is_own_url(url, parse_endpoints("https://in.penstock.example,127.0.0.1:8801,203.0.113.7"))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_sender_opens_no_connection_to_its_own_ingest(host: str):
    with socket.create_server(("127.0.0.1", 0)) as listener, listener:
        listener.settimeout(0)
        port = listener.getsockname()[1]
        with closing(HttpSender(HttpPolicy(LOOPBACK, own=parse_endpoints(f"127.0.0.1:{port}")))) as sender:
            sender.begin(HttpRequest("token", f"http://{host}:{port}/", ["Expect:"], b"{}", 5_000))
            answers: list[HttpResponse] = []
            while sender.active:
                answers += sender.poll(0.1)
        assert [answer.verdict for answer in answers] == [LOOP]
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_each_delivery_increments_the_hop_count(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    for offset, hops in enumerate((0, 3)):
        one = message(offset, b"{}")
        meta = read_meta(one.headers())
        meta.hops = hops
        one.headers()[0] = (META_HEADER, encode_meta(meta))
        lane.take(one)
        work.poll()
    sent = [dict(line.split(": ", 1) for line in headers if ": " in line) for _, headers, *_ in sender.requests]
    assert [headers["penstock-hops"] for headers in sent] == ["1", "4"]
    work.close()


def test_message_above_the_hop_limit_is_refused_by_ingest_and_dead(make: Callable[..., Ingest]):
    async def story() -> None:
        ingest = make()
        accepted = await ingest.post(b"{}", penstock_hops=str(MAX_HOPS))
        refused = await ingest.post(b"{}", penstock_hops=str(MAX_HOPS + 1))
        assert (accepted.status, refused.status, refused.was_read) == (202, 508, False)
        assert (refused.answer["code"], len(ingest.stored)) == ("loop-detected", 1)
        assert [read_meta(headers).hops for headers in ingest.headers] == [MAX_HOPS]
        body = json.dumps(refused.answer, separators=(",", ":")).encode()
        assert judge(refused.status, 0, body=body) == LOOP

    asyncio.run(story())


def test_other_508_is_retried():
    assert judge(508, 0, body=b"Resource limit is reached").outcome is DeliveryOutcome.RECOVERABLE
    assert judge(500, 0, body=REFUSED).outcome is DeliveryOutcome.RECOVERABLE


@pytest.mark.parametrize(("value", "hops"), [(None, 0), ("", 0), ("x", 0), ("-1", 0), ("7", 7), ("9" * 5_000, 0)])
def test_header_that_is_no_number_counts_as_zero(value: str | None, hops: int):
    assert hops_of(value) == hops
