"""States of a pipe and of its next revision, as lists and page headings show them."""

import pytest

from mgmt.pipes.queries.pipes import PipeStatus
from mgmt.templatetags.pipe_rows import pipe_state

LIVE = '<span class="state state-fine">live</span>'


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (PipeStatus("live", 3), LIVE),
        (PipeStatus("live", 3, 4), f'{LIVE} <span class="state state-wait">@4 starting</span>'),
        (PipeStatus("live", 3, 4, share=25), f'{LIVE} <span class="state state-wait">@4 ramping 25 %</span>'),
        (PipeStatus("coming", 1), '<span class="state state-wait">starting</span>'),
        (PipeStatus("failed", 1), '<span class="state state-bad">failed</span>'),
        (PipeStatus("failed", 3, 4), f'{LIVE} <span class="state state-bad">@4 failed</span>'),
        (PipeStatus("paused", 3), '<span class="state state-wait">paused</span>'),
        (PipeStatus("closed", 3), '<span class="state state-off">closed</span>'),
    ],
    ids=lambda given: f"{given.kind}-{given.next_revision}" if isinstance(given, PipeStatus) else "",
)
def test_each_state_has_its_words_and_colour(status: PipeStatus, shown: str):
    assert pipe_state(status) == shown
