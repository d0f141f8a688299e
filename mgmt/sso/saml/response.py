"""Check of SAML responses: a signed assertion of this provider, for this tenant, now. Pure.

The rules are those of the web browser profile (SAML Profiles 4.1.4.3) and of SAML Core, where they leave a choice the
stricter one. The assertion is copied into a document of its own and read there only: elements around it, by which
signatures are wrapped, do not exist for the reader. Each error says what to change.
"""

import base64
import binascii
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.utils.dateparse import parse_datetime
from lxml import etree

from mgmt.errors import SsoError
from mgmt.sso.saml.documents import ASSERTION, DSIG, PROTOCOL, Element, in_own_thread, is_valid, parse_strict, text_of
from mgmt.sso.saml.signatures import check_signature

MOST_CHARS: Final = 256 * 1024  # of a response in base64
CLOCK_SKEW: Final = timedelta(seconds=60)
LONGEST_VALIDITY: Final = timedelta(days=1)  # of an assertion; no session is longer
MOST_ID_CHARS: Final = 200
MOST_SUBJECT_CHARS: Final = 191  # allauth's column
PERSISTENT: Final = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
EMAIL_ATTRIBUTES: Final = (
    "email",
    "mail",
    "urn:oid:0.9.2342.19200300.100.1.3",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
)
_BEARER: Final = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
_SUCCESS: Final = "urn:oasis:names:tc:SAML:2.0:status:Success"
_CONDITIONS: Final = (f"{ASSERTION}AudienceRestriction", f"{ASSERTION}OneTimeUse", f"{ASSERTION}ProxyRestriction")
_XML_ID: Final = "{http://www.w3.org/XML/1998/namespace}id"  # each parser takes it for an ID
_MOST_EMAIL_CHARS: Final = 254


class SamlParties(NamedTuple):
    """Provider and tenant of a connection, as a response has to name them. `certificates`: DER.

    subject_attribute: names the attribute that identifies a person; "" is the persistent NameID
    """

    issuer: str
    certificates: tuple[bytes, ...]
    entity_id: str
    acs_url: str
    subject_attribute: str = ""
    email_attribute: str = ""


class SamlAssertion(NamedTuple):
    """Checked assertion. `request_id`: id of the request that it answers; "": the provider started the sign-in.

    replayable_until: until then it would be accepted a second time
    session_ends_at: the provider's end of the session, if it names one
    """

    id: str
    subject: str
    email: str
    request_id: str
    replayable_until: datetime
    session_ends_at: datetime | None


@in_own_thread
def check_response(encoded: str, *, parties: SamlParties, now: datetime) -> SamlAssertion:
    """Return the assertion in a response as a browser posts it. Raises SsoError."""
    root = parse_strict(_decoded(encoded), "The response")
    if root.tag != f"{PROTOCOL}Response" or root.get("Version") != "2.0":
        raise SsoError("The provider did not send a SAML 2.0 response. Check that it signs in by SAML 2.0.")
    if root.find(".//{*}EncryptedData") is not None:
        raise SsoError("The assertion is encrypted, which Penstock does not read. Turn encryption off at the provider.")
    if not is_valid(root, "saml-schema-protocol-2.0.xsd"):
        raise SsoError("The response does not conform to the schema of SAML 2.0.")
    _check_status(root)
    assertion = _only_assertion(root)
    if root.find(f"{DSIG}Signature") is not None:
        check_signature(_alone(root), parties.certificates, "The response")
    if assertion.find(f"{DSIG}Signature") is None:
        raise SsoError("The assertion is not signed. Turn on the signature of assertions at the provider.")
    assertion = _alone(assertion)
    check_signature(assertion, parties.certificates, "The assertion")
    _check_issuers(root, assertion, parties)
    if root.get("Destination") not in (None, parties.acs_url):
        raise SsoError(_wrong_address("Destination", parties))
    return _checked(assertion, root.get("InResponseTo") or "", parties, now)


def _decoded(encoded: str) -> bytes:
    if len(encoded) > MOST_CHARS:
        raise SsoError("The response is too large. Let the provider send fewer attributes, such as groups.")
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as exc:
        raise SsoError("The response is not encoded in base64.") from exc


