"""The campaign's check of repeated copies: only a job that a kill interrupted may have produced a copy twice."""

import pytest

from dataplane.ledger.units import position_of
from dataplane.replay.ranges import OffsetRange, first_progress
from tests.support.replay_campaign import ReplayKill, StoredProgress, unexplained

INGEST = "ingest"
PLACE = (INGEST, 0)
HISTORY = [
    StoredProgress(at_ms, first_progress("r", [OffsetRange(PLACE, reached, 900)], 0))
    for at_ms, reached in ((0, 0), (100_000, 300), (200_000, 600))
]
KILLS = [ReplayKill("driver", 150_000)]


@pytest.mark.parametrize(
    ("offset", "times", "is_explained"),
    [
        pytest.param(400, [120_000], True, id="one copy"),
        pytest.param(400, [120_000, 180_000], True, id="the job in progress at the kill"),
        pytest.param(400, [155_000, 180_000], True, id="its worker ended the task without its driver"),
        pytest.param(299, [90_000, 180_000], False, id="a job whose progress was stored before the kill"),
        pytest.param(400, [120_000, 140_000], False, id="both copies before the kill"),
        pytest.param(700, [170_000, 190_000], False, id="both copies after the kill"),
        pytest.param(400, [120_000, 170_000, 190_000], False, id="a third copy"),
    ],
)
def test_repeated_copy_is_explained_only_by_an_interrupted_job(offset: int, times: list[int], is_explained: bool):
    position = position_of(1, 0, offset)
    assert unexplained({position: times}, KILLS, HISTORY, INGEST) == ([] if is_explained else [position])
