"""SAML 2.0 identity provider as a process of its own, or as a thread of a test that makes it lie.

It speaks the protocol: metadata, requests by HTTP-Redirect, responses by HTTP-POST, sign-ins that it starts itself, and
signatures by xmlsec with a key and certificate of its own. It stands in for Okta, Entra or Keycloak, none of which can
run within a test. Its sign-in page believes each address that is typed.
"""

import base64
import hashlib
import html
import secrets
import sys
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import xmlsec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from lxml import etree

from tests.support.provider_server import SIGN_IN_PAGE, ProviderServer

SAML: Final = "{urn:oasis:names:tc:SAML:2.0:assertion}"
SAMLP: Final = "{urn:oasis:names:tc:SAML:2.0:protocol}"
DSIG: Final = "{http://www.w3.org/2000/09/xmldsig#}"
PERSISTENT: Final = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
_BACK: Final = """<!doctype html><html lang="en"><title>Back</title><link rel="icon" href="data:,"><body>
<form method="post" action="{acs}"><input type="hidden" name="SAMLResponse" value="{response}">
<input type="hidden" name="RelayState" value="{relay_state}"><button>Continue</button></form>
<script>document.forms[0].submit()</script></body></html>"""


class Signer(NamedTuple):
    """Private key and certificate."""

    key: bytes
    certificate: bytes  # DER


def new_signer(key: Any = None, *, days: int = 365) -> Signer:
    """Return a new signer. `key`: by default RSA with 2048 bits."""
    key = key or rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "identity provider of the tests")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=400))
        .not_valid_after(now + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    return Signer(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), certificate.public_bytes(Encoding.DER)
    )


@cache
def own_signer() -> Signer:
    return new_signer()


@dataclass
class Lies:
    """Deviations of the next responses from the truth. None removes a value."""

    issuer: str | None = ""
    audience: str | None = ""
    recipient: str | None = ""
    destination: str | None = ""
    in_response_to: str | None = ""
    begins_s: int | None = -5  # seconds from now
    ends_s: int | None = 300
    session_ends_s: int | None = None
    name_id_format: str = PERSISTENT
    subject: str = ""
    qualifiers: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, list[str]] = field(default_factory=dict)
    assertion_id: str = ""
    status: str = "Success"
    signer: Signer | None = None
    signs_assertion: bool = True
    signs_response: bool = False
    method: Any = None
    digest: Any = None
    changes: Callable[[Any], Any] | None = None  # of the whole response, before it is signed
    tampers: Callable[[Any], Any] | None = None  # of the whole response, after it was signed


class Asked(NamedTuple):
    """Sign-in that a service asks for. `id`: of its request; "" if the provider starts the sign-in."""

    entity_id: str
    acs_url: str
    id: str = ""


def asked_in(query: str) -> tuple[Asked, str]:
    """Return the request in the query of a redirect, and its RelayState."""
    form = {name: values[0] for name, values in parse_qs(query).items()}
    root = etree.fromstring(zlib.decompress(base64.b64decode(form["SAMLRequest"]), -15))
    asked = Asked(root.findtext(f"{SAML}Issuer"), root.get("AssertionConsumerServiceURL"), root.get("ID"))
    return asked, form.get("RelayState", "")


def subject_of(email: str) -> str:
    return hashlib.sha256(email.encode()).hexdigest()[:20]


