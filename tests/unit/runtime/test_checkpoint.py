"""A checkpoint commits an offset once every fact below it is stored, and only of partitions it owns."""

from collections import defaultdict

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyroaring import BitMap64

from dataplane.ledger.audit import AuditRecord
from dataplane.ledger.facts import Fact, FactBook, FactKey
from dataplane.runtime.lanes.checkpoint import LATE_S, Checkpointer, CommitPrefixes
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.runtime.lanes.window import AckWindow
from dataplane.runtime.producers.tracked_producer import RecordTooLargeError
from dataplane.runtime.telemetry.lags import LagBook
from tests.support.memory_checkpoint import AuditOutbox, GroupOffsets

KEY = FactKey("transmit:crm", Fact.DELIVERED)
SMALL = 400  # bytes of an audit record: a few facts need several records


def window(first: int, taken: int, settled: int) -> AckWindow:
    made = AckWindow(first)
    for offset in range(first, first + taken):
        made.take(offset)
    made.settle_all(range(first, first + settled))
    return made


def test_frozen_offset_is_committed_even_if_more_settles_meanwhile():
    prefixes, windows = CommitPrefixes(), {0: window(5, 4, 2)}
    frozen = prefixes.freeze(prefixes.moved(windows))
    windows[0].settle_all([7, 8])
    assert prefixes.audited(frozen) == {0: 7}


def test_committed_offset_is_not_frozen_again():
    prefixes, windows = CommitPrefixes(), {0: window(5, 4, 2)}
    prefixes.committed(prefixes.audited(prefixes.freeze(prefixes.moved(windows))))
    assert prefixes.moved(windows) == {}


def test_offset_of_a_failed_commit_is_frozen_again():
    prefixes, windows = CommitPrefixes(), {0: window(5, 4, 2)}
    prefixes.committed(prefixes.audited(prefixes.freeze(prefixes.moved(windows))))
    prefixes.commit_failed([0])
    assert prefixes.moved(windows) == {0: 7}


def test_partition_revoked_before_the_audit_is_not_committed_even_if_assigned_again():
    prefixes = CommitPrefixes()
    frozen = prefixes.freeze(prefixes.moved({0: window(5, 4, 2), 1: window(0, 1, 1)}))
    prefixes.forget(0)  # revoked; another lane settles and commits more; assigned again before the audit is stored
    assert prefixes.audited(frozen) == {1: 1}, "a commit of 7 could go backwards"


def test_audit_of_the_previous_checkpoint_does_not_end_the_current_one():
    prefixes = CommitPrefixes()
    before, under_way = prefixes.freeze({0: 1}), prefixes.freeze({0: 2})
    prefixes.audited(before)
    assert list(prefixes.pending) == [under_way]
    prefixes.audited(under_way)
    assert not prefixes.pending


def test_revocation_removes_the_partition_from_every_pending_checkpoint():
    prefixes = CommitPrefixes()
    older, newer = prefixes.freeze({0: 1, 1: 1}), prefixes.freeze({0: 2, 1: 2})
    prefixes.forget(0)
    assert [prefixes.audited(frozen) for frozen in (newer, older)] == [{1: 2}, {1: 1}]


class Stand:
    """A real Checkpointer between an in-memory producer and an in-memory consumer group."""

    def __init__(self) -> None:
        self.outbox, self.group = AuditOutbox(), GroupOffsets()
        self.facts, self.lags = FactBook(), LagBook()
        self.windows: dict[int, AckWindow] = {}
        self.checkpointer = Checkpointer(
            cell="c1",
            writer="transmit-0",
            kind="transmit",
            run="run",
            slots=PartitionSlots(["egress"]),
            consumer=self.group,
            outbox=self.outbox,  # type: ignore[arg-type]  # what a Checkpointer uses of it
            report_bytes=SMALL,
        )

    def settle(self, partition: int, count: int, pipes: int = 1) -> None:
        """Read `count` messages and settle them, with one fact each, spread over `pipes` pipes."""
        window = self.windows.setdefault(partition, AckWindow(0))
        for offset in range(window.next_offset, window.next_offset + count):
            window.take(offset)
            self.facts.add(f"pipe_{offset % pipes}", partition, KEY, offset)
            self.lags.add((f"pipe_{offset % pipes}", "transmit:crm", partition), 5, 3)
            window.settle(offset)

    def freeze(self) -> None:
        self.checkpointer.freeze(self.windows, self.facts, self.lags, None, [])

    def store(self) -> None:
        self.checkpointer.audited(self.outbox.store())

    def store_all(self) -> None:
        while self.outbox.under_way:
            self.store()


@pytest.fixture
def stand() -> Stand:
    return Stand()


