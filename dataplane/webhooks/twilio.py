"""Twilio: HMAC-SHA1 of the URL and the sorted parameters, in base64. JSON bodies are signed by a hash in the URL.

Source: https://www.twilio.com/docs/usage/security#validating-requests. Twilio signs no time, so a copy of a request is
recognised only by its id.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final

from dataplane.webhooks.forms import FormError, form_fields
from dataplane.webhooks.preset import FORM, JSON, HeaderPlace, Preset
from dataplane.webhooks.request import INVALID, Reply, UnverifiedError, WebhookRequest, check_match

SIGNATURE: Final = "x-twilio-signature"
BODY_HASH: Final = re.compile(r"[?&]bodySHA256=([^&]*)")


def verify(request: WebhookRequest, secrets: Sequence[str], _now_s: int) -> None:
    """Check `X-Twilio-Signature`. Raises UnverifiedError."""
    given = request.signed(SIGNATURE)
    content = (request.url + _signed_parameters(request)).encode("utf-8", "replace")
    digests = (hmac.digest(secret.encode(), content, "sha1") for secret in secrets)
    check_match([given], (base64.b64encode(digest).decode() for digest in digests))


def _signed_parameters(request: WebhookRequest) -> str:
    """Return names and values of a form in Twilio's order; "" for JSON, whose hash is in the URL.

    A hash in the URL is checked for a form too: else the signature of a JSON body would be valid for an empty form.
    """
    hashes = BODY_HASH.findall(request.url)
    if hashes:
        check_match(hashes[:1], [hashlib.sha256(request.body).hexdigest()])
    if len(hashes) > 1 or (request.media_type != FORM and not hashes):
        raise UnverifiedError(INVALID, "needs a form, or the query parameter bodySHA256 once")
    if request.media_type != FORM:
        return ""
    try:
        fields = form_fields(request.body)
    except FormError as exc:
        raise UnverifiedError(INVALID, str(exc)) from exc
    return "".join(name + value for name, value in sorted(set(fields)))


TWILIO: Final = Preset(
    name="twilio",
    title="Twilio",
    verify=verify,
    headers=(SIGNATURE, "i-twilio-idempotency-token"),
    media_types=(FORM, JSON),
    id=HeaderPlace("i-twilio-idempotency-token"),
    reply=Reply(200, "text/xml", b"<Response/>"),  # TwiML without an instruction
)
