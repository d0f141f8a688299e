"""Resolve the secret part of a webhook URL to its source and the settings with which its requests are verified."""

import logging
from collections.abc import Callable
from typing import Final

from cryptography.fernet import InvalidToken

from dataplane.ingest.problems import RETRY_AFTER_S, EventRejectedError, table_unread
from dataplane.ingest.route import SourceRoute
from dataplane.ingest.webhooks import OpenedWebhook
from dataplane.tables.control import ControlReader
from dataplane.tables.sealed import Opener, unbind, webhook_place
from dataplane.webhooks import PRESETS

log = logging.getLogger(__name__)
_REFUSED_AS_KEY: Final = 401


class WebhookRoutes:
    """Routes of webhook URLs. `find`: returns the route of a secret part, as of an API key."""

    def __init__(self, find: Callable[[str], SourceRoute], reader: ControlReader, open_: Opener) -> None:
        self._find, self._reader, self._open = find, reader, open_

    def find(self, secret: str) -> tuple[SourceRoute, OpenedWebhook]:
        """Return the route of the secret part of a URL, and the settings of its source.

        Raises EventRejectedError `not-found` for a part that is unknown, expired or revoked; `unavailable` while
        requests cannot be verified; `pipe-closed` and `pipe-starting`.
        """
        try:
            route = self._find(secret)
        except EventRejectedError as refusal:
            if refusal.status != _REFUSED_AS_KEY:
                raise
            raise _unknown_url() from refusal
        if route.webhook is None:
            route.webhook = self._opened(route)
        return route, route.webhook

    def _opened(self, route: SourceRoute) -> OpenedWebhook:
        record = self._reader.table.webhook(route.pipe.pipe, route.source)
        if record is None:
            raise _unknown_url() if self._reader.at_end else table_unread()
        preset, place = PRESETS.get(record.preset), webhook_place(record.pipe, record.source)
        try:
            secrets = tuple(unbind(self._open(token), place) for token in record.secrets)
        except (InvalidToken, ValueError) as exc:
            log.error("pipe=%s source=%s: unreadable webhook secret", record.pipe, record.source)
            raise _unverifiable() from exc
        if preset is None or not preset.can_verify(secrets):  # a preset of a later release
            raise _unverifiable()
        return OpenedWebhook(preset, secrets, (*preset.headers, *record.headers))


def _unknown_url() -> EventRejectedError:
    return EventRejectedError(404, "not-found", "no source has this URL; it may have been revoked, or have expired")


def _unverifiable() -> EventRejectedError:
    detail = "the source cannot verify requests now; retry later"
    return EventRejectedError(503, "unavailable", detail, retry_after_s=RETRY_AFTER_S)
