"""Settings of librdkafka become those of Java clients, with the same meaning."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from dataplane.kafka_java import jaas_config, java_properties, spark_kafka_options
from dataplane.spec.kafka_security import KafkaSettingsError
from tests.support.trust import Trust


def test_plain_broker_needs_only_its_address():
    assert spark_kafka_options("b:9092", {}) == {"kafka.bootstrap.servers": "b:9092"}


def test_scram_over_tls():
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "cells",
        "sasl.password": "p",
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.endpoint.identification.algorithm": "https",
    }
    assert java_properties("b:1", given) == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="cells" password="p";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/etc/ca.pem",
        "ssl.endpoint.identification.algorithm": "https",
    }
    assert spark_kafka_options("b:1", given)["kafka.ssl.truststore.type"] == "PEM"


def test_system_authorities_stay_those_of_java():
    given = {"security.protocol": "SSL", "ssl.ca.location": "probe"}
    assert java_properties("b:1", given) == {"bootstrap.servers": "b:1", "security.protocol": "SSL"}


def test_no_character_of_a_secret_ends_its_option():
    secret = 'a"; evil="\\'
    assert jaas_config("PLAIN", {"password": secret}).endswith(r'password="a\"; evil=\"\\";')


def test_oidc():
    prefix = "sasl.oauthbearer."
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", f"{prefix}method": "oidc"}
    given |= {f"{prefix}client.id": "c", f"{prefix}client.secret": "s", f"{prefix}extensions": "logicalCluster=lkc-1"}
    made = java_properties("b:1", given | {f"{prefix}token.endpoint.url": "https://id/token"})
    assert 'clientId="c" clientSecret="s" extension_logicalCluster="lkc-1";' in made["sasl.jaas.config"]
    assert made["sasl.oauthbearer.token.endpoint.url"] == "https://id/token"
    assert made["sasl.login.callback.handler.class"].endswith(".OAuthBearerLoginCallbackHandler")


@pytest.mark.parametrize("password", [None, "of the key"])
def test_client_certificate_and_key_are_given_in_the_form_that_java_reads(tmp_path: Path, password: str | None):
    key, certificate = Trust(tmp_path).made("penstock")
    form = (Encoding.PEM, PrivateFormat.TraditionalOpenSSL)
    loaded = load_pem_private_key(key.encode(), None)
    if password:
        stored = loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    else:
        stored = loaded.private_bytes(*form, NoEncryption())
    (tmp_path / "c.pem").write_text(certificate)
    (tmp_path / "k.pem").write_bytes(stored)
    given = {"ssl.certificate.location": str(tmp_path / "c.pem"), "ssl.key.location": str(tmp_path / "k.pem")}
    given |= {"security.protocol": "SSL"} | ({"ssl.key.password": password} if password else {})
    made = java_properties("b:1", given)
    assert made["ssl.keystore.type"] == "PEM"
    assert made["ssl.keystore.certificate.chain"] == certificate
    assert made["ssl.keystore.key"].startswith("-----BEGIN PRIVATE KEY-----")


def test_unusable_key_and_missing_certificate_are_named(tmp_path: Path):
    (tmp_path / "k.pem").write_text("no key")
    given = {"security.protocol": "SSL", "ssl.certificate.pem": "c", "ssl.key.location": str(tmp_path / "k.pem")}
    with pytest.raises(KafkaSettingsError, match=r"ssl\.key: needs a private key"):
        java_properties("b:1", given)
    given = {"security.protocol": "SSL", "ssl.certificate.location": str(tmp_path / "none"), "ssl.key.pem": "k"}
    with pytest.raises(KafkaSettingsError, match=r"ssl\.certificate\.location: cannot read"):
        java_properties("b:1", given)
