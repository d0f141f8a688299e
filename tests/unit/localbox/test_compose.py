"""docker-compose.yml matches the programs that the box starts and the variables that the settings read."""

import re
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet
from opentelemetry.sdk import environment_variables as opentelemetry

from dataplane.mirror.clusters import STANDBY, STANDBY_SETTINGS
from localbox.catalogue import SERVICES, SHOWN
from localbox.settings import ROOT, VARIABLES, container_secrets
from tests.support.box_programs import box_programs, plain

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
ENV: dict[str, str] = COMPOSE["x-env"]
READERS = [
    ROOT / "platform" / "config" / "settings.py",
    ROOT / "dataplane" / "runtime" / "settings.py",
    ROOT / "dataplane" / "spec" / "kafka_security.py",
]
BOX_ONLY = re.compile(
    r"PENSTOCK_CACHE|PENSTOCK_(POSTGRES|REDIS|KAFKA(_[23])?(_CONTROLLER)?|RECEIVER|METRICS)_PORT|PENSTOCK_KAFKA_(TLS|BROKERS)"
)
OF_MIRROR = {STANDBY, STANDBY_SETTINGS}
# Only cells on a local master have standby applications, and only those on a cluster spare executors.
OF_KEEPER = {"PENSTOCK_STANDBY_APPLICATIONS", "PENSTOCK_SPARE_EXECUTORS"}
POSTGRES_PASSWORD = "PENSTOCK_POSTGRES_PASSWORD"
REPLICAS = ("ingest-1", "ingest-2")
PROXIES = {"ingest": "ingest.caddyfile", "caddy": "Caddyfile"}  # the box needs none: its replicas share a port
ONE_SHOT = ("migrate", "bootstrap", "static")
CADDYFILES = {name: (ROOT / "deploy" / "compose" / name).read_text() for name in PROXIES.values()}


def read_by_settings() -> set[str]:
    """Return every variable that a settings module names."""
    return set(re.findall(r'"((?:PENSTOCK_|DATABASE_|REDIS_)[A-Z_]+)"', "".join(p.read_text() for p in READERS)))


def ours() -> dict[str, dict[str, Any]]:
    return {name: service for name, service in COMPOSE["services"].items() if name not in (*SERVICES, *PROXIES)}


def test_every_variable_in_compose_is_read_by_the_code():
    box = (ROOT / "platform" / "localbox" / "catalogue.py").read_text()
    known = read_by_settings() | set(re.findall(r'"(PENSTOCK_[A-Z_]+)"', box))
    assert set(ENV) - known - set(vars(opentelemetry)) == set()


def test_every_variable_that_the_code_reads_is_set_in_compose():
    assert read_by_settings() - set(ENV) == set()
    box = {v.name for v in VARIABLES if not BOX_ONLY.fullmatch(v.name)}
    assert box == {*ENV, *OF_MIRROR, *OF_KEEPER, POSTGRES_PASSWORD}
    assert set(_service("keeper")["environment"]) == {*ENV, *OF_KEEPER}


def test_only_the_mirror_can_sign_in_to_the_standby_cluster():
    have = {name for name, service in ours().items() if OF_MIRROR & set(service["environment"])}
    assert have == {"mirror"}
    assert set(_service("mirror")["environment"]) == {*ENV, *OF_MIRROR}


def test_compose_has_the_programs_of_the_box_and_what_production_needs_besides(tmp_path: Path):
    box = {program.name for program in box_programs(tmp_path, PENSTOCK_STANDBY_KAFKA="z:1")}
    assert set(COMPOSE["services"]) == box | {*PROXIES, "static"}


def test_each_service_runs_the_command_of_the_box(tmp_path: Path):
    box = box_programs(tmp_path, PENSTOCK_STANDBY_KAFKA="z:1")
    for program in box:
        if program.command:
            assert plain(COMPOSE["services"][program.name]["command"]) == plain(program.command), program.name


def test_images_are_pinned_by_a_full_version():
    images = [service["image"] for service in COMPOSE["services"].values()]
    images += re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert [image for image in images if not re.search(r":\d+\.\d+(\.\d+)?(-[\w-]+)?$", image)] == []


def test_every_service_that_keeps_running_has_a_health_check():
    unchecked = {name for name, service in COMPOSE["services"].items() if not service.get("healthcheck")}
    assert unchecked == {*ONE_SHOT}


def test_health_checks_ask_the_addresses_and_files_that_the_programs_use():
    port_of = {"web": "WEB", "echo": "ECHO", "table-queries": "TABLES", **dict.fromkeys(REPLICAS, "INGEST")}
    for name, service in ours().items():
        if name in ONE_SHOT:
            continue
        *command, checked = [word for word in service["healthcheck"]["test"] if word != "400"]
        assert command == ["CMD", "python", "-m", "localbox.healthy"]
        if name == "beat":
            assert checked == service["command"][-1]
        elif name in port_of:
            assert checked == f"http://127.0.0.1:{ENV[f'PENSTOCK_{port_of[name]}_PORT']}/readyz"
        else:
            assert name in SHOWN
            assert checked == f"http://127.0.0.1:{ENV['PENSTOCK_METRICS'].rpartition(':')[2]}/metrics"


