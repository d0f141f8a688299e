"""Servers with bad TLS of each kind, made on the spot."""

import ssl
import warnings
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Flaw = Literal["expired", "self-signed", "wrong-host", "tls-1-0"]
FLAWS: Final[tuple[Flaw, ...]] = ("expired", "self-signed", "wrong-host", "tls-1-0")
DAY: Final = timedelta(days=1)


def bad_tls(folder: Path, flaw: Flaw) -> ssl.SSLContext:
    """A server's context with this flaw; the certificate and its key are written to `folder`."""
    path = folder / f"{flaw}.pem"
    path.write_bytes(_certificate(flaw))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    if flaw == "tls-1-0":
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that it is old is the point
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
    return context


def _certificate(flaw: Flaw) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer_key = key if flaw == "self-signed" else ec.generate_private_key(ec.SECP256R1())
    host = "elsewhere.example" if flaw == "wrong-host" else "localhost"
    now = datetime.now(UTC)
    names = [x509.DNSName(host)] + ([] if flaw == "wrong-host" else [x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_name(host))
        .issuer_name(_name(host if flaw == "self-signed" else "an authority nobody knows"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 30 * DAY)
        .not_valid_after(now - DAY if flaw == "expired" else now + DAY)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return private + certificate.public_bytes(serialization.Encoding.PEM)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
