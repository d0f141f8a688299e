"""PENSTOCK_KAFKA_SETTINGS accepts settings of security alone, and names the setting that is wrong."""

import json
import traceback
from pathlib import Path

import pytest

from dataplane.kafka_settings import kafka_settings
from dataplane.runtime.settings import settings_from
from dataplane.spec.kafka_security import KafkaSettingsError, SecretFile, parse_kafka_settings

SCRAM = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "ingest",
    "sasl.password": "hunter2",
    "ssl.ca.location": "/etc/ca.pem",
}
OIDC = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "penstock",
    "sasl.oauthbearer.client.secret": "hunter2",
    "sasl.oauthbearer.token.endpoint.url": "https://id.example.com/token",
}
MUTUAL = {
    "security.protocol": "SSL",
    "ssl.certificate.location": "/etc/client.pem",
    "ssl.key.location": "/etc/client.key",
}


def without(given: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in given.items() if key != name}


@pytest.mark.parametrize(
    "given", [SCRAM, OIDC, MUTUAL, *({"security.protocol": name} for name in ("SSL", "PLAINTEXT"))]
)
def test_complete_settings_are_accepted(given: dict[str, str]):
    assert parse_kafka_settings(json.dumps(given)) == given


def test_no_value_means_no_security():
    assert kafka_settings({}) == kafka_settings({"PENSTOCK_KAFKA_SETTINGS": " "}) == {}


@pytest.mark.parametrize("content", ["", "\n", "\ufeff"])
def test_empty_file_does_not_mean_a_kafka_without_security(tmp_path: Path, content: str):
    path = tmp_path / "settings.json"
    path.write_text(content)
    with pytest.raises(KafkaSettingsError, match="is empty"):
        kafka_settings({"PENSTOCK_KAFKA_SETTINGS": str(path)})


def test_older_name_of_the_mechanism_is_accepted():
    renamed = without(SCRAM, "sasl.mechanism") | {"sasl.mechanisms": "SCRAM-SHA-512"}
    assert parse_kafka_settings(json.dumps(renamed)) == SCRAM


@pytest.mark.parametrize(
    ("given", "names"),
    [
        pytest.param([], "needs a JSON object", id="not an object"),
        pytest.param("{", "needs a JSON object", id="not JSON"),
        pytest.param(SCRAM | {"acks": "0"}, "acks: is not accepted", id="a setting that keeps messages safe"),
        pytest.param(SCRAM | {"bootstrap.servers": "x:1"}, "bootstrap.servers: is not accepted", id="address"),
        pytest.param(
            SCRAM | {"enable.ssl.certificate.verification": "false"},
            "enable.ssl.certificate.verification: is not accepted",
            id="verification is not turned off",
        ),
        pytest.param(SCRAM | {"sasl.mechanism": "GSSAPI"}, "sasl.mechanism: needs one of", id="mechanism"),
        pytest.param(SCRAM | {"security.protocol": "TLS"}, "security.protocol: needs one of", id="protocol"),
        pytest.param(without(SCRAM, "security.protocol"), "security.protocol: is missing", id="no protocol"),
        pytest.param(without(SCRAM, "sasl.mechanism"), "sasl.mechanism: is missing", id="no mechanism"),
        pytest.param(without(SCRAM, "sasl.password"), "sasl.password: is missing", id="no password"),
        pytest.param(SCRAM | {"sasl.password": ""}, "sasl.password: needs a text", id="empty password"),
        pytest.param(SCRAM | {"sasl.password": 1}, "sasl.password: needs a text", id="a number"),
        pytest.param(SCRAM | {"sasl.password": {"path": "/x"}}, 'sasl.password: needs a text or {"file"', id="file"),
        pytest.param(SCRAM | {"sasl.username": "a\nb"}, "sasl.username: needs a text without control", id="line break"),
        pytest.param(SCRAM | {"sasl.mechanisms": "PLAIN"}, "sasl.mechanism: is there twice", id="both names"),
        pytest.param(
            without(SCRAM, "ssl.ca.location") | {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            "security.protocol: needs SASL_SSL",
            id="password in clear text",
        ),
        pytest.param(SCRAM | {"security.protocol": "SASL_PLAINTEXT"}, "ssl.ca.location: needs", id="CA without TLS"),
        pytest.param(MUTUAL | {"sasl.username": "u"}, "sasl.username: needs security.protocol", id="SASL without it"),
        pytest.param(without(OIDC, "sasl.oauthbearer.client.id"), "sasl.oauthbearer.client.id: is miss", id="OIDC"),
        pytest.param(OIDC | {"sasl.oauthbearer.method": "default"}, "sasl.oauthbearer.method: needs", id="method"),
        pytest.param(OIDC | {"sasl.password": "p"}, "sasl.password: is not used with OAUTHBEARER", id="OIDC password"),
        pytest.param(SCRAM | {"sasl.oauthbearer.scope": "s"}, "sasl.oauthbearer.scope: needs", id="scope of SCRAM"),
        pytest.param(without(MUTUAL, "ssl.key.location"), "ssl.key.location: is missing", id="no key"),
        pytest.param(without(MUTUAL, "ssl.certificate.location"), "ssl.certificate.location: is", id="no certificate"),
        pytest.param(
            SCRAM | {"ssl.endpoint.identification.algorithm": "none"},
            "ssl.endpoint.identification.algorithm: needs one of https",
            id="name of the host is not verified",
        ),
        pytest.param(
            SCRAM | {"ssl.endpoint.identification.algorithm": {"file": "/etc/none"}},
            "ssl.endpoint.identification.algorithm: needs a text, not a file",
            id="unchecked value in a file",
        ),
        pytest.param(
            OIDC | {"sasl.oauthbearer.token.endpoint.url": "http://id.example.com/token"},
            "sasl.oauthbearer.token.endpoint.url: needs a URL that begins with https://",
            id="tokens in clear text",
        ),
        pytest.param(SCRAM | {"ssl.ca.pem": "x"}, "ssl.ca.pem: is not used with ssl.ca.location", id="two CAs"),
    ],
)
def test_error_names_the_setting_and_never_its_secret(given: object, names: str):
    text = given if isinstance(given, str) else json.dumps(given)
    with pytest.raises(KafkaSettingsError, match=r"^PENSTOCK_KAFKA_SETTINGS: ") as raised:
        parse_kafka_settings(text)
    assert names in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_secret_and_whole_value_come_from_files(tmp_path: Path):
    password, whole = tmp_path / "password", tmp_path / "settings.json"
    password.write_text("pass word\n")
    given = SCRAM | {"sasl.password": {"file": str(password)}}
    whole.write_text(json.dumps(given))
    assert parse_kafka_settings(json.dumps(given))["sasl.password"] == SecretFile(str(password))
    for value in (json.dumps(given), str(whole)):
        assert kafka_settings({"PENSTOCK_KAFKA_SETTINGS": value}) == SCRAM | {"sasl.password": "pass word"}
    password.write_text("rotated\n")
    assert kafka_settings({"PENSTOCK_KAFKA_SETTINGS": str(whole)})["sasl.password"] == "rotated"


@pytest.mark.parametrize("content", [None, "", "{"])
def test_running_process_keeps_its_settings_while_a_file_cannot_be_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str | None
):
    whole = tmp_path / "settings.json"
    whole.write_text(json.dumps(SCRAM))
    env = {"PENSTOCK_KAFKA_SETTINGS": str(whole)}
    assert kafka_settings(env) == SCRAM
    whole.unlink()
    if content is not None:
        whole.write_text(content)
    assert kafka_settings(env) == SCRAM
    assert "settings that were read before" in caplog.text
    assert "hunter2" not in caplog.text
    whole.write_text(json.dumps(SCRAM | {"sasl.username": "second"}))
    assert kafka_settings(env)["sasl.username"] == "second"


