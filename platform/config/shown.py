"""What a process that serves pages shows as metrics."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from dataplane.runtime.board import Board, Reading
from mgmt.tail import hub

BOARD: Final = Board()
REQUEST_S: Final = BOARD.histogram("penstock_web_request_seconds")
# Requests that the front refused, by code; a code is shown before its first refusal, so that its rate has a start.
REFUSALS: Final = Counter(dict.fromkeys(("body-slow", "body-too-large", "busy"), 0))


def serve_web() -> None:
    """Where PENSTOCK_METRICS says."""
    BOARD.reads(_viewers)
    BOARD.reads(_refusals)
    BOARD.serve()


def _refusals() -> Iterator[Reading]:
    for code, count in REFUSALS.copy().items():
        yield Reading("penstock_web_refusals_total", count, (code,))


def _viewers() -> Iterator[Reading]:
    yield Reading("penstock_web_tail_viewers", hub().viewers)
