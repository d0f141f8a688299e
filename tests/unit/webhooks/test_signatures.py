"""Each preset accepts its provider's published example, and nothing that differs from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.webhooks import PRESETS, UnverifiedError, WebhookRequest
from tests.support.webhook_senders import (
    GITHUB,
    PADDLE,
    PAGERDUTY,
    PUBLISHED,
    SIGNED,
    SQUARE,
    STANDARD_WEBHOOKS,
    STRIPE,
    TIMED,
    TWILIO,
    TWITCH,
    SignedRequest,
    base64_hmac,
)

of_each = pytest.mark.parametrize("sent", SIGNED, ids=lambda sent: sent.preset)
of_timed = pytest.mark.parametrize("sent", TIMED, ids=lambda sent: sent.preset)


def refused(sent: SignedRequest, request: WebhookRequest, *, secrets: tuple[str, ...] = (), now_s: int = 0) -> str:
    """Return the code of the refusal; "" if the request is accepted."""
    try:
        PRESETS[sent.preset].verify(request, secrets or (sent.secret,), now_s or sent.now_s)
    except UnverifiedError as refusal:
        return refusal.code if sent.secret not in refusal.detail else "the secret is shown"
    return ""


@of_each
def test_published_example_is_accepted(sent: SignedRequest):
    assert refused(sent, sent.request()) == ""


def test_each_sender_but_other_ones_has_a_request_and_eight_a_published_signature():
    assert {sent.preset for sent in SIGNED} == set(PRESETS) - {"none"}
    assert len({sent.preset for sent in PUBLISHED}) >= 8


@of_each
def test_either_of_two_secrets_is_accepted_while_they_rotate(sent: SignedRequest):
    other = "whsec_" + "A" * 32 if sent is STANDARD_WEBHOOKS else "another-secret"
    assert refused(sent, sent.request(), secrets=(other, sent.secret)) == ""
    assert refused(sent, sent.request(), secrets=(sent.secret, other)) == ""
    assert refused(sent, sent.request(), secrets=(other,)) == "signature-invalid"


@pytest.mark.parametrize("sent", [one for one in SIGNED if one.preset != "cloudevents"], ids=lambda sent: sent.preset)
def test_no_bit_of_the_body_may_change(sent: SignedRequest):
    for at in range(len(sent.body)):
        for bit in range(8):
            changed = bytearray(sent.body)
            changed[at] ^= 1 << bit
            code = refused(sent, sent.request(body=bytes(changed)))
            # In a form, %2b and %2B are the same character: Twilio signs the fields, not the bytes.
            is_same_form = sent is TWILIO and bytes(changed).upper() == sent.body.upper() and b"%2b" in changed
            assert code == ("" if is_same_form else "signature-invalid"), (at, bit)


@of_each
def test_no_character_of_the_signature_may_change(sent: SignedRequest):
    value = sent.headers[sent.signature]
    end = value.index(",v0=") if sent is STRIPE else len(value)
    begin = value.find(" ") + 1
    if sent in (STRIPE, PADDLE):  # whose header has other parts, too
        begin = value.rindex("v1=" if sent is STRIPE else "h1=") + 3
    for at in range(begin, end):
        other = "1" if value[at] != "1" else "2"
        changed = value[:at] + other + value[at + 1 :]
        assert refused(sent, sent.request(**{sent.signature: changed})).startswith("signature-"), at


@of_each
def test_missing_empty_and_repeated_signatures_are_refused(sent: SignedRequest):
    value = sent.headers[sent.signature]
    assert refused(sent, sent.request(**{sent.signature: None})) == "signature-missing"
    assert refused(sent, sent.request(**{sent.signature: ""})) == "signature-missing"
    assert refused(sent, sent.request(**{sent.signature: [value, value]})) == "signature-invalid"


@of_timed
def test_stale_and_future_requests_are_refused(sent: SignedRequest):
    assert refused(sent, sent.request(), now_s=sent.now_s + sent.tolerance_s) == ""
    assert refused(sent, sent.request(), now_s=sent.now_s + sent.tolerance_s + 1) == "signature-stale"
    assert refused(sent, sent.request(), now_s=sent.now_s - sent.tolerance_s - 1) == "signature-stale"


@of_timed
@pytest.mark.parametrize(
    "time",
    ["", "-1", "1e9", "\uff11\uff17", "9" * 4_000, " 1", "0x1", "2023-13-14T22:13:20Z", "2023-11-14T22:13:20"],
)
def test_time_of_another_form_is_refused(sent: SignedRequest, time: str):
    if sent.time:
        changes: dict[str, str] = {sent.time: time}
    else:
        changes = {sent.signature: sent.headers[sent.signature].replace(f"={sent.now_s}", f"={time}")}
    assert refused(sent, sent.request(**changes)) in ("signature-invalid", "signature-missing")


@of_timed
def test_signed_time_may_not_be_moved(sent: SignedRequest):
    later = str(sent.now_s + 600)
    changes = {name: value.replace(str(sent.now_s), later) for name, value in sent.headers.items()}
    if sent is TWITCH:
        changes[sent.time] = sent.headers[sent.time].replace("T22:13:20", "T22:23:20")
    assert refused(sent, sent.request(**changes), now_s=sent.now_s + 600) == "signature-invalid"


def test_weaker_algorithms_are_never_looked_at():
    sha1 = {"x-hub-signature": "sha1=" + "0" * 40, "x-hub-signature-256": None}
    assert refused(GITHUB, GITHUB.request(**sha1)) == "signature-missing"
    only_test = {"stripe-signature": STRIPE.headers["stripe-signature"].replace("v1=", "v0=")}
    assert refused(STRIPE, STRIPE.request(**only_test)) == "signature-invalid"
    sha1 = {"x-square-signature": SQUARE.headers[SQUARE.signature], SQUARE.signature: None}
    assert refused(SQUARE, SQUARE.request(**sha1)) == "signature-missing"
    other = {"webhook-signature": STANDARD_WEBHOOKS.headers["webhook-signature"].replace("v1,", "v0,")}
    assert refused(STANDARD_WEBHOOKS, STANDARD_WEBHOOKS.request(**other)) == "signature-invalid"


def test_several_signatures_of_a_rotating_sender_are_accepted_up_to_a_limit():
    right = STRIPE.headers["stripe-signature"]
    wrong = ",".join(f"v1={'0' * 64}" for _ in range(10))
    assert refused(STRIPE, STRIPE.request(stripe_signature=f"{wrong},{right}")) == ""
    many = ",".join(f"v1={'0' * 64}" for _ in range(30))
    assert refused(STRIPE, STRIPE.request(stripe_signature=f"{right},{many}")) == "signature-invalid"
    twice = f"t={STRIPE.now_s},{right}"
    assert refused(STRIPE, STRIPE.request(stripe_signature=twice)) == "signature-invalid"
    right = STANDARD_WEBHOOKS.headers["webhook-signature"]
    assert refused(STANDARD_WEBHOOKS, STANDARD_WEBHOOKS.request(webhook_signature=f"v1a,x v1,y {right}")) == ""


def test_signatures_of_pagerduty_and_paddle_are_accepted_next_to_others_up_to_a_limit():
    for sent, scheme, separator in ((PAGERDUTY, "v1", ","), (PADDLE, "h1", ";")):
        right, wrong = sent.headers[sent.signature], f"{scheme}={'0' * 64}"
        assert refused(sent, sent.request(**{sent.signature: f"{right}{separator}{wrong}"})) == ""
        assert refused(sent, sent.request(**{sent.signature: f"{right}{separator}v2=1"})) == ""
        many = separator.join([right, *[wrong] * 30])
        assert refused(sent, sent.request(**{sent.signature: many})) == "signature-invalid"
        other = right.replace(f"{scheme}=", "v2=")
        assert refused(sent, sent.request(**{sent.signature: other})) == "signature-invalid"
    twice = f"ts={PADDLE.now_s};{PADDLE.headers[PADDLE.signature]}"
    assert refused(PADDLE, PADDLE.request(paddle_signature=twice)) == "signature-invalid"


def test_id_is_part_of_what_standard_webhooks_and_twitch_sign():
    assert refused(STANDARD_WEBHOOKS, STANDARD_WEBHOOKS.request(webhook_id="msg_other")) == "signature-invalid"
    assert refused(TWITCH, TWITCH.request(twitch_eventsub_message_id="other")) == "signature-invalid"


def test_url_is_part_of_what_square_signs():
    assert refused(SQUARE, SQUARE.request(url=f"{SQUARE.url}?a=1")) == "signature-invalid"


def test_headers_of_svix_are_read_only_if_there_are_no_standard_ones():
    named = {name.replace("webhook", "svix"): value for name, value in STANDARD_WEBHOOKS.headers.items()}
    sent = SignedRequest("standard-webhooks", STANDARD_WEBHOOKS.secret, STANDARD_WEBHOOKS.body, "", named)
    assert refused(sent, sent.request(), now_s=STANDARD_WEBHOOKS.now_s) == ""
    for unsigned in ("webhook-id", "webhook-timestamp", "webhook-signature"):  # an event would take its id or time
        mixed = SignedRequest("standard-webhooks", sent.secret, sent.body, "", {**named, unsigned: "1"})
        assert refused(mixed, mixed.request(), now_s=STANDARD_WEBHOOKS.now_s) == "signature-missing"


def test_url_and_each_value_of_a_repeated_field_are_part_of_what_twilio_signs():
    assert refused(TWILIO, TWILIO.request(url="https://mycompany.com/myapp.php?foo=1")) == "signature-invalid"
    more = TWILIO.body + b"&Digits=5"
    assert refused(TWILIO, TWILIO.request(body=more)) == "signature-invalid"
    signed = "https://a.example/CallSid1Digits1234Digits5"
    request = WebhookRequest(
        {
            "content-type": ["application/x-www-form-urlencoded"],
            "x-twilio-signature": [base64_hmac(b"12345", signed.encode(), "sha1")],
        },
        b"Digits=5&CallSid=1&Digits=1234",
        "https://a.example/",
    )
    assert refused(TWILIO, request) == ""


def test_json_of_twilio_is_verified_by_the_hash_in_the_signed_url():
    body = b'{"CallSid":"CA1234567890ABCDE","Caller":"+12349013030"}'
    hashed = "5ccde7145dfb8f56479710896586cb9d5911809d83afbe34627818790db0aec9"  # of Twilio's documented example
    url = f"https://example.com/myapp?bodySHA256={hashed}"
    headers = {"content-type": "application/json", "x-twilio-signature": base64_hmac(b"12345", url.encode(), "sha1")}
    sent = SignedRequest("twilio", "12345", body, "x-twilio-signature", headers, url=url)
    assert refused(sent, sent.request()) == ""
    assert refused(sent, sent.request(body=body + b" ")) == "signature-invalid"
    bare = "https://example.com/myapp"
    unhashed = {"x-twilio-signature": base64_hmac(b"12345", bare.encode(), "sha1")}
    assert refused(sent, sent.request(url=bare, **unhashed)) == "signature-invalid"
    twice = f"{url}&bodySHA256={hashed}"
    doubled = {"x-twilio-signature": base64_hmac(b"12345", twice.encode(), "sha1")}
    assert refused(sent, sent.request(url=twice, **doubled)) == "signature-invalid"


def test_signature_of_a_json_body_is_not_valid_for_an_empty_form():
    """Twilio signs only the URL then, and an empty form adds nothing to it."""
    url = "https://example.com/myapp?bodySHA256=5ccde7145dfb8f56479710896586cb9d5911809d83afbe34627818790db0aec9"
    signature = base64_hmac(b"12345", url.encode(), "sha1")
    headers = {"content-type": ["application/x-www-form-urlencoded"], "x-twilio-signature": [signature]}
    assert refused(TWILIO, WebhookRequest(headers, b"", url)) == "signature-invalid"


def test_cloudevents_without_a_secret_are_not_verified():
    PRESETS["cloudevents"].verify(WebhookRequest({}, b""), (), 0)


@pytest.mark.parametrize(
    ("preset", "secret", "is_possible"),
    [
        ("standard-webhooks", STANDARD_WEBHOOKS.secret, True),
        ("standard-webhooks", STANDARD_WEBHOOKS.secret.removeprefix("whsec_"), True),
        ("standard-webhooks", "whsec_c2hvcnQ=", False),
        ("standard-webhooks", "whsec_not base64", False),
        ("github", "x" * 256, True),
        ("github", "short", False),
        ("github", "x" * 257, False),
        ("stripe", "whsec_\nwith a line", False),
        ("slack", "grün-grün-grün", False),
        ("twitch", "x" * 10, True),
        ("twitch", "x" * 9, False),
        ("twitch", "x" * 101, False),
    ],
)
def test_secret_is_checked_when_it_is_entered(preset: str, secret: str, is_possible: bool):
    if is_possible:
        PRESETS[preset].check_secret(secret)
    else:
        with pytest.raises(ValueError, match="needs"):
            PRESETS[preset].check_secret(secret)


@given(st.sampled_from(SIGNED), st.text(max_size=200), st.text(max_size=40), st.binary(max_size=200))
def test_no_header_or_body_is_accepted_or_raises_anything_else(
    sent: SignedRequest, signature: str, time: str, body: bytes
):
    changes: dict[str, str | bytes] = {sent.signature: signature, "body": body}
    if sent.time:
        changes[sent.time] = time
    assert refused(sent, sent.request(**changes)).startswith("signature-")
