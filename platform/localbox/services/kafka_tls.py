"""The box's secured Kafka (PENSTOCK_KAFKA_TLS): certificates, passwords of users, and settings of roles.

All of it is made once, in var/kafka/access, in files that only their owner can read.
"""

import json
import os
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct

from controlplane.kafka_access.acls import ROLES, role_user
from dataplane.kafka_java import jaas_config
from localbox.errors import BoxError

MECHANISM: Final = "SCRAM-SHA-512"
BROKER: Final = "penstock-broker"  # also the common name of its certificate
ADMIN: Final = "penstock-admin"
USERS: Final = (BROKER, ADMIN, *map(role_user, ROLES))
# A broker sends requests to its controller as the first, and to brokers as the second.
SUPER_USERS: Final = (f"CN={BROKER}", BROKER, ADMIN)
_VALID: Final = timedelta(days=3650)


class KafkaTls(Struct, frozen=True):
    """Files and passwords of the secured broker, which `ensure_kafka_tls` makes."""

    folder: Path

    @property
    def is_made(self) -> bool:
        """True if the files exist: then the data are those of a secured broker."""
        return self._passwords_file.exists()

    @property
    def passwords(self) -> Mapping[str, str]:
        """Password of each user."""
        found: dict[str, str] = json.loads(self._passwords_file.read_text())
        return found

    @property
    def _passwords_file(self) -> Path:
        return self.folder / "passwords.json"

    @property
    def ca(self) -> Path:
        """File of the authority's certificate, which clients trust."""
        return self.folder / "ca.pem"

    @property
    def broker(self) -> Path:
        """File of the broker's key and certificate."""
        return self.folder / "broker.pem"

    def settings_file(self, user: str) -> Path:
        """Return the file with the settings of a user's clients, for PENSTOCK_KAFKA_SETTINGS."""
        return self.folder / f"{user}.json"

    def settings_of(self, user: str) -> dict[str, str]:
        """Return the librdkafka settings of a user's clients."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": self.passwords[user],
            "ssl.ca.location": str(self.ca),
        }

    def broker_properties(self) -> dict[str, str]:
        """Return the properties of security of the broker, whose listeners are SASL_SSL and CONTROLLER."""
        given = {"username": BROKER, "password": self.passwords[BROKER]}
        return {
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SSL",
            "listener.name.controller.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": jaas_config(MECHANISM, given),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": ";".join(f"User:{name}" for name in SUPER_USERS),
        }

    def format_options(self) -> list[str]:
        """Return the options with which StorageTool stores all users in a new log."""
        users = (f"{MECHANISM}=[name={user},password={password}]" for user, password in self.passwords.items())
        return [option for user in users for option in ("--add-scram", user)]


def kafka_tls_in(var: Path) -> KafkaTls:
    """Return the files of the box in this directory; they may not be made yet."""
    return KafkaTls(var / "kafka" / "access")


def ensure_kafka_tls(tls: KafkaTls) -> None:
    """Make the files at the first call. Raises BoxError if Kafka's data were made without TLS."""
    home = tls.folder.parent
    if not tls.is_made:
        if (home / "log" / "meta.properties").exists():
            raise BoxError(f"{home} was made without PENSTOCK_KAFKA_TLS: leave that out, or set another PENSTOCK_VAR.")
        tls.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_certificates(tls.folder)
        write_private(tls.folder / "passwords.json", json.dumps({user: secrets.token_urlsafe(32) for user in USERS}))
    for user in USERS:
        path, text = tls.settings_file(user), json.dumps(tls.settings_of(user))
        if user != BROKER and not (path.exists() and path.read_text() == text):  # the box's folder may have moved
            write_private(path, text)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    scratch = path.with_suffix(".new")
    scratch.unlink(missing_ok=True)
    with open(scratch, "w", opener=lambda name, flags: os.open(name, flags | os.O_EXCL, 0o600)) as file:
        file.write(text)
    scratch.replace(path)


def _write_certificates(folder: Path) -> None:
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer, subject = _named("Penstock box"), _named(BROKER)
    own = _signed(issuer, issuer, authority.public_key(), authority, is_authority=True)
    certificate = _signed(subject, issuer, key.public_key(), authority, is_authority=False)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_private(folder / "broker.pem", key.private_bytes(*form).decode() + certificate)
    write_private(folder / "ca.pem", own)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    authority: ec.EllipticCurvePrivateKey,
    *,
    is_authority: bool,
) -> str:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if not is_authority:
        hosts = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")]
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    return builder.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
