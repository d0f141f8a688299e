"""An unknown API key gets 503 while the replica is still reading keys, and 401 once it has read them all."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.replica import IngestReplica
from dataplane.runtime.settings import settings_from
from dataplane.spec.keys import RANDOM_BYTES, key_digest, key_text
from dataplane.tables.records import ApiKeyRecord
from tests.support.memory_replica import close_replica

KEY = key_text(bytes(RANDOM_BYTES))


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
        replica.route(key)
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
