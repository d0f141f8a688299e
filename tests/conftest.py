"""Real services for the tests that need them, started once per run; nothing is faked here.

DATABASE_URL and PENSTOCK_KAFKA of the environment are used as they are; a box of the run provides missing ones.
With PENSTOCK_KAFKA_TLS=true every broker has TLS, SCRAM and ACLs (`make test-secured`, docs/managed-kafka.md).
"""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import environ
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from controlplane.kafka import close_kafka_clients
from localbox.testing import box_of
from localbox.testing_kafka import SWITCH, role_env, secure_run
from mgmt.messages.queries.readers import close_readers
from tests.guardian import guard

TESTS = Path(__file__).parent
pytest.register_assert_rewrite("tests.support")  # detailed assertion diffs there, too
# The second JIT compiler gains nothing in a JVM that lives a minute, and takes a third of its start on two cores.
# A broker with TLS needs it: the first one encrypts without the processor's AES instructions.
if os.environ.get(SWITCH) != "true":
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")

# Folders whose files share slow-starting services.
SHARING = ("tests/e2e", "tests/faults/box", "tests/integration/streams")
TURNS = ("e2e", "faults", "integration")  # the longest first, so that they do not delay the end of the run
LAST = "test_every_page.py"  # its scene fills the box with failing pipes, which a new user's box does not have


def pytest_configure() -> None:
    """Stop the run's services with the run, however it ends."""
    guard()
    secure_run()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the total of the requests that passed tests recorded as their `requests`."""
    passed = terminalreporter.getreports("passed")
    requests = sum(int(str(value)) for report in passed for name, value in report.user_properties if name == "requests")
    if requests:
        terminalreporter.write_line(f"{requests:,} requests were made from the OpenAPI document")


class BySharedServices(LoadScopeScheduling):  # type: ignore[misc]  # xdist is not typed here
    """Scheduler that runs tests with shared services in one process: those of a file, or of a sharing folder."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", maxsplit=1)[0]
        return next((folder for folder in SHARING if file.startswith(f"{folder}/")), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> BySharedServices | None:
    """Return the scheduler for `--dist=loadscope`; marks of `--dist=loadgroup` have no effect in this pytest."""
    return BySharedServices(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Order tests by folder, so that each one's services end with it; within a folder the shuffled order stays."""
    yield

    def turn(item: pytest.Item) -> tuple[int, bool]:
        folder = item.path.relative_to(TESTS).parts[0]
        return TURNS.index(folder) if folder in TURNS else len(TURNS), item.path.name == LAST

    items.sort(key=turn)


@pytest.fixture(scope="module", autouse=True)
def _kept_kafka_clients(request: pytest.FixtureRequest) -> Iterator[None]:
    """Close the Kafka clients that the module left open: without a broker they reconnect forever.

    On a secured Kafka, code of Penstock in this process signs in as the role of the module's mark `kafka_role`.
    """
    mark = request.node.get_closest_marker("kafka_role")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in role_env(mark.args[0] if mark else "control").items():
            patch.setenv(name, value)
        yield
        close_kafka_clients()
        close_readers()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Yield the URL of a Postgres server on which tests may create databases."""
    if given := os.environ.get("DATABASE_URL"):
        yield given
        return
    with box_of("postgres") as box:
        yield box.env["DATABASE_URL"]


@pytest.fixture(scope="session")
def kafka_servers() -> Iterator[str]:
    """Yield the bootstrap servers of a broker on which tests may create topics."""
    if given := os.environ.get("PENSTOCK_KAFKA"):
        yield given
        return
    with box_of("kafka") as box:
        yield box.env["PENSTOCK_KAFKA"]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres_url: str) -> None:
    """Point Django at that server before it creates the test database: settings load before any fixture runs."""
    from django.db import connections

    address = environ.Env.db_url_config(postgres_url)
    connections.settings["default"].update(
        {name: address[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    )
    if "DATABASE_URL" not in os.environ:  # the box's database has the migrations already
        connections.settings["default"]["TEST"]["TEMPLATE"] = address["NAME"]
