"""docker-compose.yml matches the programs that the box starts and the variables that the settings read."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet
from opentelemetry.sdk import environment_variables as opentelemetry

from localbox.catalogue import SERVICES
from localbox.settings import ROOT, VARIABLES, new_secrets
from tests.support.box_programs import box_programs, plain

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
ENV: dict[str, str] = COMPOSE["x-env"]
READERS = [
    ROOT / "platform" / "config" / "settings.py",
    ROOT / "dataplane" / "runtime" / "settings.py",
    ROOT / "dataplane" / "spec" / "kafka_security.py",
]
BOX_ONLY = re.compile(
    r"PENSTOCK_CACHE|PENSTOCK_(POSTGRES|REDIS|KAFKA|KAFKA_CONTROLLER|RECEIVER|METRICS)_PORT|PENSTOCK_KAFKA_TLS"
)


def read_by_settings() -> set[str]:
    """Return every variable that a settings module names."""
    return set(re.findall(r'"((?:PENSTOCK_|DATABASE_|REDIS_)[A-Z_]+)"', "".join(p.read_text() for p in READERS)))


def ours() -> dict[str, dict[str, Any]]:
    return {name: service for name, service in COMPOSE["services"].items() if name not in SERVICES}


def test_every_variable_in_compose_is_read_by_the_code():
    box = (ROOT / "platform" / "localbox" / "catalogue.py").read_text()
    known = read_by_settings() | set(re.findall(r'"(PENSTOCK_[A-Z_]+)"', box))
    assert set(ENV) - known - set(vars(opentelemetry)) == set()


def test_every_variable_that_the_code_reads_is_set_in_compose():
    assert read_by_settings() - set(ENV) == set()
    assert {v.name for v in VARIABLES if not BOX_ONLY.fullmatch(v.name)} == set(ENV)


def test_compose_has_exactly_the_programs_of_the_box(tmp_path: Path):
    box = box_programs(tmp_path)
    assert {program.name for program in box} == set(COMPOSE["services"])


def test_each_service_runs_the_command_of_the_box(tmp_path: Path):
    box = box_programs(tmp_path)
    for program in box:
        if program.command:
            assert plain(COMPOSE["services"][program.name]["command"]) == plain(program.command), program.name


def test_images_are_pinned_by_a_full_version():
    images = [service["image"] for service in COMPOSE["services"].values()]
    images += re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert [image for image in images if not re.search(r":\d+\.\d+(\.\d+)?(-[\w-]+)?$", image)] == []


def test_infrastructure_and_http_services_have_a_health_check():
    checked = (*SERVICES, "web", "echo", "table-queries", "ingest-1", "ingest-2")
    assert [name for name in checked if not _service(name).get("healthcheck")] == []


@pytest.mark.parametrize("name", sorted(ours()))
def test_own_services_wait_for_health_or_completion_of_others(name: str):
    waits = _service(name).get("depends_on", {})
    assert waits or name == "echo", "only echo needs no other service"
    for other, how in waits.items():
        one_shot = other in ("migrate", "bootstrap")
        assert how["condition"] == ("service_completed_successfully" if one_shot else "service_healthy")
        assert one_shot or _service(other).get("healthcheck")


def test_ports_are_published_on_loopback_only():
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_another_kafka_can_be_configured_with_its_settings():
    assert ENV["PENSTOCK_KAFKA"] == "${PENSTOCK_KAFKA:-kafka:9092}"
    assert ENV["PENSTOCK_KAFKA_SETTINGS"] == "${PENSTOCK_KAFKA_SETTINGS:-}"


def test_no_secret_has_a_default():
    assert ENV["PENSTOCK_SECRET_KEY"].startswith("${PENSTOCK_SECRET_KEY:?")
    assert ENV["PENSTOCK_FERNET_KEYS"].startswith("${PENSTOCK_FERNET_KEYS:?")
    made = dict(line.split("=", 1) for line in new_secrets().splitlines())
    Fernet(made["PENSTOCK_FERNET_KEYS"])


def _service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = COMPOSE["services"][name]
    return found
