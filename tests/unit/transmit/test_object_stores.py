"""An S3 bucket as destination: batches become objects, and no answer of the store loses a message."""

import io
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import duckdb
import msgspec
import pytest
from cryptography.fernet import Fernet
from pyarrow import parquet

from dataplane.causes import Cause
from dataplane.ledger.meta import read_meta
from dataplane.spec import ObjectSettings, RetryPolicy, S3Destination, endpoint_of
from dataplane.tables.records import DestinationRecord
from dataplane.tables.sealed import bind, credential_place
from dataplane.transmit.http.sender import AwsKey
from dataplane.transmit.policy.delivery_verdict import DeliveryOutcome, judge_object_store
from tests.support.doc_blocks import documented_all
from tests.support.memory_lane import MemoryLane, message
from tests.support.transmitting import KEY, NODE, Clock, MemorySender, destination, opened, without_kafka

URL: Final = "https://s3.eu-central-1.amazonaws.com/events"
ACCESS_KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "s3cret"
HOUR: Final = "date%3D2026-09-21/hour%3D14"  # of 1,790,000,000 s


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    without_kafka(monkeypatch)
    return Clock(monkeypatch)


def bucket(**fields: Any) -> S3Destination:
    batch = ObjectSettings(max_events=3, max_wait_ms=1_000)
    given = {"prefix": "shop/", "batch": batch, "retry": RetryPolicy(local_tries=1), **fields}
    return S3Destination(URL, "eu-central-1", ACCESS_KEY, **given)


def record_of(to: S3Destination, name: str = "crm") -> DestinationRecord:
    credential = msgspec.json.encode({"secret_access_key": SECRET, "endpoint": endpoint_of(to)}).decode()
    text = bind(credential, credential_place("p", name)).encode()
    return DestinationRecord("p", name, 1, "active", to, [], Fernet(KEY).encrypt(text).decode())


def given(tmp_path: Path, **fields: Any) -> tuple[MemoryLane, Any, MemorySender]:
    return opened(tmp_path, record_of(bucket(**fields)))


def retried(lane: MemoryLane) -> list[int]:
    return [read_meta(one["headers"]).position for one in lane.producer.of(lane.cell.topics["retry-in"].name)]


def test_batch_becomes_one_object_that_is_put_with_the_access_key(tmp_path: Path):
    lane, work, sender = given(tmp_path)
    lane.take(message(1, b'{"n":1}'), message(2, b'{\n"n":2}'), message(3, b"plain"))
    work.poll()
    ((url, headers, body, timeout_ms),) = sender.requests
    assert re.fullmatch(rf"{URL}/shop/{HOUR}/batch_\w{{32}}\.jsonl", url)
    assert (body, timeout_ms) == (b'{"n":1}\n{ "n":2}\n"plain"\n', 8_000)
    assert sender.signed == [("PUT", AwsKey("eu-central-1", ACCESS_KEY, SECRET))]
    assert headers[-3:] == [
        "Content-Type: application/x-ndjson",
        "x-amz-meta-penstock-pipe: p",
        "x-amz-meta-penstock-messages: 3",
    ]
    assert not any(one.lower().startswith(("webhook-", "authorization")) for one in headers)
    sender.answer(200)
    work.poll()
    assert lane.filed() == {(NODE, "delivered", ""): 3}
    work.close()


def test_retry_replaces_the_object_of_the_failed_attempt(tmp_path: Path, clock: Clock):
    lane, work, sender = given(tmp_path, retry=RetryPolicy(local_tries=3))
    lane.take(*(message(n) for n in (1, 2, 3)))
    work.poll()
    sender.answer(500)
    for _ in range(3):
        work.poll()
        clock.advance(2.0)
    first, second = sender.requests
    assert second[0] == first[0]
    assert second[2] == first[2]
    work.close()


def test_destinations_and_replays_in_one_bucket_never_write_the_same_object(tmp_path: Path, clock: Clock):
    lane, work, sender = opened(tmp_path, record_of(bucket(), "raw"), record_of(bucket(), "masked"))
    lane.take(message(1, b"{}", destination="raw"), message(2, b"null", destination="masked", position=1, id="id-0-1"))
    lane.take(message(3, destination="raw", position=1, id="id-0-1", replay="rep_1"))
    clock.advance(1.1)
    work.poll()
    urls = [request[0] for request in sender.requests]
    assert len(urls) == len(set(urls)) == 3
    work.close()


def test_body_of_a_success_settles_no_single_message(tmp_path: Path):
    lane, work, sender = given(tmp_path)
    lane.take(*(message(n) for n in (1, 2, 3)))
    work.poll()
    sender.answer(200, body=b'[{"status":400},{"status":410},{"status":500}]')
    work.poll()
    assert lane.filed() == {(NODE, "delivered", ""): 3}
    work.close()


def test_object_that_is_too_large_is_halved(tmp_path: Path):
    lane, work, sender = given(tmp_path)
    lane.take(*(message(n) for n in (1, 2, 3)))
    work.poll()
    sender.answer(413)
    work.poll()
    work.poll()
    counts = [next(line for line in one[1] if "penstock-messages" in line)[-1] for one in sender.requests]
    assert (counts[0], sorted(counts[1:])) == ("3", ["1", "2"])
    work.close()


