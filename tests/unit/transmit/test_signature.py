"""Signatures verify with the published Standard Webhooks package."""

import base64
import json
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from dataplane.transmit.http.signature import sign, signer

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(b"another secret of 24 byt").decode()
BODY = b'{"test": 2432232314}'


def headers(signature: str, at_s: int, id_: str = "msg_1") -> dict[str, str]:
    return {"webhook-id": id_, "webhook-timestamp": str(at_s), "webhook-signature": signature}


def test_signature_matches_the_example_of_the_specification():
    signature = sign([signer(SECRET)], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, BODY)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def now_s() -> int:
    return int(datetime.now(UTC).timestamp())


@given(st.from_regex(r"[0-9a-f-]{36}(\.[0-9]+)?", fullmatch=True), st.text(max_size=200))
def test_package_accepts_our_signatures(id_: str, text: str):
    at_s, body = now_s(), json.dumps(text).encode()
    signature = sign([signer(SECRET)], id_, at_s, body)
    assert Webhook(SECRET).verify(body, headers(signature, at_s, id_)) == text


@pytest.mark.parametrize("secret", [SECRET, OTHER])
def test_both_secrets_verify_during_a_rotation(secret: str):
    at_s = now_s()
    signature = sign([signer(OTHER), signer(SECRET)], "msg_1", at_s, BODY)
    assert Webhook(secret).verify(BODY, headers(signature, at_s)) == {"test": 2432232314}


@pytest.mark.parametrize(
    ("body", "id_", "shift_s"),
    [(BODY + b" ", "msg_1", 0), (BODY, "msg_2", 0), (BODY, "msg_1", 1)],
    ids=["another body", "another id", "another time"],
)
def test_signature_is_valid_for_no_other_body_id_or_time(body: bytes, id_: str, shift_s: int):
    at_s = now_s()
    signature = sign([signer(SECRET)], "msg_1", at_s, BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body, headers(signature, at_s + shift_s, id_))


@pytest.mark.parametrize(
    "secret", ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_***", "whsec_abc", "psk_MfKQ9r8G", "whsk_AAAA"]
)
def test_invalid_secret_is_refused(secret: str):
    with pytest.raises(ValueError, match=r"."):
        signer(secret)


def test_signature_of_an_asymmetric_secret_verifies_with_its_public_key():
    private = Ed25519PrivateKey.generate()
    seed, public = private.private_bytes_raw(), private.public_key()
    for key in (seed, seed + public.public_bytes_raw()):
        signature = sign([signer("whsk_" + base64.b64encode(key).decode())], "msg_1", 5, BODY)
        scheme, _, text = signature.partition(",")
        assert scheme == "v1a"
        public.verify(base64.b64decode(text), b"msg_1.5." + BODY)


def test_one_secret_of_each_kind_may_be_active():
    private = "whsk_" + base64.b64encode(bytes(32)).decode()
    signature = sign([signer(private), signer(SECRET)], "msg_1", now_s(), BODY)
    assert [one.partition(",")[0] for one in signature.split(" ")] == ["v1a", "v1"]
    assert Webhook(SECRET).verify(BODY, headers(signature, now_s())) == {"test": 2432232314}
