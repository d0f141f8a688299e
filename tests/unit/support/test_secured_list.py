"""`make test-secured` has every test module that starts a broker, or this list says why not."""

import ast
import subprocess
from functools import cache
from typing import Final

from localbox.settings import ROOT

FOLDERS: Final = ("tests/e2e", "tests/faults", "tests/integration")
# Names by whose import, and fixtures by whose use, a module starts brokers.
STARTERS: Final = {
    "Box",
    "Broker",
    "Cluster",
    "CrashCell",
    "DataPlane",
    "LanePlane",
    "LiveIngest",
    "Plane",
    "PromotedPlane",
    "box_of",
    "box_on_cluster",
    "broker_for_cells",
    "feeding_cluster",
    "live_ingest",
    "running_brokers",
    "running_plane",
}
FIXTURES: Final = {"box", "environment", "kafka", "kafka_servers", "plane", "sample", "whole_box"}
EXCEPTIONS: Final = {  # modules, and folders for all of their modules
    "starts brokers with TLS itself, in every run": (
        "tests/integration/test_kafka_sign_in.py",
        "tests/integration/test_password_rotation.py",
        "tests/integration/test_read_right.py",
        "tests/integration/test_secured_kafka.py",
    ),
    "runs a box, whose programs other modules run one by one": (
        "tests/e2e",
        "tests/faults/box",
        "tests/faults/test_capacity_test.py",
        "tests/faults/test_executor_pauses.py",
        "tests/faults/test_standalone.py",
        "tests/integration/localbox/test_admission_in_a_box.py",
        "tests/integration/localbox/test_backup_of_a_box.py",
        "tests/integration/localbox/test_rollout_to_ingest_in_a_box.py",
        "tests/integration/localbox/test_scaling_on_all_levels.py",
        "tests/integration/localbox/test_sleeping_in_a_box.py",
        "tests/integration/localbox/test_supervisor.py",
        "tests/integration/localbox/test_upgrade_of_a_box.py",
    ),
    "starts three brokers, of which the box secures none": ("tests/faults/test_three_brokers.py",),
    "is about HTTP in front of lanes and ingest, not about Kafka": (
        "tests/faults/test_caddy.py",
        "tests/integration/typed_clients/test_typed_clients.py",
    ),
    "not tried yet, long: uses Kafka as test_whole_pipe.py and test_kills.py do": (
        "tests/faults/test_noisy_neighbour.py",
        "tests/faults/test_region_failover.py",
        "tests/faults/test_releases.py",
        "tests/faults/test_replay_campaign.py",
    ),
}


@cache
def secured() -> list[str]:
    """Return the folders and modules that `make test-secured` runs."""
    rule = "print-secured: ; @echo $(SECURED) $(SECURED_LONG)"
    command = ["make", "--silent", "--eval", rule, "print-secured"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()


def is_in(module: str, names: list[str]) -> bool:
    """Return True if the module, or a folder that has it, is one of the names."""
    return any(module == name or module.startswith(f"{name}/") for name in names)


def starts_a_broker(source: str) -> bool:
    """Return True if a module imports a starter or has a test or fixture that uses one of the fixtures."""
    tree = ast.parse(source)
    return bool(imported_starters(tree)) or any(
        isinstance(node, ast.FunctionDef) and FIXTURES & arguments_of(node) for node in ast.walk(tree)
    )


def imported_starters(tree: ast.Module) -> set[str]:
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return STARTERS & {alias.name for node in imports for alias in node.names}


def arguments_of(function: ast.FunctionDef) -> set[str]:
    return {argument.arg for argument in function.args.args}


@cache
def with_brokers() -> set[str]:
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("test_*.py"))
    return {path.relative_to(ROOT).as_posix() for path in paths if starts_a_broker(path.read_text())}


def uses_one_of(names: set[str], node: ast.ClassDef | ast.FunctionDef) -> bool:
    """Return True if the function or class calls or extends one of the names; box_of("postgres") starts no broker."""
    calls = [call for call in ast.walk(node) if isinstance(call, ast.Call) and not is_box_without_kafka(call)]
    used = [call.func for call in calls] + (node.bases if isinstance(node, ast.ClassDef) else [])
    return any(isinstance(name, ast.Name) and name.id in names for name in used)


