"""Windows of a slot: repeats count once, and results depend on neither the limits nor the order of batches."""

import json
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Final
from zlib import crc32

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.jobs import slots
from dataplane.jobs.windows import SLOTS, WindowProcessor
from dataplane.ledger.units import OFFSET_BITS, position_of
from dataplane.plan.panes import SECOND_US
from dataplane.plan.taps import TapClock, TapRecord, digest_partition, encode_clock, encode_tap, key_of
from dataplane.spec.windows import WindowSpec

PARTITIONS: Final = 4
SPEC: Final = {
    "span": {"kind": "tumbling", "size_s": 60},
    "by": ["shop"],
    "late_s": 30,
    "values": {"orders": {"op": "count"}},
}
DEFINITION: Final = msgspec.json.Encoder(order="sorted").encode(msgspec.convert(SPEC, WindowSpec))
END: Final = 1_000  # seconds; all windows have ended

Log = list[bytes | int]  # of one partition: encoded taps, and clocks in seconds


def tap(shop: str, offset: int, at_s: int) -> TapRecord:
    by = json.dumps([shop]).encode()
    return TapRecord("p", 1, "w", DEFINITION, by, at_s * SECOND_US, [1], position_of(1, 0, offset), 0, 0)


def shop_of(partition: int) -> str:
    """Return a shop whose taps are in this partition; all are in slot 0."""
    return next(
        name
        for name in (f"shop{number}" for number in range(10_000))
        if (key := key_of(tap(name, 0, 0)))
        and digest_partition(key, PARTITIONS) == partition
        and crc32(key) % SLOTS == 0
    )


SHOPS: Final = [shop_of(partition) for partition in range(PARTITIONS)]


class MapState(dict[Any, Any]):
    """Spark's map state, in memory."""

    getValue = dict.get  # noqa: N815
    updateValue = dict.__setitem__  # noqa: N815
    removeKey = dict.__delitem__  # noqa: N815

    def iterator(self) -> Iterator[Any]:
        return iter(list(self.items()))


class ValueState:
    """Spark's value state, in memory."""

    def __init__(self) -> None:
        self._value: Any = None

    def get(self) -> Any:
        return self._value

    def update(self, value: Any) -> None:
        self._value = value


class Slot:
    """Slot whose partitions are read batch by batch."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self._logs, self._read = logs, [0] * len(logs)
        maps: dict[str, MapState] = {}
        values: dict[str, ValueState] = {}
        handle: Any = SimpleNamespace(
            getMapState=lambda name, *_: maps.setdefault(name, MapState()),
            getValueState=lambda name, *_: values.setdefault(name, ValueState()),
        )
        self._processor = WindowProcessor(len(logs))
        self._processor.init(handle)
        self.results: dict[str, bytes] = {}
        self.repeats: list[str] = []

    def batch(self, counts: Sequence[int]) -> None:
        """Read this many more records of each partition."""
        rows = []
        for partition, count in enumerate(counts):
            begin = self._read[partition]
            self._read[partition] = begin + count
            for offset, record in enumerate(self._logs[partition][begin : begin + count], begin):
                key = None if isinstance(record, int) else b"key"
                value = encode_clock(TapClock(record * SECOND_US)) if isinstance(record, int) else record
                rows.append(SimpleNamespace(partition=partition, offset=offset, key=key, value=value))
        for row in self._processor.handleInputRows(0, rows, None):
            if row.id is not None and self.results.setdefault(row.id, row.body) != row.body:
                self.repeats.append(row.id)

    def finish(self) -> dict[str, bytes]:
        """Read the rest."""
        self.batch([len(log) for log in self._logs])
        assert self.repeats == []
        return self.results

    def orders(self) -> list[int]:
        return sorted(json.loads(body)["values"]["orders"] for body in self.results.values())


@pytest.mark.parametrize("ahead", [slots.KEPT + 1, 4 * slots.KEPT])
def test_tap_repeated_in_a_partition_that_is_behind_counts_once(ahead: int):
    repeated = encode_tap(tap(SHOPS[0], 100, 10))
    logs: list[Log] = [[repeated, repeated, END], [encode_tap(tap(SHOPS[1], 100 + ahead, 50)), END], [END], [END]]
    slot = Slot(logs)
    slot.batch([1, 1, 0, 0])
    slot.finish()
    assert slot.orders() == [1, 1]


def test_one_partition_keeps_the_state_of_earlier_releases():
    recent = slots.RecentEvents()
    assert recent.add(tap("shop", 7, 10))
    assert list(msgspec.msgpack.decode(recent.encode())) == [f"p/w/0/{position_of(1, 0, 7) >> OFFSET_BITS}"]


@st.composite
def logs(draw: st.DrawFn) -> list[Log]:
    """Return the partitions of a taps topic as lanes write it: repeats only of the last events, a clock after them."""
    written: list[Log] = [[] for _ in SHOPS]
    now_s = 60
    for block in range(draw(st.integers(1, 4))):
        shops = draw(st.lists(st.integers(0, PARTITIONS - 1), max_size=12))
        events = [
            (shop, encode_tap(tap(SHOPS[shop], 100 * block + number, now_s + 5 * number)))
            for number, shop in enumerate(shops)
        ]
        for shop, event in events + events[draw(st.integers(0, 12)) :]:  # a killed lane taps its last events again
            written[shop].append(event)
        now_s += 60
        for log in written:
            log.append(now_s)
    for log in written:
        log.append(END)
    return written


@settings(max_examples=50, deadline=None)
@given(logs(), st.lists(st.lists(st.integers(0, 6), min_size=PARTITIONS, max_size=PARTITIONS), max_size=12))
def test_results_do_not_depend_on_the_limits_of_batches(written: list[Log], batches: list[list[int]]):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots, "KEPT", 32)  # more than lanes repeat, less than a partition may be ahead
        expected = Slot(written).finish()
        slot = Slot(written)
        for counts in batches:
            slot.batch(counts)
        assert slot.finish() == expected
        taken = {record for log in written for record in log if isinstance(record, bytes)}
        assert sum(slot.orders()) == len(taken)
