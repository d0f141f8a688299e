"""The pure part of a lane against a model broker: the invariants hold in any order of events."""

from collections import defaultdict

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyroaring import BitMap64

from dataplane.ledger.facts import Fact, FactBook, FactKey
from dataplane.runtime.lanes.checkpoint import CommitPrefixes, FrozenCheckpoint
from dataplane.runtime.lanes.window import AckWindow

PARTITIONS = (0, 1)
BOUND = 6
PENDING = 3  # checkpoints: one in flight, and those that revocations add
KEY = FactKey("transmit:crm", Fact.DELIVERED)
partitions = st.sampled_from(PARTITIONS)
shares = st.sampled_from([0.0, 0.5, 1.0])  # of the remaining messages, processed by another owner


class Broker:
    """Logs with gaps (control records, compaction), committed offsets fenced by ownership, and the audit topic."""

    def __init__(self) -> None:
        self.log: dict[int, list[int]] = {p: [] for p in PARTITIONS}
        self.committed = dict.fromkeys(PARTITIONS, 0)
        self.fence = dict.fromkeys(PARTITIONS, 0)  # increases with every change of owner
        self.audited: dict[int, set[int]] = defaultdict(set)

    def append(self, partition: int, gap: int) -> None:
        log = self.log[partition]
        log.append((log[-1] + 1 if log else 0) + gap)

    def commit(self, partition: int, offset: int) -> None:
        assert offset >= self.committed[partition], "a committed offset went backwards"
        self.committed[partition] = offset

    def change_owner(self, partition: int) -> None:
        self.fence[partition] += 1

    def work_elsewhere(self, partition: int, share: float) -> None:
        """Let another lane own the partition for a while: it processes, audits and commits some of the rest."""
        left = [offset for offset in self.log[partition] if offset >= self.committed[partition]]
        done = left[: round(share * len(left))]
        if done:
            self.audited[partition].update(done)
            self.commit(partition, done[-1] + 1)


