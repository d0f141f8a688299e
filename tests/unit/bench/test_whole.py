"""Search for the sustainable rate, and the figures of a load."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.measured import LoadResult
from tests.bench.received import ReceivedLog
from tests.bench.whole import LoadRun, highest_that_holds


@given(capacity=st.integers(0, 60))
def test_search_finds_the_highest_rate_that_holds(capacity: int):
    probes: list[float] = []

    def holds(rate: float) -> bool:
        probes.append(rate)
        return rate <= capacity * 250

    expected = min(capacity, 48) * 250.0 if capacity else 0.0
    assert highest_that_holds(holds, 250.0, 12_000.0, 250.0) == expected
    assert len(probes) <= 6
    assert all(250 <= rate <= 12_000 for rate in probes)


def test_figures_of_a_load_count_from_the_sender_to_the_receiver():
    sent = {f"msg_{number}": number * 100_000_000 for number in range(100)}
    received = {name: at_ns + (50_000_000 if at_ns else 2_000_000_000) for name, at_ns in sent.items()}
    run = LoadRun(LoadResult(10.0, {}, sent), received, ended_ns=9_900_000_000, cpu_us={})
    assert run.p50_ms() == run.p95_ms() == 50
    assert run.acked_per_s() == 10
    assert run.delivered_per_s() == pytest.approx(100 / 9.95)
    assert run.drained_s() == pytest.approx(0.05)


def test_log_of_the_receiver_is_read_as_it_grows(tmp_path: Path):
    log = ReceivedLog(tmp_path / "received.log")
    log.empty()
    with log.path.open("a", buffering=1) as file:
        file.write("7\tmsg_1\t0-1\tabc\n8\tmsg_2")
        file.flush()
        assert log.times() == {"msg_1": 7_000}
        file.write("\t0-2\tdef\n")
        file.flush()
        assert log.times() == {"msg_1": 7_000, "msg_2": 8_000}
        log.empty()
        file.write("9\tmsg_3\t0-3\tabc\n")
        file.flush()
        assert log.times() == {"msg_3": 9_000}
