"""An unknown API key gets 503 while the replica is still reading keys, and 401 once it has read them all.

An expired one gets 401 by the replica's own clock, without a further record.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.replica import IngestReplica
from dataplane.runtime.settings import settings_from
from dataplane.spec import parse_pipe_spec
from dataplane.spec.keys import RANDOM_BYTES, key_digest, key_text
from dataplane.tables.records import ApiKeyRecord, CellRecord, PipeRecord, PlanRecord, Record, TopicRecord
from tests.support.memory_replica import close_replica

KEY = key_text(bytes(RANDOM_BYTES))
SPEC = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": "http://crm.example/"}}}
PIPE_RECORDS: list[Record] = [
    CellRecord("c1", 1, 1, {}, {"ingest": TopicRecord("in", 1, 4, "")}),
    PlanRecord("p", 1, parse_pipe_spec(SPEC)),
    PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 100)]),
]


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[IngestReplica]:
    """Replica that started from a snapshot, without Kafka."""
    settings = settings_from({"PENSTOCK_KAFKA": "127.0.0.1:1", "PENSTOCK_VAR": str(tmp_path)})

    async def made() -> IngestReplica:
        return IngestReplica(settings, "ingest-1")

    one = asyncio.run(made())
    yield one
    close_replica(one)


def refused(replica: IngestReplica, key: str) -> tuple[int, str, bool]:
    with pytest.raises(EventRejectedError) as caught:
        replica.routes.find(key)
    return caught.value.status, caught.value.code, bool(caught.value.retry_after_s)


def test_unknown_key_gets_503_with_retry_after_while_keys_are_being_read(replica: IngestReplica):
    assert refused(replica, KEY) == (503, "unavailable", True)


def test_unknown_key_gets_401_once_all_keys_are_read(replica: IngestReplica):
    replica._reader.at_end = True
    assert refused(replica, KEY) == (401, "key-invalid", False)


def test_malformed_or_revoked_key_gets_401_at_once(replica: IngestReplica):
    assert refused(replica, "junk") == (401, "key-invalid", False)
    replica.table.apply(ApiKeyRecord(key_digest(KEY), 1, "p", "shop", revoked=True))
    assert refused(replica, KEY) == (401, "key-invalid", False)


@pytest.mark.parametrize(("left_us", "is_expired"), [(60_000_000, False), (-1, True)])
def test_key_is_refused_from_its_expiry_on(replica: IngestReplica, left_us: int, is_expired: bool):
    expires_us = time.time_ns() // 1_000 + left_us
    replica.table.apply(ApiKeyRecord(key_digest(KEY), 1, "p", "shop", expires_us=expires_us))
    for record in PIPE_RECORDS:
        replica.table.apply(record)
    if is_expired:
        assert refused(replica, KEY) == (401, "key-expired", False)
    else:
        assert replica.routes.find(KEY).pipe.pipe == "p"


def test_key_that_expires_while_its_route_is_cached_is_refused(replica: IngestReplica, monkeypatch: pytest.MonkeyPatch):
    now_ns = time.time_ns()
    replica.table.apply(ApiKeyRecord(key_digest(KEY), 1, "p", "shop", expires_us=now_ns // 1_000 + 60_000_000))
    for record in PIPE_RECORDS:
        replica.table.apply(record)
    replica.routes.find(KEY)
    monkeypatch.setattr("dataplane.ingest.replica.time.time_ns", lambda: now_ns + 61_000_000_000)
    assert refused(replica, KEY) == (401, "key-expired", False)