class LaneMachine(RuleBasedStateMachine):
    """One lane; audit records and commits stay in flight until a rule delivers, fails or cuts them off."""

    def __init__(self) -> None:
        super().__init__()
        self.broker = Broker()

    @initialize()
    def begin(self) -> None:
        self.windows: dict[int, AckWindow] = {}
        self.next: dict[int, int] = {}  # owned partitions and the next offset to read
        self.open: dict[int, list[int]] = defaultdict(list)  # read and not settled
        self.sizes: dict[int, dict[int, int]] = defaultdict(dict)
        self.facts = FactBook()
        self.prefixes = CommitPrefixes()
        self.audits: list[tuple[FrozenCheckpoint, dict[int, set[int]]]] = []
        self.commits: list[dict[int, tuple[int, int]]] = []  # partition -> (offset, fence)

    # -- the world -------------------------------------------------------------------------------------------------

    @rule(partition=partitions, gaps=st.lists(st.integers(0, 2), min_size=1, max_size=4))
    def messages_come(self, partition: int, gaps: list[int]) -> None:
        for gap in gaps:
            self.broker.append(partition, gap)

    @rule(partition=partitions)
    def assign(self, partition: int) -> None:
        self.next.setdefault(partition, self.broker.committed[partition])

    # -- the loop --------------------------------------------------------------------------------------------------

    @rule(partition=partitions, sizes=st.lists(st.integers(0, 9), min_size=1, max_size=4))
    def take(self, partition: int, sizes: list[int]) -> None:
        for size in sizes:
            self._take_one(partition, size)

    def _take_one(self, partition: int, size: int) -> None:
        window = self.windows.get(partition)
        left = [o for o in self.broker.log[partition] if partition in self.next and o >= self.next[partition]]
        if not left or (window is not None and window.span >= BOUND):
            return
        if window is None:
            window = self.windows[partition] = AckWindow(left[0])
        window.take(left[0], size)
        self.next[partition] = left[0] + 1
        self.open[partition].append(left[0])
        self.sizes[partition][left[0]] = size

    @rule(partition=partitions, choice=st.integers(0, BOUND - 1))
    def settle_one_out_of_order(self, partition: int, choice: int) -> None:
        if not self.open[partition]:
            return
        offset = self.open[partition].pop(choice % len(self.open[partition]))
        self.facts.add(f"{partition}", 0, KEY, offset)
        assert self.windows[partition].settle(offset)
        assert not self.windows[partition].settle(offset), "settled twice"

    @precondition(lambda self: len(self.prefixes.pending) < PENDING)
    @rule()
    def freeze(self) -> None:
        told: dict[int, set[int]] = defaultdict(set)
        for found in self.facts.take():
            told[int(found.pipe)].update(BitMap64.deserialize(found.positions))
        self.audits.append((self.prefixes.freeze(self.prefixes.moved(self.windows)), told))

    @precondition(lambda self: self.audits)
    @rule()
    def the_audit_is_acknowledged(self) -> None:
        frozen, told = self.audits.pop(0)
        self._store(told)
        ours = self.prefixes.audited(frozen)
        self.commits.append({p: (offset, self.broker.fence[p]) for p, offset in ours.items()})
        self.prefixes.committed(ours)

    @precondition(lambda self: self.commits)
    @rule(coordinator_is_there=st.booleans())
    def a_commit_arrives(self, coordinator_is_there: bool) -> None:
        for partition, (offset, fence) in self.commits.pop(0).items():
            if coordinator_is_there and fence == self.broker.fence[partition]:
                self.broker.commit(partition, offset)
            else:
                self.prefixes.commit_failed([partition])

    # -- ownership -------------------------------------------------------------------------------------------------

    @rule(partition=partitions, share=shares, in_time=st.booleans())
    def revoke(self, partition: int, share: float, in_time: bool) -> None:
        """Revoke: in time, all in flight is acknowledged first (see `_settle_within`); else it is abandoned."""
        if in_time:
            while self.audits:
                self.the_audit_is_acknowledged()
            self.freeze()
            self.the_audit_is_acknowledged()
            while self.commits:
                self.a_commit_arrives(True)
        self.lose(partition, share)

    @rule(partition=partitions, share=shares)
    def lose(self, partition: int, share: float) -> None:
        self.windows.pop(partition, None)
        self.next.pop(partition, None)
        self.open.pop(partition, None)
        self.sizes.pop(partition, None)
        self.prefixes.forget(partition)
        self.broker.change_owner(partition)
        self.broker.work_elsewhere(partition, share)

    @rule(stored=st.integers(0, 3), landed=st.integers(0, 3), share=shares)
    def crash(self, stored: int, landed: int, share: float) -> None:
        """Crash: records in flight may have arrived or not; everything in memory is lost and read again."""
        for _ in range(min(landed, len(self.commits))):
            self.a_commit_arrives(True)
        for _, told in self.audits[:stored]:
            self._store(told)
        for partition in PARTITIONS:
            self.broker.change_owner(partition)
            self.broker.work_elsewhere(partition, share)
        self.begin()

    def _store(self, told: dict[int, set[int]]) -> None:
        for partition, offsets in told.items():
            self.broker.audited[partition] |= offsets

    # -- what must hold --------------------------------------------------------------------------------------------

    @invariant()
    def everything_below_committed_is_in_an_acknowledged_audit(self) -> None:
        for partition, log in self.broker.log.items():
            below = {offset for offset in log if offset < self.broker.committed[partition]}
            assert below <= self.broker.audited[partition]

    @invariant()
    def committed_is_never_above_the_lowest_unsettled(self) -> None:
        for partition, offsets in self.open.items():
            assert not offsets or self.broker.committed[partition] <= min(offsets)
        for partition, window in self.windows.items():
            assert self.broker.committed[partition] <= window.prefix

    @invariant()
    def nothing_taken_is_forgotten(self) -> None:
        for partition, window in self.windows.items():
            assert window.unsettled == len(self.open[partition])
            assert window.prefix == min(self.open[partition], default=self.next[partition])

    @invariant()
    def windows_are_bounded_and_know_their_bytes(self) -> None:
        for partition, window in self.windows.items():
            assert window.span <= BOUND
            held = [size for offset, size in self.sizes[partition].items() if offset >= window.prefix]
            assert window.bytes == sum(held)


TestLane = LaneMachine.TestCase
TestLane.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
