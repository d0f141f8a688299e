"""Documents that Penstock gives to SAML providers: the request of a sign-in, and its own metadata. Pure."""

import base64
import zlib
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from lxml import etree

from mgmt.sso.saml.documents import ASSERTION, METADATA, PROTOCOL
from mgmt.sso.saml.response import PERSISTENT, SamlParties

POST: Final = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
_NAMES: Final = {"samlp": PROTOCOL[1:-1], "saml": ASSERTION[1:-1]}


def sign_in_redirect(sso_url: str, *, parties: SamlParties, request_id: str, now: datetime, asks_again: bool) -> str:
    """Return the address at the provider that begins a sign-in. RelayState is the request's id, never an address.

    asks_again: the provider lets the person sign in again, such as with another account
    """
    attributes = {
        "ID": request_id,
        "Version": "2.0",
        "IssueInstant": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "Destination": sso_url,
        "AssertionConsumerServiceURL": parties.acs_url,
        "ProtocolBinding": POST,
    }
    if asks_again:
        attributes["ForceAuthn"] = "true"
    request = etree.Element(f"{PROTOCOL}AuthnRequest", attributes, nsmap=_NAMES)
    etree.SubElement(request, f"{ASSERTION}Issuer").text = parties.entity_id
    if not parties.subject_attribute:  # else any NameID is as good as another
        etree.SubElement(request, f"{PROTOCOL}NameIDPolicy", {"Format": PERSISTENT, "AllowCreate": "true"})
    deflated = zlib.compress(etree.tostring(request), wbits=-15)
    query = urlencode({"SAMLRequest": base64.b64encode(deflated).decode(), "RelayState": request_id})
    return f"{sso_url}{'&' if '?' in sso_url else '?'}{query}"


def own_metadata(*, entity_id: str, acs_url: str) -> bytes:
    """Return the metadata of a tenant's service, which a provider can read instead of forms."""
    entity = etree.Element(f"{METADATA}EntityDescriptor", {"entityID": entity_id}, nsmap={None: METADATA[1:-1]})
    role = etree.SubElement(
        entity,
        f"{METADATA}SPSSODescriptor",
        {"AuthnRequestsSigned": "false", "WantAssertionsSigned": "true", "protocolSupportEnumeration": _NAMES["samlp"]},
    )
    etree.SubElement(role, f"{METADATA}NameIDFormat").text = PERSISTENT
    service = {"Binding": POST, "Location": acs_url, "index": "0", "isDefault": "true"}
    etree.SubElement(role, f"{METADATA}AssertionConsumerService", service)
    document: bytes = etree.tostring(entity, xml_declaration=True, encoding="utf-8", pretty_print=True)
    return document
