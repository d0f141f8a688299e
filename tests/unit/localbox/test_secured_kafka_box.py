"""PENSTOCK_KAFKA_TLS: files that only their owner reads, a user for each role, no program as administrator."""

import json
import os
import ssl
import subprocess
from pathlib import Path

import pytest

from controlplane.kafka_access.acls import ROLES, role_user
from dataplane.spec.kafka_security import VARIABLE, parse_kafka_settings
from localbox.catalogue import programs
from localbox.errors import BoxError
from localbox.services.kafka import properties
from localbox.services.kafka_tls import ADMIN, BROKER, USERS, ensure_kafka_tls, kafka_tls_in
from localbox.settings import ROOT, BoxSettings, settings_from


def secured(tmp_path: Path, **given: str) -> BoxSettings:
    services = {"DATABASE_URL": "postgresql://x@y/z", "REDIS_URL": "redis://y"}
    return settings_from(services | {"PENSTOCK_VAR": str(tmp_path), "PENSTOCK_KAFKA_TLS": "true", **given}, dotenv=None)


def test_each_program_signs_in_with_the_user_of_its_role(tmp_path: Path):
    settings = secured(tmp_path)
    made = {program.name: program for program in programs(settings, extra=["demo-pipe"])}
    users = {name: Path(program.env.get(VARIABLE, "")).stem for name, program in made.items()}
    roles = {"ingest-1": "ingest", "ingest-2": "ingest", "keeper": "cells", "web": "web", "table-queries": "tables"}
    roles |= dict.fromkeys(("worker", "beat", "observer"), "control")
    assert {name: users[name] for name in roles} == {name: f"penstock-{role}" for name, role in roles.items()}
    assert [name for name, user in users.items() if user == ADMIN] == ["kafka-access"]
    assert Path(settings.env[VARIABLE]).stem == role_user("control")


def test_programs_start_after_the_acls_are_written(tmp_path: Path):
    for names in ([], ["kafka", "ingest-1", "worker"]):
        made = {program.name: program for program in programs(secured(tmp_path), names)}
        assert made["kafka-access"].after == ("kafka",)
        assert "kafka-access" in made["ingest-1"].after
        assert "kafka-access" in made["worker"].after


def test_plain_box_has_no_roles(tmp_path: Path):
    settings = settings_from({"PENSTOCK_VAR": str(tmp_path)}, dotenv=None)
    assert VARIABLE not in settings.env
    assert not (tmp_path / "kafka").exists()


def test_secrets_are_made_once_and_readable_by_their_owner_only(tmp_path: Path):
    tls = kafka_tls_in(tmp_path)
    ensure_kafka_tls(tls)
    passwords = tls.passwords
    ensure_kafka_tls(tls)
    assert tls.passwords == passwords
    assert set(tls.passwords) == set(USERS) == {BROKER, ADMIN, *map(role_user, ROLES)}
    assert len(set(tls.passwords.values())) == len(USERS)
    files = list(tls.folder.iterdir())
    assert {path.stat().st_mode & 0o077 for path in (tls.folder, *files)} == {0}
    assert not tls.settings_file(BROKER).exists()
    for user in set(USERS) - {BROKER}:
        text = tls.settings_file(user).read_text()
        assert parse_kafka_settings(text) == json.loads(text) == tls.settings_of(user)
    ssl.create_default_context(cafile=str(tls.ca)).load_cert_chain(tls.broker)


def test_broker_listens_without_tls_nowhere(tmp_path: Path):
    settings = secured(tmp_path)
    tls = kafka_tls_in(tmp_path)
    ensure_kafka_tls(tls)
    (node,) = settings.kafka_nodes
    given = properties([node], node, tls)
    assert "PLAINTEXT" not in json.dumps(given)
    assert given["listener.name.controller.ssl.client.auth"] == "required"
    assert "ANONYMOUS" not in given["super.users"]
    assert "allow.everyone.if.no.acl.found" not in given


