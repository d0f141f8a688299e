"""What is not delivered, as pages tell it: a cause in words, what to do, and where to look."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from dataplane.ledger.bins import Bin
from mgmt.console.told import cause_of
from mgmt.console.wording import trouble_in_words, what_to_do
from mgmt.models import Pipe
from mgmt.queries.span import Span, bucket_at
from mgmt.queries.undelivered import Trouble, undelivered

DAY_MIN: Final = 24 * 60


@dataclass(frozen=True)
class TroubleLine:
    """A cause in words, and where to look; `cause` is "" if there is no help page for it."""

    fact: Trouble
    words: str
    todo: str
    link: str
    cause: str


def troubles_of(pipes: list[Pipe], now: datetime) -> list[Trouble]:
    """What the last 24 hours left undelivered."""
    last = bucket_at(now)
    return undelivered(pipes=pipes, span=Span("24h", last - DAY_MIN, last)) if pipes else []


def trouble_line(trouble: Trouble) -> TroubleLine:
    """One of them, in words."""
    return TroubleLine(
        fact=trouble,
        words=trouble_in_words(
            bin_=trouble.bin,
            where=trouble.where,
            cause=trouble.cause,
            reason=trouble.reason,
            status=trouble.status,
        ),
        todo=what_to_do(trouble.bin, trouble.cause),
        link=_link(trouble),
        cause=cause_of(trouble.cause or trouble.reason),
    )


def _link(trouble: Trouble) -> str:
    if trouble.bin == Bin.DEAD:
        query = urlencode({"destination": trouble.where, "cause": trouble.cause})
        return f"{reverse('console:dead', args=[trouble.pipe_id])}?{query}"
    if trouble.bin == Bin.HELD:
        return reverse("console:held", args=[trouble.pipe_id])
    if trouble.bin == Bin.RETRYING and trouble.where:
        query = urlencode({"outcome": "parked", "destination": trouble.where})
        return f"{reverse('console:attempts', args=[trouble.pipe_id])}?{query}"
    minute = bucket_at(trouble.since)
    return f"{reverse('console:minute', args=[trouble.pipe_id, minute])}?{urlencode({'bin': trouble.bin})}"
