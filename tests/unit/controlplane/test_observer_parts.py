"""The small pure parts of the Observer: the attempt sample, the cache, the start offset."""

import msgspec
import pytest

from controlplane.observer.attempts import SuccessSampler, attempt_row
from controlplane.observer.cache import ENTRY_BYTES, KEPT_S, ByteCache
from controlplane.observer.ledger_entries import LedgerEntries
from controlplane.observer.reader import start_offset
from dataplane.ledger.audit import AttemptRecord
from dataplane.tables.replays import ReplayProgress, encode_replay_progress, replay_progress_key
from dataplane.tables.shadows import ShadowProgress, encode_shadow_progress, shadow_progress_key
from tests.support.memory_lane import MemoryMessage

TRY = AttemptRecord(
    message_id="m1",
    position=1 << 54 | 7,
    pipe="p1",
    revision=1,
    destination="crm",
    bucket=1,
    number=1,
    started_us=1_700_000_000_123_456,
    dns_us=1,
    connect_us=2,
    tls_us=3,
    first_byte_us=4,
    total_us=5,
    status=200,
    outcome="delivered",
    reason="",
    address="127.0.0.1",
    next_us=0,
)


def test_successes_beyond_the_sample_are_dropped_and_failures_never():
    sampler = SuccessSampler(2)
    failed = msgspec.structs.replace(TRY, outcome="retry", status=503)
    assert [sampler.wants(TRY) for _ in range(4)] == [True, True, False, False]
    assert all(sampler.wants(failed) for _ in range(4))


def test_each_second_has_a_sample_of_its_own():
    sampler = SuccessSampler(1)
    later = msgspec.structs.replace(TRY, started_us=TRY.started_us + 1_000_000)
    assert [sampler.wants(TRY), sampler.wants(TRY), sampler.wants(later)] == [True, False, True]


def test_success_after_a_failure_is_kept_to_complete_the_history():
    sampler = SuccessSampler(0)
    assert not sampler.wants(TRY)
    assert sampler.wants(msgspec.structs.replace(TRY, number=2))


def test_attempt_keeps_its_microseconds_and_loses_text_that_postgres_refuses():
    row = attempt_row(msgspec.structs.replace(TRY, reason="a\x00b" + "c" * 500))
    assert (row.at.microsecond, row.next_at, len(row.reason)) == (123_456, None, 200)


def test_cache_evicts_the_least_recently_used_entry():
    cache = ByteCache(limit=2 * (ENTRY_BYTES + 1))
    cache.update({"a": b"1", "b": b"2"})
    assert cache.get("a") == b"1"
    cache.update({"c": b"3"})
    assert ("a" in cache, "b" in cache, "c" in cache) == (True, False, True)


def test_updated_cache_entry_counts_once():
    cache = ByteCache(limit=ENTRY_BYTES + 10)
    for _ in range(5):
        cache.update({"a": b"12345"})
    assert cache.get("a") == b"12345"


def test_cache_evicts_entries_that_nothing_used_for_a_while():
    now_s = 0.0
    cache = ByteCache(clock=lambda: now_s)
    cache.update({"a": b"1", "b": b"2"})
    now_s = KEPT_S - 1
    assert cache.get("a") == b"1"
    now_s = KEPT_S
    cache.update({"c": b"3"})
    assert ("a" in cache, "b" in cache, "c" in cache) == (True, False, True)


@pytest.mark.parametrize(
    ("stored", "low", "high", "begin"),
    [
        pytest.param(None, 3, 9, (3, 0), id="never read: from the first there is"),
        pytest.param(5, 3, 9, (5, 0), id="where it stood"),
        pytest.param(9, 3, 9, (9, 0), id="at the end"),
        pytest.param(1, 3, 9, (3, 2), id="two records are gone"),
    ],
)
@pytest.mark.parametrize("repeatable", [True, False])
def test_reading_starts_at_the_stored_offset_or_the_first_available_one(
    stored: int | None, low: int, high: int, begin: tuple[int, int], repeatable: bool
):
    assert start_offset(stored, low, high, repeatable=repeatable) == begin


def test_offset_beyond_the_end_restarts_only_repeatable_topics_from_the_beginning():
    assert start_offset(50, 3, 9, repeatable=True) == (3, 0)
    assert start_offset(50, 3, 9, repeatable=False) == (9, 41), "released messages are not held again"


def progress(replay: str, at_us: int, *, key: str = "") -> MemoryMessage:
    value = encode_replay_progress(ReplayProgress(1, replay, at_us, {"in/0": at_us}, {"in/0": 9}))
    return MemoryMessage(0, 0, value, [], (key or replay_progress_key(replay)).encode())


def test_newest_progress_of_each_replay_is_collected_and_is_no_signal():
    found = LedgerEntries()
    for message in (progress("replay_1", 1), progress("replay_2", 2), progress("replay_1", 3)):
        found.add("signals", message)
    assert {name: one.at_us for name, one in found.replays.items()} == {"replay_1": 3, "replay_2": 2}
    assert [found.views, found.suspensions, found.progress] == [{}, {}, {}]


def test_newest_progress_of_each_shadow_run_is_collected_and_is_no_signal():
    found = LedgerEntries()
    for at_us in (1, 3):
        value = encode_shadow_progress(ShadowProgress(1, "shadow_1", at_us, {}, {}))
        found.add("signals", MemoryMessage(0, 0, value, [], shadow_progress_key("shadow_1").encode()))
    assert {name: one.at_us for name, one in found.shadows.items()} == {"shadow_1": 3}
    assert [found.views, found.suspensions, found.replays] == [{}, {}, {}]


def test_progress_of_a_replay_that_cannot_be_decoded_raises_and_changes_nothing():
    found = LedgerEntries()
    with pytest.raises(msgspec.DecodeError):
        found.add("signals", MemoryMessage(0, 0, b"\xff", [], b"replay/replay_1"))
    assert not found.replays
