"""Detours: a pipe with expensive messages runs in the slow lane for a time; none is lost or overtaken."""

from collections import Counter
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec.structs import replace

from dataplane.ledger.facts import SLOW
from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import place_of
from dataplane.names import Purpose
from dataplane.process import detours
from dataplane.process.detours import STAY_S
from tests.support.slow_process import TwoLanes, marks

KEYS = [b"k1", b"k1", b"k5", b"k2"]  # two of them in one partition


@pytest.fixture
def lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TwoLanes:
    return TwoLanes(tmp_path, monkeypatch)


def dear(lanes: TwoLanes, count: int = 30) -> None:
    """Send messages of two pipes until the expensive one is on its detour."""
    lanes.cost_ms["dear"] = 14.0
    for _ in range(20):
        lanes.send("plain", b"k1")
        lanes.send("dear", b"k0", count)
        lanes.passes()
        if lanes.states() == {"slow"}:
            return
    raise AssertionError(f"its detour is {lanes.states()}")


def test_expensive_messages_run_in_the_slow_lane_while_other_messages_are_there(lanes: TwoLanes):
    dear(lanes)
    before = lanes.main.ran.count("dear")
    lanes.send("dear", b"k0", 50)
    lanes.finish()
    assert lanes.main.ran.count("dear") == before
    assert not lanes.overtaken()
    assert Counter(lanes.egress) == Counter(lanes.expected())


def test_tenant_that_is_alone_in_its_lane_is_not_diverted(lanes: TwoLanes):
    lanes.cost_ms["dear"] = 14.0
    lanes.send("dear", b"k0", 200)
    lanes.finish()
    assert not lanes.diverted
    assert "dear" not in lanes.slow.ran


def test_pipe_that_fills_the_window_is_diverted_however_cheap_its_messages_are(lanes: TwoLanes):
    lanes.main.lane.settings = replace(lanes.main.lane.settings, max_unsettled=200)
    lanes.cost_ms["dear"] = 1.0
    lanes.send("plain", b"k1")
    lanes.send("dear", b"k0", 70)
    lanes.passes(10)
    assert lanes.states() == {"slow"}
    lanes.finish()
    assert not lanes.overtaken()


def test_cell_without_slow_lanes_runs_expensive_messages_in_the_main_lane(lanes: TwoLanes):
    cell = lanes.main.lane.cell
    lanes.main.lane.table.apply(type(cell)("c1", 2, 1, {"process": 1}, cell.topics))
    lanes.cost_ms["dear"] = 14.0
    lanes.send("plain", b"k1")
    lanes.send("dear", b"k0", 100)
    lanes.finish()
    assert not lanes.diverted


def test_cell_of_an_earlier_release_has_no_slow_topic_and_runs_as_before(lanes: TwoLanes):
    lane = lanes.main.lane
    topics = dict(lane.cell.topics)
    del topics["process-slow"]
    lane.cell = type(lane.cell)("c1", 2, 1, {"process": 1}, topics)
    lane.work = type(lane.work)(lane, lane.work._lookups)
    lanes.send("dear", b"k0", 3)
    lanes.main.read(10)
    assert len(lane.producer.of(lane.cell.topics["egress"].name)) == 3


def test_detour_applies_to_all_partitions_of_the_pipe(lanes: TwoLanes):
    dear(lanes)
    before = lanes.main.ran.count("dear")
    lanes.send("dear", b"k2", 20)
    lanes.finish()
    assert lanes.main.ran.count("dear") == before


def test_diverted_message_keeps_its_body_key_and_position(lanes: TwoLanes):
    dear(lanes)
    (partition,) = [partition for partition, log in lanes.diverted.items() if log]
    first = lanes.diverted[partition][0]
    meta = read_meta(first.headers())
    origin = place_of(meta.position)
    arrived = lanes.ingest[origin.partition][origin.offset]
    assert (first.value(), first.key()) == (arrived.value(), arrived.key())
    assert (meta.id, meta.pipe) == (read_meta(arrived.headers()).id, "dear")
    assert marks(first) == marks(arrived)


def test_diversion_is_reported_and_each_unit_is_seen_once(lanes: TwoLanes):
    dear(lanes)
    lanes.send("dear", b"k0", 40)
    lanes.finish()
    main, slow = lanes.main.lane.filed(), lanes.slow.lane.filed()
    diverted = main["normalize", "sent", SLOW]
    assert diverted == len([message for log in lanes.diverted.values() for message in log])
    assert slow["process", "sent", ""] == diverted
    assert main["process", "sent", ""] == lanes.main.ran.count("dear") + lanes.main.ran.count("plain")


def test_usage_of_a_diverted_pipe_is_counted_once(lanes: TwoLanes):
    dear(lanes)
    lanes.send("dear", b"k0", 40)
    lanes.finish()
    usages = [half.lane.usage for half in (lanes.main, lanes.slow)]
    for usage in usages:
        usage.hasten()
    taken = [usage.take_if_due() for usage in usages]
    units = [sum(pipe.units for pipe in usage.pipes if pipe.pipe == "dear") for usage in taken if usage is not None]
    assert units == [lanes.sent["dear", b"k0"], 0]