def _check_status(root: Element) -> None:
    code = root.find(f"{PROTOCOL}Status/{PROTOCOL}StatusCode")
    if code.get("Value") == _SUCCESS:
        return
    detail = code.find(f"{PROTOCOL}StatusCode")
    name = (code if detail is None else detail).get("Value").rpartition(":")[2][:40]
    if name == "InvalidNameIDPolicy":
        raise SsoError("The provider cannot send a persistent NameID. Set its format, or name an attribute as subject.")
    raise SsoError(f"The identity provider did not sign you in ({name!r}). Show this to your administrator.")


def _only_assertion(root: Element) -> Element:
    """Return the only assertion of a response. Raises SsoError for others, signatures elsewhere and repeated ids."""
    found = root.findall(f"{ASSERTION}Assertion")
    if (
        len(found) != 1
        or len(list(root.iter(f"{ASSERTION}Assertion"))) != 1
        or root.find(f".//{ASSERTION}Advice") is not None
    ):
        raise SsoError("The response needs exactly one assertion.")
    homes = [one.getparent() for one in root.iter(f"{DSIG}Signature")]
    if any(home not in (root, found[0]) for home in homes) or len(homes) != len({id(home) for home in homes}):
        raise SsoError("The response has a signature at a place where SAML has none.")
    ids = [one.get("ID") for one in root.iter() if one.get("ID") is not None]
    if len(ids) != len(set(ids)) or any(one.get(_XML_ID) is not None for one in root.iter()):
        raise SsoError("The response has two elements with one ID.")
    return found[0]


def _alone(element: Element) -> Element:
    """Return a copy of an element as the root of a document, with the prefixes that it could use."""
    return etree.fromstring(etree.tostring(element, with_tail=False))


def _check_issuers(root: Element, assertion: Element, parties: SamlParties) -> None:
    for element in (root.find(f"{ASSERTION}Issuer"), assertion.find(f"{ASSERTION}Issuer")):
        if element is not None and text_of(element) != parties.issuer:
            raise SsoError(
                f"The response is of the provider {text_of(element)[:200]!r}, but its metadata names "
                f"{parties.issuer!r}. Enter the metadata of this provider."
            )


def _checked(assertion: Element, request_id: str, parties: SamlParties, now: datetime) -> SamlAssertion:
    if len(assertion.get("ID")) > MOST_ID_CHARS or len(request_id) > MOST_ID_CHARS:
        raise SsoError(
            f"The IDs of the response may have at most {MOST_ID_CHARS} characters. Correct them at the provider."
        )
    _check_conditions(assertion.find(f"{ASSERTION}Conditions"), parties, now)
    subject = assertion.find(f"{ASSERTION}Subject")
    confirmation = _confirmation(subject)
    if confirmation.get("Recipient") != parties.acs_url:
        raise SsoError(_wrong_address("Recipient", parties))
    end = _time(confirmation, "NotOnOrAfter")
    if end is None:
        raise SsoError("The assertion has no end of its validity, which SAML requires.")
    _check_window(confirmation, now)
    if end - now > LONGEST_VALIDITY:
        raise SsoError("The assertion is valid for more than a day. Shorten its validity at the provider.")
    if (confirmation.get("InResponseTo") or "") != request_id:
        raise SsoError("The assertion belongs to another sign-in than its response. Sign in again.")
    attributes = _attributes(assertion)
    return SamlAssertion(
        id=assertion.get("ID"),
        subject=_subject(subject, attributes, parties),
        email=_email(attributes, parties),
        request_id=request_id,
        replayable_until=end + CLOCK_SKEW,
        session_ends_at=_session_end(assertion, now),
    )


def _check_conditions(conditions: Element | None, parties: SamlParties, now: datetime) -> None:
    if conditions is None:
        raise SsoError("The assertion has no conditions. Let the provider restrict its audience.")
    if any(one.tag not in _CONDITIONS for one in conditions):
        raise SsoError("The assertion has a condition that Penstock does not know.")
    _check_window(conditions, now)
    restrictions = conditions.findall(f"{ASSERTION}AudienceRestriction")
    named = [[text_of(one) for one in restriction] for restriction in restrictions]
    if not named or not all(parties.entity_id in audiences for audiences in named):
        raise SsoError(
            f"The assertion is for another application. Enter {parties.entity_id} as the audience (entity ID) at the "
            "provider."
        )


