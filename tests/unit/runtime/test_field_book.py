"""Field observation: the messages that are sampled, the cost limit, and the time of the report."""

from typing import Any

import msgspec
import pytest

from dataplane.ledger.fields import FieldObservation
from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.number_sketch import NumberSketch
from dataplane.names import WIRE_VERSION
from dataplane.process.item import ProcessItem
from dataplane.runtime.telemetry import fields
from dataplane.runtime.telemetry.fields import (
    EVERY_NS,
    LARGEST_BYTES,
    MOST_REPORTED,
    MOST_SOURCES,
    REPORT_MINUTES,
    SHARE,
    FieldBook,
)
from tests.support.memory_lane import MemoryMessage

MINUTE_NS = 60_000_000_000
SECOND_NS = 1_000_000_000


class Clock:
    """Clock that advances when the test sets it, and by `look_ns` at each reading: the cost of a sample."""

    def __init__(self, look_ns: int = 0) -> None:
        self.now_ns = 0
        self.look_ns = look_ns

    def __call__(self) -> int:
        self.now_ns += self.look_ns
        return self.now_ns


def item(body: bytes = b'{"n":1}', source: str = "shop", pipe: str = "p", *, judged: bool = False) -> ProcessItem:
    meta = MessageMeta(WIRE_VERSION, "id", pipe, 1, source, 0, 0, 0)
    message: Any = MemoryMessage(0, 0, body, [], None, "")
    return ProcessItem(meta, message, [], body, body, judged=judged)


def book(mode: str = "values", clock: Clock | None = None) -> tuple[FieldBook, Clock]:
    clock = clock or Clock()
    return FieldBook(mode, clock, lambda: clock.now_ns), clock


def told(book: FieldBook) -> list[FieldObservation]:
    book.hasten()
    return book.take_if_due()


def test_pipe_is_sampled_five_times_a_second_with_another_message_of_each_batch():
    one, clock = book()
    for _ in range(3):
        for _ in range(4):
            one.observe("p", [item(b'{"n":%d}' % number) for number in range(3)], clock.now_ns, masks=False)
        clock.now_ns += EVERY_NS
    (sample,) = told(one)
    assert (sample.pipe, sample.source, sample.events) == ("p", "shop", 3)


def test_sampling_uses_no_more_than_its_share_of_time_whatever_a_sample_costs():
    one, clock = book(clock=Clock(look_ns=50_000))
    while clock.now_ns < 100 * SECOND_NS:
        for number in range(50):
            one.observe(f"p{number}", [item(pipe=f"p{number}")], clock.now_ns, masks=False)
        clock.now_ns += 10_000_000
    looks = 0
    while samples := told(one):
        looks += sum(sample.events for sample in samples)
    assert looks * 50_000 <= 101 * SECOND_NS / SHARE
    assert looks * 50_000 >= 90 * SECOND_NS / SHARE


@pytest.mark.parametrize(
    "passed_over",
    [
        pytest.param(item(source="window:totals"), id="a window's result"),
        pytest.param(item(judged=True), id="it comes back from dedup"),
        pytest.param(item(b'"' + b"x" * LARGEST_BYTES + b'"'), id="too large"),
    ],
)
def test_window_results_messages_back_from_dedup_and_large_bodies_are_not_sampled(passed_over: ProcessItem):
    one, clock = book()
    one.observe("p", [passed_over], clock.now_ns, masks=False)
    assert told(one) == []


def test_sources_are_counted_separately_and_the_message_stays_unchanged():
    one, clock = book()
    for source in ("shop", "app"):
        one.observe("p", [seen := item(b'{"n": 1}', source)], clock.now_ns, masks=False)
        clock.now_ns += EVERY_NS
        assert seen.body == b'{"n": 1}'
    assert {sample.source for sample in told(one)} == {"shop", "app"}


def test_body_that_is_no_json_is_counted():
    one, clock = book()
    one.observe("p", [item(b"n=1")], clock.now_ns, masks=False)
    (sample,) = told(one)
    assert sample.fields[0].types == {"no JSON": 1}


@pytest.mark.parametrize(
    ("mode", "masks", "known"), [("values", False, {"DE": 3}), ("values", True, None), ("names", False, None)]
)
def test_values_of_a_pipe_with_masks_are_not_reported(mode: str, masks: bool, known: Any):
    one, clock = book(mode)
    for number in range(3):
        one.observe("p", [item(b'{"x":"DE"}')], clock.now_ns, masks=masks and number == 2)
        clock.now_ns += EVERY_NS
    (sample,) = told(one)
    assert [field.values for field in sample.fields if field.path == "x"] == [known]


@pytest.mark.parametrize(("mode", "masks", "known"), [("values", False, 3), ("values", True, 0), ("names", False, 0)])
def test_numbers_of_a_pipe_with_masks_are_not_sketched(mode: str, masks: bool, known: int):
    one, clock = book(mode)
    for number in range(3):
        one.observe("p", [item(b'{"x":0.5}')], clock.now_ns, masks=masks and number == 2)
        clock.now_ns += EVERY_NS
    (sample,) = told(one)
    sketches = [NumberSketch.decode(field.numbers) for field in sample.fields if field.numbers]
    assert sum(sketch.count for sketch in sketches) == known


def test_nothing_is_sampled_when_switched_off():
    one, clock = book("off")
    one.observe("p", [item()], clock.now_ns, masks=False)
    assert told(one) == []


def test_samples_are_reported_after_five_minutes_a_few_at_a_time():
    one, clock = book()
    clock.now_ns = 3 * MINUTE_NS
    for number in range(MOST_SOURCES + 10):
        one.observe(f"p{number}", [item(pipe=f"p{number}")], clock.now_ns, masks=False)
    assert one.take_if_due() == []
    clock.now_ns = REPORT_MINUTES * MINUTE_NS
    one.observe("p1", [item(pipe="p1")], clock.now_ns, masks=False)  # counts for the earlier, unreported period
    records = []
    while record := one.take_if_due():
        records.append(record)
    assert {len(record) for record in records[:-1]} == {MOST_REPORTED}
    assert sum(map(len, records)) == MOST_SOURCES
    assert {sample.bucket for record in records for sample in record} == {0}


def test_large_samples_are_split_over_several_records(monkeypatch: pytest.MonkeyPatch):
    one, clock = book()
    body = msgspec.json.encode({"ü" * 36 + f"{name:04}": {"ä" * 40: 1} for name in range(49)})
    for number in range(10):
        one.observe(f"p{number}", [item(body, pipe=f"p{number}")], clock.now_ns, masks=False)
    monkeypatch.setattr(fields, "MOST_BYTES", 20_000)  # a sample has 13 kB
    one.hasten()
    sizes = []
    while record := one.take_if_due():
        sizes.append(len(record))
    assert sizes == [2] * 5
