"""`make test-secured` has every test module that starts a broker, or this list says why not."""

import ast
import subprocess
from functools import cache
from typing import Final

from localbox.settings import ROOT

FOLDERS: Final = ("tests/e2e", "tests/faults", "tests/integration")
# Names by whose import, and fixtures by whose use, a module starts brokers.
STARTERS: Final = {"Broker", "Cluster", "DataPlane", "LanePlane", "box_of", "broker_for_cells", "running_plane"}
FIXTURES: Final = {"kafka", "kafka_servers"}
EXCEPTIONS: Final = {
    "starts brokers with TLS itself, in every run": (
        "tests/integration/test_kafka_sign_in.py",
        "tests/integration/test_password_rotation.py",
        "tests/integration/test_read_right.py",
        "tests/integration/test_secured_kafka.py",
    ),
    "runs a whole box, whose programs other modules run one by one": (
        "tests/e2e/test_losses.py",
        "tests/integration/localbox/test_admission_in_a_box.py",
        "tests/integration/localbox/test_backup_of_a_box.py",
        "tests/integration/localbox/test_cell_relief_in_a_box.py",
        "tests/integration/localbox/test_sleeping_in_a_box.py",
        "tests/integration/localbox/test_supervisor.py",
    ),
    "is about HTTP in front of lanes and ingest, not about Kafka": (
        "tests/faults/test_caddy.py",
        "tests/integration/typed_clients/test_typed_clients.py",
    ),
    "not tried yet: two clusters": (
        "tests/faults/test_region_failover.py",
        "tests/faults/test_region_mirror.py",
    ),
    "not tried yet: uses Kafka as test_whole_pipe.py and test_kills.py do": (
        "tests/faults/test_clock_skew.py",
        "tests/faults/test_destination_requests.py",
        "tests/faults/test_destination_responses.py",
        "tests/faults/test_disk_full.py",
        "tests/faults/test_failing_destinations.py",
        "tests/faults/test_invalid_requests.py",
        "tests/faults/test_isolation.py",
        "tests/faults/test_noisy_neighbour.py",
        "tests/faults/test_outage.py",
        "tests/faults/test_planted_bugs.py",
        "tests/faults/test_postgres_destination.py",
        "tests/faults/test_releases.py",
        "tests/faults/test_replay_campaign.py",
        "tests/faults/test_scaling.py",
        "tests/faults/test_timing.py",
        "tests/faults/test_truncated_log.py",
    ),
}


@cache
def secured() -> list[str]:
    """Return the folders and modules that `make test-secured` runs."""
    rule = "print-secured: ; @echo $(SECURED) $(SECURED_LONG)"
    command = ["make", "--silent", "--eval", rule, "print-secured"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()


def is_secured(module: str, listed: list[str]) -> bool:
    return any(module == name or module.startswith(f"{name}/") for name in listed)


def starts_a_broker(source: str) -> bool:
    """Return True if a module imports a starter or has a test or fixture that uses one of the fixtures."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and STARTERS & {alias.name for alias in node.names}:
            return True
        if isinstance(node, ast.FunctionDef) and FIXTURES & {argument.arg for argument in node.args.args}:
            return True
    return False


@cache
def with_brokers() -> set[str]:
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("test_*.py"))
    return {path.relative_to(ROOT).as_posix() for path in paths if starts_a_broker(path.read_text())}


def test_module_that_starts_a_broker_runs_on_a_secured_one_or_says_why_not():
    listed = secured()
    missing = {module for module in with_brokers() if not is_secured(module, listed)}
    assert missing == {module for modules in EXCEPTIONS.values() for module in modules}


def test_secured_list_names_existing_modules():
    listed = secured()
    assert len(listed) > 30
    assert [name for name in listed if not (ROOT / name).exists()] == []


def test_criterion_finds_imports_and_fixtures():
    assert starts_a_broker("from tests.support.data_plane import DataPlane, until")
    assert starts_a_broker("from localbox.testing import box_of")
    assert starts_a_broker("def test_one(kafka_servers: str): ...")
    assert not starts_a_broker("from tests.support.plane import until\ndef test_one(tmp_path): ...")
    assert len(with_brokers()) > 60


def test_helpers_of_tests_start_brokers_by_the_names_that_are_looked_for():
    """A new class of planes belongs to the names."""
    found = set()
    for name in ("broker", "cluster", "data_plane", "lane_plane"):
        tree = ast.parse((ROOT / "tests" / "support" / f"{name}.py").read_text())
        found |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert found <= STARTERS | {"Replicas"}