def test_detour_ends_when_the_messages_are_cheap_again(lanes: TwoLanes):
    dear(lanes)
    lanes.cost_ms["dear"] = 0.01
    lanes.send("dear", b"k0", 20)
    lanes.finish()
    lanes.now_s += STAY_S
    for _ in range(50):
        lanes.send("dear", b"k0")
        lanes.passes()
    assert lanes.states() == set()
    before = len(lanes.slow.ran)
    lanes.send("dear", b"k0", 30)
    lanes.finish()
    assert len(lanes.slow.ran) == before
    assert not lanes.overtaken()
    assert Counter(lanes.egress) == Counter(lanes.expected())
    assert set(lanes.main.notes.values()) == {""}, "no note of the detour remains"


def test_main_lane_waits_for_the_slow_lane_before_it_resumes_the_pipe(lanes: TwoLanes):
    dear(lanes)
    lanes.finish()
    lanes.now_s += STAY_S
    lanes.send("dear", b"k0", 5)
    lanes.main.read(10)
    lanes.main.store()  # the slow lane is paused
    lanes.now_s += 2.0
    for _ in range(5):
        lanes.main.read(10)
        lanes.main.store()
        lanes.main.commit()
    assert lanes.states() == {"opening"}
    sent = len(lanes.main.ran)
    lanes.send("dear", b"k0", 5)
    lanes.main.read(10)
    assert len(lanes.main.ran) == sent
    lanes.finish()
    assert not lanes.overtaken()


def test_main_lane_waits_until_all_diverted_messages_are_stored(lanes: TwoLanes):
    dear(lanes)
    lanes.finish()
    lanes.send("dear", b"k0", 5)
    lanes.main.read(10)
    lanes.now_s += STAY_S
    for _ in range(5):
        lanes.main.read(10)  # the slow topic does not acknowledge
        lanes.slow.read(10)
        lanes.slow.store()
        lanes.slow.commit()
        lanes.now_s += 0.1
    assert lanes.states() == {"opening"}
    lanes.finish()
    assert not lanes.overtaken()


def test_no_message_is_diverted_before_earlier_ones_are_stored(lanes: TwoLanes):
    lanes.cost_ms["dear"] = 14.0
    lanes.send("plain", b"k1")
    lanes.send("dear", b"k0", 60)
    for _ in range(60):
        lanes.main.read(20)
        lanes.main.commit()
        lanes.now_s += 0.1
    assert lanes.states() == {"closing"}
    assert 0 < lanes.main.ran.count("dear") < 60
    lanes.main.store("process-slow")
    assert not any(lanes.diverted.values())
    lanes.finish()
    assert not lanes.overtaken()


def test_each_further_detour_lasts_longer(lanes: TwoLanes):
    ours = lanes.main.lane.work._detours
    stays = []
    for _ in range(3):
        dear(lanes)
        stays.append(ours._detours["dear"].until_s - lanes.now_s)
        lanes.cost_ms["dear"] = 0.01
        lanes.finish()
        lanes.now_s = ours._detours["dear"].until_s
        lanes.passes(60)
        assert lanes.states() == set()
        lanes.main.lane.work._costs.clear()
    assert stays[0] <= STAY_S
    assert stays[1] > 1.5 * stays[0]
    assert stays[2] > 1.5 * stays[1]


def test_new_owner_continues_the_detour(lanes: TwoLanes):
    dear(lanes)
    lanes.kill(lanes.main, 0)
    assert lanes.states() == {"slow"}
    before = lanes.main.ran.count("dear")
    lanes.send("dear", b"k0", 20)
    lanes.finish()
    assert lanes.main.ran.count("dear") == before
    assert not lanes.overtaken()


@pytest.mark.parametrize("how", ["drain", "revoke"])
def test_drained_or_revoked_partition_notes_a_detour_whose_last_messages_are_in_flight(lanes: TwoLanes, how: str):
    """Those messages are stored after all, and the next owner must send later ones behind them."""
    dear(lanes)
    lanes.finish()
    lanes.passes(3)
    lanes.now_s += STAY_S
    lanes.send("dear", b"k0", 5)
    lanes.main.read(10)  # produces them to the slow topic, and the detour begins to end
    if lanes.states() == {"slow"}:
        lanes.now_s += 1.1
        lanes.main.lane.work.poll()
    assert lanes.states() == {"opening"}
    lanes.main.drain() if how == "drain" else lanes.main.revoke(range(4))
    lanes.kill(lanes.main, 0)
    lanes.send("dear", b"k0", 3)
    lanes.main.read(10)
    lanes.main.store()
    lanes.main.commit()
    lanes.finish()
    assert not lanes.overtaken()


