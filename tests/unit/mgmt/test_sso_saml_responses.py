"""Attacks on the check of SAML responses, with real signatures: each is refused before anybody is signed in.

The wrapping attacks XSW1 to XSW8 are those of Somorovsky and others, "On Breaking SAML" (USENIX Security 2012).
"""

import base64
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
import xmlsec
from lxml import etree

from mgmt.errors import SsoError
from mgmt.sso.saml.metadata import metadata_in
from tests.support.saml_checks import ACS, EMAIL, ENTITY, check, encoded, provider, refused, response, text_in
from tests.support.saml_provider import (
    DSIG,
    PERSISTENT,
    SAML,
    SAMLP,
    Asked,
    Lies,
    new_signer,
    own_signer,
    signed,
    subject_of,
)

XML: Final = "{http://www.w3.org/XML/1998/namespace}"
WRAPPED: Final = "schema of SAML|exactly one assertion|at a place|two elements|of something else|changed afterwards"


@pytest.mark.parametrize("lies", [{}, {"signs_response": True}, {"method": xmlsec.Transform.RSA_SHA512}])
def test_signed_assertion_is_read(lies: dict[str, Any]):
    found = check(response(**lies))
    assert (found.subject, found.email, found.request_id) == (subject_of(EMAIL), EMAIL, "_request")
    assert check(response(Asked(ENTITY, ACS), **lies)).request_id == ""


def forged(original: Any) -> Any:
    """Return a copy of an assertion for another person, without its signature."""
    copy = deepcopy(original)
    copy.set("ID", "_forged")
    copy.find(f".//{SAML}NameID").text = "the-owner"
    if (signature := copy.find(f"{DSIG}Signature")) is not None:
        copy.remove(signature)
    return copy


def _xsw1(root: Any) -> Any:
    """The signed response within the signature of a forged one."""
    new = deepcopy(root)
    new.set("ID", "_forged")
    signature = new.find(f"{DSIG}Signature")
    new.find(f"{SAML}Assertion").getparent().replace(new.find(f"{SAML}Assertion"), forged(new.find(f"{SAML}Assertion")))
    original = deepcopy(root)
    original.remove(original.find(f"{DSIG}Signature"))
    signature.append(original)
    return new


def _xsw2(root: Any) -> Any:
    """The signed response before a detached signature."""
    new = deepcopy(root)
    new.set("ID", "_forged")
    new.replace(new.find(f"{SAML}Assertion"), forged(new.find(f"{SAML}Assertion")))
    original = deepcopy(root)
    original.remove(original.find(f"{DSIG}Signature"))
    new.insert(1, original)
    return new


def _xsw3(root: Any) -> Any:
    """A forged assertion before the signed one."""
    assertion = root.find(f"{SAML}Assertion")
    assertion.addprevious(forged(assertion))
    return root


def _xsw4(root: Any) -> Any:
    """The signed assertion as a child of a forged one."""
    assertion = root.find(f"{SAML}Assertion")
    new = forged(assertion)
    root.replace(assertion, new)
    new.append(assertion)
    return root


def _xsw5(root: Any) -> Any:
    """A forged assertion with the signature; the signed one after it."""
    assertion = root.find(f"{SAML}Assertion")
    new, signature = forged(assertion), assertion.find(f"{DSIG}Signature")
    original = deepcopy(assertion)
    original.remove(original.find(f"{DSIG}Signature"))
    new.insert(1, signature)
    root.replace(assertion, new)
    root.append(original)
    return root


def _xsw6(root: Any) -> Any:
    """The signed assertion within the signature of a forged one."""
    assertion = root.find(f"{SAML}Assertion")
    new, signature = forged(assertion), deepcopy(assertion.find(f"{DSIG}Signature"))
    original = deepcopy(assertion)
    original.remove(original.find(f"{DSIG}Signature"))
    signature.append(original)
    new.insert(1, signature)
    root.replace(assertion, new)
    return root


