"""Progress of a shadow run after a job, and its size."""

from dataplane.replay.ranges import OffsetRange
from dataplane.shadow.job import PartComparison, PartRead
from dataplane.shadow.result import PROGRESS_BYTES, first_shadow_progress, fitted, with_job, without
from dataplane.tables.shadows import MOST_FIELDS, OTHER_FIELDS, FieldDifference, ShadowSample, encode_shadow_progress

RANGES = [OffsetRange(("t", number), 0, 9) for number in range(2)]
PROGRESS = first_shadow_progress("shd_1", RANGES, 1)


def test_counts_of_a_job_are_added():
    first = with_job(
        PROGRESS,
        [RANGES[0]],
        [PartRead(read=5), PartRead(read=4)],
        [PartComparison(3, {"crm": {"equal": 3}}, cost_events=1, live_cpu_us=7, shadow_cpu_us=9), PartComparison(1)],
        2,
    )
    assert (first.reached, first.read, first.events) == ({"t/0": 9, "t/1": 0}, 9, 4)
    second = with_job(
        first,
        [RANGES[1]],
        [PartRead(read=9)],
        [PartComparison(2, {"crm": {"equal": 1, "only_live": 1}}, rejected={"step": 1}, cost_events=1, live_cpu_us=1)],
        3,
    )
    assert second.reached == second.ends
    assert (second.read, second.events, second.rejected) == (18, 6, {"step": 1})
    assert second.units == {"crm": {"equal": 4, "only_live": 1}}
    assert (second.cost_events, second.live_cpu_us, second.shadow_cpu_us) == (2, 8, 9)
    assert first.units == {"crm": {"equal": 3}}, "the earlier progress is unchanged"


def test_skipped_ranges_are_reached_with_a_reason():
    found = without(PROGRESS, [OffsetRange(("t", 1), 0, 4)], 2, "too old")
    assert (found.reached, found.error, found.events) == ({"t/0": 0, "t/1": 4}, "too old", 0)


def test_progress_fits_in_a_record():
    field = FieldDifference("p" * 200, "\u00e9" * 120, "\u00e9" * 120)
    part = PartComparison(
        fields={f"to-{name}": {f"{field}{'x' * 190}": 1 for field in range(2 * MOST_FIELDS)} for name in range(100)},
        samples=[
            ShadowSample("different", f"to-{name}", number, 0, [field] * 10)
            for number in range(5)
            for name in range(100)
        ],
    )
    found = with_job(PROGRESS, RANGES, [], [part], 2)
    assert len(encode_shadow_progress(found)) > PROGRESS_BYTES
    small = fitted(found)
    assert len(encode_shadow_progress(small)) <= PROGRESS_BYTES <= 64 * 1024
    assert small.fields["to-1"] == {OTHER_FIELDS: 2 * MOST_FIELDS}
    few = fitted(with_job(PROGRESS, RANGES, [], [PartComparison(samples=part.samples)], 2))
    assert few.samples
    assert few.samples[-1] == part.samples[-1], "the newest stay"
    assert fitted(PROGRESS) == PROGRESS
