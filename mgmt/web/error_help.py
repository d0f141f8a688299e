"""Help on the codes of errors of the API and of ingest: what a code means and what to do. Pure.

The `type` of each error is the address of its page (mgmt.web.error_pages), on which a code of both has two parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dataplane.refusals import TITLES
from mgmt.rejections.advice import REASONS
from mgmt.web.problems import PROBLEMS

API: Final = "the API"
INGEST: Final = "ingest"
# Advice on refusals that no page of a source explains.
_ADVICE: Final[Mapping[str, str]] = {
    "key-missing": "Send the API key of a source: `Authorization: Bearer psk_...`. The pipe's page shows its sources.",
    "key-invalid": "Check that the key was copied whole, or create a new one under Sources and destinations.",
    "key-expired": "Create a new key under Sources and destinations, and send it instead.",
    "not-found": "Send events to `POST /v1/events` or to the webhook URL of a source. A revoked URL gets this, too.",
    "method-not-allowed": "Use POST.",
    "pipe-closed": "Reopen the pipe before you send more events.",
    "pipe-starting": "Send the event again after Retry-After: the first revision is being deployed.",
    "quota-exceeded": "Send fewer events or bytes, after Retry-After. `violated-policies` names the exceeded quotas.",
    "loop-detected": "A destination sends the events back to ingest. Correct the destination that closes the loop.",
    "unavailable": "Nothing was stored. Send the event again after Retry-After, with the same id.",
    "internal": "Nothing was stored. Send the event again. If it persists, report the `request_id`.",
}


@dataclass(frozen=True)
class ErrorHelp:
    """Meaning of a code in the responses of one side. status: of the response; 0 if it is not always the same."""

    side: str
    title: str
    todo: str
    status: int = 0


def help_on(code: str) -> list[ErrorHelp]:
    """Return the meanings of a code, at most one for each side; empty for an unknown code."""
    found = []
    if code in PROBLEMS:
        problem = PROBLEMS[code]
        found.append(ErrorHelp(API, problem.title, problem.meaning, problem.status))
    if code in TITLES:
        found.append(ErrorHelp(INGEST, TITLES[code], _ADVICE[code] if code in _ADVICE else REASONS[code].todo))
    return found


def codes() -> list[str]:
    """Return all codes, sorted."""
    return sorted(PROBLEMS.keys() | TITLES.keys())