def _xsw7(root: Any) -> Any:
    """A forged assertion within extensions, where the schema permits anything."""
    assertion = root.find(f"{SAML}Assertion")
    extensions = etree.Element(f"{SAMLP}Extensions")
    copy = forged(assertion)
    copy.set("ID", assertion.get("ID"))
    extensions.append(copy)
    root.insert(1, extensions)
    return root


def _xsw8(root: Any) -> Any:
    """The signed assertion within an object of the signature of a forged one."""
    assertion = root.find(f"{SAML}Assertion")
    new, signature = forged(assertion), deepcopy(assertion.find(f"{DSIG}Signature"))
    original = deepcopy(assertion)
    original.remove(original.find(f"{DSIG}Signature"))
    etree.SubElement(signature, f"{DSIG}Object").append(original)
    new.insert(1, signature)
    root.replace(assertion, new)
    return root


def _same_id(root: Any) -> Any:
    """The signature in a forged assertion with the same ID as the signed one, which is in an attribute's value."""
    assertion = root.find(f"{SAML}Assertion")
    new, signature = forged(assertion), deepcopy(assertion.find(f"{DSIG}Signature"))
    original = deepcopy(assertion)
    original.remove(original.find(f"{DSIG}Signature"))
    original.tag = "{urn:x}Other"
    new.set("ID", assertion.get("ID"))
    new.insert(1, signature)
    new.find(f".//{SAML}AttributeValue").append(original)
    root.replace(assertion, new)
    return root


def _xml_id(root: Any) -> Any:
    """As before, but the signed element has an ID that each parser knows."""
    root = _same_id(root)
    other = root.find(".//{urn:x}Other")
    other.set("{http://www.w3.org/XML/1998/namespace}id", other.attrib.pop("ID"))
    return root


@pytest.mark.parametrize(
    "attack", [_xsw3, _xsw4, _xsw5, _xsw6, _xsw7, _xsw8, _same_id, _xml_id], ids=lambda one: one.__name__
)
@pytest.mark.parametrize("signs_response", [False, True])
def test_assertion_that_is_wrapped_around_a_signed_one_is_refused(attack: Any, signs_response: bool):
    refused(response(tampers=attack, signs_response=signs_response), WRAPPED)


@pytest.mark.parametrize("attack", [_xsw1, _xsw2], ids=lambda one: one.__name__)
def test_response_that_is_wrapped_around_a_signed_one_is_refused(attack: Any):
    refused(response(tampers=attack, signs_response=True, signs_assertion=False), WRAPPED)
    refused(response(tampers=attack, signs_response=True), WRAPPED)


def test_every_change_of_a_signed_assertion_is_noticed():
    def change(root: Any) -> Any:
        root.find(f".//{SAML}NameID").text = "the-owner"
        return root

    refused(response(tampers=change), "was changed afterwards")
    refused(response(tampers=change, signs_response=True), "was changed afterwards")


def test_assertion_needs_a_signature_of_its_own_and_a_response_a_valid_one_if_any():
    refused(response(signs_assertion=False), "not signed. Turn on the signature of assertions")
    refused(response(signs_assertion=False, signs_response=True), "not signed. Turn on the signature of assertions")

    def other_status(root: Any) -> Any:
        etree.SubElement(root.find(f"{SAMLP}Status"), f"{SAMLP}StatusMessage").text = "x"
        return root

    assert check(response(tampers=other_status)).subject  # the response around a signed assertion is not signed
    refused(response(tampers=other_status, signs_response=True), "The response is not signed with a certificate")


def test_signature_counts_only_with_a_certificate_of_the_metadata():
    stranger = new_signer()
    refused(response(signer=stranger), "not signed with a certificate of the provider's metadata")
    both = (own_signer().certificate, stranger.certificate)
    assert check(response(signer=stranger), certificates=both).subject  # during a rotation
    assert check(response(), certificates=both).subject


