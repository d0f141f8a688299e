"""Detours: pipes of a process lane that run in the slow lane, with the order of their messages kept there and back.

A pipe whose messages are expensive, or fill the ack window of a partition, delays others: it gets a detour. Its
messages are produced unchanged to the cell's `process-slow` topic, where a slow lane runs them. For each partition:

    closing   earlier messages still run here, and no others of the pipe. It ends when all their records are stored and
              the detour is in the note of the committed offset: a new owner must not run messages before their turn
    slow      each message is produced to the slow topic, and is settled here when it is stored there
    opening   messages wait in their flow until the slow lane has committed past the last one that was sent to it; then
              they run here again. If that takes too long, the detour continues

A kill never changes the order: a new owner reads the note and continues the detour.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, Protocol
from zlib import crc32

from dataplane.process.flows import FlowCost, FlowKey, PipeFlow
from dataplane.runtime.lanes.context import MAX_WINDOW_BYTES, LaneContext

DEAR_NS: Final = 2_000_000  # of CPU a message: a hundred times the cost of a plain one
DEAR_SPENT_NS: Final = 200_000_000  # CPU of expensive messages, decayed by HALF_LIFE_S, that starts a detour
HALF_LIFE_S: Final = 5.0
PART_OF_WINDOW: Final = 4  # a flow with more than 1/4 of its partition's ack window starts one, too
OTHERS_S: Final = 10.0  # a tenant with a message within this time counts as active
STAY_S: Final = 10.0  # minimum duration of a detour; twice the last one if that ended within RECENT_S
LONGEST_STAY_S: Final = 160.0
RECENT_S: Final = 300.0
NEAR: Final = 100  # largest lag of the slow lane, in messages, at which a detour may begin to end
OPENING_S: Final = 5.0
LOOK_S: Final = 0.05  # interval of reading the note, and the slow lane's progress while a detour ends
PROBE_S: Final = 1.0  # interval of reading the slow lane's progress while a detour lasts
MOST_NOTED: Final = 50  # pipes of one partition: the note has room for their entries and those of admission
WORD: Final = "slow!"  # prefix of an entry in a note; releases that do not know it read a pipe without lots


class SlowTopic(Protocol):
    """Progress of the slow topic."""

    def progress(self, partition: int) -> tuple[int, int] | None:
        """Return the committed offset and the end offset of a partition; None if the broker does not respond now."""

    def close(self) -> None:
        """Close the Kafka client."""


class State(Enum):
    """State of a detour in one partition."""

    CLOSING = "closing"
    SLOW = "slow"
    OPENING = "opening"


class _Way:
    """Detour of a pipe in one partition.

    since_s: start of the current state
    target:  end offset of the slow partition, which covers the last message that was sent there
    """

    __slots__ = ("since_s", "state", "target")

    def __init__(self, state: State, now_s: float) -> None:
        self.become(state, now_s)

    def become(self, state: State, now_s: float) -> None:
        self.state, self.since_s = state, now_s
        self.target: int | None = None


class _Detour:
    """Detour of a pipe in all partitions of this lane. It does not end before `until_s`.

    tenant: "" after a recall until the pipe's record is known; until then the detour does not begin to end
    """

    def __init__(self, tenant: str, until_s: float) -> None:
        self.tenant, self.until_s = tenant, until_s
        self.ways: dict[int, _Way] = {}


class SlowLaneDetours:
    """Detours of one lane. All times are seconds of the monotonic clock."""

    def __init__(self, lane: LaneContext, slow: SlowTopic, flows: Mapping[FlowKey, PipeFlow]) -> None:
        """`flows`: all flows of the lane, a live view."""
        self._lane, self._slow, self._flows = lane, slow, flows
        self._topic = lane.cell.topics["process-slow"]
        self._detours: dict[str, _Detour] = {}
        # By pipe: when its last detour ended, and its minimum duration.
        self._ended: dict[str, tuple[float, float]] = {}
        self._spent: dict[str, tuple[float, float]] = {}  # by pipe: CPU of expensive messages in ns, and its time
        self._seen: dict[str, float] = {}  # by tenant: time of its last message
        self._notes: dict[int, tuple[float, str]] = {}  # by partition: time of reading, and the committed note
        self._asked: dict[int, tuple[float, tuple[int, int] | None]] = {}  # by slow partition: time, progress
        self._probe_due_s = 0.0
        self._given_up: set[int] = set()  # partitions whose detours are frozen, and stay in the note

    def state(self, key: FlowKey) -> State | None:
        """Return the state of a flow's detour; None if its messages run here."""
        detour = self._detours.get(key[0])
        way = detour.ways.get(key[1]) if detour is not None else None
        return way.state if way is not None else None

    def partition(self, tenant: str) -> int:
        """Return a tenant's partition of the slow topic; a hash, so that most tenants do not wait for another one."""
        return crc32(tenant.encode()) % self._topic.partitions

    # -- start -----------------------------------------------------------------------------------------------------

    def came(self, flow: PipeFlow, now_s: float) -> None:
        """Note that messages of a flow arrived; start or extend its detour if needed."""
        self._seen[flow.tenant] = now_s
        detour = self._detours.get(flow.key[0])
        if detour is not None:
            if flow.key[1] not in detour.ways:
                self._close(flow.key, detour, now_s)
        elif self._is_crowd(flow):
            self._begin(flow, now_s, "fills its partition's window")

    def ran(self, flow: PipeFlow, cost: FlowCost, cost_ns: int, now_s: float) -> None:
        """Note the CPU, in ns, of messages that ran here; start a detour if the pipe is too expensive."""
        if cost.mean_ns < DEAR_NS:
            return
        spent_ns, then_s = self._spent.get(flow.key[0], (0.0, now_s))
        spent_ns = spent_ns * 0.5 ** ((now_s - then_s) / HALF_LIFE_S) + cost_ns
        self._spent[flow.key[0]] = (spent_ns, now_s)
        if spent_ns > DEAR_SPENT_NS:
            self._begin(flow, now_s, f"takes {cost.mean_ns / 1e6:.1f} ms of CPU a message")

    def _is_crowd(self, flow: PipeFlow) -> bool:
        if flow.count > self._lane.settings.max_unsettled // PART_OF_WINDOW:
            return True
        window = self._lane.windows.get(flow.key[1])
        most_bytes = MAX_WINDOW_BYTES // PART_OF_WINDOW
        return window is not None and window.bytes > most_bytes and flow.size_bytes() > most_bytes

    def _begin(self, flow: PipeFlow, now_s: float, why: str) -> None:
        """Start a detour if another tenant would have to wait and a slow lane runs."""
        pipe, tenant = flow.key[0], flow.tenant
        has_others = any(other != tenant and now_s - seen_s < OTHERS_S for other, seen_s in self._seen.items())
        cell = self._lane.table.cell(self._lane.identity.cell)
        if pipe in self._detours or not has_others or cell is None or not cell.lanes.get("process-slow"):
            return
        ended_s, stayed_s = self._ended.get(pipe, (float("-inf"), 0.0))
        stay_s = min(LONGEST_STAY_S, 2 * stayed_s) if now_s - ended_s < RECENT_S else STAY_S
        self._ended[pipe] = (now_s, stay_s)
        self._lane.tally.add(f"slow lane: pipe={pipe} {why}")
        detour = self._detours[pipe] = _Detour(tenant, now_s + stay_s)
        for key in [key for key in self._flows if key[0] == pipe]:
            self._close(key, detour, now_s)

    def _close(self, key: FlowKey, detour: _Detour, now_s: float) -> None:
        if len(self._words(key[1])) < MOST_NOTED:
            detour.ways[key[1]] = _Way(State.CLOSING, now_s)
            self._notes.pop(key[1], None)  # the note that was read may be of an earlier detour
            self._lane.renote(key[1])

    # -- progress --------------------------------------------------------------------------------------------------

    def poll(self, now_s: float) -> list[FlowKey]:
        """Advance the detours; return the flows whose messages may now run, here or in the slow lane."""
        if not self._detours:
            return []
        free: list[FlowKey] = []
        for pipe, detour in list(self._detours.items()):
            if not detour.tenant and (record := self._lane.table.pipe(pipe)) is not None:
                detour.tenant = record.tenant
            for partition, way in list(detour.ways.items()):
                if not self._lane.owns(partition):
                    del detour.ways[partition]
                elif partition in self._given_up:
                    continue
                elif self._moves((pipe, partition), way, now_s):
                    free.append((pipe, partition))
            if not detour.ways:
                self._end(pipe, now_s)
        if now_s >= self._probe_due_s:
            self._probe_due_s = now_s + PROBE_S
            self._open_what_is_near(now_s)
        return free

    def _moves(self, key: FlowKey, way: _Way, now_s: float) -> bool:
        """Advance one detour if possible; return True if its messages need not wait any more."""
        flow = self._flows.get(key)
        runs, waits_s = (flow.runs if flow is not None else 0), now_s - way.since_s
        if way.state is State.CLOSING and not runs and self._is_noted(key, now_s):
            way.become(State.SLOW, now_s)
            return True
        if way.state is not State.OPENING:
            return False
        detour = self._detours[key[0]]
        if not runs and self._has_passed(detour.tenant, way, now_s):
            del detour.ways[key[1]]
            self._lane.renote(key[1])
            return True
        if waits_s > OPENING_S or (flow is not None and self._is_crowd(flow)):
            way.become(State.SLOW, now_s)
            detour.until_s = now_s + STAY_S
            return True
        return False

    def _is_noted(self, key: FlowKey, now_s: float) -> bool:
        """Return True if the detour is in the committed note; the note is read back, because commits may fail."""
        pipe, partition = key
        read_s, note = self._notes.get(partition, (float("-inf"), ""))
        if now_s - read_s >= LOOK_S and f"{WORD}{pipe}=" not in note:
            note = self._lane.committed_note(partition)
            self._notes[partition] = (now_s, note)
            if f"{WORD}{pipe}=" not in note:
                self._lane.renote(partition)
        return f"{WORD}{pipe}=" in note

    def _has_passed(self, tenant: str, way: _Way, now_s: float) -> bool:
        """Return True if the slow lane has committed all that was sent to it; call only when all of that is stored."""
        progress = self._progress(self.partition(tenant), now_s, max_age_s=LOOK_S if way.target is not None else 0.0)
        if progress is None:
            return False
        committed, end = progress
        if way.target is None:
            way.target = end
        return committed >= way.target

    def _open_what_is_near(self, now_s: float) -> None:
        for detour in self._detours.values():
            if now_s < detour.until_s or {way.state for way in detour.ways.values()} != {State.SLOW}:
                continue
            if not self._given_up.isdisjoint(detour.ways) or not detour.tenant:
                continue
            progress = self._progress(self.partition(detour.tenant), now_s, max_age_s=LOOK_S)
            if progress is not None and progress[1] - progress[0] <= NEAR:
                for way in detour.ways.values():
                    way.become(State.OPENING, now_s)

    def _progress(self, partition: int, now_s: float, *, max_age_s: float) -> tuple[int, int] | None:
        """Return the progress of a slow partition, at most `max_age_s` old; a query to the brokers blocks the lane."""
        asked_s, progress = self._asked.get(partition, (float("-inf"), None))
        if now_s - asked_s >= max_age_s:
            progress = self._slow.progress(partition)
            self._asked[partition] = (now_s, progress)
        return progress

    def _end(self, pipe: str, now_s: float) -> None:
        del self._detours[pipe]
        self._spent.pop(pipe, None)
        _, stayed_s = self._ended.get(pipe, (now_s, STAY_S))
        self._ended[pipe] = (now_s, stayed_s)

    # -- rebalance -------------------------------------------------------------------------------------------------

    def note(self, partition: int) -> list[str]:
        """Return the entries for the note of a partition's commit, in the format of admission's entries."""
        return self._words(partition)

    def _words(self, partition: int) -> list[str]:
        return [f"{WORD}{pipe}=0" for pipe, detour in self._detours.items() if partition in detour.ways]

    def give_up(self, partitions: Iterable[int] | None = None) -> None:
        """Freeze the detours of these partitions (default: all) until they are recalled.

        Records to the slow topic may be in flight, so the last commit must still note the detour.
        """
        noted = {partition for detour in self._detours.values() for partition in detour.ways}
        self._given_up.update(noted if partitions is None else partitions)

    def recall(self, partition: int, note: str, now_s: float) -> None:
        """Restore the detours of a partition from the note of its last owner, possibly this lane."""
        self._given_up.discard(partition)
        self._notes[partition] = (now_s, note)
        for detour in self._detours.values():
            detour.ways.pop(partition, None)
        for entry in note.split(","):
            if not entry.startswith(WORD):
                continue
            pipe = entry.removeprefix(WORD).partition("=")[0]
            detour = self._detours.setdefault(pipe, _Detour("", now_s + STAY_S))
            detour.ways[partition] = _Way(State.SLOW, now_s)

    def close(self) -> None:
        """Close the client of the slow topic."""
        self._slow.close()
