"""Division of a run into jobs by time."""

from hypothesis import given
from hypothesis import strategies as st

from dataplane.replay.ranges import OffsetRange
from dataplane.shadow.slices import JobSlice, next_slice, size_of

LOGS = st.lists(st.lists(st.integers(0, 50), max_size=30).map(sorted), min_size=1, max_size=4)


class Log:
    """Times of the records of each partition."""

    def __init__(self, times: list[list[int]]) -> None:
        self.times = times
        self.asked = 0

    def at(self, time_ms: int) -> dict[int, int]:
        self.asked += 1
        return {
            number: next((offset for offset, time in enumerate(its) if time >= time_ms), -1)
            for number, its in enumerate(self.times)
        }

    def left(self, reached: dict[int, int]) -> list[OffsetRange]:
        ranges = [OffsetRange(("t", n), reached.get(n, 0), len(its)) for n, its in enumerate(self.times)]
        return [one for one in ranges if one.first < one.end]


@given(LOGS, st.integers(1, 20))
def test_slices_cover_all_records_once_in_the_order_of_time(times: list[list[int]], most: int):
    log, reached = Log(times), dict[int, int]()
    last_ms = -1
    while left := log.left(reached):
        first_ms = min(times[one.place[1]][one.first] for one in left)
        found = next_slice(left, most, log.at, first_ms, 60)
        assert 0 < size_of(found.ranges) <= most
        for one in found.ranges:
            assert one.first == reached.get(one.place[1], 0)
            reached[one.place[1]] = one.end
            its = times[one.place[1]][one.first : one.end]
            assert max(its) < found.until_ms
            assert min(its) >= last_ms
        last_ms = min(times[one.place[1]][one.first] for one in found.ranges)
    assert log.asked < 1_000


def test_records_after_the_end_wait():
    log = Log([[1, 5, 9], [2, 8]])
    assert next_slice(log.left({}), 10, log.at, 1, 6) == JobSlice(
        [OffsetRange(("t", 0), 0, 2), OffsetRange(("t", 1), 0, 1)], 6
    )
    assert next_slice(log.left({}), 10, log.at, 1, 1) == JobSlice([], 1)
    assert len(next_slice(log.left({}), 10, log.at, 1, 60).ranges) == 2
