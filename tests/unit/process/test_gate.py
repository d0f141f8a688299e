"""The order gate against a model of its partition: no message is lost, and none overtakes another of its key.

Shares are drawn for each message, as lanes with old or new tables would see them; owners are killed with records
in flight and the next ones read on from the committed offset; releases are interrupted and repeat themselves.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec import Struct

from dataplane.process.gate import OrderGate, lots_in
from dataplane.runtime.lanes.window import AckWindow

LOTS = 2
lots = st.integers(0, LOTS - 1)
shares = st.integers(0, LOTS)
portions = st.floats(0, 1)


class Event(Struct, frozen=True):
    """Message with its lot and the offset of its first arrival."""

    lot: int
    position: int


class Partition(RuleBasedStateMachine):
    """One partition of the ingest topic, its owner, its held messages and their releases."""

    @initialize()
    def begin(self) -> None:
        self.log: list[tuple[Event, bool]] = []  # (event, True for a released one)
        self.held: list[Event] = []
        self.delivered: list[Event] = []
        self.committed, self.note = 0, 0
        self.waiting: list[int] = []  # offsets on the held topic that are in no release
        self.seen = 0  # how far the control plane has read that topic
        self.move: list[int] = []  # still to be returned by the release in progress
        self.moved: list[int] = []  # already returned by it, and may be repeated
        self.own()

    def own(self) -> None:
        """Start a new owner from the committed offset and its note."""
        self.window = AckWindow(self.committed)
        self.gate: OrderGate[int] | None = (
            OrderGate(lots_in(self.note), self.window.is_unsettled) if self.note else None
        )
        self.next = self.committed
        self.egress: list[tuple[Event, int]] = []  # in flight: (event, the offset that it settles)
        self.to_held: list[tuple[Event, int]] = []

    # -- the world -------------------------------------------------------------------------------------------------

    @rule(lot=lots)
    def one_comes(self, lot: int) -> None:
        self.log.append((Event(lot, len(self.log)), False))

    @rule(admitted=shares, near=st.booleans(), room=st.booleans(), count=st.integers(1, 4))
    def the_owner_takes(self, admitted: int, near: bool, room: bool, count: int) -> None:
        self.near = near
        for _ in range(min(count, len(self.log) - self.next)):
            self.take(admitted, room)

    def take(self, admitted: int, room: bool) -> None:
        offset, (event, back) = self.next, self.log[self.next]
        self.window.take(offset)
        self.next += 1
        if self.gate is None and admitted == LOTS:  # no gate is needed, as all keys are admitted
            self.egress.append((event, offset))
            return
        gate = self.gate = self.gate or OrderGate([], self.window.is_unsettled, lambda: self.window.prefix < offset)
        gate.near = self.near
        if back:
            passage = gate.returns(event.lot, event.position, offset, offset)
        else:
            passage = gate.arrives(event.lot, event.position, offset, offset, admitted=admitted, room=room)
        self.egress += [(self.log[one][0], one) for one in passage.run]
        self.to_held += [(self.log[one][0], one) for one in passage.hold]

    @rule(all_of_it=st.booleans())
    def the_owner_gives_up_what_it_keeps(self, all_of_it: bool) -> None:
        if self.gate is None:
            return
        given_up = self.gate.give_up() if all_of_it else self.gate.overdue()
        self.to_held += [(self.log[one][0], one) for one in given_up]

    @rule(out=portions, aside=portions)
    def records_are_stored(self, out: float, aside: float) -> None:
        for queue, topic, portion in ((self.egress, self.delivered, out), (self.to_held, self.held, aside)):
            for event, offset in self.cut(queue, portion):
                topic.append(event)
                self.window.settle(offset)

    @staticmethod
    def cut(queue: list[tuple[Event, int]], portion: float) -> list[tuple[Event, int]]:
        first = round(portion * len(queue))
        taken, queue[:] = queue[:first], queue[first:]
        return taken

    @rule()
    def the_owner_commits(self) -> None:
        self.committed = self.window.prefix
        self.note = self.gate.shut_at(self.committed) if self.gate else 0
        if self.gate and self.gate.is_idle:
            self.gate = None

    @rule()
    def the_partition_goes_to_another_lane(self) -> None:
        if self.gate:
            self.gate.abandon()
        self.records_are_stored(1, 1)
        self.the_owner_commits()
        self.own()

    @rule(out=portions, aside=portions)
    def the_owner_is_killed(self, out: float, aside: float) -> None:
        self.records_are_stored(out, aside)  # records in flight may be stored without a report
        self.own()

    # -- who releases ----------------------------------------------------------------------------------------------

    @rule(portion=portions)
    def the_control_plane_reads(self, portion: float) -> None:
        upto = self.seen + round(portion * (len(self.held) - self.seen))
        self.waiting += range(self.seen, upto)
        self.seen = upto

    @precondition(lambda self: not self.move)
    @rule(admitted=shares, most=st.integers(1, 5))
    def a_release_begins(self, admitted: int, most: int) -> None:
        self.move = [place for place in self.waiting if self.held[place].lot < admitted][:most]
        self.moved = []
        self.waiting = [place for place in self.waiting if place not in self.move]

    @rule(count=st.integers(1, 3))
    def it_brings_back(self, count: int) -> None:
        for place in self.move[:count]:
            self.log.append((self.held[place], True))
        self.moved, self.move = self.moved + self.move[:count], self.move[count:]

    @rule()
    def it_is_killed_and_does_some_again(self) -> None:
        self.move = self.moved[-2:] + self.move
        self.moved = self.moved[:-2]

    @rule()
    def it_is_aborted(self) -> None:
        self.waiting = sorted(self.waiting + self.move)
        self.move = []

    # -- what holds ------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        if not hasattr(self, "log"):
            return
        for _ in range(200):
            left = self.waiting or self.move or self.to_held or (self.gate and self.gate.kept)
            if self.next == len(self.log) and self.seen == len(self.held) and not left:
                break
            self.the_owner_takes(LOTS, near=True, room=True, count=len(self.log))
            self.the_owner_gives_up_what_it_keeps(all_of_it=False)
            self.records_are_stored(1, 1)
            self.the_owner_commits()
            self.the_control_plane_reads(1)
            self.it_brings_back(len(self.move))
            if not self.move:
                self.a_release_begins(LOTS, most=5)
        self.records_are_stored(1, 1)
        sent = {event for event, back in self.log if not back}
        assert set(self.delivered) == sent, "no message is lost"
        firsts = list(dict.fromkeys(self.delivered))
        for lot in range(LOTS):
            positions = [event.position for event in firsts if event.lot == lot]
            assert positions == sorted(positions), "no message of a lot overtakes another"


Partition.TestCase.settings = settings(max_examples=120, stateful_step_count=50, deadline=None)
TestNothingIsLostAndNothingOvertakes = Partition.TestCase


def test_owner_killed_before_a_released_message_is_stored_leaves_its_lot_closed():
    """Kept messages have lower offsets than the released one, so the next owner must not run them first."""
    owed = {1, 2}
    first: OrderGate[str] = OrderGate([], owed.__contains__)
    assert first.arrives(7, 0, 0, "one", admitted=0, room=True).hold == ["one"]
    first.near = True
    assert first.arrives(7, 1, 1, "two", admitted=50, room=True) == ([], [])
    assert first.returns(7, 0, 2, "one").run == ["one", "two"]
    assert lots_in(first.shut_at(1)) == [7]
    second: OrderGate[str] = OrderGate(lots_in(first.shut_at(1)), owed.__contains__)
    assert second.arrives(7, 1, 1, "two", admitted=50, room=True).hold == ["two"]
    owed.clear()
    assert lots_in(first.shut_at(3)) == []
    assert first.is_idle


def test_no_message_is_held_before_earlier_ones_of_its_lot_are_settled():
    """Otherwise a kill in between leaves the second held, and the next owner might hold the first behind it."""
    owed = {0, 1}
    gate: OrderGate[str] = OrderGate([], owed.__contains__)
    assert gate.arrives(7, 0, 0, "one", admitted=50, room=True).run == ["one"]
    assert gate.arrives(7, 1, 1, "two", admitted=0, room=True) == ([], [])
    assert gate.overdue() == []
    assert gate.arrives(7, 2, 2, "three", admitted=50, room=True) == ([], [])
    owed.discard(0)
    assert gate.overdue() == ["two", "three"]
