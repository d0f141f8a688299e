"""PENSTOCK_KAFKA_TLS in a test run: one set of passwords for all of its brokers, and a user for each role."""

import json
from pathlib import Path

import pytest

from controlplane.kafka_access.acls import ROLES, role_user
from dataplane.kafka_settings import kafka_settings
from dataplane.spec.kafka_security import VARIABLE
from localbox.errors import BoxError
from localbox.services.kafka_tls import ADMIN, ensure_kafka_tls, kafka_tls_in
from localbox.settings import settings_from
from localbox.testing_kafka import SWITCH, administrator, broker_env, role_env, secure_run


@pytest.fixture
def _no_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (SWITCH, VARIABLE, "PENSTOCK_KAFKA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(VARIABLE, "")  # what a test sets here ends with it


@pytest.fixture
def _secured(_no_kafka: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(SWITCH, "true")
    secure_run(tmp_path / "runs")


@pytest.mark.usefixtures("_no_kafka")
def test_plaintext_run_has_no_settings(tmp_path: Path):
    secure_run(tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    assert (kafka_settings(), administrator(), role_env("cells"), broker_env(tmp_path)) == ({}, {}, {}, {})


@pytest.mark.usefixtures("_secured")
def test_users_of_the_run_fit_every_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("first", "second"):
        var = tmp_path / name
        settings = settings_from({"PENSTOCK_VAR": str(var), **broker_env(var)}, dotenv=None)
        assert settings.has_secured_kafka
        tls = kafka_tls_in(var)
        ensure_kafka_tls(tls)
        for role in ROLES:
            given = json.loads(Path(role_env(role)[VARIABLE]).read_text())
            assert tls.passwords[given["sasl.username"]] == given["sasl.password"]
            assert given["sasl.username"] == role_user(role)
            assert Path(given["ssl.ca.location"]).read_text() == tls.ca.read_text()
    monkeypatch.setenv(VARIABLE, role_env("web")[VARIABLE])  # as in a module of this role
    assert administrator()["sasl.username"] == ADMIN
    assert Path(role_env("cells")[VARIABLE]).stem == role_user("cells")


@pytest.mark.usefixtures("_no_kafka")
def test_secured_run_uses_no_foreign_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SWITCH, "true")
    monkeypatch.setenv("PENSTOCK_KAFKA", "127.0.0.1:1")
    with pytest.raises(BoxError, match="leave out PENSTOCK_KAFKA"):
        secure_run(tmp_path)