def told(audits: list[AuditRecord]) -> dict[int, set[int]]:
    """Return the offsets that have a fact, by partition."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for audit in audits:
        for fact in audit.facts:
            found[fact.bucket].update(BitMap64.deserialize(fact.positions))
    return found


def test_checkpoint_commits_after_the_last_of_its_audit_records(stand: Stand):
    stand.settle(0, 40, pipes=20)
    stand.freeze()
    sent = 0
    while not stand.group.commits:
        assert len(stand.outbox.under_way) == 1, "the next record is sent once the previous one is stored"
        assert stand.outbox.stored == [] or not stand.outbox.stored[-1].inputs, "settled offsets are reported last"
        stand.store()
        sent += 1
    assert sent > 5
    assert stand.group.offsets == {0: (40, "")}
    assert told(stand.outbox.stored)[0] == set(range(40))
    assert [mark.offset for mark in stand.outbox.stored[-1].inputs] == [40]
    assert [audit.sequence for audit in stand.outbox.stored] == list(range(1, sent + 1))
    assert not stand.checkpointer.busy


def test_offsets_frozen_during_a_checkpoint_are_stored_after_it(stand: Stand):
    stand.settle(0, 40, pipes=20)
    stand.freeze()
    stand.settle(0, 40, pipes=20)
    stand.freeze()
    stand.store_all()
    assert [commit[0][0] for commit in stand.group.commits] == [40, 80]
    settled = [audit.inputs[0].offset for audit in stand.outbox.stored if audit.inputs]
    assert settled == [40, 80]
    assert [audit.sequence for audit in stand.outbox.stored] == list(range(1, len(stand.outbox.stored) + 1))


@pytest.mark.parametrize("failure", [RecordTooLargeError("2 MB"), MemoryError(), RuntimeError("no")])
def test_facts_and_lags_stay_if_the_producer_does_not_accept_them(stand: Stand, failure: Exception):
    stand.settle(0, 40, pipes=20)
    stand.outbox.fails = failure
    with pytest.raises(type(failure)):
        stand.freeze()
    assert len(stand.facts) == len(stand.lags) == 20
    assert not stand.group.commits


def test_checkpoint_that_is_not_stored_is_late(stand: Stand, monkeypatch: pytest.MonkeyPatch):
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    stand.settle(0, 40, pipes=20)
    stand.freeze()
    assert stand.checkpointer.late_s == 0
    now_s[0] += LATE_S + 1
    assert stand.checkpointer.late_s == LATE_S + 1
    stand.store()
    assert stand.checkpointer.late_s == 0, "it makes progress"
    stand.store_all()
    now_s[0] += LATE_S + 1
    assert stand.checkpointer.late_s == 0, "no checkpoint is in flight"


PARTITIONS = (0, 1)
partitions = st.sampled_from(PARTITIONS)


class CheckpointMachine(RuleBasedStateMachine):
    """Partitions move between lanes while checkpoints are pending: no commit replaces one of a later owner."""

    @initialize()
    def begin(self) -> None:
        self.stand = Stand()
        self.stand.checkpointer.note = lambda slot, offset: f"ours {slot} {offset}"
        self.first: dict[int, int] = {}  # first offset read of each owned partition
        self.seen = 0  # number of commits checked so far

    @rule(partition=partitions, count=st.integers(1, 12))
    def settle(self, partition: int, count: int) -> None:
        if partition not in self.stand.windows:
            self.first[partition] = self.stand.group.offsets.get(partition, (0, ""))[0]
            self.stand.windows[partition] = AckWindow(self.first[partition])
        self.stand.settle(partition, count, pipes=5)

    @rule()
    def freeze(self) -> None:
        if len(self.stand.checkpointer._prefixes.pending) < 3:
            self.stand.freeze()

    @precondition(lambda self: self.stand.outbox.under_way)
    @rule()
    def a_record_is_stored(self) -> None:
        self.stand.store()

    @rule(is_away=st.booleans())
    def the_coordinator(self, is_away: bool) -> None:
        self.stand.group.is_away = is_away

    @rule(partition=partitions, more=st.integers(0, 3))
    def another_lane_owns_it_for_a_while(self, partition: int, more: int) -> None:
        """Let another lane resume at the committed offset and commit more, with its own note."""
        self.stand.windows.pop(partition, None)
        self.stand.checkpointer.forget(partition)
        offset = self.stand.group.offsets.get(partition, (0, ""))[0] + more
        self.stand.group.written_by_another({partition: (offset, "another's")})

    @invariant()
    def no_commit_goes_back_or_is_ahead_of_the_ledger(self) -> None:
        stored = told(self.stand.outbox.stored)
        for commit in self.stand.group.commits[self.seen :]:
            for partition, (offset, note) in commit.items():
                assert note == f"ours {partition} {offset}"
                window = self.stand.windows.get(partition)
                assert window is not None, "committed a partition that another lane owned since the freeze"
                assert offset <= window.prefix
                assert stored[partition] >= set(range(self.first[partition], offset))
        self.seen = len(self.stand.group.commits)


TestCheckpoints = CheckpointMachine.TestCase
TestCheckpoints.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
