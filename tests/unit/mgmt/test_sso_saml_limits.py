"""Limits of the XML that strangers and providers send: its time, its memory, and values at the edge of their range."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
import xmlsec
from cryptography.hazmat.primitives.asymmetric import ec
from lxml import etree

from mgmt.errors import SsoError
from mgmt.sso.saml.metadata import MOST_BYTES, metadata_in
from mgmt.sso.saml.response import LONGEST_VALIDITY, MOST_CHARS
from mgmt.sso.saml.signatures import C14N
from tests.support.saml_checks import check, encoded, provider, refused, response, text_in
from tests.support.saml_provider import SAML, new_signer

LAST: Final = "9999-12-31T23:59:59.999999Z"


def test_work_before_the_signature_is_bounded():
    refused("A" * (MOST_CHARS + 1), "too large")
    refused(encoded("<a>" * 5_000 + "</a>" * 5_001), "too many elements")
    refused(encoded("<a" + "".join(f' xmlns:p{at}="u"' for at in range(600)) + "/>"), "too many elements")
    began = time.monotonic()
    prefixes = "".join(f' xmlns:p{at}="u{at}"' for at in range(450))
    fat = text_in(response(attributes={"groups": [f"group {at}" for at in range(2_000)]}))
    assert check(encoded(fat)).subject
    refused(encoded(fat.replace("<samlp:Response", f"<samlp:Response{prefixes}", 1).replace("group 7", "g")), "changed")
    for wrong in ("", "?", "<", "PA==", encoded("<a>"), encoded("\0"), encoded("x" * 1_000), encoded("<a/>")):
        refused(wrong, None)
    refused(encoded("<a>" * 2_000 + "</a>" * 2_000), "not an XML document")  # the parser's own limit of depth
    assert time.monotonic() - began < 5


def with_value(value: str) -> str:
    """Return a signed response in which elements replace the value of an attribute."""
    text = text_in(response())
    begin, end = text.index("<saml:AttributeValue>"), text.index("</saml:AttributeValue>")
    return text[: begin + len("<saml:AttributeValue>")] + value + text[end:]


def test_prefixes_that_a_signature_lists_are_few():
    """Each is looked up for each element before the signature is checked, and once more for each certificate."""
    plain = f'<ds:Transform Algorithm="{C14N}"/>'

    def listing(text: str, count: int) -> str:
        prefixes = " ".join(["xs"] * count)
        inner = f'<ec:InclusiveNamespaces xmlns:ec="{C14N}" PrefixList="{prefixes}"/>'
        assert plain in text
        return encoded(text.replace(plain, f'<ds:Transform Algorithm="{C14N}">{inner}</ds:Transform>'))

    began = time.monotonic()
    refused(listing(with_value("<a/>" * 9_000), 30_000), "names too many prefixes")
    assert time.monotonic() - began < 3
    refused(listing(text_in(response()), 1), "was changed afterwards")  # some providers list one


def test_attributes_of_one_element_are_few():
    names = " ".join(f'a{at}=""' for at in range(15_000))
    began = time.monotonic()
    refused(encoded(with_value(f"<a {names}/>")), "more than 100 XML attributes")
    assert time.monotonic() - began < 3


def test_comments_without_an_end_take_linear_time():
    began = time.monotonic()
    with pytest.raises(SsoError, match="a comment"):
        metadata_in(b"<!--" * (MOST_BYTES // 4), now=datetime.now(UTC), https_only=False)
    assert time.monotonic() - began < 3
    text = provider().metadata().replace("<Single", "<!-- <x> --><!----><Single")
    assert metadata_in(text.encode(), now=datetime.now(UTC), https_only=False).sso_url


def test_names_in_documents_are_not_kept_in_memory():
    """lxml keeps the names of a thread's documents until the thread ends."""

    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    def document(number: int) -> str:
        return encoded("<a>" + "".join(f"<n{number}_{at}{'x' * 180}/>" for at in range(900)) + "</a>")

    def growth(first: int) -> int:
        """Return by how many bytes 60 documents with 10 MB of names of their own grow the process."""
        posted = [document(number) for number in range(first, first + 60)]
        before = resident_bytes()
        for one in posted:
            refused(one, "did not send a SAML 2.0 response")
        return resident_bytes() - before

    refused(document(0), "did not send a SAML 2.0 response")
    assert min(growth(1), growth(61), growth(121)) < 5_000_000, "the allocator may grow once, names each time"


