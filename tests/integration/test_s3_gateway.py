"""A transmit lane writes to a gateway with the API of S3, which is not ours: it checks signatures and keeps files."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import httpx
import msgspec
import pytest
from cryptography.fernet import Fernet
from pyarrow import parquet

from dataplane.ledger.meta import read_meta
from dataplane.spec import ObjectSettings, S3Destination, endpoint_of
from dataplane.tables.records import DestinationRecord
from dataplane.tables.sealed import bind, credential_place
from dataplane.transmit import key_order
from dataplane.transmit.destinations import breaker_gossip
from dataplane.transmit.work import TransmitWork
from localbox.ports import free_ports
from tests.support.go_tools import go_tool
from tests.support.memory_lane import MemoryLane, message
from tests.support.patience import until
from tests.support.transmitting import KEY, NODE, MemorySignals

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_200)]
VERSION: Final = "v1.8.0"
ACCESS_KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
EVENTS: Final = 1_000


class Gateway(NamedTuple):
    """Running gateway; each bucket is a folder in `folder`."""

    url: str
    folder: Path


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "events").mkdir()
    (port,) = free_ports(1)
    env = {"PATH": os.environ["PATH"], "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET}
    command = [str(go_tool("versitygw", VERSION)), "--port", f"127.0.0.1:{port}", "--region", "eu-central-1"]
    with (tmp_path_factory.mktemp("log") / "gateway.log").open("wb") as log:
        process = subprocess.Popen([*command, "posix", str(folder)], env=env, stdout=log, stderr=log)

    def answers() -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/").status_code == 403
        except httpx.HTTPError:
            return False

    try:
        until(answers, "the gateway answers", 60)
        yield Gateway(f"http://127.0.0.1:{port}", folder / "events")
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def lane_for(gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., MemoryLane]:
    """Return a function that opens a lane without Kafka, which sends real requests to the gateway."""
    monkeypatch.setattr(breaker_gossip, "topic_reader", lambda *_: MemorySignals())
    monkeypatch.setattr(key_order, "topic_reader", lambda *_: MemorySignals())

    def opened(format_: Literal["jsonl", "parquet"], bucket: str = "events", secret: str = SECRET) -> MemoryLane:
        batch = ObjectSettings(max_events=100, max_wait_ms=100)
        url = f"{gateway.url}/{bucket}"
        to = S3Destination(url, "eu-central-1", ACCESS_KEY, prefix=f"{format_}/", format=format_, batch=batch)
        credential = msgspec.json.encode({"secret_access_key": secret, "endpoint": endpoint_of(to)}).decode()
        sealed = Fernet(KEY).encrypt(bind(credential, credential_place("p", "crm")).encode()).decode()
        lane = MemoryLane("transmit", tmp_path, KEY)
        allowed = (ip_network("127.0.0.0/8"),)
        lane.settings = msgspec.structs.replace(lane.settings, destination_allow=allowed)
        lane.table.apply(DestinationRecord("p", "crm", 1, "active", to, [], sealed))
        lane.work = TransmitWork(lane)
        return lane

    return opened


def run(lane: MemoryLane, is_done: Callable[[], bool], limit_s: float = 60) -> None:
    ends_s = time.monotonic() + limit_s
    while not is_done():
        assert time.monotonic() < ends_s, "the lane does not end"
        lane.work.poll()
    lane.work.close()


def take_all(lane: MemoryLane) -> None:
    for first in range(0, EVENTS, 250):
        lane.take(*(message(n, b'{"n":%d}' % n) for n in range(first, first + 250)))


def test_each_event_is_a_line_of_one_object(gateway: Gateway, lane_for: Callable[..., MemoryLane]):
    lane = lane_for("jsonl")
    take_all(lane)
    run(lane, lambda: lane.unsettled() == 0)
    assert lane.filed() == {(NODE, "delivered", ""): EVENTS}
    files = sorted(gateway.folder.glob("jsonl/date=*/hour=*/batch_*.jsonl"))
    lines = [msgspec.json.decode(line) for file in files for line in file.read_bytes().splitlines()]
    assert sorted(line["n"] for line in lines) == list(range(EVENTS))
    assert len(files) == EVENTS // 100


def test_each_event_is_a_row_of_one_parquet_file(gateway: Gateway, lane_for: Callable[..., MemoryLane]):
    lane = lane_for("parquet")
    take_all(lane)
    run(lane, lambda: lane.unsettled() == 0)
    assert lane.filed() == {(NODE, "delivered", ""): EVENTS}
    rows: list[dict[str, Any]] = parquet.read_table(gateway.folder / "parquet").to_pylist()
    assert sorted(row["position"] for row in rows) == list(range(EVENTS))
    assert {row["hour"] for row in rows} == {14}, "the folders are partitions"


@pytest.mark.parametrize("wrong", [{"secret": "another"}, {"bucket": "missing"}])
def test_refused_events_are_retried(lane_for: Callable[..., MemoryLane], wrong: dict[str, str]):
    lane = lane_for("jsonl", **wrong)
    lane.take(message(1), message(2))

    def retried() -> list[int]:
        return [read_meta(one["headers"]).position for one in lane.producer.of(lane.cell.topics["retry-in"].name)]

    run(lane, lambda: retried() == [1, 2])
    assert lane.producer.of(lane.cell.topics["dead"].name) == []
