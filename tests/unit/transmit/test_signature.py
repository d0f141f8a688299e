"""Signatures as the published Standard Webhooks package checks them."""

import base64
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from dataplane.transmit.signature import sign, signing_key

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(b"another secret of 24 byt").decode()
BODY = b'{"test": 2432232314}'


def headers(signature: str, at_s: int, id_: str = "msg_1") -> dict[str, str]:
    return {"webhook-id": id_, "webhook-timestamp": str(at_s), "webhook-signature": signature}


def test_the_specifications_own_example():
    signature = sign([signing_key(SECRET)], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, BODY)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def now_s() -> int:
    return int(datetime.now(UTC).timestamp())


@given(st.from_regex(r"[0-9a-f-]{36}(\.[0-9]+)?", fullmatch=True), st.text(max_size=200))
def test_the_package_accepts_what_we_sign(id_: str, text: str):
    at_s, body = now_s(), json.dumps(text).encode()
    signature = sign([signing_key(SECRET)], id_, at_s, body)
    assert Webhook(SECRET).verify(body, headers(signature, at_s, id_)) == text


@pytest.mark.parametrize("secret", [SECRET, OTHER])
def test_while_a_secret_is_changed_both_verify(secret: str):
    at_s = now_s()
    signature = sign([signing_key(OTHER), signing_key(SECRET)], "msg_1", at_s, BODY)
    assert Webhook(secret).verify(BODY, headers(signature, at_s)) == {"test": 2432232314}


@pytest.mark.parametrize(
    ("body", "id_", "shift_s"),
    [(BODY + b" ", "msg_1", 0), (BODY, "msg_2", 0), (BODY, "msg_1", 1)],
    ids=["another body", "another id", "another time"],
)
def test_a_signature_holds_for_nothing_else(body: bytes, id_: str, shift_s: int):
    at_s = now_s()
    signature = sign([signing_key(SECRET)], "msg_1", at_s, BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body, headers(signature, at_s + shift_s, id_))


@pytest.mark.parametrize("secret", ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_***", "whsec_abc", "psk_MfKQ9r8G"])
def test_what_is_no_secret_is_refused(secret: str):
    with pytest.raises(ValueError, match=r"."):
        signing_key(secret)
