"""OpenID Connect provider as a process of its own, or as a thread of a test that makes it lie.

It speaks the protocol: discovery, the authorization code flow with PKCE (S256 is required), client authentication,
ID tokens signed with RS256 by PyJWT, JWKS and user information. It stands in for Okta, Entra or Keycloak, none of which
can run within a test. Its sign-in page believes each address that is typed.
"""

import base64
import hashlib
import json
import secrets
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.provider_server import SIGN_IN_PAGE, ProviderServer

CLIENT: Final = ("penstock", "a client secret &!")


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def _own_key() -> rsa.RSAPrivateKey:
    return new_key()


@dataclass
class Lies:
    """Deviations of the next tokens from the truth."""

    claims: dict[str, Any] = field(default_factory=dict)  # None removes a claim
    key: rsa.RSAPrivateKey | None = None
    algorithm: str = "RS256"
    metadata: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)


class IdentityProvider(ProviderServer):
    """Provider at a free port of the loopback interface."""

    def __init__(self, port: int = 0) -> None:
        self.lies = Lies()
        self.key = _own_key()
        self.codes: dict[str, dict[str, str]] = {}
        self.paths: list[str] = []
        self.redirects: dict[str, str] = {}
        self.drips = False  # True: answers one byte of a header at a time, for 20 seconds
        provider = self

        class Handler(_Handler):
            idp = provider

        super().__init__(Handler, port)
        self.issuer = f"http://127.0.0.1:{self.port}"

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        } | self.lies.metadata

    def keys(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [public | {"kid": "one", "use": "sig", "alg": "RS256"}]}

    def code_for(self, asked: dict[str, str], email: str) -> str:
        """Remember who signed in; the subject is made of the address."""
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked | {"email": email}
        return code

    def token(self, code: str, verifier: str) -> dict[str, Any] | None:
        """Redeem a code once, with the verifier of its challenge."""
        asked = self.codes.pop(code, None)
        if asked is None:
            return None
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        if asked.get("code_challenge_method") != "S256" or challenge != asked.get("code_challenge"):
            return None
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": asked["client_id"],
            "sub": subject_of(asked["email"]),
            "iat": now,
            "exp": now + 300,
            "nonce": asked.get("nonce"),
            "email": asked["email"],
            "email_verified": True,
        } | self.lies.claims
        claims = {name: value for name, value in claims.items() if value is not None}
        key: Any = {"HS256": CLIENT[1] * 3, "none": ""}.get(self.lies.algorithm, self.lies.key or self.key)
        id_token = jwt.encode(claims, key, self.lies.algorithm, headers={"kid": "one"})
        return {"access_token": asked["email"], "token_type": "Bearer", "expires_in": 300, "id_token": id_token}


def subject_of(email: str) -> str:
    return hashlib.sha256(email.encode()).hexdigest()[:20]


class _Handler(BaseHTTPRequestHandler):
    idp: IdentityProvider

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.idp.paths.append(path)
        if self.idp.drips:
            self._drip()
            return
        if target := self.idp.redirects.get(path):
            self._send(302, b"", "text/plain", {"Location": target})
        elif path == "/.well-known/openid-configuration":
            self._json(200, self.idp.metadata())
        elif path == "/jwks":
            self._json(200, self.idp.keys())
        elif path == "/authorize":
            self._send(200, SIGN_IN_PAGE.encode(), "text/html")
        elif path == "/userinfo":
            email = self.headers["Authorization"].removeprefix("Bearer ")
            self._json(200, {"sub": subject_of(email), "email": email} | self.idp.lies.userinfo)
        else:
            self._send(404, b"", "text/plain")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        parts = urlsplit(self.path)
        self.idp.paths.append(parts.path)
        if parts.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            code = self.idp.code_for(asked, form.get("email", ""))
            target = f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
            self._send(302, b"", "text/plain", {"Location": target})
        elif parts.path == "/token":
            given = base64.b64encode(":".join(CLIENT).encode()).decode()
            if self.headers.get("Authorization") != f"Basic {given}":
                self._json(401, {"error": "invalid_client"})
                return
            token = self.idp.token(form.get("code", ""), form.get("code_verifier", ""))
            self._json(200, token) if token else self._json(400, {"error": "invalid_grant"})
        else:
            self._send(404, b"", "text/plain")

    def _drip(self) -> None:
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            for _ in range(200):
                self.wfile.write(b"x")
                time.sleep(0.1)
        except OSError:
            self.close_connection = True

    def _json(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    provider = IdentityProvider(int(sys.argv[1]))
    print("ready", flush=True)  # noqa: T201 the test waits for it
    provider.serve()
