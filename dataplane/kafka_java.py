"""Translates the librdkafka settings of security to those of Java clients, for Spark's `kafka.*` options.

Secrets are passed as options of a reader or writer, which Kafka's own log shows as hidden, or in a file; never on a
command line.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from dataplane.kafka_settings import kafka_settings
from dataplane.spec.kafka_security import VARIABLE, KafkaSettingsError

_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_OAUTH_HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


def spark_kafka_options(servers: str, security: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the options of Spark's Kafka source and sink that name the brokers and sign in to them.

    security: librdkafka settings, by default the process's own. Raises KafkaSettingsError.
    """
    given = kafka_settings() if security is None else security
    return {f"kafka.{name}": value for name, value in java_properties(servers, given).items()}


def java_properties(servers: str, security: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a Java client with these librdkafka settings. Raises KafkaSettingsError."""
    properties = {"bootstrap.servers": servers}
    if protocol := security.get("security.protocol"):
        properties["security.protocol"] = protocol
    return properties | _sasl(security) | _tls(security)


def _sasl(security: Mapping[str, str]) -> dict[str, str]:
    mechanism = security.get("sasl.mechanism")
    if mechanism is None:
        return {}
    properties = {"sasl.mechanism": mechanism}
    if mechanism != "OAUTHBEARER":
        given = {"username": security["sasl.username"], "password": security["sasl.password"]}
        return properties | {"sasl.jaas.config": jaas_config(mechanism, given)}
    names = {"clientId": "client.id", "clientSecret": "client.secret", "scope": "scope"}
    given = {option: security.get(f"sasl.oauthbearer.{name}", "") for option, name in names.items()}
    for pair in filter(None, security.get("sasl.oauthbearer.extensions", "").split(",")):
        name, _, value = pair.partition("=")
        given[f"extension_{name}"] = value
    return properties | {
        "sasl.jaas.config": jaas_config(mechanism, {name: value for name, value in given.items() if value}),
        "sasl.login.callback.handler.class": _OAUTH_HANDLER,
        "sasl.oauthbearer.token.endpoint.url": security["sasl.oauthbearer.token.endpoint.url"],
    }


def jaas_config(mechanism: str, options: Mapping[str, str]) -> str:
    """Return the value of `sasl.jaas.config`. Options are quoted, so that no character of a secret can end one."""
    quoted = (f'{name}="{_escaped(value)}"' for name, value in options.items())
    return f"{_MODULES[mechanism]} required {' '.join(quoted)};"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _tls(security: Mapping[str, str]) -> dict[str, str]:
    properties: dict[str, str] = {}
    location = security.get("ssl.ca.location", "probe")  # `probe` is librdkafka's word for the system's authorities
    if location != "probe":
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": location}
    if pem := security.get("ssl.ca.pem"):
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem}
    if chain := _pem(security, "certificate"):
        properties |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": chain,
            "ssl.keystore.key": _pkcs8(_pem(security, "key"), security.get("ssl.key.password")),
        }
    if algorithm := security.get("ssl.endpoint.identification.algorithm"):
        properties["ssl.endpoint.identification.algorithm"] = algorithm
    return properties


def _pem(security: Mapping[str, str], kind: str) -> str:
    if pem := security.get(f"ssl.{kind}.pem"):
        return pem
    location = security.get(f"ssl.{kind}.location")
    if location is None:
        return ""
    try:
        return Path(location).read_text()
    except (OSError, UnicodeDecodeError) as exc:
        raise KafkaSettingsError(f"{VARIABLE}: ssl.{kind}.location: cannot read the file: {exc}") from exc


def _pkcs8(key: str, password: str | None) -> str:
    """Return a private key in the one form that Java reads: PKCS #8, here not encrypted."""
    try:
        loaded = load_pem_private_key(key.encode(), password.encode() if password else None)
    except (TypeError, ValueError) as exc:
        reason = "needs a private key in PEM form, and the password if it is encrypted"
        raise KafkaSettingsError(f"{VARIABLE}: ssl.key: {reason}") from exc
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
