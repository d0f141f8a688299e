"""Texts of the customer portal. Its reader is the customer of a tenant: no text names a member, a pipe or Penstock."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dataplane.ledger.bins import Bin
from mgmt.deliveries.cause_wording import capitalised, cause_in_words, problem_in_words
from mgmt.deliveries.queries.undelivered import UndeliveredCause
from mgmt.models import Destination

EndpointState = Destination.State
_TODO: Final = {
    Bin.DEAD: "Correct your endpoint, then redrive these events.",
    Bin.RETRYING: "They are retried automatically.",
    Bin.HELD: "They are delivered in order after you resume.",
    Bin.LOST: "Ask your provider about these events.",
}


class StateLine(NamedTuple):
    """State of an endpoint: colour, title, and a sentence with the cause and the next step."""

    colour: str
    title: str
    words: str


_HALTED: Final = {
    EndpointState.REMOVED: StateLine("off", "Removed", "Your provider removed this endpoint. Nothing is sent to it."),
    EndpointState.PAUSED: StateLine("wait", "Paused", "New events are kept, and delivered in order after you resume."),
}

_HEALTHY: Final = StateLine("fine", "Healthy", "All events are delivered.")
_RECOVERING: Final = StateLine(
    "wait", "Recovering", "Earlier requests failed or were slow. No event has failed; some may still wait."
)


@dataclass(frozen=True)
class UndeliveredLine:
    """Undelivered events of one cause, in words.

    redrivable: the customer can send them again
    answer:     the beginning of the newest response, as the endpoint sent it; "" if there was none
    """

    fact: UndeliveredCause
    words: str
    todo: str
    redrivable: bool
    answer: str = ""


def undelivered_line(fact: UndeliveredCause, answer: str = "") -> UndeliveredLine:
    """Return undelivered events in words."""
    words = problem_in_words(bin_=fact.bin, where="", cause=fact.cause, reason=fact.reason, status=fact.status)
    return UndeliveredLine(fact, words, _TODO.get(Bin(fact.bin), ""), fact.bin == Bin.DEAD, answer)


def state_line(
    row: Destination, *, is_stopped: bool, is_failing: bool, problems: Sequence[UndeliveredLine]
) -> StateLine:
    """Return the state of an endpoint in words.

    is_stopped: the provider paused the whole pipe
    is_failing: a large share of the newest requests fails, or no request is sent until a probe succeeds
    """
    if row.state == EndpointState.SUSPENDED:
        cause = capitalised(cause_in_words(row.state_cause))
        return StateLine("bad", "Suspended", f"{cause}. New events are kept. Correct your endpoint, then resume it.")
    if row.state in _HALTED:
        return _HALTED[EndpointState(row.state)]
    if is_stopped:
        return StateLine("wait", "Paused by your provider", "New events are kept and delivered later.")
    return _delivery_state(is_failing, problems)


def _delivery_state(is_failing: bool, problems: Sequence[UndeliveredLine]) -> StateLine:
    if not problems:
        return _RECOVERING if is_failing else _HEALTHY
    first = f"{capitalised(problems[0].words)}. "
    if is_failing:
        return StateLine("bad", "Failing", f"{first}Failed events are retried. Correct your endpoint or its URL.")
    if any(line.redrivable for line in problems):
        return StateLine("bad", "Events failed", f"{first}Correct your endpoint, then redrive the failed events.")
    return StateLine("wait", "Not everything is delivered", f"{first}{problems[0].todo}")
