"""Results of windows that are computed again have the ids and bodies of those that the windows query sends."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.jobs.slots import RecentEvents, SlotBatch
from dataplane.ledger.meta import MessageMeta
from dataplane.names import WIRE_VERSION
from dataplane.plan.panes import SECOND_US
from dataplane.plan.refold import is_correctable, refold
from dataplane.plan.taps import CompiledTap, TapRecord, encode_tap
from dataplane.spec.windows import WindowSpec

SPANS = {
    "tumbling": {"kind": "tumbling", "size_s": 10},
    "sliding": {"kind": "sliding", "size_s": 20, "every_s": 10},
    "session": {"kind": "session", "gap_s": 7},
    "running": {"kind": "running", "every_s": 10},
}
START_S = 1_000_000
events = st.lists(st.tuples(st.integers(0, 90), st.integers(-5, 5)), min_size=1, max_size=20)


class MapState:
    """Map state of one slot; Spark's is a map from tuples to tuples, too."""

    def __init__(self) -> None:
        self._rows: dict[tuple[bytes], tuple[bytes]] = {}

    def updateValue(self, key: tuple[bytes], value: tuple[bytes]) -> None:  # noqa: N802
        self._rows[key] = value

    def getValue(self, key: tuple[bytes]) -> tuple[bytes] | None:  # noqa: N802
        return self._rows.get(key)

    def removeKey(self, key: tuple[bytes]) -> None:  # noqa: N802
        self._rows.pop(key, None)

    def iterator(self) -> Any:
        return iter(list(self._rows.items()))


def window(span: dict[str, Any]) -> CompiledTap:
    values = {"n": {"op": "count"}, "total": {"op": "sum", "of": "v"}}
    shape = {"span": span, "values": values, "by": ["shop"], "late_s": 5}
    return CompiledTap("w", msgspec.convert(shape, type=WindowSpec))


def taps(span: dict[str, Any], of: list[tuple[int, int]]) -> list[TapRecord]:
    found = []
    for number, (at_s, value) in enumerate(of, 1):
        at_us = (START_S + at_s) * SECOND_US
        meta = MessageMeta(WIRE_VERSION, "id", "pipe_1", 1, "shop", at_us, at_us, 0, position=number)
        tap = window(span).tap(meta, {"shop": "berlin", "v": value})
        assert tap is not None
        found.append(tap)
    return found


def sent(of: list[TapRecord]) -> dict[str, bytes]:
    """Return the bodies by id that the windows query sends for these taps, in one batch."""
    slot = SlotBatch(MapState(), RecentEvents(), 0, 0)
    for tap in of:
        slot.take(encode_tap(tap))
    return {result.id: result.body for result in slot.tick(1 << 62)}


@pytest.mark.parametrize("span", SPANS.values(), ids=SPANS)
@given(of=events)
def test_refolded_results_are_those_that_the_query_sends(span: dict[str, Any], of: list[tuple[int, int]]):
    given_taps = taps(span, of)
    assert {one.id: one.body for one in refold(given_taps)} == sent(given_taps)


@pytest.mark.parametrize("span", SPANS.values(), ids=SPANS)
def test_result_is_correctable_only_if_all_its_events_are_retained(span: dict[str, Any]):
    definitions = {"w": window(span).definition}
    start_us = (START_S + 50) * SECOND_US
    gap_us = span.get("gap_s", 0) * SECOND_US
    for one in refold(taps(span, [(50, 1)])):
        body_start_us = start_us if span["kind"] != "sliding" else None
        assert is_correctable("pipe_1", one.id, one.body, definitions, 0)
        assert not is_correctable("pipe_1", one.id, one.body, definitions, start_us + 1)
        if body_start_us is not None:
            is_retained = is_correctable("pipe_1", one.id, one.body, definitions, body_start_us - gap_us)
            assert is_retained is (span["kind"] != "running"), "a running window needs all events ever"


def test_result_of_another_definition_pipe_or_window_stays_as_it_was_sent():
    (one,) = refold(taps(SPANS["tumbling"], [(50, 1)]))
    definitions = {"w": window(SPANS["tumbling"]).definition}
    assert is_correctable("pipe_1", one.id, one.body, definitions, 0)
    assert not is_correctable("pipe_2", one.id, one.body, definitions, 0)
    assert not is_correctable("pipe_1", "another", one.body, definitions, 0)
    assert not is_correctable("pipe_1", one.id, one.body, {"w": window(SPANS["session"]).definition}, 0)
    assert not is_correctable("pipe_1", one.id, one.body, {}, 0)
    assert not is_correctable("pipe_1", one.id, b"no JSON", definitions, 0)
