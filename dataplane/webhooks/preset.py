"""`Preset`: one kind of sender."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from dataplane.webhooks.request import Reply, WebhookRequest

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
XML: Final = ("application/xml", "text/xml")
ACCEPTED: Final = Reply(202)


class HeaderPlace(Struct, frozen=True):
    """Place of a value in the request's header `name`, or else in the header `other`."""

    name: str
    other: str = ""


Place = HeaderPlace | str  # a header, or the path of a field of the event; "" for none
Verify = Callable[[WebhookRequest, Sequence[str], int], None]
Handshake = Callable[[WebhookRequest], Reply | None]


def never(_request: WebhookRequest) -> None:
    """Return no reply: the sender shakes no hands."""


def check_any_secret(secret: str) -> None:
    """Raise ValueError for a secret that cannot be one."""
    if not (8 <= len(secret) <= 256 and secret.isascii() and secret.isprintable()):
        raise ValueError("needs 8 to 256 printable ASCII characters")


class Preset(Struct, frozen=True, kw_only=True):
    """Rules for the requests of one kind of sender.

    verify:       raises UnverifiedError unless one of the secrets signed the request; the last argument: Unix time
    handshake:    returns the reply to a verified POST without an event, else None
    options:      returns the reply to an OPTIONS request; None if the sender makes none
    check_secret: raises ValueError for text that cannot be the sender's secret
    headers:      names of the request's headers that an event keeps
    media_types:  of requests; others are refused
    id, type, time: where the sender puts the id of a delivery, the type of an event and the time of an event
    needs_secret: False if requests may be accepted without
    reply:        to an accepted event; its body is the event's receipt if it has no media type and status 202
    """

    name: str
    title: str
    verify: Verify
    headers: tuple[str, ...]
    media_types: tuple[str, ...]
    id: Place = ""
    type: Place = ""
    time: Place = ""
    handshake: Handshake = never
    options: Handshake = never
    check_secret: Callable[[str], None] = check_any_secret
    needs_secret: bool = True
    reply: Reply = ACCEPTED

    def can_verify(self, secrets: Sequence[str]) -> bool:
        """Return True if requests can be verified with these secrets."""
        return bool(secrets) or not self.needs_secret
