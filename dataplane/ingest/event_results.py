"""Results of the events of a request."""

from collections.abc import Sequence

from msgspec import Struct


class EventResult(Struct, omit_defaults=True, gc=False):
    """Result of one event: the ACK, or the refusal with its code."""

    status: int
    id: str = ""
    position: str = ""
    bucket: int = 0
    code: str = ""
    detail: str = ""
    pointer: str = ""


def status_of(results: Sequence[EventResult]) -> int:
    """Return the status of a request from the results of its events.

    202 if all were accepted, 207 if some were. If none was: the status that all share, or 400 if they differ.
    """
    statuses = {result.status for result in results}
    if len(statuses) < 2:
        return statuses.pop() if statuses else 202
    return 207 if 202 in statuses else 400
