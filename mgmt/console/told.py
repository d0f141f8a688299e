"""Attempts as pages tell them: the outcome and the reason in words, with the cause's help page."""

from collections.abc import Iterable
from dataclasses import dataclass

from mgmt.console.causes import BY_CODE
from mgmt.console.wording import OUTCOMES, failure_in_words
from mgmt.queries.attempts import ALL, AttemptLine, Filter, latest_attempts


@dataclass(frozen=True)
class AttemptShown:
    """An attempt with its outcome in words; `cause` is "" if the list of causes does not hold it."""

    fact: AttemptLine
    colour: str
    words: str
    reason: str
    detail: str
    cause: str


def told(lines: Iterable[AttemptLine]) -> list[AttemptShown]:
    """Attempts in words."""
    return [
        AttemptShown(
            line,
            *OUTCOMES.get(line.outcome, ("off", line.outcome)),
            *failure_in_words(line.reason, line.status),
            cause_of(line.reason),
        )
        for line in lines
    ]


def cause_of(reason: str) -> str:
    """The cause that a reason begins with; "" if it is none of the list."""
    cause = reason.partition(": ")[0]
    return cause if cause in BY_CODE else ""


def shown_attempts(pipe_id: str, most: int, wanted: Filter = ALL) -> list[AttemptShown]:
    """The newest attempts, in words."""
    return told(latest_attempts(pipe_id=pipe_id, most=most, wanted=wanted))
