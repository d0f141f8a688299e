"""OpenID Connect: the provider's metadata and keys, and the check of ID tokens.

Each error says what an owner of the tenant should change. The rules are those of OpenID Connect Core 1.0 section
3.1.3.7; the signature is always checked, also of a token that came directly from the provider.
"""

import hmac
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import jwt
import requests
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from mgmt.errors import SsoError
from mgmt.sso.http import GuardedSession, get_json, object_in, reason_of, why_not

DISCOVERY: Final = "/.well-known/openid-configuration"
CLOCK_SKEW_S: Final = 60
# Asymmetric only: with HS256 each holder of the client secret could sign, and "none" needs no key at all.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
MOST_SUBJECT_CHARS: Final = 191  # allauth's column
MOST_KEYS: Final = 100
RSA_BITS: Final = range(2048, 8192 + 1)  # the time of a check grows with the square of the size
# With a private member PyJWT would recover the primes of the key, which takes minutes and stops all threads.
_PUBLIC_MEMBERS: Final = ("kty", "kid", "alg", "use", "n", "e", "crv", "x", "y")
_KEY_TYPES: Final = ("RSA", "EC", "OKP")
_MOST_MEMBER_CHARS: Final = 2_000
# Errors of libraries for an answer with values of another type, size or depth than the standard says.
_MALFORMED: Final = (ValueError, TypeError, RecursionError, OverflowError)
_MOST_URL_CHARS: Final = 1_000
_MOST_CLAIM_CHARS: Final = 254
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class ProviderMetadata(NamedTuple):
    """Discovered metadata of a provider."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str
    document: dict[str, Any]


def discover(issuer: str) -> ProviderMetadata:
    """Fetch the metadata of an issuer and check its issuer and endpoints. Raises SsoError."""
    if why := why_not(issuer):
        raise SsoError(f"The issuer URL {why}.")
    url = issuer.rstrip("/") + DISCOVERY
    try:
        found = get_json(url)
    except requests.RequestException as exc:
        raise SsoError(f"Could not read {url}: {reason_of(exc)}. Check the issuer URL.") from exc
    except ValueError as exc:
        raise SsoError(f"{url} is not a JSON document. Check the issuer URL.") from exc
    return metadata_in(found, issuer)


def metadata_in(found: dict[str, Any], issuer: str) -> ProviderMetadata:
    """Return the metadata in a discovery document. Raises SsoError."""
    if (claimed := found.get("issuer")) != issuer:
        name = repr(claimed[:200]) if isinstance(claimed, str) else "nothing"
        raise SsoError(f"The provider calls itself {name}. Enter exactly this text as the issuer.")
    for name in _ENDPOINTS:
        _check_endpoint(name, found.get(name))
    if userinfo := found.get("userinfo_endpoint"):
        _check_endpoint("userinfo_endpoint", userinfo)
    for name in ("response_types_supported", "token_endpoint_auth_methods_supported"):
        if found.get(name) is not None and not isinstance(found[name], list):
            raise SsoError(f"The provider's metadata needs a list as {name}. Check the issuer URL.")
    response_types = found.get("response_types_supported")
    if response_types is not None and "code" not in response_types:
        raise SsoError("The provider does not offer the authorization code flow. Enable it for this application.")
    authorization, token, keys = (found[name] for name in _ENDPOINTS)
    return ProviderMetadata(issuer, authorization, token, keys, userinfo or "", found)


def fetch_keys(metadata: ProviderMetadata) -> jwt.PyJWKSet:
    """Fetch the signing keys of a provider. Raises SsoError."""
    try:
        return keys_in(get_json(metadata.jwks_uri))
    except requests.RequestException as exc:
        raise SsoError(f"Could not read the provider's keys at {metadata.jwks_uri}: {reason_of(exc)}.") from exc
    except (*_MALFORMED, jwt.PyJWTError) as exc:
        raise SsoError("The provider publishes no signing keys that Penstock can use.") from exc


def keys_in(document: Mapping[str, Any]) -> jwt.PyJWKSet:
    """Return the public keys of a JWKS that can check a signature. Raises ValueError, jwt.PyJWTError."""
    rows = document.get("keys")
    if not isinstance(rows, list) or len(rows) > MOST_KEYS:
        raise ValueError(f"needs a list of at most {MOST_KEYS} keys")
    found = jwt.PyJWKSet([public for row in rows if (public := _public_members(row))])
    found.keys = [one for one in found.keys if not isinstance(one.key, RSAPublicKey) or one.key.key_size in RSA_BITS]
    if not found.keys:
        raise ValueError(f"needs a key; those of RSA need {RSA_BITS[0]} to {RSA_BITS[-1]} bits")
    return found


def check_client(metadata: ProviderMetadata, *, client_id: str, client_secret: str, redirect_uri: str) -> None:
    """Redeem a made-up code: its refusal shows if the provider knows the client. Raises SsoError if it does not."""
    body = {"grant_type": "authorization_code", "code": "connection-test", "redirect_uri": redirect_uri}
    auth = None
    if uses_basic_auth(metadata.document):
        auth = (client_id, client_secret)
    else:
        body |= {"client_id": client_id, "client_secret": client_secret}
    try:
        with GuardedSession() as session:
            response = session.post(metadata.token_endpoint, data=body, auth=auth)
        error = object_in(response.content).get("error", "")
    except (requests.RequestException, ValueError) as exc:
        raise SsoError("The provider's token endpoint does not respond as OAuth 2.0 requires.") from exc
    if response.status_code == 401 or error in ("invalid_client", "unauthorized_client"):
        raise SsoError("The provider does not accept the client ID and the client secret. Copy both again.")


def uses_basic_auth(document: Mapping[str, Any]) -> bool:
    """Return True if the client secret is sent in the Authorization header; the standard's default is the header."""
    methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    return "client_secret_post" not in methods