def _check_window(element: Element, now: datetime) -> None:
    begin, end = _time(element, "NotBefore"), _time(element, "NotOnOrAfter")
    if begin is not None and begin - now > CLOCK_SKEW:
        raise SsoError("The assertion is from the future. Correct the clock of the provider.")
    if end is not None and now - end >= CLOCK_SKEW:  # end + CLOCK_SKEW may be after the last year
        raise SsoError("The assertion has expired. Sign in again; if it repeats, correct the clock of the provider.")


def _confirmation(subject: Element | None) -> Element:
    """Return the data of the only bearer confirmation. Raises SsoError."""
    found = [] if subject is None else subject.findall(f"{ASSERTION}SubjectConfirmation")
    bearers = [one for one in found if one.get("Method") == _BEARER]
    data = bearers[0].find(f"{ASSERTION}SubjectConfirmationData") if len(bearers) == 1 else None
    if data is None:
        raise SsoError("The assertion needs one bearer confirmation of its subject.")
    return data


def _attributes(assertion: Element) -> dict[str, list[str | None]]:
    """Return the values of each attribute; None for one that is not a text."""
    found: dict[str, list[str | None]] = {}
    for attribute in assertion.iterfind(f"{ASSERTION}AttributeStatement/{ASSERTION}Attribute"):
        values = [None if len(value) else (value.text or "").strip() for value in attribute]
        found.setdefault(attribute.get("Name"), []).extend(values)
    return found


def _subject(subject: Element, attributes: dict[str, list[str | None]], parties: SamlParties) -> str:
    if parties.subject_attribute:
        found = _only(attributes, parties.subject_attribute, _is_subject)
        if not found:
            raise SsoError(f"The assertion has no attribute {parties.subject_attribute!r}. Let the provider send it.")
        return found
    name_id = subject.find(f"{ASSERTION}NameID")
    if name_id is None or name_id.get("Format") != PERSISTENT:
        raise SsoError(
            "The NameID of the assertion is not persistent. Set its format to persistent at the provider, or name an "
            "attribute as subject that never changes and is never given to another person."
        )
    qualifiers = (name_id.get("NameQualifier"), name_id.get("SPNameQualifier"))
    if qualifiers[0] not in (None, "", parties.issuer) or qualifiers[1] not in (None, "", parties.entity_id):
        raise SsoError("The NameID of the assertion is that of another provider or application.")
    if not _is_subject(text := text_of(name_id)):
        raise SsoError(f"The NameID of the assertion needs 1 to {MOST_SUBJECT_CHARS} printable characters.")
    return text


def _email(attributes: dict[str, list[str | None]], parties: SamlParties) -> str:
    names = (
        [parties.email_attribute] if parties.email_attribute else [one for one in EMAIL_ATTRIBUTES if one in attributes]
    )
    return _only(attributes, names[0], _is_email) if names else ""


def _only(attributes: dict[str, list[str | None]], name: str, fits: Callable[[str], bool]) -> str:
    """Return the only value of an attribute, "" without the attribute. Raises SsoError for another number or form."""
    values = attributes.get(name, [])
    if not values:
        return ""
    if len(values) != 1 or values[0] is None or not fits(values[0]):
        raise SsoError(
            f"The attribute {name[:100]!r} of the assertion needs one short text. Correct it at the provider."
        )
    return values[0]


def _is_subject(text: str) -> bool:
    return 1 <= len(text) <= MOST_SUBJECT_CHARS and text.isprintable()


def _is_email(text: str) -> bool:
    return len(text) <= _MOST_EMAIL_CHARS and text.isprintable()


def _session_end(assertion: Element, now: datetime) -> datetime | None:
    statements = assertion.findall(f"{ASSERTION}AuthnStatement")
    if not statements:
        raise SsoError("The assertion has no statement of a sign-in.")
    ends = [end for one in statements if (end := _time(one, "SessionNotOnOrAfter")) is not None]
    if ends and min(ends) <= now:
        raise SsoError("Your session at the identity provider has ended. Sign in again.")
    return min([now + LONGEST_VALIDITY, *ends]) if ends else None


def _time(element: Element, name: str) -> datetime | None:
    """Return a time of an element. Raises SsoError if it is none in UTC: SAML has no other zones."""
    text = element.get(name)
    if text is None:
        return None
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None or found.utcoffset() != timedelta(0):
        raise SsoError(f"The time {name} of the assertion is not a time in UTC.")
    return found


def _wrong_address(name: str, parties: SamlParties) -> str:
    return f"The response is for another address ({name}). Enter {parties.acs_url} as the ACS URL at the provider."
