"""Software authenticator: makes and uses a passkey as a browser does (WebAuthn level 2, ES256, no attestation)."""

import hashlib
import json
import os
from base64 import urlsafe_b64encode
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2 import cbor

_PRESENT, _VERIFIED, _ATTESTED = 0x01, 0x04, 0x40


class SoftwarePasskey:
    """A passkey of one host; the user is always verified. Browsers offer passkeys on http only for localhost."""

    def __init__(self, host: str = "localhost") -> None:
        self.host, self.origin = host, f"http://{host}"
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = os.urandom(16)
        self.user_handle = ""
        self.uses = 0

    def create(self, options: dict[str, Any]) -> str:
        """Return the credential, JSON, for the options of a registration."""
        asked = options["publicKey"]
        self.user_handle = asked["user"]["id"]
        numbers = self.key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}
        attested = bytes(16) + len(self.id).to_bytes(2) + self.id + cbor.encode(cose)
        data = self._data(_PRESENT | _VERIFIED | _ATTESTED) + attested
        response = {
            "clientDataJSON": _text(self._client_data("webauthn.create", asked["challenge"])),
            "attestationObject": _text(cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})),
            "transports": ["internal"],
        }
        return self._credential(response, {"credProps": {"rk": True}})

    def get(self, options: dict[str, Any]) -> str:
        """Return the assertion, JSON, for the options of a sign-in."""
        client = self._client_data("webauthn.get", options["publicKey"]["challenge"])
        self.uses += 1
        data = self._data(_PRESENT | _VERIFIED)
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        response = {
            "clientDataJSON": _text(client),
            "authenticatorData": _text(data),
            "signature": _text(signature),
            "userHandle": self.user_handle,
        }
        return self._credential(response, {})

    def _data(self, flags: int) -> bytes:
        return hashlib.sha256(self.host.encode()).digest() + bytes([flags]) + self.uses.to_bytes(4)

    def _client_data(self, kind: str, challenge: str) -> bytes:
        found = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        return json.dumps(found).encode()

    def _credential(self, response: dict[str, Any], extensions: dict[str, Any]) -> str:
        name = _text(self.id)
        found = {"id": name, "rawId": name, "type": "public-key", "response": response}
        return json.dumps(found | {"clientExtensionResults": extensions, "authenticatorAttachment": "platform"})


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
