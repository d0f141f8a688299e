"""Answers of an identity provider that no honest one gives: each is refused with a sentence, at once."""

import base64
import json
import secrets
import socket
import time
from typing import Any

import jwt
import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from django.test import RequestFactory

from mgmt.errors import SsoError
from mgmt.sso.allauth_adapters import OidcAdapter
from mgmt.sso.http import MOST_ADDRESSES, get_json, object_in
from mgmt.sso.oidc import (
    MOST_KEYS,
    ProviderMetadata,
    access_token_in,
    check_id_token,
    keys_in,
    metadata_in,
    used_claims,
    uses_basic_auth,
)

ISSUER = "https://login.example.com"
METADATA: dict[str, Any] = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/jwks",
}


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwk_of(key: Any, kid: str = "one") -> dict[str, Any]:
    made: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return made | {"kid": kid}


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def modulus(bits: int) -> str:
    return b64(b"\xff" + secrets.token_bytes(bits // 8 - 2) + b"\x01")


def test_private_members_of_a_key_are_not_read():
    """From n, e and d alone the library would search for the primes, for minutes and without letting a thread run."""
    hostile = {"kty": "RSA", "kid": "a", "n": modulus(2048), "e": "AQAB", "d": b64(b"\xff" * 256)}
    began = time.monotonic()
    found = keys_in({"keys": [hostile]})
    assert time.monotonic() - began < 0.5
    assert isinstance(found.keys[0].key, rsa.RSAPublicKey)


def test_keys_of_each_type_are_read(key: rsa.RSAPrivateKey):
    curve: dict[str, Any] = jwt.algorithms.ECAlgorithm.to_jwk(
        ec.generate_private_key(ec.SECP256R1()).public_key(), as_dict=True
    )
    found = keys_in({"keys": [jwk_of(key), curve | {"kid": "two", "x5c": ["certificate"]}]})
    assert [one.key_id for one in found.keys] == ["one", "two"]


def test_key_that_cannot_be_used_leaves_the_others(key: rsa.RSAPrivateKey):
    good = jwk_of(key)
    bad: list[Any] = [
        5,
        None,
        {},
        {"kty": ["RSA"]},
        {"kty": "oct", "k": "AAAA"},
        {"kty": "oct", "k": 5, "alg": "HS256"},
        good | {"alg": "none"},
        good | {"alg": "HS256"},
        good | {"alg": ["RS256"]},
        good | {"n": 5},
        good | {"n": modulus(1024)},
        good | {"n": modulus(9216)},
        good | {"n": modulus(1_000_000)},
        good | {"e": ""},
        {"kty": "EC", "crv": ["P"], "x": 1, "y": 2},
        {"kty": "EC", "crv": "P-256"},
        {"kty": "OKP", "crv": "Ed25519", "x": "\ud800"},
    ]
    for one in bad:
        assert [found.key_id for found in keys_in({"keys": [one, good]}).keys] == ["one"]
        with pytest.raises((ValueError, jwt.PyJWTError)):
            keys_in({"keys": [one]})


@pytest.mark.parametrize("keys", [None, 5, {}, "keys", [], [[]] * (MOST_KEYS + 1)], ids=json.dumps)
def test_document_without_a_bounded_list_of_keys_is_refused(keys: Any):
    with pytest.raises((ValueError, jwt.PyJWTError)):
        keys_in({"keys": keys})


@pytest.mark.parametrize(
    "lie",
    [
        pytest.param({"response_types_supported": 5}, id="response types a number"),
        pytest.param({"response_types_supported": {"code": 1}}, id="response types an object"),
        pytest.param({"response_types_supported": []}, id="no response types"),
        pytest.param({"token_endpoint_auth_methods_supported": 5}, id="methods a number"),
        pytest.param({"token_endpoint_auth_methods_supported": "client_secret_post"}, id="methods a text"),
        pytest.param({"issuer": None}, id="no issuer"),
        pytest.param({"issuer": ["x"]}, id="issuer a list"),
        pytest.param({"jwks_uri": 5}, id="keys a number"),
        pytest.param({"token_endpoint": f"{ISSUER}/\ud800"}, id="surrogate"),
        pytest.param({"authorization_endpoint": f"{ISSUER}/\nSet-Cookie: a=b"}, id="new line"),
        pytest.param({"authorization_endpoint": f"{ISSUER}/{'x' * 2_000}"}, id="long URL"),
        pytest.param({"userinfo_endpoint": ["x"]}, id="user information a list"),
    ],
)
def test_malformed_metadata_is_refused(lie: dict[str, Any]):
    with pytest.raises(SsoError):
        metadata_in(METADATA | lie, ISSUER)


@pytest.mark.parametrize("value", [None, ["code"]], ids=["null", "list"])
def test_optional_metadata_may_be_null(value: Any):
    found = metadata_in(METADATA | {"response_types_supported": value}, ISSUER)
    assert found.token_endpoint == f"{ISSUER}/token"
    assert uses_basic_auth(metadata_in(METADATA | {"token_endpoint_auth_methods_supported": None}, ISSUER).document)


@pytest.mark.parametrize("content", [b"[" * 200_000, b'{"a":' * 200_000, b"[]", b"5", b"", b"\xff", b"1" * 5_000])
def test_answer_that_is_no_json_object_is_a_value_error(content: bytes):
    with pytest.raises(ValueError):  # noqa: PT011 each has a text of its own
        object_in(content)


def token_of(key: Any, algorithm: str = "RS256", **lies: Any) -> str:
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": "penstock", "sub": "ada", "iat": now, "exp": now + 300, "nonce": "n"} | lies
    return jwt.encode(claims, key, algorithm, headers={"kid": "one"})


def checked(key: rsa.RSAPrivateKey, token: str) -> dict[str, Any]:
    return check_id_token(token, keys=keys_in({"keys": [jwk_of(key)]}), issuer=ISSUER, client_id="penstock", nonce="n")


@pytest.mark.parametrize(
    "lies",
    [
        pytest.param({"nonce": "\ud800"}, id="nonce a surrogate"),
        pytest.param({"nonce": ["n"]}, id="nonce a list"),
        pytest.param({"exp": float("inf")}, id="exp infinite"),
        pytest.param({"iat": float("inf")}, id="iat infinite"),
        pytest.param({"exp": ["x"]}, id="exp a list"),
        pytest.param({"sub": "\ud800"}, id="sub a surrogate"),
        pytest.param({"sub": 5}, id="sub a number"),
        pytest.param({"aud": ["penstock", "x"], "azp": ["penstock"]}, id="azp a list"),
    ],
)
def test_token_with_a_claim_of_another_type_is_refused(key: rsa.RSAPrivateKey, lies: dict[str, Any]):
    assert checked(key, token_of(key))["sub"] == "ada"
    with pytest.raises(SsoError):
        checked(key, token_of(key, **lies))


def test_token_whose_header_names_the_algorithm_of_another_key_is_refused(key: rsa.RSAPrivateKey):
    token = token_of(ec.generate_private_key(ec.SECP256R1()), "ES256")
    with pytest.raises(SsoError, match="signature or form"):
        checked(key, token)


@pytest.mark.parametrize("token", ["", "['x']", "a.b.c", f"{b64(b'[' * 200_000)}.e30.x", f"{b64(b'5')}.e30.x"])
def test_text_that_is_no_token_is_refused(key: rsa.RSAPrivateKey, token: str):
    with pytest.raises(SsoError):
        checked(key, token)


@pytest.mark.parametrize(
    "lie",
    [
        {"email": 5},
        {"email": ["a@b.example"]},
        {"email": {"a": 1}},
        {"email": "\ud800@b.example"},
        {"email": '"a\x01"@b.example'},
        {"email": "x" * 300},
        {"preferred_username": 5},
        {"preferred_username": ["x"]},
    ],
    ids=repr,
)
def test_used_claim_of_another_type_is_refused(lie: dict[str, Any]):
    with pytest.raises(SsoError, match=next(iter(lie))):
        used_claims({"sub": "ada"} | lie)


def test_claims_that_nobody_reads_are_left_out():
    claims = {"sub": "ada", "email": "ada@acme.example", "name": ["x"], "given_name": {"a": 1}, "picture": 5}
    address = {"sub": "ada", "email": "ada@acme.example"}
    assert used_claims(claims) == address | {"email_verified": False}
    assert used_claims(claims | {"email_verified": "true"}) == address | {"email_verified": True}
    assert used_claims(claims | {"email_verified": False, "email": 5}) == {"sub": "ada"}


@pytest.mark.parametrize("answer", [5, "access_token", ["access_token"], None, {}, {"access_token": ["x"]}], ids=repr)
def test_token_answer_without_an_access_token_is_refused(answer: Any):
    with pytest.raises(SsoError, match="token endpoint"):
        access_token_in(answer)


@pytest.mark.parametrize("expires_in", ["abc", 1e300, [], None], ids=repr)
def test_expiry_of_the_access_token_is_not_read(expires_in: Any):
    adapter = OidcAdapter(RequestFactory().get("/"), "one")
    assert adapter.parse_token({"access_token": "a", "expires_in": expires_in}).token == "a"


@pytest.mark.parametrize("error", [TypeError, KeyError, RecursionError, ValueError])
def test_token_answer_that_the_package_cannot_read_is_refused(error: type[Exception]):
    """Such as 5, an answer without a content type, or one nested too deeply."""

    class Client:
        def get_access_token(self, *_args: Any, **_kwargs: Any) -> Any:
            raise error

    adapter = OidcAdapter(RequestFactory().get("/?code=c"), "one")
    with pytest.raises(SsoError, match="token endpoint"):
        adapter.get_access_token_data(adapter.request, None, Client())


@pytest.mark.parametrize("token", ["a\nb", "\u2603"], ids=["new line", "not of Latin"])
def test_access_token_that_no_header_can_carry_is_refused(token: str):
    adapter = OidcAdapter(RequestFactory().get("/"), "one")
    adapter._metadata = ProviderMetadata(ISSUER, "", "", "", "http://127.0.0.1:2/userinfo", {})
    with pytest.raises((SsoError, requests.RequestException)):
        adapter._user_info(token)


class _NoHost(socket.socket):
    """Socket that connects nowhere and takes all the time that it gets."""

    timeouts: list[float]
    now: list[float]

    def connect(self, _address: Any) -> None:
        self.timeouts.append(self.gettimeout() or 0.0)
        self.now[0] += self.timeouts[-1]
        raise TimeoutError


def test_time_to_connect_is_bounded_however_many_addresses_the_name_has(monkeypatch: pytest.MonkeyPatch):
    """The clock and the network are simulated: real ones would take the whole time."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"93.184.0.{n}", 443)) for n in range(1, 200)]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_args, **_more: found)
    _NoHost.timeouts, _NoHost.now = [], [time.monotonic()]
    monkeypatch.setattr("mgmt.sso.http.socket.socket", _NoHost)
    monkeypatch.setattr("mgmt.sso.provider_steps.time.monotonic", lambda: _NoHost.now[0])
    with pytest.raises(requests.RequestException):
        get_json(f"{ISSUER}/jwks")
    assert len(_NoHost.timeouts) <= MOST_ADDRESSES
    assert sum(_NoHost.timeouts) <= 10