def test_missing_and_empty_files_are_named(tmp_path: Path):
    empty = tmp_path / "empty"
    empty.touch()
    for path in (empty, tmp_path / "nowhere"):
        given = json.dumps(SCRAM | {"sasl.password": {"file": str(path)}})
        with pytest.raises(KafkaSettingsError, match=rf"sasl\.password: .*{path.name}"):
            kafka_settings({"PENSTOCK_KAFKA_SETTINGS": given})
    with pytest.raises(KafkaSettingsError, match="cannot read the file"):
        kafka_settings({"PENSTOCK_KAFKA_SETTINGS": str(tmp_path / "nowhere")})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"'{json.dumps(SCRAM)}'", id="quotes"),
        pytest.param(f"\ufeff{json.dumps(SCRAM)}", id="byte order mark"),
        pytest.param(json.dumps([SCRAM]), id="list"),
        pytest.param("sasl.username=ingest\nsasl.password=hunter2", id="properties"),
        pytest.param("hunter2", id="relative path"),
        pytest.param("/hunter2", id="missing file"),
        pytest.param("/hunter2\0", id="NUL"),
        pytest.param(json.dumps(SCRAM | {"sasl.password": {"file": "hunter2"}}), id="secret as a file"),
        pytest.param(json.dumps(SCRAM | {"sasl.mechanism": "hunter2"}), id="secret as another setting"),
    ],
)
def test_value_of_another_form_is_refused_without_showing_it(text: str):
    with pytest.raises(KafkaSettingsError, match=r"^PENSTOCK_KAFKA_SETTINGS: ") as raised:
        kafka_settings({"PENSTOCK_KAFKA_SETTINGS": text})
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_file_may_begin_with_a_byte_order_mark(tmp_path: Path):
    whole = tmp_path / "settings.json"
    whole.write_text(json.dumps(SCRAM), encoding="utf-8-sig")
    assert kafka_settings({"PENSTOCK_KAFKA_SETTINGS": str(whole)}) == SCRAM


def test_data_plane_refuses_invalid_settings_at_its_start():
    with pytest.raises(KafkaSettingsError, match="acks"):
        settings_from({"PENSTOCK_KAFKA_SETTINGS": json.dumps(SCRAM | {"acks": "0"})})
