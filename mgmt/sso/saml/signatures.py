"""XML signatures: the form that SAML prescribes, and nothing else of what the standard of XML signatures offers.

The form is checked before xmlsec reads it. xmlsec computes the digests before it checks the signature: a stranger could
otherwise let it run transforms or fetch addresses.
"""

from collections.abc import Sequence
from typing import Final

import xmlsec

from mgmt.errors import SsoError
from mgmt.sso.saml.documents import DSIG, Element

_DSIG: Final = "http://www.w3.org/2000/09/xmldsig#"
_MORE: Final = "http://www.w3.org/2001/04/xmldsig-more#"
_ENC: Final = "http://www.w3.org/2001/04/xmlenc#"
C14N: Final = "http://www.w3.org/2001/10/xml-exc-c14n#"
MOST_INCLUSIVE_PREFIXES: Final = 20  # each is looked up for each element
ENVELOPED: Final = f"{_DSIG}enveloped-signature"
# Asymmetric only: with HMAC the certificate, which is public, would be the key. No SHA-1.
METHODS: Final = frozenset(
    f"{_MORE}{kind}-{size}" for kind in ("rsa", "ecdsa") for size in ("sha256", "sha384", "sha512")
)
DIGESTS: Final = frozenset({f"{_ENC}sha256", f"{_MORE}sha384", f"{_ENC}sha512"})
_TRANSFORMS: Final = (xmlsec.Transform.ENVELOPED, xmlsec.Transform.EXCL_C14N)
_HASHES: Final = (xmlsec.Transform.SHA256, xmlsec.Transform.SHA384, xmlsec.Transform.SHA512)
_SIGNATURES: Final = (
    xmlsec.Transform.RSA_SHA256,
    xmlsec.Transform.RSA_SHA384,
    xmlsec.Transform.RSA_SHA512,
    xmlsec.Transform.ECDSA_SHA256,
    xmlsec.Transform.ECDSA_SHA384,
    xmlsec.Transform.ECDSA_SHA512,
)


def check_signature(root: Element, certificates: Sequence[bytes], what: str) -> None:
    """Check that the root of a document is signed as a whole with one of the certificates (DER). Raises SsoError.

    A certificate within the signature counts for nothing.
    """
    found = root.findall(f"{DSIG}Signature")
    if len(found) != 1:
        raise SsoError(f"{what} needs one signature. Sign it at the provider.")
    _check_form(found[0], root.get("ID") or "", what)
    if not any(_is_signed_by(found[0], root, certificate) for certificate in certificates):
        raise SsoError(
            f"{what} is not signed with a certificate of the provider's metadata, or it was changed afterwards. If the "
            "provider has a new certificate, an owner enters its metadata again."
        )


def _check_form(signature: Element, signed_id: str, what: str) -> None:
    """Check that a signature covers the element with this id, by permitted algorithms only. Raises SsoError."""
    info = signature[0]
    method = info.find(f"{DSIG}SignatureMethod").get("Algorithm")
    references = info.findall(f"{DSIG}Reference")
    if method not in METHODS:
        raise SsoError(f"{what} is signed with {_name(method)}. Choose RSA or ECDSA with SHA-256 at the provider.")
    if len(references) != 1 or not signed_id or references[0].get("URI") != f"#{signed_id}":
        raise SsoError(f"The signature of {what[0].lower()}{what[1:]} is of something else.")
    digest = references[0].find(f"{DSIG}DigestMethod").get("Algorithm")
    if digest not in DIGESTS:
        raise SsoError(f"{what} has a digest by {_name(digest)}. Choose SHA-256 at the provider.")
    transforms = [one.get("Algorithm") for one in references[0].iter(f"{DSIG}Transform")]
    canonicalization = info.find(f"{DSIG}CanonicalizationMethod").get("Algorithm")
    if transforms != [ENVELOPED, C14N] or canonicalization != C14N:
        raise SsoError(f"{what} is not signed as SAML requires: enveloped, with exclusive canonicalization.")
    prefixes = [one.get("PrefixList", "").split() for one in signature.iter(f"{{{C14N}}}InclusiveNamespaces")]
    if sum(map(len, prefixes)) > MOST_INCLUSIVE_PREFIXES:
        raise SsoError(f"The signature of {what[0].lower()}{what[1:]} names too many prefixes.")
    if list(signature.iter(f"{DSIG}Object", f"{DSIG}RetrievalMethod")):
        raise SsoError(f"The signature of {what[0].lower()}{what[1:]} contains more than a signature.")


def _is_signed_by(signature: Element, root: Element, certificate: bytes) -> bool:
    context = xmlsec.SignatureContext()
    context.key = xmlsec.Key.from_memory(certificate, xmlsec.KeyFormat.CERT_DER, None)
    context.register_id(root, "ID")
    for transform in (*_TRANSFORMS, *_HASHES):
        context.enable_reference_transform(transform)
    for transform in (xmlsec.Transform.EXCL_C14N, *_SIGNATURES):
        context.enable_signature_transform(transform)
    try:
        context.verify(signature)
    except xmlsec.Error:
        return False
    return True


def _name(algorithm: str | None) -> str:
    return repr((algorithm or "").rpartition("#")[2][:40] or "nothing")
