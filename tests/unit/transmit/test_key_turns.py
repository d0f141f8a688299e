"""One message of a key at a time, in order of arrival."""

from typing import Any

from dataplane.ledger.meta import MessageMeta
from dataplane.transmit.deliveries.delivery import Delivery
from dataplane.transmit.deliveries.settled_units import UnitRound
from dataplane.transmit.policy.key_turns import KeyTurns


def send(position: int) -> Delivery:
    meta = MessageMeta(1, f"id-{position}", "p", 1, "shop", 0, 0, 0, position=position, destination="crm")
    target: Any = None
    return Delivery(UnitRound("p", "crm", 0, 0, position), meta, target, [], b"k", b"", [(0, position)], 0.0, 0)


def test_key_has_one_turn_at_a_time_and_other_keys_have_their_own():
    keys, one, two, three = KeyTurns[Delivery](), send(1), send(2), send(3)
    assert [keys.enter(one, b"a"), keys.enter(two, b"a"), keys.enter(three, b"b")] == [True, False, True]
    assert (keys.count, list(keys)) == (1, [two])
    assert keys.leave(two, b"a") is None, "it has no turn to give up"
    assert keys.leave(one, b"a") is two
    assert two.has_turn
    assert keys.leave(two, b"a") is None
    assert not keys.is_busy(b"a")
    assert keys.count == 0


def test_removed_message_no_longer_waits():
    keys, sends = KeyTurns[Delivery](), [send(n) for n in range(4)]
    for one in sends:
        keys.enter(one, b"a")
    assert keys.take_out(lambda one: one.meta.position in (0, 2)) == [sends[2]], "the first one does not wait"
    assert keys.leave(sends[0], b"a") is sends[1]
    assert keys.leave(sends[1], b"a") is sends[3]


def test_message_follows_the_earlier_ones_of_its_key_that_were_set_aside():
    keys, one, two, three = KeyTurns[Delivery](), send(1), send(2), send(3)
    keys.go_round(one, b"a")
    assert keys.must_follow(two, b"a")
    keys.go_round(two, b"a")
    assert not keys.must_follow(three, b"b"), "another key"
    assert not keys.must_follow(one, b"a"), "it has returned"
    assert keys.must_follow(three, b"a"), "the second has not"
    keys.go_round(three, b"a")
    assert [keys.must_follow(one_, b"a") for one_ in (two, three, one)] == [False, False, False]


def test_message_that_comes_back_follows_an_earlier_one_that_had_to_leave_again():
    keys, one, two = KeyTurns[Delivery](), send(1), send(2)
    for each in (one, two):
        keys.go_round(each, b"a")
    assert not keys.must_follow(one, b"a")
    keys.go_round(one, b"a")
    assert keys.must_follow(two, b"a")
    keys.go_round(two, b"a")
    assert [keys.must_follow(each, b"a") for each in (one, two)] == [False, False]


def test_message_that_ends_in_the_retrier_holds_up_no_other_of_its_key():
    keys, one, two, three = KeyTurns[Delivery](), send(1), send(2), send(3)
    for each in (one, two):
        keys.go_round(each, b"a")
    assert not keys.must_follow(two, b"a"), "it left later, so the first will not come back"
    assert not keys.must_follow(three, b"a")
