"""Verification of deliveries: Standard Webhooks signatures (standardwebhooks.com, specification 1.0)."""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

TOLERANCE_S = 300  # between the receiver's clock and the signed time


class SignatureInvalidError(Exception):
    """The request is not a delivery by the holder of the secret, or is too old. Return 401."""


@dataclass(frozen=True, slots=True)
class VerifiedDelivery:
    """A delivery whose signature is valid.

    id: the same for each attempt of Penstock to deliver it
    event_id: the same even if the sender repeated the event; "" without CloudEvents attributes. Handle each once.
    event_type: of the CloudEvent; "" if there is none
    """

    id: str
    event_id: str
    event_type: str
    sent_at_s: int
    body: bytes


class WebhookVerifier:
    """Verifies requests with one secret, or several during a rotation: `whsec_` (v1), or a public key `whpk_` (v1a)."""

    def __init__(self, *secrets: str, tolerance_s: int = TOLERANCE_S) -> None:
        """Take the secrets. Raises ValueError for a malformed one."""
        if not secrets:
            raise ValueError("needs at least one secret")
        self._checks = [_check_of(secret) for secret in secrets]
        self._tolerance_s = tolerance_s

    def verify(self, headers: Mapping[str, str], body: bytes, *, now_s: float | None = None) -> VerifiedDelivery:
        """Return the delivery. `body`: the exact bytes of the request. Raises SignatureInvalidError."""
        given = {name.lower(): value for name, value in headers.items()}
        id_, sent = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
        if not id_ or not sent.isdecimal() or len(sent) > 12 or not given.get("webhook-signature"):
            raise SignatureInvalidError("needs the headers webhook-id, webhook-timestamp and webhook-signature")
        now_s = time.time() if now_s is None else now_s
        if abs(now_s - int(sent)) > self._tolerance_s:
            raise SignatureInvalidError(f"needs a time within {self._tolerance_s} seconds of this clock")
        signed = f"{id_}.{sent}.".encode() + body
        for signature in given["webhook-signature"].split(" "):
            if any(check(signed, signature) for check in self._checks):
                event_id, event_type = given.get("ce-id", ""), given.get("ce-type", "")
                return VerifiedDelivery(id_, event_id, event_type, int(sent), body)
        raise SignatureInvalidError("needs a signature by one of the secrets")


def _check_of(secret: str) -> Callable[[bytes, str], bool]:
    prefix, _, key = secret.partition("_")
    try:
        decoded = base64.b64decode(key, validate=True)
    except binascii.Error:
        raise ValueError("needs base64 after the prefix of the secret") from None
    if prefix == "whsec" and decoded:
        return _symmetric(decoded)
    if prefix == "whpk" and len(decoded) == 32:
        return _asymmetric(decoded)
    raise ValueError("needs a secret with the prefix whsec_, or a public key of 32 bytes with the prefix whpk_")


def _symmetric(key: bytes) -> Callable[[bytes, str], bool]:
    def check(signed: bytes, signature: str) -> bool:
        mac = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
        return hmac.compare_digest(b"v1," + mac, signature.encode())

    return check


def _asymmetric(key: bytes) -> Callable[[bytes, str], bool]:
    try:  # Python's standard library has no ed25519
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise ValueError("whpk_ needs the package cryptography: pip install cryptography") from None
    public = Ed25519PublicKey.from_public_bytes(key)

    def check(signed: bytes, signature: str) -> bool:
        version, _, text = signature.partition(",")
        if version != "v1a":
            return False
        try:
            public.verify(base64.b64decode(text, validate=True), signed)
        except (InvalidSignature, binascii.Error):
            return False
        return True

    return check


__all__: Sequence[str] = ("SignatureInvalidError", "VerifiedDelivery", "WebhookVerifier")