def test_certificate_that_has_expired_keeps_its_key():
    """The owner trusts the key by the metadata; expiry is shown on the page (decision 0122)."""
    old = new_signer(days=-1)
    assert check(response(signer=old), certificates=(old.certificate,)).subject


@pytest.mark.parametrize(
    ("lies", "words"),
    [
        pytest.param(
            {"method": xmlsec.Transform.RSA_SHA1}, "'rsa-sha1'. Choose RSA or ECDSA with SHA-256", id="RSA-SHA1"
        ),
        pytest.param({"digest": xmlsec.Transform.SHA1}, "digest by 'sha1'. Choose SHA-256", id="digest SHA-1"),
        pytest.param({"method": xmlsec.Transform.HMAC_SHA256}, "'hmac-sha256'", id="HMAC with the certificate as key"),
    ],
)
def test_weak_and_symmetric_algorithms_are_refused(lies: dict[str, Any], words: str):
    refused(response(**lies), words)


def _in_signature(found: str, old: str, new: str) -> str:
    text = text_in(found)
    assert old in text
    return encoded(text.replace(old, new))


def test_reference_and_transforms_are_read_by_nobody_unless_they_are_those_of_saml():
    """xmlsec would fetch the address, or run the stylesheet, before it checks the signature."""
    found = response()
    assertion_id = etree.fromstring(base64.b64decode(found)).find(f"{SAML}Assertion").get("ID")
    for uri in ("", "http://127.0.0.1:9/internal", "#xpointer(/)", "#_other"):
        refused(_in_signature(found, f'URI="#{assertion_id}"', f'URI="{uri}"'), "is of something else")
    enveloped = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
    for transform in ("http://www.w3.org/TR/1999/REC-xslt-19991116", "http://www.w3.org/TR/1999/REC-xpath-19991116"):
        refused(_in_signature(found, enveloped, transform), "not signed as SAML requires")
    comments = "http://www.w3.org/2001/10/xml-exc-c14n#"
    refused(_in_signature(found, f'"{comments}"', f'"{comments}WithComments"'), "not signed as SAML requires")


def test_comments_entities_and_document_types_are_refused_before_they_are_parsed():
    found = response(subject="dora@acme.example.evil.example")
    split = text_in(found).replace("acme.example.evil", "acme.example<!-- -->.evil")
    refused(encoded(split), "comment")
    for head in (
        '<!DOCTYPE x [<!ENTITY a "b">]>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">',
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        '<?xml-stylesheet href="x"?>',
    ):
        refused(encoded(head + text_in(found)), "document type, a comment or a processing instruction")
    refused(encoded('<!DOCTYPE x [<!ENTITY a "b">]><x/>'.encode("utf-16")), "not UTF-8")
    refused(encoded('<?xml version="1.0" encoding="UTF-7"?>' + text_in(found)), "not UTF-8")
    assert check(encoded('<?xml version="1.0" encoding="UTF-8"?>\n' + text_in(found))).subject


