"""Validation of PENSTOCK_KAFKA_SETTINGS: the settings with which librdkafka signs in to Penstock's own Kafka. Pure.

Only settings of security are accepted. All others belong to the code, because they keep messages safe.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeGuard

import msgspec
from msgspec import Struct

VARIABLE: Final = "PENSTOCK_KAFKA_SETTINGS"
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
# Each accepted setting, with its values if they are few.
ALLOWED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "security.protocol": PROTOCOLS,
        "sasl.mechanism": MECHANISMS,
        "sasl.username": (),
        "sasl.password": (),
        "sasl.oauthbearer.method": ("oidc",),
        "sasl.oauthbearer.client.id": (),
        "sasl.oauthbearer.client.secret": (),
        "sasl.oauthbearer.scope": (),
        "sasl.oauthbearer.extensions": (),
        "sasl.oauthbearer.token.endpoint.url": (),
        "ssl.ca.location": (),
        "ssl.ca.pem": (),
        "ssl.certificate.location": (),
        "ssl.certificate.pem": (),
        "ssl.key.location": (),
        "ssl.key.pem": (),
        "ssl.key.password": (),
        "ssl.endpoint.identification.algorithm": ("https",),
    }
)
_ALIASES: Final[dict[str, str]] = {"sasl.mechanisms": "sasl.mechanism"}  # librdkafka's older name
_PASSWORD: Final = ("sasl.username", "sasl.password")
_OIDC_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
_OIDC: Final = (
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    _OIDC_ENDPOINT,
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class KafkaSettingsError(ValueError):
    """The value of PENSTOCK_KAFKA_SETTINGS cannot be used; the message names the setting, never its value."""


class SecretFile(Struct, frozen=True):
    """Setting whose value is in a file: `{"file": "/run/secrets/kafka-password"}`."""

    path: str


KafkaSettings = Mapping[str, str | SecretFile]


def parse_kafka_settings(text: str | bytes) -> KafkaSettings:
    """Return the settings by their librdkafka names; an empty text is an error. Raises KafkaSettingsError."""
    if not text.strip():
        raise _error("", "is empty; without security, leave the variable out")
    try:
        given = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as exc:
        raise _error("", f"needs a JSON object or an absolute path: {exc}") from exc
    renamed = {_ALIASES.get(name, name): value for name, value in given.items()}
    if len(renamed) < len(given):
        raise _error("sasl.mechanism", "is there twice")
    settings = {name: _checked(name, value) for name, value in renamed.items()}
    _check_together(settings)
    return settings


def resolve_kafka_settings(settings: KafkaSettings, read: Callable[[str], str]) -> dict[str, str]:
    """Return the settings with the content of their files. Raises KafkaSettingsError, naming setting and file."""
    return {name: _resolved(name, value, read) for name, value in settings.items()}


def _resolved(name: str, value: str | SecretFile, read: Callable[[str], str]) -> str:
    if isinstance(value, str):
        return value
    try:
        content = read(value.path)
    except (OSError, ValueError) as exc:  # ValueError: not UTF-8
        raise _error(name, f"cannot read its file {value.path}: {getattr(exc, 'strerror', None) or exc}") from exc
    text = content if name.endswith(".pem") else content.rstrip("\r\n")
    if not text.strip():
        raise _error(name, f"its file {value.path} is empty")
    return text


def _checked(name: str, value: Any) -> str | SecretFile:
    if name not in ALLOWED:
        raise _error(name, f"is not accepted; allowed are {', '.join(ALLOWED)}")
    if isinstance(value, dict):
        if ALLOWED[name] or name == _OIDC_ENDPOINT:
            raise _error(name, "needs a text, not a file")
        path = value.get("file")
        if set(value) != {"file"} or not _is_path(path):
            raise _error(name, 'needs a text or {"file": "/path"}')
        return SecretFile(path)
    if not isinstance(value, str) or not value:
        raise _error(name, f'needs a text that is not empty, or {{"file": "/path"}}, got {type(value).__name__}')
    if not name.endswith(".pem") and _CONTROL.search(value):
        raise _error(name, "needs a text without control characters")
    if ALLOWED[name] and value not in ALLOWED[name]:
        raise _error(name, f"needs one of {', '.join(ALLOWED[name])}")
    if name == _OIDC_ENDPOINT and not value.startswith("https://"):
        raise _error(name, "needs a URL that begins with https://, because the secret of the client is sent to it")
    return value


def _is_path(path: object) -> TypeGuard[str]:
    return isinstance(path, str) and path.startswith("/") and not _CONTROL.search(path)


def _check_together(settings: KafkaSettings) -> None:
    """Check that the settings fit each other: librdkafka ignores most that do not."""
    protocol = settings.get("security.protocol")
    if not isinstance(protocol, str):
        raise _error("security.protocol", f"is missing; needs one of {', '.join(PROTOCOLS)}")
    _check_sasl(settings, protocol)
    _check_tls(settings, protocol)


def _check_sasl(settings: KafkaSettings, protocol: str) -> None:
    mechanism = settings.get("sasl.mechanism")
    if not protocol.startswith("SASL_"):
        _refuse(settings, "sasl.", f"needs security.protocol SASL_SSL, got {protocol}")
        return
    if not isinstance(mechanism, str):
        raise _error("sasl.mechanism", f"is missing; needs one of {', '.join(MECHANISMS)}")
    if mechanism in ("PLAIN", "OAUTHBEARER") and protocol != "SASL_SSL":
        raise _error("security.protocol", f"needs SASL_SSL: {mechanism} sends its secret as it is, got {protocol}")
    if mechanism == "OAUTHBEARER":
        _refuse(settings, _PASSWORD, "is not used with OAUTHBEARER")
        _require(settings, _OIDC, mechanism)
    else:
        _refuse(settings, "sasl.oauthbearer.", "needs sasl.mechanism OAUTHBEARER")
        _require(settings, _PASSWORD, mechanism)


def _check_tls(settings: KafkaSettings, protocol: str) -> None:
    if protocol not in ("SSL", "SASL_SSL"):
        _refuse(settings, "ssl.", f"needs security.protocol SSL or SASL_SSL, got {protocol}")
        return
    for kind in ("ca", "certificate", "key"):
        if {f"ssl.{kind}.location", f"ssl.{kind}.pem"} <= set(settings):
            raise _error(f"ssl.{kind}.pem", f"is not used with ssl.{kind}.location")
    certificate, key = (any(name.startswith(f"ssl.{kind}.") for name in settings) for kind in ("certificate", "key"))
    if certificate and not key:
        raise _error("ssl.key.location", "is missing; a client certificate needs its key")
    if key and not certificate:
        raise _error("ssl.certificate.location", "is missing; a key needs its certificate")


def _require(settings: KafkaSettings, names: tuple[str, ...], mechanism: str) -> None:
    for name in names:
        if name not in settings:
            raise _error(name, f"is missing; {mechanism} needs it")


def _refuse(settings: KafkaSettings, prefix: str | tuple[str, ...], reason: str) -> None:
    for name in settings:
        if name.startswith(prefix):
            raise _error(name, reason)


def _error(name: str, reason: str) -> KafkaSettingsError:
    return KafkaSettingsError(f"{VARIABLE}: {name}: {reason}" if name else f"{VARIABLE}: {reason}")
