"""View models of delivery attempts: outcome and reason in words, with the help page of the cause."""

from collections.abc import Iterable
from dataclasses import dataclass

from mgmt.deliveries.cause_wording import OUTCOMES, failure_in_words
from mgmt.deliveries.causes import BY_CODE
from mgmt.deliveries.queries.attempts import ALL, AttemptFilter, AttemptLine, latest_attempts


@dataclass(frozen=True)
class AttemptView:
    """Attempt with its outcome in words; `cause` is "" if it is not in the list of causes."""

    fact: AttemptLine
    colour: str
    words: str
    reason: str
    detail: str
    cause: str


def attempt_view(lines: Iterable[AttemptLine]) -> list[AttemptView]:
    """Return the attempts in words."""
    return [
        AttemptView(
            line,
            *OUTCOMES.get(line.outcome, ("off", line.outcome)),
            *failure_in_words(line.reason, line.status),
            cause_of(line.reason),
        )
        for line in lines
    ]


def cause_of(reason: str) -> str:
    """Return the cause that a reason begins with; "" if it is not in the list of causes."""
    cause = reason.partition(": ")[0]
    return cause if cause in BY_CODE else ""


def attempt_views(pipe_id: str, most: int, wanted: AttemptFilter = ALL) -> list[AttemptView]:
    """Return the newest attempts of a pipe, in words."""
    return attempt_view(latest_attempts(pipe_id=pipe_id, most=most, wanted=wanted))