@pytest.mark.parametrize(
    ("lies", "words"),
    [
        pytest.param({"issuer": "https://other.example"}, "of the provider 'https://other.example'", id="issuer"),
        pytest.param(
            {"audience": "https://other.example"}, "for another application. Enter https://penst", id="audience"
        ),
        pytest.param({"audience": None}, "for another application", id="no audience"),
        pytest.param({"recipient": ACS + "x"}, r"another address \(Recipient\). Enter https://penst", id="recipient"),
        pytest.param({"recipient": None}, r"another address \(Recipient\)", id="no recipient"),
        pytest.param(
            {"destination": ACS.replace("ten_a", "ten_b")}, r"another address \(Destination\)", id="destination"
        ),
        pytest.param({"begins_s": 90}, "from the future. Correct the clock", id="clock"),
        pytest.param({"ends_s": -90}, "has expired", id="expired"),
        pytest.param({"ends_s": None}, "no end of its validity", id="no end"),
        pytest.param({"ends_s": 2 * 24 * 3600}, "more than a day", id="valid for too long"),
        pytest.param({"session_ends_s": -1}, "session at the identity provider has ended", id="session"),
        pytest.param({"name_id_format": PERSISTENT[:-10] + "transient"}, "not persistent", id="transient NameID"),
        pytest.param(
            {"name_id_format": "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"}, "not persistent", id="address"
        ),
        pytest.param({"qualifiers": {"NameQualifier": "x"}}, "another provider or application", id="name qualifier"),
        pytest.param(
            {"qualifiers": {"SPNameQualifier": "x"}}, "another provider or application", id="SP name qualifier"
        ),
        pytest.param({"subject": "x" * 192}, "1 to 191 printable", id="long subject"),
        pytest.param({"subject": "a\u202eb"}, "1 to 191 printable", id="subject that is not printable"),
        pytest.param({"subject": " "}, "1 to 191 printable", id="empty subject"),
        pytest.param(
            {"attributes": {"email": ["a@acme.example", "b@acme.example"]}}, "one short text", id="two addresses"
        ),
        pytest.param({"status": "AuthnFailed"}, "did not sign you in .'AuthnFailed'", id="status"),
        pytest.param({"status": "InvalidNameIDPolicy"}, "cannot send a persistent NameID", id="NameID policy"),
    ],
)
def test_assertion_that_is_not_for_this_tenant_now_is_refused(lies: dict[str, Any], words: str):
    refused(response(**lies), words)


def test_each_restriction_of_the_audience_names_this_tenant():
    def restrict(root: Any) -> Any:
        other = deepcopy(root.find(f".//{SAML}AudienceRestriction"))
        other[0].text = "https://other.example"
        root.find(f".//{SAML}Conditions").append(other)
        return root

    refused(response(changes=restrict), "for another application")


def test_clocks_may_differ_by_a_minute():
    assert check(response(begins_s=50)).subject
    assert check(response(ends_s=-50)).subject
    refused(response(), "has expired", after=timedelta(seconds=361))


def test_assertion_does_not_answer_another_request_than_its_response():
    def drop(root: Any) -> Any:
        del root.attrib["InResponseTo"]
        return root

    def other(root: Any) -> Any:
        root.set("InResponseTo", "_other")
        return root

    for tampers in (drop, other):
        refused(response(tampers=tampers), "another sign-in")


def test_subject_and_address_come_from_the_named_attributes():
    lies: dict[str, Any] = {
        "attributes": {"uid": ["7"], "work": ["d@acme.example"]},
        "name_id_format": PERSISTENT[:-10] + "transient",
    }
    found = check(response(**lies), subject_attribute="uid", email_attribute="work")
    assert (found.subject, found.email) == ("7", "d@acme.example")
    refused(response(**lies), "no attribute 'nothing'", subject_attribute="nothing")
    refused(response(attributes={"uid": ["7", "8"]}), "one short text", subject_attribute="uid")
    assert check(response(attributes={"email": []})).email == ""


def test_attribute_value_with_elements_is_no_text():
    def nested(root: Any) -> Any:
        etree.SubElement(root.find(f".//{SAML}AttributeValue"), "x").tail = "tail"
        return root

    refused(response(changes=nested), "one short text")


def test_encrypted_assertion_is_refused_with_the_way_out():
    def encrypt(root: Any) -> Any:
        holder = etree.Element(f"{SAML}EncryptedAssertion")
        etree.SubElement(holder, "{http://www.w3.org/2001/04/xmlenc#}EncryptedData")
        root.replace(root.find(f"{SAML}Assertion"), holder)
        return root

    refused(response(changes=encrypt), "Turn encryption off at the provider")


