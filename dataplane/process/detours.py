"""Which pipes of a process lane run in the slow lane, and how their messages keep their order there and back.

A pipe whose messages are dear, or fill the window of a partition, makes others wait: it is put on a detour. Its
messages go, as they came, to the cell's `process-slow` topic, where a lane of its own runs them. For each partition:

    closing   what came before still runs here; nothing more of the pipe does. It ends when all of that is stored and
              the detour is noted beside the committed offset: who reads on from there must not run ahead of it
    slow      each message is produced to the slow topic, and is settled here when it is stored there
    opening   messages wait in their flow until the slow lane has committed past the last one that it was given; then
              they run here again. If that takes too long, the detour goes on

Nothing overtakes, whoever is killed: a new owner reads the note and goes on with the detour.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, Protocol
from zlib import crc32

from dataplane.process.flows import Cost, Flow, FlowKey
from dataplane.runtime.lane import MAX_WINDOW_BYTES, Lane

DEAR_NS: Final = 2_000_000  # of CPU a message: a hundred times what a plain one takes
DEAR_SPENT_NS: Final = 200_000_000  # so much CPU of dear messages, less what is forgotten, begins a detour
HALF_LIFE_S: Final = 5.0
PART_OF_WINDOW: Final = 4  # a flow with more than this part of its partition's window begins one, too
OTHERS_S: Final = 10.0  # a tenant that has sent something within this time is there
STAY_S: Final = 10.0  # a detour lasts so long at least; twice as long as the one before that ended lately
LONGEST_STAY_S: Final = 160.0
LATELY_S: Final = 300.0
NEAR: Final = 100  # messages that the slow lane may be behind when a detour is about to end
OPENING_S: Final = 5.0
LOOK_S: Final = 0.05  # how often the note is looked at, and the slow lane while a detour is about to end
PROBE_S: Final = 1.0  # how often the slow lane is, while a detour lasts
MOST_NOTED: Final = 50  # pipes in one partition: a note has room for their words and those of admission
WORD: Final = "slow!"  # before the pipe, in a note; a release that does not know it takes it for a pipe without lots


class SlowTopic(Protocol):
    """How far the slow topic is written and read."""

    def progress(self, partition: int) -> tuple[int, int] | None:
        """What its lanes have committed, and where it ends; None if nobody answers now."""

    def close(self) -> None:
        """Let go of what it reads with."""


class State(Enum):
    """Of a detour in one partition."""

    CLOSING = "closing"
    SLOW = "slow"
    OPENING = "opening"


class _Way:
    """The detour of a pipe in one partition. `since_s`: of its state; `target`: where its last message may lie."""

    __slots__ = ("since_s", "state", "target")

    def __init__(self, state: State, now_s: float) -> None:
        self.become(state, now_s)

    def become(self, state: State, now_s: float) -> None:
        self.state, self.since_s = state, now_s
        self.target: int | None = None


class _Detour:
    """A pipe's detour, in all partitions of this lane. It does not end before `until_s`.

    tenant: "" after a recall, until the pipe's record is known; no detour begins to end before
    """

    def __init__(self, tenant: str, until_s: float) -> None:
        self.tenant, self.until_s = tenant, until_s
        self.ways: dict[int, _Way] = {}


class Detours:
    """The detours of one lane. Times are of the monotonic clock."""

    def __init__(self, lane: Lane, slow: SlowTopic, flows: Mapping[FlowKey, Flow]) -> None:
        """`flows`: all of the lane's, as they are at any time."""
        self._lane, self._slow, self._flows = lane, slow, flows
        self._topic = lane.cell.topics["process-slow"]
        self._detours: dict[str, _Detour] = {}
        self._ended: dict[str, tuple[float, float]] = {}  # by pipe: when its last one ended, and how long it stayed
        self._spent: dict[str, tuple[float, float]] = {}  # by pipe: CPU of dear messages, as of when
        self._seen: dict[str, float] = {}  # tenants, and when a message of theirs came last
        self._notes: dict[int, tuple[float, str]] = {}  # by partition: what is committed, as of when
        self._asked: dict[int, tuple[float, tuple[int, int] | None]] = {}  # by slow partition: its progress, as of when
        self._probe_due_s = 0.0
        self._given_up: set[int] = set()  # partitions whose detours stay as they are, and so are noted

    def state(self, key: FlowKey) -> State | None:
        """Of a flow; None if its messages run here."""
        detour = self._detours.get(key[0])
        way = detour.ways.get(key[1]) if detour is not None else None
        return way.state if way is not None else None

    def partition(self, tenant: str) -> int:
        """Where a tenant's messages go on the slow topic: most tenants are behind no other one there."""
        return crc32(tenant.encode()) % self._topic.partitions

    # -- beginning -------------------------------------------------------------------------------------------------

    def came(self, flow: Flow, now_s: float) -> None:
        """Messages of a flow came."""
        self._seen[flow.tenant] = now_s
        detour = self._detours.get(flow.key[0])
        if detour is not None:
            if flow.key[1] not in detour.ways:
                self._close(flow.key, detour, now_s)
        elif self._is_crowd(flow):
            self._begin(flow, now_s, "fills its partition's window")

    def ran(self, flow: Flow, cost: Cost, cost_ns: int, now_s: float) -> None:
        """Messages of a flow ran here, at this CPU."""
        if cost.mean_ns < DEAR_NS:
            return
        spent_ns, then_s = self._spent.get(flow.key[0], (0.0, now_s))
        spent_ns = spent_ns * 0.5 ** ((now_s - then_s) / HALF_LIFE_S) + cost_ns
        self._spent[flow.key[0]] = (spent_ns, now_s)
        if spent_ns > DEAR_SPENT_NS:
            self._begin(flow, now_s, f"takes {cost.mean_ns / 1e6:.1f} ms of CPU a message")

    def _is_crowd(self, flow: Flow) -> bool:
        if flow.count > self._lane.settings.max_unsettled // PART_OF_WINDOW:
            return True
        window = self._lane.windows.get(flow.key[1])
        most_bytes = MAX_WINDOW_BYTES // PART_OF_WINDOW
        return window is not None and window.bytes > most_bytes and flow.size_bytes() > most_bytes

    def _begin(self, flow: Flow, now_s: float, why: str) -> None:
        """Only where another tenant would have to wait, and a slow lane runs."""
        pipe, tenant = flow.key[0], flow.tenant
        others = any(other != tenant and now_s - seen_s < OTHERS_S for other, seen_s in self._seen.items())
        cell = self._lane.table.cell(self._lane.identity.cell)
        if pipe in self._detours or not others or cell is None or not cell.lanes.get("process-slow"):
            return
        ended_s, stayed_s = self._ended.get(pipe, (float("-inf"), 0.0))
        stay_s = min(LONGEST_STAY_S, 2 * stayed_s) if now_s - ended_s < LATELY_S else STAY_S
        self._ended[pipe] = (now_s, stay_s)
        self._lane.tally.add(f"slow lane: pipe={pipe} {why}")
        detour = self._detours[pipe] = _Detour(tenant, now_s + stay_s)
        for key in [key for key in self._flows if key[0] == pipe]:
            self._close(key, detour, now_s)

    def _close(self, key: FlowKey, detour: _Detour, now_s: float) -> None:
        if len(self._words(key[1])) < MOST_NOTED:
            detour.ways[key[1]] = _Way(State.CLOSING, now_s)
            self._notes.pop(key[1], None)  # what was read before may be of an earlier detour
            self._lane.renote(key[1])

    # -- going on --------------------------------------------------------------------------------------------------

    def turn(self, now_s: float) -> list[FlowKey]:
        """Move the detours on; the flows that may go on, be it here or to the slow lane."""
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
        """Move one on if it may; whether its messages need not wait any more."""
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
        """Whether the commit that says so has been made: it is read back, for commits may fail."""
        pipe, partition = key
        read_s, note = self._notes.get(partition, (float("-inf"), ""))
        if now_s - read_s >= LOOK_S and f"{WORD}{pipe}=" not in note:
            note = self._lane.committed_note(partition)
            self._notes[partition] = (now_s, note)
            if f"{WORD}{pipe}=" not in note:
                self._lane.renote(partition)
        return f"{WORD}{pipe}=" in note

    def _has_passed(self, tenant: str, way: _Way, now_s: float) -> bool:
        """Whether the slow lane has run all that it was given. Asked when everything that was sent there is stored."""
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
        """Of a partition of the slow topic, no older than that; whoever asks the brokers waits for them."""
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

    # -- partitions come and go ------------------------------------------------------------------------------------

    def note(self, partition: int) -> list[str]:
        """What is to be committed beside an offset of a partition, as words of an admission's note."""
        return self._words(partition)

    def _words(self, partition: int) -> list[str]:
        return [f"{WORD}{pipe}=0" for pipe, detour in self._detours.items() if partition in detour.ways]

    def give_up(self, partitions: Iterable[int] | None = None) -> None:
        """Leave the detours of these partitions, or of all, as they are, until they are recalled.

        What was produced to the slow topic may be under way: the last commit says that it goes there.
        """
        noted = {partition for detour in self._detours.values() for partition in detour.ways}
        self._given_up.update(noted if partitions is None else partitions)

    def recall(self, partition: int, note: str, now_s: float) -> None:
        """What an earlier owner noted; it may have been ourselves."""
        self._given_up.discard(partition)
        self._notes[partition] = (now_s, note)
        for detour in self._detours.values():
            detour.ways.pop(partition, None)
        for word in note.split(","):
            if not word.startswith(WORD):
                continue
            pipe = word.removeprefix(WORD).partition("=")[0]
            detour = self._detours.setdefault(pipe, _Detour("", now_s + STAY_S))
            detour.ways[partition] = _Way(State.SLOW, now_s)

    def close(self) -> None:
        """Let go of the slow topic."""
        self._slow.close()
