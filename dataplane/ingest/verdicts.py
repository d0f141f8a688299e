"""What became of the events of a request."""

from collections.abc import Sequence

from msgspec import Struct


class Verdict(Struct, omit_defaults=True, gc=False):
    """What became of one event."""

    status: int
    id: str = ""
    position: str = ""
    bucket: int = 0
    code: str = ""
    detail: str = ""
    pointer: str = ""


def status_of(verdicts: Sequence[Verdict]) -> int:
    """Of all of them: 202 if all were taken, 207 if some were; else what they were all refused for, 400 if for
    different things."""
    statuses = {verdict.status for verdict in verdicts}
    if len(statuses) < 2:
        return statuses.pop() if statuses else 202
    return 207 if 202 in statuses else 400
