"""Any other sender: nothing is verified but the URL."""

from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.preset import FORM, JSON, XML, Preset
from dataplane.webhooks.request import WebhookRequest


def verify(_request: WebhookRequest, _secrets: Sequence[str], _now_s: int) -> None:
    """Accept every request: the URL is the secret."""


NONE: Final = Preset(
    name="none",
    title="Other sender, no signature",
    verify=verify,
    headers=(),
    media_types=(JSON, FORM, *XML),
    needs_secret=False,
)
