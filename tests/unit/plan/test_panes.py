"""Windows equal a plain recomputation, for any order, any batches and any repetition of events."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.jobs.slots import RecentEvents, SlotBatch
from dataplane.ledger.meta import MessageMeta
from dataplane.names import WIRE_VERSION
from dataplane.plan.panes import SECOND_US, CompiledWindow, KeyPanes, WindowResult
from dataplane.plan.taps import CompiledTap, TapClock, TapRecord, decode_clock, encode_clock, encode_tap, key_of
from dataplane.spec.windows import Aggregate, WindowSpec
from dataplane.stages import aggregate
from dataplane.stages.aggregate import MAX_STATE_BYTES, compile_aggregate

VALUES = {
    "n": {"op": "count"},
    "total": {"op": "sum", "of": "v"},
    "low": {"op": "min", "of": "v"},
    "high": {"op": "max", "of": "v"},
    "mean": {"op": "avg", "of": "v"},
    "kinds": {"op": "distinct", "of": "v"},
}
LATE_S = 10
numbers = st.one_of(st.integers(-100, 100), st.floats(-1e6, 1e6, allow_nan=False), st.none())
# (event time in seconds, number): times within one session and far apart
events = st.lists(st.tuples(st.integers(0, 120), numbers), max_size=30)


def window(late_s: int = LATE_S, **span: Any) -> WindowSpec:
    return msgspec.convert({"span": span, "values": VALUES, "by": ["shop"], "late_s": late_s}, type=WindowSpec)


def said(of: list[Any]) -> dict[str, Any]:
    """Return the expected values, computed independently of the aggregates."""
    known = [value for value in of if value is not None]
    total = sum(map(Fraction, map(str, known)), Fraction(0))
    return {
        "n": len(of),
        "total": int(total) if total == int(total) else float(total),
        "low": min(known, default=None),
        "high": max(known, default=None),
        "mean": float(total / len(known)) if known else None,
        "kinds": len(set(map(repr, known))),
    }


def tumbling(size_s: int, every_s: int, log: Iterable[tuple[int, Any]]) -> dict[tuple[int, int], dict[str, Any]]:
    """Recompute the windows: for each span, the events in it."""
    log = list(log)
    starts = {start for at, _ in log for start in range(at - size_s + 1, at + 1) if start % every_s == 0}
    return {
        (start, start + size_s): said([value for at, value in log if start <= at < start + size_s]) for start in starts
    }


def sessions(gap_s: int, log: Iterable[tuple[int, Any]]) -> dict[tuple[int, int], dict[str, Any]]:
    """Recompute the sessions: sort the events, then split them at each gap."""
    groups: list[list[tuple[int, Any]]] = []
    for at, value in sorted(log, key=lambda event: event[0]):
        if groups and at - groups[-1][-1][0] < gap_s:
            groups[-1].append((at, value))
        else:
            groups.append([(at, value)])
    return {(group[0][0], group[-1][0] + gap_s): said([value for _, value in group]) for group in groups}


def seconds(closed: Iterable[WindowResult]) -> dict[tuple[int, int], dict[str, Any]]:
    return {(said.start_us // SECOND_US, said.end_us // SECOND_US): said.values for said in closed}


def run(defined: WindowSpec, log: Iterable[tuple[int, Any]]) -> list[WindowResult]:
    compiled, panes = CompiledWindow(defined), KeyPanes()
    for at, value in log:
        compiled.take(panes, at * SECOND_US, [1, value, value, value, value, value])
    return compiled.close(panes, 1_000 * SECOND_US)


@given(events)
def test_tumbling_windows_equal_a_recomputation(log: Any):
    assert seconds(run(window(kind="tumbling", size_s=20), log)) == tumbling(20, 20, log)


@given(events)
def test_sliding_windows_equal_a_recomputation(log: Any):
    assert seconds(run(window(kind="sliding", size_s=30, every_s=7), log)) == tumbling(30, 7, log)


@given(events)
def test_sessions_equal_a_recomputation(log: Any):
    assert seconds(run(window(kind="session", gap_s=9), log)) == sessions(9, log)


@given(events, st.randoms(use_true_random=False))
def test_results_are_identical_to_the_last_bit_for_any_order(log: Any, chance: Any):
    shuffled = list(log)
    chance.shuffle(shuffled)
    spans: list[dict[str, Any]] = [{"kind": "tumbling", "size_s": 20}, {"kind": "session", "gap_s": 9}]
    for span in spans:
        assert run(window(**span), log) == run(window(**span), shuffled)


def test_running_window_includes_all_events_since_its_beginning():
    closed = run(window(kind="running", every_s=10), [(1, 5), (12, 7), (2, 1)])
    assert [(c.end_us // SECOND_US, c.values["n"], c.values["total"]) for c in closed] == [(10, 2, 6), (20, 3, 13)]
    assert closed[1].start_us == 0


@pytest.mark.parametrize("expr", ["[body.acc, body.acc]", "body.acc + body.acc", "{'a': body.acc, 'b': body.acc}"])
def test_reduce_that_doubles_its_state_stops_growing(expr: str):
    fold = compile_aggregate(Aggregate("reduce", "v", expr))
    state: Any = "x" * 100
    for _ in range(60):
        state = fold.add(state, "y")
    assert 1_000 < len(msgspec.msgpack.encode(state)) < 2 * MAX_STATE_BYTES


def test_reduce_that_nests_deeper_with_each_value_keeps_an_encodable_state():
    fold = compile_aggregate(Aggregate("reduce", "v", "[body.acc, body.value]"))
    state: Any = 0
    for number in range(2_000):
        state = fold.add(state, number)
    assert msgspec.json.encode(state)


def test_reduce_applies_its_expression_and_skips_values_that_fail():
    spec = {"values": {"all": {"op": "reduce", "of": "v", "expr": "body.acc + body.value"}}}
    defined = msgspec.convert({"span": {"kind": "tumbling", "size_s": 10}, **spec}, type=WindowSpec)
    compiled, panes = CompiledWindow(defined), KeyPanes()
    for value in ("a", "b", 7, "c"):
        compiled.take(panes, 0, [value])
    assert compiled.close(panes, 1_000 * SECOND_US)[0].values == {"all": "abc"}


def test_distinct_is_an_estimate_within_ten_percent_beyond_its_exact_values():
    compiled, panes = CompiledWindow(window(kind="tumbling", size_s=10)), KeyPanes()
    for number in range(20_000):
        compiled.take(panes, 0, [1, number, None, None, None, number])
    (closed,) = compiled.close(panes, 1_000 * SECOND_US)
    assert closed.values["kinds"] == pytest.approx(20_000, rel=0.1)
    assert closed.values["n"] == 20_000


@given(st.lists(st.integers(0, 60), max_size=80), st.integers(1, 40))
def test_distinct_keeps_the_smallest_hashes_in_any_order_and_with_repeats(values: list[int], kept: int):
    fold = compile_aggregate(Aggregate(op="distinct", of="v"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregate, "KEPT", kept)
        state = fold.empty
        for value in values:
            state = fold.add(state, value)
    assert state == sorted({aggregate.hash_of(value) for value in values})[:kept]
    assert fold.empty == [], "the start of all states does not change"


# -- what lanes tap ------------------------------------------------------------------------------------------------


def meta(event_s: float, ingest_s: float = 1_000, position: int = 7) -> MessageMeta:
    at_us, now_us = int(event_s * SECOND_US), int(ingest_s * SECOND_US)
    return MessageMeta(WIRE_VERSION, "id", "p", 3, "shop", at_us, now_us, 16, position=position)


@pytest.mark.parametrize(
    ("event_s", "taken_at_s"),
    [
        pytest.param(995, 995, id="in time"),
        pytest.param(990, 990, id="as late as it may be"),
        pytest.param(989.9, None, id="late"),
        pytest.param(1_500, 1_000, id="ahead of our clock: as if it came now"),
        pytest.param(253_370_764_800, 1_000, id="the year 9999"),
    ],
)
def test_event_time_is_clamped_to_our_clock_or_late(event_s: float, taken_at_s: float | None):
    tap = CompiledTap("w", window(kind="tumbling", size_s=20)).tap(meta(event_s), {"shop": "a", "v": 1})
    assert (tap and tap.at_us) == (taken_at_s and taken_at_s * SECOND_US)


def test_event_that_was_held_before_the_steps_is_late():
    held = meta(995)
    held.attempt = 1
    assert CompiledTap("w", window(kind="tumbling", size_s=20)).tap(held, {"shop": "a", "v": 1}) is None


def test_missing_values_and_keys_are_null():
    tap = CompiledTap("w", window(kind="tumbling", size_s=20)).tap(meta(1_000), {"v": None})
    assert tap is not None
    assert (tap.by, tap.values) == (b"[null]", [None, None, None, None, 1, None])  # by name; `n` counts


# -- a slot of the query, over a log of taps and clocks ------------------------------------------------------------


class MemoryMap:
    """In-memory fake of Spark's map state."""

    def __init__(self, known: dict[bytes, bytes] | None = None) -> None:
        self.known = dict(known or {})

    def getValue(self, key: tuple[bytes]) -> tuple[bytes] | None:  # noqa: N802
        return (self.known[key[0]],) if key[0] in self.known else None

    def updateValue(self, key: tuple[bytes], value: tuple[bytes]) -> None:  # noqa: N802
        self.known[key[0]] = value[0]

    def removeKey(self, key: tuple[bytes]) -> None:  # noqa: N802
        del self.known[key[0]]

    def iterator(self) -> Any:
        return iter([((key,), (value,)) for key, value in self.known.items()])