def test_schema_is_compiled_once_and_used_by_several_threads(monkeypatch: pytest.MonkeyPatch):
    good, bad = response(), encoded(text_in(response()).replace("<saml:Subject>", "<saml:Wrong/><saml:Subject>"))
    assert check(good).subject
    monkeypatch.setattr(etree, "XMLSchema", None)
    begin = threading.Barrier(8)

    def run(number: int) -> None:
        begin.wait(10)
        for _ in range(10):
            if number % 2:
                assert check(good).subject
            else:
                refused(bad, "schema of SAML")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(8)))


def test_ids_are_short():
    assert check(response(assertion_id="_" + "x" * 199)).id
    words, long = "may have at most 200 characters", "_" + "x" * 200
    refused(response(assertion_id=long), words)
    refused(response(in_response_to=long), words)


def at_the_end_of_time(name: str, element: str) -> Any:
    def change(root: Any) -> Any:
        root.find(f".//{SAML}{element}").set(name, LAST)
        return root

    return change


def test_times_at_the_ends_of_the_calendar_are_times():
    """Some providers write the last year for "without end"."""
    assert check(response(changes=at_the_end_of_time("NotOnOrAfter", "Conditions"))).subject
    found = check(response(changes=at_the_end_of_time("SessionNotOnOrAfter", "AuthnStatement")))
    assert found.session_ends_at is not None
    assert found.session_ends_at - datetime.now(UTC) <= LONGEST_VALIDITY
    refused(response(changes=at_the_end_of_time("NotOnOrAfter", "SubjectConfirmationData")), "more than a day")
    refused(response(changes=at_the_end_of_time("NotBefore", "Conditions")), "from the future")

    def first(root: Any) -> Any:
        root.find(f".//{SAML}Conditions").set("NotBefore", "0001-01-01T00:00:00Z")
        return root

    assert check(response(changes=first)).subject


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (LAST, None),
        ("9999-12-31T23:59:59-14:00", "not a time"),  # has no equal in UTC
        ("0001-01-01T00:00:00+14:00", "not a time"),
        ("2020-01-01T00:00:00", "expired on 2020-01-01"),
    ],
)
def test_end_of_metadata_is_a_time_in_utc(end: str, words: str | None):
    text = provider().metadata().replace("<EntityDescriptor ", f'<EntityDescriptor validUntil="{end}" ')
    if words is None:
        found = metadata_in(text.encode(), now=datetime.now(UTC), https_only=False).valid_until
        assert found is not None
        assert found.tzinfo is UTC
        return
    with pytest.raises(SsoError, match=words):
        metadata_in(text.encode(), now=datetime.now(UTC), https_only=False)


def test_sign_in_address_with_a_fragment_is_refused():
    """The request would be behind the fragment, which browsers do not send."""
    text = provider().metadata().replace("/sign-in", "/sign-in#here")
    with pytest.raises(SsoError, match="not an https URL"):
        metadata_in(text.encode(), now=datetime.now(UTC), https_only=False)


def test_signature_by_an_elliptic_curve_counts_with_its_certificate_only():
    key = ec.generate_private_key(ec.SECP256R1())
    signer = new_signer(key)
    method = xmlsec.Transform.ECDSA_SHA256
    assert check(response(signer=signer, method=method), certificates=(signer.certificate,)).subject
    refused(response(signer=signer, method=method), "not signed with a certificate")
    refused(response(), "not signed with a certificate", certificates=(signer.certificate,))
