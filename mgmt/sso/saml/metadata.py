"""Metadata of a SAML provider: its entity id, sign-in address and signing certificates."""

import base64
import binascii
from datetime import UTC, datetime
from typing import Final, NamedTuple

import requests
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from django.utils.dateparse import parse_datetime

from mgmt.errors import SsoError
from mgmt.sso.http import GuardedSession, reason_of
from mgmt.sso.saml.documents import DSIG, METADATA, Element, in_own_thread, parse_with_comments, text_of

MOST_BYTES: Final = 512 * 1024
MOST_CERTIFICATES: Final = 10
RSA_BITS: Final = range(2048, 8192 + 1)  # the time of a check grows with the square of the size
CURVES: Final = ("secp256r1", "secp384r1", "secp521r1")
REDIRECT: Final = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
_SAML2: Final = "urn:oasis:names:tc:SAML:2.0:protocol"
_MOST_CHARS: Final = 1_000
_WHAT: Final = "The metadata"


class SamlMetadata(NamedTuple):
    """Metadata of a provider. `certificates`: DER in base64. `valid_until`: None if it names no end."""

    entity_id: str
    sso_url: str
    certificates: list[str]
    valid_until: datetime | None


class CertificateFacts(NamedTuple):
    """Facts about a certificate that an owner compares with those of the provider."""

    fingerprint: str
    expires_at: datetime


def fetch_metadata(url: str) -> bytes:
    """Return the document at an address. Raises SsoError."""
    try:
        with GuardedSession() as session:
            response = session.get(url, headers={"Accept": "application/samlmetadata+xml, application/xml, text/xml"})
            response.raise_for_status()
    except requests.RequestException as exc:
        raise SsoError(f"Could not read {url}: {reason_of(exc)}. Check the metadata URL.") from exc
    content: bytes = response.content
    return content


@in_own_thread
def metadata_in(content: bytes, *, now: datetime, https_only: bool) -> SamlMetadata:
    """Return the metadata in a document of one provider. Raises SsoError."""
    if len(content) > MOST_BYTES:
        raise SsoError("The metadata is too large. Enter the document of one provider only.")
    root = parse_with_comments(content, _WHAT)
    entities = [root] if root.tag == f"{METADATA}EntityDescriptor" else list(root.iter(f"{METADATA}EntityDescriptor"))
    roles = [
        (one, role) for one in entities for role in one.findall(f"{METADATA}IDPSSODescriptor") if _speaks_saml2(role)
    ]
    if len(roles) != 1:
        raise SsoError(
            f"The metadata describes {len(roles)} identity providers for SAML 2.0. It needs to describe one."
        )
    entity, role = roles[0]
    entity_id = entity.get("entityID") or ""
    if not 1 <= len(entity_id) <= _MOST_CHARS or not entity_id.isprintable():
        raise SsoError(f"The metadata needs an entity ID of at most {_MOST_CHARS} characters.")
    if role.get("WantAuthnRequestsSigned") in ("true", "1"):
        raise SsoError("The provider wants signed requests, which Penstock does not send. Turn it off at the provider.")
    ends = [end for one in (root, entity, role) if (end := _valid_until(one)) is not None]
    valid_until = min(ends, default=None)
    if valid_until is not None and valid_until <= now:
        raise SsoError(f"The metadata expired on {valid_until:%Y-%m-%d}. Get the current one from the provider.")
    return SamlMetadata(entity_id, _sso_url(role, https_only=https_only), _certificates(role), valid_until)


def facts_of_certificate(certificate: str) -> CertificateFacts:
    """Return the SHA-256 fingerprint and the expiry of a stored certificate."""
    found = x509.load_der_x509_certificate(base64.b64decode(certificate))
    digest = found.fingerprint(hashes.SHA256()).hex().upper()
    return CertificateFacts(":".join(digest[at : at + 2] for at in range(0, len(digest), 2)), found.not_valid_after_utc)


def _speaks_saml2(role: Element) -> bool:
    return _SAML2 in (role.get("protocolSupportEnumeration") or "").split()


def _sso_url(role: Element, *, https_only: bool) -> str:
    services = role.findall(f"{METADATA}SingleSignOnService")
    url = next((one.get("Location") or "" for one in services if one.get("Binding") == REDIRECT), "")
    if not url:
        raise SsoError("The metadata has no sign-in address for the binding HTTP-Redirect. Enable it at the provider.")
    schemes = ("https://",) if https_only else ("https://", "http://")
    is_text = url.isascii() and url.isprintable() and not {" ", "#"} & set(url)
    if not url.startswith(schemes) or len(url) > _MOST_CHARS or not is_text:
        raise SsoError("The sign-in address of the metadata is not an https URL.")
    return url


def _certificates(role: Element) -> list[str]:
    """Return the signing certificates, each once: during a rotation there are two. Raises SsoError."""
    keys = [one for one in role.findall(f"{METADATA}KeyDescriptor") if one.get("use") in (None, "signing")]
    texts = ["".join(text_of(one).split()) for key in keys for one in key.iter(f"{DSIG}X509Certificate")]
    found = list(dict.fromkeys(_certificate(text) for text in texts))
    if not 1 <= len(found) <= MOST_CERTIFICATES:
        raise SsoError(f"The metadata needs 1 to {MOST_CERTIFICATES} signing certificates, and has {len(found)}.")
    return found


def _certificate(text: str) -> str:
    try:
        certificate = x509.load_der_x509_certificate(base64.b64decode(text, validate=True))
        key = certificate.public_key()
    except (binascii.Error, ValueError, UnsupportedAlgorithm) as exc:
        raise SsoError("A certificate of the metadata cannot be read.") from exc
    is_rsa = isinstance(key, RSAPublicKey) and key.key_size in RSA_BITS
    if not is_rsa and not (isinstance(key, EllipticCurvePublicKey) and key.curve.name in CURVES):
        raise SsoError(
            f"The provider's keys need RSA with {RSA_BITS[0]} to {RSA_BITS[-1]} bits, or an ECDSA curve of NIST."
        )
    return base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()


def _valid_until(element: Element) -> datetime | None:
    text = element.get("validUntil")
    if text is None:
        return None
    try:
        found = parse_datetime(text)
        if found is None:
            raise ValueError(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise SsoError("The time validUntil of the metadata is not a time.") from exc