def is_box_without_kafka(call: ast.Call) -> bool:
    programs = [word.value for word in call.args if isinstance(word, ast.Constant)]
    is_box = isinstance(call.func, ast.Name) and call.func.id == "box_of"
    return is_box and len(programs) == len(call.args) > 0 and "kafka" not in programs


def unnamed_starters(source: str) -> set[str]:
    """Return the functions and classes of a helper module that use starters, and are not in their list."""
    tree = ast.parse(source)
    named = imported_starters(tree) | {
        node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in STARTERS
    }
    found = {
        node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef) and uses_one_of(named, node)
    }
    return found - STARTERS


def unnamed_fixtures(source: str) -> set[str]:
    """Return the fixtures of a conftest.py that use starters or such fixtures, and are not in their list."""
    tree = ast.parse(source)
    fixtures = [node for node in tree.body if isinstance(node, ast.FunctionDef) and is_requested_by_name(node)]
    starters = imported_starters(tree)
    found = {node.name for node in fixtures if uses_one_of(starters, node) or FIXTURES & arguments_of(node)}
    return found - FIXTURES


def is_requested_by_name(function: ast.FunctionDef) -> bool:
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any("fixture" in decorator and "autouse=True" not in decorator for decorator in decorators)


def test_module_that_starts_a_broker_runs_on_a_secured_one_or_says_why_not():
    listed = secured()
    missing = {module for module in with_brokers() if not is_in(module, listed)}
    excepted = [name for names in EXCEPTIONS.values() for name in names]
    assert {module for module in missing if not is_in(module, excepted)} == set()
    assert [name for name in excepted if not any(is_in(module, [name]) for module in missing)] == []


def test_secured_list_names_existing_modules():
    listed = secured()
    assert len(listed) > 30
    assert [name for name in listed if not (ROOT / name).exists()] == []


def test_criterion_finds_imports_and_fixtures():
    assert starts_a_broker("from tests.support.data_plane import DataPlane, until")
    assert starts_a_broker("from tests.support.live_ingest import LiveIngest")
    assert starts_a_broker("from localbox.testing import box_of")
    assert starts_a_broker("def test_one(kafka_servers: str): ...")
    assert starts_a_broker("def test_one(whole_box: Box): ...")
    assert not starts_a_broker("from tests.support.plane import until\ndef test_one(tmp_path): ...")
    assert len(with_brokers()) > 90


def test_criterion_finds_helpers_that_use_starters():
    uses = "from tests.support.broker import Broker\n"
    assert unnamed_starters(f"{uses}def two_brokers():\n    return Broker('a'), Broker('b')") == {"two_brokers"}
    assert unnamed_starters(f"{uses}class Wide(Broker): ...") == {"Wide"}
    assert unnamed_starters(f"{uses}def address_of(broker: Broker): ...") == set()


def test_criterion_finds_fixtures_that_use_starters():
    box = "from localbox.testing import box_of\n@pytest.fixture\n"
    assert unnamed_fixtures(f"{box}def services():\n    box_of('kafka', 'redis')") == {"services"}
    assert unnamed_fixtures(f"{box}def all_services():\n    box_of()") == {"all_services"}
    assert unnamed_fixtures(f"{box}def database():\n    box_of('postgres')") == set()
    assert unnamed_fixtures("@pytest.fixture\ndef topic(kafka: str): ...") == {"topic"}
    assert unnamed_fixtures("@pytest.fixture(autouse=True)\ndef _topic(kafka: str): ...") == set()
    assert unnamed_fixtures("def topic_of(kafka: str): ...") == set()


def test_helpers_of_tests_start_brokers_by_the_names_that_are_looked_for():
    """A new class of planes or a new fixture belongs to the names."""
    helpers = (ROOT / "tests" / "support").rglob("*.py")
    assert {name for path in helpers for name in unnamed_starters(path.read_text())} == set()
    fixtures = [path for folder in FOLDERS for path in (ROOT / folder).rglob("conftest.py")]
    fixtures.append(ROOT / "tests" / "conftest.py")
    assert {name for path in fixtures for name in unnamed_fixtures(path.read_text())} == set()