def test_recalled_detour_requests_no_partition_before_the_record_of_its_pipe_is_known(
    lanes: TwoLanes, monkeypatch: pytest.MonkeyPatch
):
    dear(lanes)
    lanes.finish()
    lanes.kill(lanes.main, 0)
    ours, table = lanes.main.lane.work._detours, lanes.main.lane.table
    record, asked = table.pipe("dear"), list[int]()
    assert record is not None
    ours._slow.progress = asked.append
    with monkeypatch.context() as early:
        early.setattr(table, "pipe", lambda _pipe: None)
        ours.poll(lanes.now_s + STAY_S + 1)
        assert not asked
    ours.poll(lanes.now_s + STAY_S + 3)
    assert set(asked) == {ours.partition(record.tenant)}


def test_no_message_is_diverted_before_the_note_is_committed(lanes: TwoLanes):
    """Otherwise a new owner without the note would run later messages before those of the slow lane."""
    lanes.cost_ms["dear"] = 14.0
    lanes.send("plain", b"k1")
    lanes.send("dear", b"k0", 60)
    for _ in range(60):
        lanes.main.read(20)
        lanes.main.store()
        lanes.now_s += 0.1
    assert lanes.states() == {"closing"}
    assert not any(lanes.diverted.values())
    lanes.main.commit()
    lanes.now_s += 0.1
    lanes.main.read(20)
    lanes.main.store()
    assert any(lanes.diverted.values())


def test_notes_of_detours_leave_room_for_those_of_admission(lanes: TwoLanes):
    from dataplane.process.admission import NOTE_BYTES
    from dataplane.process.detours import MOST_NOTED, WORD

    longest = f"{WORD}{'x' * 36}=0,"
    assert MOST_NOTED * len(longest) < NOTE_BYTES


class DetourMachine(RuleBasedStateMachine):
    """Random events in random order: no message is lost or overtaken."""

    @initialize()
    def begin(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(detours, "DEAR_SPENT_NS", 30_000_000)
        self.lanes = TwoLanes(Path(mkdtemp()), self.patch)
        self.lanes.cost_ms["dear"] = 15.0
        self.lanes.send("plain", b"k1")
        self.lanes.send("dear", b"k1", 5)
        self.killed = False

    @rule(key=st.sampled_from(KEYS), count=st.integers(1, 12), pipe=st.sampled_from(["dear", "dear", "plain"]))
    def send(self, key: bytes, count: int, pipe: str) -> None:
        self.lanes.send(pipe, key, count)

    @rule(most=st.integers(1, 12))
    def read(self, most: int) -> None:
        self.lanes.main.read(most)

    @rule(purpose=st.sampled_from([None, None, "egress", "process-slow"]))
    def store(self, purpose: Purpose | None) -> None:
        self.lanes.main.store(purpose)

    @rule()
    def commit(self) -> None:
        self.lanes.main.commit()

    @rule(most=st.integers(1, 12))
    def run_slow(self, most: int) -> None:
        self.lanes.slow.read(most)

    @rule()
    def store_slow(self) -> None:
        self.lanes.slow.store()
        self.lanes.slow.commit()

    @rule(times=st.integers(1, 5))
    def both(self, times: int) -> None:
        self.lanes.passes(times)

    @rule(stored=st.integers(0, 10))
    def kill_main(self, stored: int) -> None:
        self.killed = True
        self.lanes.kill(self.lanes.main, stored)

    @rule(stored=st.integers(0, 10))
    def kill_slow(self, stored: int) -> None:
        self.killed = True
        self.lanes.kill(self.lanes.slow, stored)

    @rule(partition=st.integers(0, 3), stored=st.booleans())
    def revoke_and_assign(self, partition: int, stored: bool) -> None:
        self.killed = True
        self.lanes.main.revoke([partition], stored=stored)
        self.lanes.main.assign(partition)

    @rule(stored=st.booleans())
    def drain(self, stored: bool) -> None:
        self.killed = True
        self.lanes.main.drain(stored=stored)
        self.lanes.kill(self.lanes.main, 0)

    @rule(seconds=st.sampled_from([0.1, 1.0, 12.0]))
    def wait(self, seconds: float) -> None:
        """Advance the clock and let the main lane read once."""
        self.lanes.now_s += seconds
        self.lanes.main.read(1)

    @rule(cost_ms=st.sampled_from([0.01, 15.0]))
    def costs(self, cost_ms: float) -> None:
        self.lanes.cost_ms["dear"] = cost_ms

    def teardown(self) -> None:
        self.lanes.cost_ms["dear"] = 0.01
        try:
            self.lanes.finish()
        finally:
            self.patch.undo()
        assert not self.lanes.overtaken()
        if not self.killed:
            assert Counter(self.lanes.egress) == Counter(self.lanes.expected())


TestDetourMachine = DetourMachine.TestCase
TestDetourMachine.settings = settings(
    max_examples=40, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
