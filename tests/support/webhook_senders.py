"""Requests of each kind of sender: secret, body and signature as its provider publishes them, with the source.

Only Twitch publishes no signature, and CloudEvents have none: these are made as documented. The signatures of other
requests are computed here with the standard library only, by the provider's own description.
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
    tolerance_s: between the signed time and that of its receipt
    """

    preset: str
    secret: str
    body: bytes
    signature: str
    headers: dict[str, str] = field(default_factory=dict)
    now_s: int = 1_700_000_000
    time: str = ""
    url: str = ""
    tolerance_s: int = 300

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


# https://github.com/stripe/stripe-dotnet/blob/master/src/StripeTests/Services/Events/EventUtilityTest.cs
STRIPE = SignedRequest(
    "stripe",
    "webhook_secret",
    b"""{
  "id": "evt_123",
  "object": "event",
  "account": "acct_123",
  "api_version": "2017-05-25",
  "created": 1533204620,
  "data": {
    "object": {
      "id": "cus_123",
      "object": "customer",
      "created": 123456789,
      "email": "test@stripe.com",
      "livemode": false,
      "metadata": {}
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {
    "id": "req_123",
    "idempotency_key": "idempotency-key-123"
  },
  "type": "customer.created"
}
""",
    "stripe-signature",
    {
        "content-type": JSON,
        "stripe-signature": "t=1533204620,v1=2220f87ef101a04665f11cdf770523143f875572008577fa0f20882ddb9cc3c7,"
        "v0=63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef",
    },
    now_s=1_533_204_620,
)
# https://github.com/Shopify/shopify-api-php/blob/main/tests/Webhooks/RegistryTest.php, the secret in BaseTestCase.php
SHOPIFY = SignedRequest(
    "shopify",
    "7008c5f4da4718b9b45d26d3fcbbb157",
    b'{"foo":"bar"}',
    "x-shopify-hmac-sha256",
    {"content-type": JSON, "x-shopify-hmac-sha256": "+R9TwYM4mbLTk3hEAOBkpA7zW2lc9vNFmVKs2u2jtyY="},
)
# https://github.com/PaddleHQ/paddle-python-sdk/blob/main/tests/Unit/Notification/test_Verifier.py
PADDLE = SignedRequest(
    "paddle",
    "pdl_ntf_01hbpjmytsa32fhr36nqgc3kgb_WvRO0eL4Bj9rgYYIBZY6wZhG4EHy9jzh",
    b"hello-world",
    "paddle-signature",
    {
        "content-type": JSON,
        "paddle-signature": "ts=1696195954;h1=dummy;"
        "h1=d96299976a6eb066f484d7fde011ac56fc32b38fc9940bc419d6e537fdc6ef02",
    },
    now_s=1_696_195_954,
)
# https://github.com/PagerDuty/go-pagerduty/blob/main/webhookv3/webhookv3_test.go
PAGERDUTY = SignedRequest(
    "pagerduty",
    "lDQHScfUeXUKaQRNF+8XIiDKZ7XX3itBAYzwU0TARw8lJqRnkKl2iB1anSb0Z+IK",
    b'{"event":{"id":"01BWDWL3NYY7LUFPZCC28QUCMK","event_type":"incident.priority_updated","resource_type":"incide'
    b'nt","occurred_at":"2021-04-26T17:36:27.458Z","agent":{"html_url":"https://acme.pagerduty.com/users/PLH1HKV",'
    b'"id":"PLH1HKV","self":"https://api.pagerduty.com/users/PLH1HKV","summary":"Tenex Engineer","type":"user_refe'
    b'rence"},"client":null,"data":{"id":"PGR0VU2","type":"incident","self":"https://api.pagerduty.com/incidents/P'
    b'GR0VU2","html_url":"https://acme.pagerduty.com/incidents/PGR0VU2","number":2,"status":"triggered","title":"A'
    b' little bump in the road","service":{"html_url":"https://acme.pagerduty.com/services/PF9KMXH","id":"PF9KMXH"'
    b',"self":"https://api.pagerduty.com/services/PF9KMXH","summary":"API Service","type":"service_reference"},"as'
    b'signees":[{"html_url":"https://acme.pagerduty.com/users/PTUXL6G","id":"PTUXL6G","self":"https://api.pagerdut'
    b'y.com/users/PTUXL6G","summary":"User 123","type":"user_reference"}],"escalation_policy":{"html_url":"https:/'
    b'/acme.pagerduty.com/escalation_policies/PUS0KTE","id":"PUS0KTE","self":"https://api.pagerduty.com/escalation'
    b'_policies/PUS0KTE","summary":"Default","type":"escalation_policy_reference"},"teams":[{"html_url":"https://a'
    b'cme.pagerduty.com/teams/PFCVPS0","id":"PFCVPS0","self":"https://api.pagerduty.com/teams/PFCVPS0","summary":"'
    b'Engineering","type":"team_reference"}],"priority":{"html_url":"https://acme.pagerduty.com/account/incident_p'
    b'riorities","id":"PSO75BM","self":"https://api.pagerduty.com/priorities/PSO75BM","summary":"P1","type":"prior'
    b'ity_reference"},"urgency":"high","conference_bridge":{"conference_number":1000,"conference_url":"https://exa'
    b'mple.com"},"resolve_reason":null}}}',
    "x-pagerduty-signature",
    {
        "content-type": JSON,
        "x-pagerduty-signature": "v1=0c0b9495b893a39e70d1fea2fe11fbe0a825f88b9f67846f6cc07dd2bc5476cd",
    },
)
# https://github.com/square/square-python-sdk/blob/master/tests/integration/test_webhooks_helper.py
SQUARE = SignedRequest(
    "square",
    "Ibxx_5AKakO-3qeNVR61Dw",
    b'{"merchant_id":"MLEFBHHSJGVHD","type":"webhooks.test_notification",'
    b'"event_id":"ac3ac95b-f97d-458c-a6e6-18981597e05f","created_at":"2022-07-13T20:30:59.037339943Z",'
    b'"data":{"type":"webhooks","id":"bc368e64-01aa-407e-b46e-3231809b1129"}}',
    "x-square-hmacsha256-signature",
    {"content-type": JSON, "x-square-hmacsha256-signature": "GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4="},
    url="https://webhook.site/679a4f3a-dcfa-49ee-bac5-9d0edad886b9",
)


