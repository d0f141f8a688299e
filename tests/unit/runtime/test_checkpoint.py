"""What a checkpoint commits, and when: after every fact below is stored, and only partitions that are still ours."""

from collections import defaultdict

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyroaring import BitMap64

from dataplane.ledger.audit import Audit
from dataplane.ledger.facts import Fact, FactBook, FactKey
from dataplane.runtime.checkpoint import LATE_S, Checkpointer, Prefixes
from dataplane.runtime.lags import LagBook
from dataplane.runtime.outbox import TooLargeError
from dataplane.runtime.slots import Slots
from dataplane.runtime.window import AckWindow
from tests.rig.memory_checkpoint import AuditOutbox, GroupOffsets

KEY = FactKey("transmit:crm", Fact.DELIVERED)
SMALL = 400  # bytes of an audit record: a few facts make several


def window(first: int, taken: int, settled: int) -> AckWindow:
    made = AckWindow(first)
    for offset in range(first, first + taken):
        made.take(offset)
    made.settle_all(range(first, first + settled))
    return made


def test_what_is_frozen_is_committed_even_if_more_is_settled_meanwhile():
    prefixes, windows = Prefixes(), {0: window(5, 4, 2)}
    frozen = prefixes.freeze(prefixes.moved(windows))
    windows[0].settle_all([7, 8])
    assert prefixes.audited(frozen) == {0: 7}


def test_nothing_that_was_committed_is_frozen_again():
    prefixes, windows = Prefixes(), {0: window(5, 4, 2)}
    prefixes.committed(prefixes.audited(prefixes.freeze(prefixes.moved(windows))))
    assert prefixes.moved(windows) == {}


def test_a_commit_that_failed_is_frozen_again():
    prefixes, windows = Prefixes(), {0: window(5, 4, 2)}
    prefixes.committed(prefixes.audited(prefixes.freeze(prefixes.moved(windows))))
    prefixes.commit_failed([0])
    assert prefixes.moved(windows) == {0: 7}


def test_a_partition_that_was_lost_in_between_is_not_committed_even_if_it_came_back():
    prefixes = Prefixes()
    frozen = prefixes.freeze(prefixes.moved({0: window(5, 4, 2), 1: window(0, 1, 1)}))
    prefixes.forget(0)  # lost to another lane, which settles and commits more, and ours again before the audit is
    assert prefixes.audited(frozen) == {1: 1}, "a commit of 7 could go backwards"


def test_an_audit_of_the_checkpoint_before_does_not_end_the_one_under_way():
    prefixes = Prefixes()
    before, under_way = prefixes.freeze({0: 1}), prefixes.freeze({0: 2})
    prefixes.audited(before)
    assert list(prefixes.pending) == [under_way]
    prefixes.audited(under_way)
    assert not prefixes.pending


def test_a_revocation_strips_the_partition_from_every_pending_checkpoint():
    prefixes = Prefixes()
    older, newer = prefixes.freeze({0: 1, 1: 1}), prefixes.freeze({0: 2, 1: 2})
    prefixes.forget(0)
    assert [prefixes.audited(frozen) for frozen in (newer, older)] == [{1: 2}, {1: 1}]


class Stand:
    """A real Checkpointer with its books, between an outbox and a group in memory."""

    def __init__(self) -> None:
        self.outbox, self.group = AuditOutbox(), GroupOffsets()
        self.facts, self.lags = FactBook(), LagBook()
        self.windows: dict[int, AckWindow] = {}
        self.checkpointer = Checkpointer(
            cell="c1",
            writer="transmit-0",
            kind="transmit",
            run="run",
            slots=Slots(["egress"]),
            consumer=self.group,
            outbox=self.outbox,  # type: ignore[arg-type]  # what a Checkpointer uses of it
            report_bytes=SMALL,
        )

    def settle(self, partition: int, count: int, pipes: int = 1) -> None:
        """Take so many messages and settle them, with a fact for each in books of so many pipes."""
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


def told(audits: list[Audit]) -> dict[int, set[int]]:
    """The offsets that have a fact, by partition."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for audit in audits:
        for fact in audit.facts:
            found[fact.bucket].update(BitMap64.deserialize(fact.positions))
    return found


def test_a_checkpoint_is_committed_after_the_last_of_its_audit_records(stand: Stand):
    stand.settle(0, 40, pipes=20)
    stand.freeze()
    sent = 0
    while not stand.group.commits:
        assert len(stand.outbox.under_way) == 1, "the next record is sent when the one before is stored"
        assert stand.outbox.stored == [] or not stand.outbox.stored[-1].inputs, "what is settled is told last"
        stand.store()
        sent += 1
    assert sent > 5
    assert stand.group.offsets == {0: (40, "")}
    assert told(stand.outbox.stored)[0] == set(range(40))
    assert [mark.offset for mark in stand.outbox.stored[-1].inputs] == [40]
    assert [audit.sequence for audit in stand.outbox.stored] == list(range(1, sent + 1))
    assert not stand.checkpointer.busy


def test_what_is_frozen_while_a_checkpoint_is_under_way_is_stored_after_it(stand: Stand):
    stand.settle(0, 40, pipes=20)
    stand.freeze()
    stand.settle(0, 40, pipes=20)
    stand.freeze()
    stand.store_all()
    assert [commit[0][0] for commit in stand.group.commits] == [40, 80]
    settled = [audit.inputs[0].offset for audit in stand.outbox.stored if audit.inputs]
    assert settled == [40, 80]
    assert [audit.sequence for audit in stand.outbox.stored] == list(range(1, len(stand.outbox.stored) + 1))


@pytest.mark.parametrize("failure", [TooLargeError("2 MB"), MemoryError(), RuntimeError("no")])
def test_books_keep_what_the_producer_did_not_accept(stand: Stand, failure: Exception):
    stand.settle(0, 40, pipes=20)
    stand.outbox.fails = failure
    with pytest.raises(type(failure)):
        stand.freeze()
    assert len(stand.facts) == len(stand.lags) == 20
    assert not stand.group.commits


def test_a_checkpoint_that_is_not_stored_is_late(stand: Stand, monkeypatch: pytest.MonkeyPatch):
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    stand.settle(0, 40, pipes=20)
    stand.freeze()
    assert stand.checkpointer.late_s == 0
    now_s[0] += LATE_S + 1
    assert stand.checkpointer.late_s == LATE_S + 1
    stand.store()
    assert stand.checkpointer.late_s == 0, "it moves on"
    stand.store_all()
    now_s[0] += LATE_S + 1
    assert stand.checkpointer.late_s == 0, "none is under way"


PARTITIONS = (0, 1)
partitions = st.sampled_from(PARTITIONS)


class CheckpointMachine(RuleBasedStateMachine):
    """Partitions come and go while checkpoints are pending: no commit of ours replaces one of a later owner's."""

    @initialize()
    def begin(self) -> None:
        self.stand = Stand()
        self.stand.checkpointer.note = lambda slot, offset: f"ours {slot} {offset}"
        self.first: dict[int, int] = {}  # where we began to read each partition that is ours
        self.seen = 0  # commits looked at

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
        """It reads on from the committed offset, and commits more, with a note of its own."""
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
                assert window is not None, "committed what another lane owned since it was frozen"
                assert offset <= window.prefix
                assert stored[partition] >= set(range(self.first[partition], offset))
        self.seen = len(self.stand.group.commits)


TestCheckpoints = CheckpointMachine.TestCase
TestCheckpoints.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