TAPPING = CompiledTap("w", window(kind="tumbling", size_s=20))


def tap_of(number: int, at_s: int, shop: str, value: Any) -> TapRecord:
    tap = TAPPING.tap(meta(at_s, at_s, position=(1 << 54) + number), {"shop": shop, "v": value})
    assert tap is not None
    return tap


logs = st.lists(st.tuples(st.integers(0, 15), st.sampled_from("ab"), st.integers(-9, 9), st.booleans()), max_size=30)


@given(logs, st.data())
def test_slot_returns_the_same_results_for_any_batches_also_if_they_are_repeated(log: Any, data: st.DataObject):
    """Events arrive in time, some of them twice; the clock on the topic is never ahead of them."""
    records: list[bytes] = []
    now, told = 0, []
    for number, (step, shop, value, twice) in enumerate(log):
        now += step
        tap = tap_of(number, now, shop, value)
        told.append((now, shop, value))
        records += [encode_tap(tap)] * (2 if twice else 1) + [encode_clock(TapClock(now * SECOND_US))]
    records.append(encode_clock(TapClock(10_000 * SECOND_US)))

    state: tuple[dict[bytes, bytes], bytes, int, int] = ({}, b"", 0, 0)
    said: dict[str, bytes] = {}
    while records:
        size = data.draw(st.integers(1, len(records)))
        for _ in range(data.draw(st.integers(1, 2))):
            keys = MemoryMap(state[0])
            slot = SlotBatch(keys, RecentEvents(state[1]), state[2], state[3])
            for record in records[:size]:
                if isinstance(msgspec.msgpack.decode(record)[0], int):
                    for result in slot.tick(decode_clock(record)):
                        assert said.setdefault(result.id, result.body) == result.body
                else:
                    slot.take(record)
            slot.store()
            after = (keys.known, slot.recent.encode(), slot.clock_us, slot.due_us)
        state, records = after, records[size:]

    found = [msgspec.json.decode(body) for body in said.values()]
    totals = {(r["by"]["shop"], r["start"]): (r["events"], r["values"]["total"]) for r in found}
    assert len(totals) == len(found)
    expected: dict[tuple[str, int], list[int]] = {}
    for at, shop, value in told:
        expected.setdefault((shop, at // 20 * 20), []).append(value)
    assert sorted(totals.values()) == sorted((len(of), sum(of)) for of in expected.values())
    assert state[0] == {}, "no state of closed windows is kept"


def test_each_aggregate_gets_its_own_values_whatever_the_order_of_their_names():
    named = {"n": {"op": "count"}, "most": {"op": "max", "of": "v"}, "first": {"op": "min", "of": "w"}}
    spec = {"span": {"kind": "tumbling", "size_s": 20}, "values": named}
    tap = CompiledTap("w", msgspec.convert(spec, type=WindowSpec)).tap(meta(1_000), {"v": 7, "w": "x"})
    assert tap is not None
    slot = SlotBatch(MemoryMap({}), RecentEvents(b""), 0, 0)
    slot.take(encode_tap(tap))
    [result] = slot.tick(2_000 * SECOND_US)
    assert msgspec.json.decode(result.body)["values"] == {"n": 1, "most": 7, "first": "x"}


def test_same_key_of_another_definition_is_another_window():
    other = CompiledTap("w", window(kind="tumbling", size_s=21)).tap(meta(1_000), {"shop": "a"})
    mine = TAPPING.tap(meta(1_000), {"shop": "a"})
    assert mine is not None
    assert other is not None
    assert key_of(mine) != key_of(other)
