"""A key that a replica does not know is wrong, or newer than what the replica has read: it must know which."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataplane.ingest.problems import RefusalError
from dataplane.ingest.replica import Replica
from dataplane.runtime.settings import settings_from
from dataplane.spec.keys import RANDOM_BYTES, key_digest, key_text
from dataplane.tables.records import KeyRecord

KEY = key_text(bytes(RANDOM_BYTES))


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    """One that began from a snapshot, without Kafka."""
    settings = settings_from({"PENSTOCK_KAFKA": "127.0.0.1:1", "PENSTOCK_VAR": str(tmp_path)})

    async def made() -> Replica:
        return Replica(settings, "ingest-1")

    one = asyncio.run(made())
    yield one
    one._journal.close()
    one._reader.close()


def refused(replica: Replica, key: str) -> tuple[int, str, bool]:
    with pytest.raises(RefusalError) as caught:
        replica.route(key)
    return caught.value.status, caught.value.code, bool(caught.value.retry_after_s)


def test_a_sender_is_asked_to_come_again_while_keys_are_being_read(replica: Replica):
    assert refused(replica, KEY) == (503, "unavailable", True)


def test_once_all_are_read_it_is_wrong(replica: Replica):
    replica._reader.at_end = True
    assert refused(replica, KEY) == (401, "key-invalid", False)


def test_what_is_wrong_whatever_keys_there_are_is_told_at_once(replica: Replica):
    assert refused(replica, "junk") == (401, "key-invalid", False)
    replica.table.apply(KeyRecord(key_digest(KEY), 1, "p", "shop", revoked=True))
    assert refused(replica, KEY) == (401, "key-invalid", False)
