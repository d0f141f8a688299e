"""Sends the test requests that rows ask for, all at once, through the sender and the address guard of transmit."""

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog
from django.conf import settings
from msgspec import Struct

from controlplane.tester.request import LONGEST_MS, Request, answer_of, locked, post_of
from dataplane.spec import HttpDestination, destination_of
from dataplane.spec.guard import parse_networks
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.secrets import Secrets, open_secrets, opener
from dataplane.transmit.sender import Answer, Ground, Sender
from dataplane.transmit.signature import signer
from mgmt.models import Destination, DestinationTest
from mgmt.services.secrets import new_signing_secret

State = DestinationTest.State
MOST_AT_ONCE: Final = 20
TURN_S: Final = 0.1
CUT_SHORT_AFTER: Final = timedelta(milliseconds=2 * LONGEST_MS)
log = structlog.get_logger(__name__)


class _Sent(Struct):
    """One that is under way."""

    row: DestinationTest
    to: HttpDestination
    secrets: Secrets


def ground() -> Ground:
    """What holds for deliveries holds here."""
    allowed = parse_networks(settings.PENSTOCK_DESTINATION_ALLOW)
    ca_file = os.environ.get("PENSTOCK_DESTINATION_CA", "")
    return Ground(allowed, https_only=settings.PRODUCTION, ca_file=ca_file, own=settings.PENSTOCK_OWN_INGEST)


def anything_asked() -> bool:
    """Whether somebody waits for one."""
    return DestinationTest.objects.filter(state=State.ASKED).exists()


def give_up_on_lost(now: datetime) -> int:
    """End those whose sender died on the way; how many."""
    lost = DestinationTest.objects.filter(state=State.SENDING, began_at__lt=now - CUT_SHORT_AFTER)
    return lost.update(state=State.DONE, **locked("transport"))


def send_asked(clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> int:
    """Send until nothing is asked for and nothing is under way; how many were answered."""
    sender, under_way, answered = Sender(ground()), dict[str, _Sent](), 0
    try:
        while _begin_asked(sender, under_way, clock()) or under_way:
            for answer in sender.turn(TURN_S):
                _note_answer(under_way.pop(answer.token), answer)
                answered += 1
    finally:
        sender.close()
    return answered


def _begin_asked(sender: Sender, under_way: dict[str, _Sent], now: datetime) -> bool:
    """Claim and begin as many as there is room for; whether there was one."""
    rows = DestinationTest.objects.filter(state=State.ASKED).order_by("created_at")
    claimed = [row for row in rows[: MOST_AT_ONCE - len(under_way)] if _claim(row, now)]
    for row in claimed:
        to = destination_of(row.config)
        assert isinstance(to, HttpDestination)  # noqa: S101 - the service takes no others
        sent = _Sent(row, to, _secrets_of(row, to))
        if sent.secrets.locked:
            _note(row, locked(sent.secrets.locked))
            continue
        request = Request(row.id, row.url, row.headers, row.body, to)
        sender.begin(post_of(request, sent.secrets, int(time.time())))
        under_way[row.id] = sent
    return bool(claimed)


def _claim(row: DestinationTest, now: datetime) -> bool:
    """By conditional update: two workers send none twice."""
    mine = DestinationTest.objects.filter(id=row.id, state=State.ASKED)
    return bool(mine.update(state=State.SENDING, began_at=now))


def _secrets_of(row: DestinationTest, to: HttpDestination) -> Secrets:
    """The destination's own; for one that is not saved, a secret that is forgotten with the request."""
    if row.pipe_id is None:
        return Secrets(signers=(signer(new_signing_secret()),))
    saved = Destination.objects.filter(pipe=row.pipe_id, name=row.destination).first()
    if saved is None:
        return Secrets("unknown-destination")
    record = DestinationRecord(
        row.pipe_id, row.destination, saved.version, "active", to, saved.secrets, saved.credential_for(row.config)
    )
    return open_secrets(record, opener(tuple(settings.PENSTOCK_FERNET_KEYS)))


def _note_answer(sent: _Sent, answer: Answer) -> None:
    _note(sent.row, answer_of(answer, sent.to, sent.secrets.texts))


def _note(row: DestinationTest, said: Mapping[str, Any]) -> None:
    DestinationTest.objects.filter(id=row.id, state=State.SENDING).update(state=State.DONE, **said)
    told = {name: said.get(name, "") for name in ("status", "outcome", "cause")}
    log.info("test request answered", tenant=row.tenant_id, pipe=row.pipe_id, test=row.id, **told)