def signed(root: Any, element: Any, lies: Lies, signer: Signer) -> None:
    """Sign an element within its document, after its issuer."""
    node = xmlsec.template.create(
        element, xmlsec.Transform.EXCL_C14N, lies.method or xmlsec.Transform.RSA_SHA256, ns="ds"
    )
    element.insert(1, node)
    reference = xmlsec.template.add_reference(node, lies.digest or xmlsec.Transform.SHA256, uri=f"#{element.get('ID')}")
    xmlsec.template.add_transform(reference, xmlsec.Transform.ENVELOPED)
    xmlsec.template.add_transform(reference, xmlsec.Transform.EXCL_C14N)
    context = xmlsec.SignatureContext()
    if lies.method == xmlsec.Transform.HMAC_SHA256:  # the certificate, which is public, as the key
        context.key = xmlsec.Key.from_binary_data(xmlsec.KeyData.HMAC, signer.certificate)
    else:
        xmlsec.template.add_x509_data(xmlsec.template.ensure_key_info(node))
        context.key = xmlsec.Key.from_memory(signer.key, xmlsec.KeyFormat.PEM)
        context.key.load_cert_from_memory(signer.certificate, xmlsec.KeyFormat.CERT_DER)
    context.register_id(element, "ID")
    context.sign(node)


def metadata_of(url: str, published: Iterable[Signer], *, attributes: str = "") -> str:
    """Return the metadata of a provider. `published`: two signers during a rotation."""
    keys = "".join(
        '<KeyDescriptor use="signing"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>'
        f"{base64.encodebytes(one.certificate).decode()}"
        "</ds:X509Certificate></ds:X509Data></ds:KeyInfo></KeyDescriptor>"
        for one in published
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><!-- made by the tests -->'
        '<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" '
        f'xmlns:ds="http://www.w3.org/2000/09/xmldsig#" entityID="{url}/metadata"{attributes}>'
        f'<IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">{keys}'
        '<SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" '
        f'Location="{url}/sign-in"/></IDPSSODescriptor></EntityDescriptor>'
    )