def check_id_token(token: str, *, keys: jwt.PyJWKSet, issuer: str, client_id: str, nonce: str) -> dict[str, Any]:
    """Return the claims of an ID token that this provider signed for this client and this sign-in. Raises SsoError."""
    try:
        header = jwt.get_unverified_header(token)
        key = _key_of(keys, header.get("kid"))
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=[one for one in ALGORITHMS if one == header.get("alg")],
            issuer=issuer,
            audience=client_id,
            leeway=CLOCK_SKEW_S,
            options={"require": ["iss", "sub", "aud", "exp", "iat"]},
        )
    except jwt.ExpiredSignatureError as exc:
        raise SsoError(
            "The provider's token has expired. Sign in again; if this persists, correct the clock of the provider."
        ) from exc
    except jwt.ImmatureSignatureError as exc:
        raise SsoError("The provider's token is from the future. Correct the clock of the provider.") from exc
    except jwt.InvalidIssuerError as exc:
        raise SsoError("The token is from another issuer. Correct the issuer URL.") from exc
    except jwt.InvalidAudienceError as exc:
        raise SsoError("The token is for another application. Correct the client ID.") from exc
    except (*_MALFORMED, jwt.PyJWTError) as exc:
        raise SsoError("The token's signature or form is not valid. Check that the issuer URL is right.") from exc
    if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and claims.get("azp") != client_id:
        raise SsoError("The token is for another application. Correct the client ID.")
    if not hmac.compare_digest(str(claims.get("nonce", "")).encode(errors="surrogatepass"), nonce.encode()):
        raise SsoError("The token belongs to another sign-in. Sign in again.")
    if not 1 <= len(claims["sub"]) <= MOST_SUBJECT_CHARS or not claims["sub"].isprintable():
        raise SsoError(f"The token's subject needs 1 to {MOST_SUBJECT_CHARS} printable characters.")
    return claims


def used_claims(claims: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims that Penstock reads: subject, address and user name. Raises SsoError if one is not a text.

    An address that the provider calls unverified is left out. `email_verified`: True if it calls the address verified.
    """
    used = {name: claims[name] for name in ("sub", "email", "preferred_username") if claims.get(name) is not None}
    if claims.get("email_verified") in (False, "false"):
        used.pop("email", None)
    for name, value in used.items():
        if not isinstance(value, str) or len(value) > _MOST_CLAIM_CHARS or not value.isprintable():
            raise SsoError(f"The provider's claim {name} is not a text of at most {_MOST_CLAIM_CHARS} characters.")
    if "email" in used:
        used["email_verified"] = claims.get("email_verified") in (True, "true")
    return used


def access_token_in(answer: Any) -> str:
    """Return the access token of a token response. Raises SsoError."""
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str):
        raise SsoError("The provider's token endpoint does not respond as OAuth 2.0 requires.")
    return token


def _public_members(row: Any) -> dict[str, str] | None:
    """Return the public members of a JWK; None if it is malformed or not for signatures that Penstock accepts."""
    if not isinstance(row, dict):
        return None
    found = {name: row[name] for name in _PUBLIC_MEMBERS if name in row}
    if not all(isinstance(value, str) and len(value) <= _MOST_MEMBER_CHARS for value in found.values()):
        return None
    usable = found.get("kty") in _KEY_TYPES and found.get("alg", ALGORITHMS[0]) in ALGORITHMS
    return found if usable else None


def _key_of(keys: jwt.PyJWKSet, kid: str | None) -> jwt.PyJWK:
    found = [key for key in keys.keys if kid is None or key.key_id == kid]
    if len(found) != 1:
        raise jwt.InvalidKeyError("no key of the provider has this id")
    return found[0]


def _check_endpoint(name: str, url: Any) -> None:
    usable = isinstance(url, str) and url.isascii() and url.isprintable() and len(url) <= _MOST_URL_CHARS
    if not usable or not url.startswith(("https://", "http://")):
        raise SsoError(f"The provider's metadata has no {name}. Check the issuer URL.")
    if why := why_not(url):
        raise SsoError(f"The provider's {name} {why}.")