@pytest.mark.parametrize("name", sorted(ours()))
def test_own_services_wait_for_health_or_completion_of_others(name: str):
    waits = _service(name).get("depends_on", {})
    assert waits or name in ("echo", "static"), "only these need no other service"
    for other, how in waits.items():
        one_shot = other in ONE_SHOT
        assert how["condition"] == ("service_completed_successfully" if one_shot else "service_healthy")
        assert one_shot or _service(other).get("healthcheck")
        assert how.get("required", True) is ("profiles" not in _service(other)), "or compose refuses the whole file"


def test_each_ingest_replica_has_a_network_and_a_volume_of_its_own():
    for name in REPLICAS:
        assert "network_mode" not in _service(name)
        assert _service(name)["volumes"] == [f"{name}:{ENV['PENSTOCK_VAR']}"]
        assert not _service(name).get("ports"), "senders reach both through Caddy"


@pytest.mark.parametrize("name", sorted(PROXIES))
def test_proxies_serve_every_replica_and_run_the_committed_files(name: str):
    service = _service(name)
    assert service["command"][-1] == f"/etc/caddy/{PROXIES[name]}"
    assert "./deploy/compose:/etc/caddy:ro" in service["volumes"]
    (upstreams,) = re.findall(r"\{\$INGEST_UPSTREAMS:([^}]+)\}", CADDYFILES["ingest.caddyfile"])
    assert upstreams.split() == [f"{replica}:{ENV['PENSTOCK_INGEST_PORT']}" for replica in REPLICAS]
    assert name == "ingest" or "import ingest.caddyfile" in CADDYFILES["Caddyfile"]


def test_caddy_routes_to_the_ports_of_the_services_and_knows_their_hosts():
    routes = dict(re.findall(r"\{\$(\w+)_UPSTREAM:([^}]+)\}", CADDYFILES["Caddyfile"]))
    ports = {"WEB": "web", "ECHO": "echo", "TABLES": "table-queries"}
    assert routes == {key: f"{service}:{ENV[f'PENSTOCK_{key}_PORT']}" for key, service in ports.items()}
    sites = set(re.findall(r"^\{\$(\w+)\} \{", CADDYFILES["Caddyfile"], re.MULTILINE))
    assert (
        sites
        == {"PENSTOCK_WEB_URL", "PENSTOCK_INGEST_URL", "PENSTOCK_TABLES_URL"}
        == set(_service("caddy")["environment"])
    )


def test_pages_trust_the_address_of_caddy_and_no_other():
    address = _service("caddy")["networks"]["default"]["ipv4_address"]
    assert ENV["PENSTOCK_TRUSTED_PROXIES"] == f"${{PENSTOCK_TRUSTED_PROXIES:-{address}}}"
    (network,) = COMPOSE["networks"]["default"]["ipam"]["config"]
    assert ip_address(address) in ip_network(network["subnet"])
    assert ip_address(address) not in ip_network(network["ip_range"]), "another container could get it"


def test_only_caddy_in_production_listens_on_other_addresses_than_loopback():
    ports = {name: service.get("ports", []) for name, service in COMPOSE["services"].items()}
    assert ports.pop("caddy") == ["80:80", "443:443", "443:443/udp"]
    assert _service("caddy")["profiles"] == ["production"]
    assert all(port.startswith("127.0.0.1:") for published in ports.values() for port in published)


def test_another_kafka_can_be_configured_with_its_settings():
    assert ENV["PENSTOCK_KAFKA"] == "${PENSTOCK_KAFKA:-kafka:9092}"
    assert ENV["PENSTOCK_KAFKA_SETTINGS"] == "${PENSTOCK_KAFKA_SETTINGS:-}"


def test_no_secret_has_a_default():
    given = {name: value for name, value in ENV.items() if name in ("PENSTOCK_SECRET_KEY", "PENSTOCK_FERNET_KEYS")}
    given[POSTGRES_PASSWORD] = _service("postgres")["environment"]["POSTGRES_PASSWORD"]
    assert all(value.startswith(f"${{{name}:?") for name, value in given.items())
    assert ENV["DATABASE_URL"] == f"postgresql://penstock:{given[POSTGRES_PASSWORD]}@postgres:5432/penstock"
    made = dict(line.split("=", 1) for line in container_secrets().splitlines())
    assert set(made) == set(given)
    Fernet(made["PENSTOCK_FERNET_KEYS"])
    assert re.fullmatch(r"[\w-]{40,}", made[POSTGRES_PASSWORD]), "it is part of a URL"


def test_guide_backs_up_every_volume():
    guide = (
        (ROOT / "docs" / "operations.md")
        .read_text()
        .partition("**Back up** all volumes")[2]
        .partition("**Upgrade.**")[0]
    )
    named = {*re.findall(r"--volume penstock_([a-z0-9-]+):/from:ro", guide)}
    repeated = re.search(r"Repeat the second line for (.*)\.? before", guide)
    assert repeated
    assert named | {*re.findall("`([a-z0-9-]+)`", repeated[1])} == {*COMPOSE["volumes"]}


def _service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = COMPOSE["services"][name]
    return found