class SamlProvider(ProviderServer):
    """Provider at a free port of the loopback interface."""

    def __init__(self, port: int = 0, signer: Signer | None = None, host: str = "127.0.0.1") -> None:
        self.lies = Lies()
        self.signer = signer or own_signer()
        self.published = [self.signer]  # in the metadata: two during a rotation
        self.metadata_attributes = ""
        self.paths: list[str] = []
        provider = self

        class Handler(_Handler):
            idp = provider

        super().__init__(Handler, port)
        self.url = f"http://{host}:{self.port}"
        self.entity_id = f"{self.url}/metadata"

    def metadata(self) -> str:
        return metadata_of(self.url, self.published, attributes=self.metadata_attributes)

    def response(self, asked: Asked, email: str) -> str:
        """Return a response in base64, as a browser posts it; the subject is made of the address."""
        lies = self.lies
        root = self._unsigned(asked, email)
        if lies.changes:
            root = lies.changes(root)
        signer = lies.signer or self.signer
        assertion = root.find(f"{SAML}Assertion")
        if lies.signs_assertion and assertion is not None:
            signed(root, assertion, lies, signer)
        if lies.signs_response:
            signed(root, root, lies, signer)
        if lies.tampers:
            root = lies.tampers(root)
        text = root if isinstance(root, bytes) else etree.tostring(root)
        return base64.b64encode(text).decode()

    def _unsigned(self, asked: Asked, email: str) -> Any:
        lies, now = self.lies, datetime.now(UTC)

        def truth(lie: str | None, value: str) -> str | None:
            return value if lie == "" else lie

        def at(seconds: int | None) -> str | None:
            return None if seconds is None else f"{now + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"

        def element(parent: Any, name: str, text: str | None = None, **attributes: str | None) -> Any:
            found = etree.SubElement(
                parent, name, {key: value for key, value in attributes.items() if value is not None}
            )
            found.text = text
            return found

        issuer = truth(lies.issuer, self.entity_id)
        in_response_to = truth(lies.in_response_to, asked.id) or None
        root = etree.Element(f"{SAMLP}Response", nsmap={"samlp": SAMLP[1:-1], "saml": SAML[1:-1]})
        head = {"ID": f"_{secrets.token_hex(16)}", "Version": "2.0", "IssueInstant": at(0)}
        head |= {"Destination": truth(lies.destination, asked.acs_url), "InResponseTo": in_response_to}
        root.attrib.update({key: value for key, value in head.items() if value is not None})
        element(root, f"{SAML}Issuer", issuer)
        status = element(root, f"{SAMLP}Status")
        if lies.status != "Success":
            code = element(status, f"{SAMLP}StatusCode", Value="urn:oasis:names:tc:SAML:2.0:status:Responder")
            element(code, f"{SAMLP}StatusCode", Value=f"urn:oasis:names:tc:SAML:2.0:status:{lies.status}")
            return root
        element(status, f"{SAMLP}StatusCode", Value="urn:oasis:names:tc:SAML:2.0:status:Success")
        assertion = element(
            root,
            f"{SAML}Assertion",
            ID=lies.assertion_id or f"_{secrets.token_hex(16)}",
            Version="2.0",
            IssueInstant=at(0),
        )
        element(assertion, f"{SAML}Issuer", issuer)
        subject = element(assertion, f"{SAML}Subject")
        name = lies.subject or subject_of(email)
        element(subject, f"{SAML}NameID", name, Format=lies.name_id_format, **lies.qualifiers)
        confirmation = element(subject, f"{SAML}SubjectConfirmation", Method="urn:oasis:names:tc:SAML:2.0:cm:bearer")
        element(
            confirmation,
            f"{SAML}SubjectConfirmationData",
            Recipient=truth(lies.recipient, asked.acs_url),
            NotOnOrAfter=at(lies.ends_s),
            InResponseTo=in_response_to,
        )
        conditions = element(assertion, f"{SAML}Conditions", NotBefore=at(lies.begins_s), NotOnOrAfter=at(lies.ends_s))
        if (audience := truth(lies.audience, asked.entity_id)) is not None:
            element(element(conditions, f"{SAML}AudienceRestriction"), f"{SAML}Audience", audience)
        statement = element(
            assertion,
            f"{SAML}AuthnStatement",
            AuthnInstant=at(0),
            SessionNotOnOrAfter=at(lies.session_ends_s),
        )
        context = element(statement, f"{SAML}AuthnContext")
        element(context, f"{SAML}AuthnContextClassRef", "urn:oasis:names:tc:SAML:2.0:ac:classes:Password")
        attributes = {"email": [email]} | lies.attributes
        if any(attributes.values()):
            holder = element(assertion, f"{SAML}AttributeStatement")
            for key, values in attributes.items():
                attribute = element(holder, f"{SAML}Attribute", Name=key) if values else None
                for value in values:
                    element(attribute, f"{SAML}AttributeValue", value)
        return root


class _Handler(BaseHTTPRequestHandler):
    idp: SamlProvider

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.idp.paths.append(path)
        if path == "/metadata":
            self._send(200, self.idp.metadata(), "application/samlmetadata+xml")
        elif path in ("/sign-in", "/start"):
            self._send(200, SIGN_IN_PAGE, "text/html")
        else:
            self._send(404, "", "text/plain")

    def do_POST(self) -> None:
        """Answer the sign-in page. `/start`: the provider's own list of applications, with the service in the query."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        email = parse_qs(body).get("email", [""])[0]
        parts = urlsplit(self.path)
        self.idp.paths.append(parts.path)
        if parts.path == "/start":
            given = {name: values[0] for name, values in parse_qs(parts.query).items()}
            asked, relay_state = Asked(given["entity_id"], given["acs_url"]), given.get("relay_state", "")
        else:
            asked, relay_state = asked_in(parts.query)
        values = {"acs": asked.acs_url, "response": self.idp.response(asked, email), "relay_state": relay_state}
        self._send(200, _BACK.format(**{key: html.escape(value) for key, value in values.items()}), "text/html")

    def _send(self, status: int, body: str, kind: str) -> None:
        content = body.encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    provider = SamlProvider(int(sys.argv[1]), host="localhost")
    print("ready", flush=True)  # noqa: T201 the test waits for it
    provider.serve()