def test_ids_and_signatures_within_values_are_refused():
    def within_value(tag: str, **attributes: str) -> Any:
        def change(root: Any) -> Any:
            value = root.find(f".//{SAML}AttributeValue")
            etree.SubElement(value, tag, {key.replace("xml_", XML): text for key, text in attributes.items()})
            return root

        return change

    refused(response(tampers=within_value(f"{DSIG}Signature"), attributes={"x": ["1"]}), "schema of SAML|at a place")
    refused(response(tampers=within_value("y", ID="_one"), assertion_id="_one"), "schema of SAML|two elements")
    refused(response(tampers=within_value("y", xml_id="_one"), assertion_id="_one"), "schema of SAML|two elements")


def test_confirmation_ends_by_itself_if_the_conditions_have_no_end():
    def no_end(root: Any) -> Any:
        del root.find(f".//{SAML}Conditions").attrib["NotOnOrAfter"]
        return root

    assert check(response(changes=no_end)).subject
    refused(response(changes=no_end, ends_s=-90), "has expired")


def test_condition_that_is_not_known_and_other_confirmations_are_refused():
    def condition(root: Any) -> Any:
        found = etree.SubElement(root.find(f".//{SAML}Conditions"), f"{SAML}Condition", nsmap={"x": "urn:x"})
        found.set("{http://www.w3.org/2001/XMLSchema-instance}type", "x:Any")
        return root

    def holder_of_key(root: Any) -> Any:
        method = "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key"
        root.find(f".//{SAML}SubjectConfirmation").set("Method", method)
        return root

    def advice(root: Any) -> Any:
        root.find(f".//{SAML}Conditions").addnext(etree.Element(f"{SAML}Advice"))
        return root

    for changes in (condition, holder_of_key, advice):
        refused(response(changes=changes), "schema of SAML|one bearer|exactly one assertion")


def test_response_with_two_signed_assertions_is_refused():
    def second(root: Any) -> Any:
        copy = forged(root.find(f"{SAML}Assertion"))
        root.append(copy)
        signed(root, copy, Lies(), own_signer())
        return root

    refused(response(tampers=second), "exactly one assertion")


def metadata(**changes: str) -> str:
    text = provider().metadata()
    for old, new in changes.items():
        text = text.replace({"binding": "HTTP-Redirect", "use": 'use="signing"', "scheme": "http://127"}[old], new)
    return text


def metadata_refused(text: str, words: str, *, https_only: bool = False) -> None:
    with pytest.raises(SsoError, match=words):
        metadata_in(text.encode(), now=datetime.now(UTC), https_only=https_only)


def test_metadata_says_what_an_owner_should_change():
    text = provider().metadata()
    assert metadata_in(text.encode(), now=datetime.now(UTC), https_only=False).entity_id == provider().entity_id
    head = "<EntityDescriptor "
    metadata_refused(text.replace(head, f'{head}validUntil="2020-01-01T00:00:00Z" '), "expired on 2020-01-01")
    metadata_refused(text.replace(head, f'{head}validUntil="x" '), "not a time")
    metadata_refused(metadata(binding="HTTP-POST"), "binding HTTP-Redirect")
    metadata_refused(metadata(use='use="encryption"'), "1 to 10 signing certificates, and has 0")
    metadata_refused(text, "not an https URL", https_only=True)
    metadata_refused(text.replace(f"{provider().url}/sign-in", "javascript:alert(1)//"), "not an https URL")
    metadata_refused(
        text.replace("<IDPSSODescriptor ", '<IDPSSODescriptor WantAuthnRequestsSigned="true" '), "signed req"
    )
    metadata_refused("<html></html>", "describes 0 identity providers")
    metadata_refused("{}", "not an XML document")
    metadata_refused('<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + text, "document type")
    metadata_refused("x" * 600_000, "too large")
    role = text[text.index("<IDPSSO") : text.index("</EntityDescriptor>")]
    metadata_refused(text.replace(role, role * 2), "describes 2 identity providers")
    begin, end = text.index("X509Certificate>") + 16, text.index("</ds:X509Certificate>")
    metadata_refused(text[:begin] + "AAAA" + text[end:], "cannot be read")