@pytest.mark.parametrize(
    ("given", "error"),
    [
        pytest.param({"PENSTOCK_KAFKA_TLS": "tls"}, "PENSTOCK_KAFKA_TLS: needs true or false", id="another value"),
        pytest.param({"PENSTOCK_KAFKA": "b:1"}, "leave out PENSTOCK_KAFKA", id="another broker"),
    ],
)
def test_request_that_cannot_be_met_is_refused(tmp_path: Path, given: dict[str, str], error: str):
    with pytest.raises(BoxError, match=error):
        secured(tmp_path, **given)


def test_data_of_a_plain_broker_is_not_secured_later(tmp_path: Path):
    (tmp_path / "kafka" / "log").mkdir(parents=True)
    (tmp_path / "kafka" / "log" / "meta.properties").touch()
    with pytest.raises(BoxError, match="was made without PENSTOCK_KAFKA_TLS"):
        ensure_kafka_tls(kafka_tls_in(tmp_path))


def test_secured_box_stays_secured_whatever_the_variable_is(tmp_path: Path):
    assert secured(tmp_path).has_secured_kafka
    assert not (tmp_path / "kafka").exists(), "files are made when the broker is prepared"
    ensure_kafka_tls(kafka_tls_in(tmp_path))
    for given in ({}, {"PENSTOCK_KAFKA_TLS": "false"}):
        settings = settings_from(given | {"PENSTOCK_VAR": str(tmp_path)}, dotenv=None)
        assert settings.has_secured_kafka
        assert Path(settings.env[VARIABLE]).stem == role_user("control")


def test_variable_of_another_program_does_not_stop_the_box(tmp_path: Path):
    given = {"PENSTOCK_VAR": str(tmp_path), "KAFKA": "/opt/kafka"}
    assert not settings_from(given, dotenv=None).has_secured_kafka


@pytest.mark.parametrize("target", ["demo", "up"])
def test_make_passes_the_request_on(target: str):
    assert "PENSTOCK_KAFKA_TLS=true .venv/bin/python -m localbox" in make(target, "KAFKA=tls")
    assert "PENSTOCK_KAFKA_TLS" not in make(target)
    assert "PENSTOCK_KAFKA_TLS" not in make(target, KAFKA="/opt/kafka")
    assert "PENSTOCK_KAFKA_BROKERS=3 .venv/bin/python -m localbox" in make(target, "KAFKA=3")
    assert "PENSTOCK_KAFKA_BROKERS" not in make(target, "KAFKA=tls")
    for wrong in ("tsl", "tls 3", "3 foo"):
        assert f"KAFKA: needs tls or 3, got {wrong}" in make(target, f"KAFKA={wrong}")


def make(*words: str, **env: str) -> str:
    """Return what make would run, and its error."""
    given = {"PATH": os.environ["PATH"], **env}
    done = subprocess.run(["make", "-n", *words], cwd=ROOT, env=given, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_settings_of_another_broker_are_not_used_for_the_boxs_own(tmp_path: Path):
    services = {
        "DATABASE_URL": "postgresql://x@y/z",
        "REDIS_URL": "redis://y",
        VARIABLE: '{"security.protocol": "SSL"}',
    }
    with pytest.raises(BoxError, match="set PENSTOCK_KAFKA, too, or unset it"):
        programs(settings_from(services | {"PENSTOCK_VAR": str(tmp_path)}, dotenv=None))


def test_invalid_settings_of_another_broker_are_reported(tmp_path: Path):
    given = {"DATABASE_URL": "postgresql://x@y/z", "REDIS_URL": "redis://y", "PENSTOCK_KAFKA": "b:1", VARIABLE: "{}"}
    settings = settings_from(given | {"PENSTOCK_VAR": str(tmp_path)}, dotenv=None)
    with pytest.raises(BoxError, match=r"security\.protocol: is missing"):
        programs(settings)
