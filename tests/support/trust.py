"""A certificate authority, and certificates that it signs: a server's on 127.0.0.1 and a client's."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Trust:
    """Authority with `ca_file` to trust; `server_file` holds the server's key and certificate."""

    def __init__(self, folder: Path, name: str = "our own authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_text(self._sign(self._name, self._key.public_key(), authority=True))
        self.server_file = folder / "server.pem"
        self.server_file.write_text("".join(self.made("localhost")))

    def made(self, name: str, *, host: str = "127.0.0.1", ended: bool = False) -> tuple[str, str]:
        """Return a key and its certificate as PEM. `ended`: the certificate has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return _pem(key), self._sign(subject, key.public_key(), host=host, ended=ended)

    def itself(self) -> tuple[str, str]:
        """Return key and self-signed certificate of the authority."""
        return _pem(self._key), self.ca_file.read_text()

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        authority: bool = False,
        host: str = "127.0.0.1",
        ended: bool = False,
    ) -> str:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 2 * DAY)
            .not_valid_after(now - DAY if ended else now + DAY)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if not authority:
            names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()