def test_refusal_after_a_change_to_http_kills_no_message_of_the_object(tmp_path: Path):
    lane, work, sender = given(tmp_path)
    lane.take(*(message(n) for n in (1, 2, 3)))
    work.poll()
    lane.table.apply(destination(version=2))
    sender.answer(403)
    work.poll()
    assert retried(lane) == [1, 2, 3]
    assert lane.producer.of(lane.cell.topics["dead"].name) == []
    work.close()


def test_waiting_batch_lets_the_lane_rest_until_it_is_due(tmp_path: Path, clock: Clock):
    lane, work, sender = given(tmp_path)
    lane.take(message(1))
    work.poll()
    assert 0.9 < work._queues.rest_s(clock.now_s) <= 1.0
    lane.take(message(2))
    assert work._queues.rest_s(clock.now_s) == 0.0, "it may be full now"
    work.poll()
    clock.advance(0.6)
    assert 0.3 < work._queues.rest_s(clock.now_s) <= 0.4, "the oldest message decides"
    clock.advance(0.41)
    work.poll()
    assert len(sender.requests) == 1
    work.close()


def test_parquet_file_has_the_columns_of_a_lake_table(tmp_path: Path):
    lane, work, sender = given(tmp_path, format="parquet")
    lane.take(message(1, b'{"n":1}'), message(2, b"\xff\x00", id="other", source="web"), message(3, b""))
    work.poll()
    assert sender.requests[0][0].endswith(".parquet")
    assert "Content-Type: application/vnd.apache.parquet" in sender.requests[0][1]
    table = parquet.read_table(io.BytesIO(sender.requests[0][2]))
    at = datetime.fromtimestamp(1_790_000_000, UTC)
    row = {"child": 0, "pipe": "p", "revision": 1, "source": "shop", "event_time": at, "ingest_time": at}
    assert table.to_pylist() == [
        {"id": "id-0-1", "position": 1, **row, "body": '{"n":1}', "body_bytes": None},
        {"id": "other", "position": 2, **row, "source": "web", "body": None, "body_bytes": b"\xff\x00"},
        {"id": "id-0-3", "position": 3, **row, "body": "", "body_bytes": None},
    ]
    assert [str(field.type) for field in table.schema if "time" in field.name] == ["timestamp[us, tz=UTC]"] * 2
    work.close()


def test_query_of_the_guide_reads_the_files(tmp_path: Path):
    lane, work, sender = given(tmp_path, prefix="orders/", format="parquet")
    lane.take(message(1), message(2, source="web"), message(3))
    work.poll()
    for url, _, body, _ in sender.requests:
        file = tmp_path / unquote(url.removeprefix(f"{URL}/"))
        file.parent.mkdir(parents=True)
        file.write_bytes(body)
    _, query, _ = documented_all("topic-table-and-lake-destinations.md", "sql")
    with duckdb.connect() as db:
        assert sorted(db.sql(query.replace("s3://my-bucket", str(tmp_path))).fetchall()) == [("shop", 2), ("web", 1)]
    work.close()


@pytest.mark.parametrize("status", [301, 400, 403, 404, 410, 412])
def test_refusal_of_the_store_is_retried_and_kills_no_message(tmp_path: Path, status: int):
    lane, work, sender = given(tmp_path)
    lane.take(*(message(n) for n in (1, 2, 3)))
    work.poll()
    sender.answer(status)
    work.poll()
    assert retried(lane) == [1, 2, 3]
    assert lane.producer.of(lane.cell.topics["dead"].name) == []
    assert lane.producer.of(lane.cell.topics["held"].name) == []
    work.close()


def test_verdicts_of_a_store():
    refused = judge_object_store(403, 0)
    assert (refused.outcome, refused.cause) == (DeliveryOutcome.RECOVERABLE, Cause.STORE_REFUSED)
    assert judge_object_store(503, 0).cause == Cause.SERVER_ERROR
    assert judge_object_store(429, 0).throttled
    assert judge_object_store(200, 0).outcome is DeliveryOutcome.DELIVERED
    assert judge_object_store(0, 60).cause == Cause.TLS_CERTIFICATE
    assert judge_object_store(0, 0, forbidden=True).cause == Cause.DESTINATION_FORBIDDEN


def test_copy_of_a_replay_is_in_an_object_of_its_own(tmp_path: Path, clock: Clock):
    lane, work, sender = given(tmp_path)
    lane.take(message(1), message(2, replay="rep_1"))
    work.poll()
    clock.advance(1.1)
    work.poll()
    marks = [[line for line in request[1] if "replay" in line] for request in sender.requests]
    assert sorted(marks) == [[], ["x-amz-meta-penstock-replay: rep_1"]]
    work.close()


def test_nothing_is_sent_without_the_secret_of_this_access_key(tmp_path: Path, clock: Clock):
    other = record_of(S3Destination(URL, "eu-central-1", "AKIAOTHER"))
    lane, work, sender = opened(tmp_path, msgspec.structs.replace(other, to=bucket()))
    lane.take(*(message(n) for n in (1, 2, 3)))
    clock.advance(11)
    work.poll()
    assert sender.requests == []
    assert retried(lane) == [1, 2, 3]
    assert lane.producer.of(lane.cell.topics["dead"].name) == []
    work.close()
