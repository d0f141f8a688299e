"""Requests of each kind of sender: the published example where the provider has one, else one made as documented.

The signatures are computed here with the standard library only, by the provider's own description.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field

from dataplane.webhooks import WebhookRequest

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


def hex_hmac(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


def base64_hmac(secret: bytes, content: bytes, algorithm: str = "sha256") -> str:
    return base64.b64encode(hmac.new(secret, content, algorithm).digest()).decode()


@dataclass(frozen=True)
class SignedRequest:
    """A request that its sender has signed at `now_s`.

    signature: name of the header with the signature
    time:      name of the header with the signed time; "" if none or the signature has it
    """

    preset: str
    secret: str
    body: bytes
    signature: str
    headers: dict[str, str] = field(default_factory=dict)
    now_s: int = 1_700_000_000
    time: str = ""
    url: str = ""

    def request(self, **changes: str | Sequence[str] | bytes | None) -> WebhookRequest:
        """Return the request with some headers changed (None: without it), or another `body` or `url`."""
        headers: dict[str, Sequence[str]] = {name: [value] for name, value in self.headers.items()}
        body, url = changes.pop("body", self.body), changes.pop("url", self.url)
        for key, value in changes.items():
            name = key.replace("_", "-")
            headers.pop(name, None)
            if isinstance(value, str):
                headers[name] = [value]
            elif isinstance(value, Sequence):
                headers[name] = [str(one) for one in value]
        assert isinstance(body, bytes)
        return WebhookRequest(headers, body, str(url))


# https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries, "Testing the webhook payload
# validation"
GITHUB = SignedRequest(
    "github",
    "It's a Secret to Everybody",
    b"Hello, World!",
    "x-hub-signature-256",
    {
        "content-type": JSON,
        "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    },
)
# https://docs.slack.dev/authentication/verifying-requests-from-slack, the worked example
SLACK = SignedRequest(
    "slack",
    "8f742231b10e8888abcd99yyyzzz85a5",
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
    "x-slack-signature",
    {
        "content-type": FORM,
        "x-slack-request-timestamp": "1531420618",
        "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    },
    now_s=1_531_420_618,
    time="x-slack-request-timestamp",
)
# https://www.twilio.com/docs/usage/security#validating-requests, the example with the token 12345
TWILIO = SignedRequest(
    "twilio",
    "12345",
    b"CallSid=CA1234567890ABCDE&Caller=%2B12349013030&Digits=1234&From=%2B12349013030&To=%2B18005551212",
    "x-twilio-signature",
    {"content-type": FORM, "x-twilio-signature": "0/KCTR6DLpKmkAf8muzZqo1nDgQ="},
    url="https://mycompany.com/myapp.php?foo=1&bar=2",
)
# https://docs.svix.com/receiving/verifying-payloads/how-manual, the example; the scheme is that of
# https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
STANDARD_WEBHOOKS = SignedRequest(
    "standard-webhooks",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    b'{"test": 2432232314}',
    "webhook-signature",
    {
        "content-type": JSON,
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    now_s=1_614_265_330,
    time="webhook-timestamp",
)


def _stripe() -> SignedRequest:
    """Return a request as https://docs.stripe.com/webhooks/signature describes it, with the `v0` of test events."""
    body, secret, now_s = (
        b'{"id": "evt_1", "type": "invoice.paid", "created": 1700000000}',
        "whsec_test_secret",
        1_700_000_000,
    )
    signature = hex_hmac(secret, f"{now_s}.".encode() + body)
    headers = {"content-type": JSON, "stripe-signature": f"t={now_s},v1={signature},v0={'0' * 64}"}
    return SignedRequest("stripe", secret, body, "stripe-signature", headers, now_s)


def _shopify() -> SignedRequest:
    """Return a request as https://shopify.dev/docs/apps/build/webhooks/verify-deliveries describes it."""
    body, secret = b'{"id": 820982911946154508, "total_price": "199.00"}', "hush-hush-hush"
    headers = {
        "content-type": JSON,
        "x-shopify-topic": "orders/create",
        "x-shopify-webhook-id": "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
        "x-shopify-triggered-at": "2023-11-14T22:13:20.000000000Z",
        "x-shopify-hmac-sha256": base64_hmac(secret.encode(), body),
    }
    return SignedRequest("shopify", secret, body, "x-shopify-hmac-sha256", headers)


STRIPE = _stripe()
SHOPIFY = _shopify()
CLOUDEVENTS = SignedRequest(
    "cloudevents",
    "mF_9.B5f-4.1JqM",  # https://www.rfc-editor.org/rfc/rfc6750#section-2.1
    b'{"id": 1}',
    "authorization",
    {"content-type": JSON, "authorization": "Bearer mF_9.B5f-4.1JqM"},
)
SIGNED = (GITHUB, SLACK, TWILIO, STANDARD_WEBHOOKS, STRIPE, SHOPIFY, CLOUDEVENTS)
TIMED = (SLACK, STANDARD_WEBHOOKS, STRIPE)
