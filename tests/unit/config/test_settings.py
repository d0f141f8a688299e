"""Settings: production requires its secrets, and has its security settings on."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SECRETS = {
    "PENSTOCK_SECRET_KEY": "x" * 60,
    "PENSTOCK_FERNET_KEYS": "a,b",
    "PENSTOCK_ALLOWED_HOSTS": "penstock.example",
    "PENSTOCK_TRUSTED_PROXIES": "10.0.0.0/8",
    "PENSTOCK_MAIL_URL": "smtp+tls://alerts:word@mail.penstock.example:587",
}
SHOW = """
import json
from config import settings as s
print(json.dumps([s.DEBUG, s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, s.SECURE_SSL_REDIRECT, s.SECURE_HSTS_SECONDS,
    s.ALLOWED_HOSTS, s.PENSTOCK_REPLICATION, s.PENSTOCK_MIN_ISR]))
"""


def test_production_does_not_start_without_secrets(tmp_path: Path):
    for missing in ("PENSTOCK_SECRET_KEY", "PENSTOCK_FERNET_KEYS"):
        env = {name: value for name, value in SECRETS.items() if name != missing}
        ended = _python(tmp_path, PENSTOCK_ENV="production", **env)
        assert ended.returncode != 0
        assert "must be set when PENSTOCK_ENV=production" in ended.stderr


def test_production_refuses_to_print_its_alerts(tmp_path: Path):
    ended = _python(tmp_path, PENSTOCK_ENV="production", **SECRETS | {"PENSTOCK_MAIL_URL": "consolemail://"})
    assert ended.returncode != 0
    assert "PENSTOCK_MAIL_URL: needs a mail server" in ended.stderr


def test_production_does_not_start_without_trusted_proxies(tmp_path: Path):
    ended = _python(tmp_path, PENSTOCK_ENV="production", **SECRETS | {"PENSTOCK_TRUSTED_PROXIES": ""})
    assert ended.returncode != 0
    assert "PENSTOCK_TRUSTED_PROXIES: needs the networks" in ended.stderr


def test_production_enables_its_security_and_replication_settings(tmp_path: Path):
    shown = json.loads(_python(tmp_path, PENSTOCK_ENV="production", **SECRETS).stdout)
    assert shown == [False, True, True, True, 31_536_000, ["penstock.example"], 3, 2]


def test_development_works_without_https_and_uses_the_secrets_of_the_box(tmp_path: Path):
    (tmp_path / "secrets.env").write_text("PENSTOCK_SECRET_KEY=from-the-box\nPENSTOCK_FERNET_KEYS=k1,k2\n")
    code = "from config import settings as s; print(s.SECRET_KEY, s.PENSTOCK_FERNET_KEYS, s.SECURE_SSL_REDIRECT)"
    assert _python(tmp_path, code).stdout.strip() == "from-the-box ['k1', 'k2'] False"


def test_unknown_environment_is_refused(tmp_path: Path):
    assert "needs development or production" in _python(tmp_path, PENSTOCK_ENV="staging").stderr


def test_all_planes_default_to_the_addresses_of_the_box(tmp_path: Path):
    code = """
import json, os
from config import settings as django
from controlplane.compute.keeper import settings_from_environment
from controlplane.settings import control_settings
from dataplane.runtime.settings import settings_from as data_settings
from localbox.settings import settings_from as box_settings
import django as _; _.setup()
box = box_settings(dict(os.environ), dotenv=None).env
kafkas = [django.PENSTOCK_KAFKA, control_settings().kafka, settings_from_environment().kafka, data_settings().kafka]
database = django.DATABASES["default"]
print(json.dumps([
    set(kafkas) == {box["PENSTOCK_KAFKA"]}, django.REDIS_URL == box["REDIS_URL"],
    f"{database['USER']}@{database['HOST']}:{database['PORT']}/{database['NAME']}" in box["DATABASE_URL"],
    django.PENSTOCK_INGEST_URL == box["PENSTOCK_INGEST_URL"], django.PENSTOCK_WEB_URL == box["PENSTOCK_WEB_URL"],
    str(data_settings().ingest_port) == box["PENSTOCK_INGEST_PORT"],
]))
"""
    ended = _python(tmp_path, code)
    assert json.loads(ended.stdout) == [True] * 6, ended.stderr


def test_unclaimed_ticks_expire_and_task_results_are_not_stored(tmp_path: Path):
    code = """
import json
from config.celery import app
tick = app.conf.beat_schedule["provisioner.tick"]
late, ignored = app.conf.task_acks_late, app.conf.task_ignore_result
print(json.dumps([tick["task"], tick["schedule"], tick["options"], late, ignored]))
"""
    ended = _python(tmp_path, code)
    assert json.loads(ended.stdout) == ["provisioner.tick", 1.0, {"expires": 5.0}, True, True], ended.stderr


def _python(var: Path, code: str = SHOW, **env: str) -> subprocess.CompletedProcess[str]:
    ours = ("PENSTOCK_", "DATABASE_URL", "REDIS_URL")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env = kept | {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}", "PENSTOCK_VAR": str(var)} | env
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False, timeout=60
    )