def _twitch() -> SignedRequest:
    """Return a request as https://dev.twitch.tv/docs/eventsub/handling-webhook-events describes it.

    The challenge is that of the page; it publishes no secret and signature, so the signature is computed here.
    """
    body = b'{"challenge":"pogchamp-kappa-360noscope-vohiyo","subscription":{"type":"channel.follow"}}'
    id_, time, secret = "e76c6bd4-55c9-4987-8304-da1588d8988b", "2023-11-14T22:13:20.634234626Z", "s3cRe7-s3cRe7"
    headers = {
        "content-type": JSON,
        "twitch-eventsub-message-id": id_,
        "twitch-eventsub-message-timestamp": time,
        "twitch-eventsub-message-type": "webhook_callback_verification",
        "twitch-eventsub-subscription-type": "channel.follow",
        "twitch-eventsub-message-signature": "sha256=" + hex_hmac(secret, (id_ + time).encode() + body),
    }
    name = "twitch-eventsub-message-signature"
    return SignedRequest(
        "twitch", secret, body, name, headers, time="twitch-eventsub-message-timestamp", tolerance_s=600
    )


TWITCH = _twitch()
CLOUDEVENTS = SignedRequest(
    "cloudevents",
    "mF_9.B5f-4.1JqM",  # https://www.rfc-editor.org/rfc/rfc6750#section-2.1
    b'{"id": 1}',
    "authorization",
    {"content-type": JSON, "authorization": "Bearer mF_9.B5f-4.1JqM"},
)
PUBLISHED = (GITHUB, SLACK, TWILIO, STANDARD_WEBHOOKS, STRIPE, SHOPIFY, PADDLE, PAGERDUTY, SQUARE)
SIGNED = (*PUBLISHED, TWITCH, CLOUDEVENTS)
TIMED = (SLACK, STANDARD_WEBHOOKS, STRIPE, PADDLE, TWITCH)
