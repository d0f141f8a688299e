"""Real services for the tests that need them, started once a run: nothing here is faked.

DATABASE_URL and PENSTOCK_KAFKA in the environment are used as they are; what is not given is a box of the run's own.
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
from mgmt.queries.readers import close_readers
from tests.guardian import guard

TESTS = Path(__file__).parent
pytest.register_assert_rewrite("tests.rig")  # what differs is shown there, too
# A JVM that lives for a minute gains nothing from its second compiler, which takes a third of its start on two cores.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")

SHARING = ("tests/e2e", "tests/integration/streams")  # folders whose files share services that take long to start
TURNS = ("e2e", "faults", "integration")  # the longest first, so that nobody waits for them at the end
LAST = "test_every_page.py"  # its scene fills the box with pipes that fail, which no newcomer's box has


def pytest_configure() -> None:
    """Have the run's services end with it, however it ends."""
    guard()


class BySharedServices(LoadScopeScheduling):  # type: ignore[misc]  # xdist is not typed here
    """What shares services runs in one process: the tests of a file, or of a folder where they are the folder's."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", maxsplit=1)[0]
        return next((folder for folder in SHARING if file.startswith(f"{folder}/")), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> BySharedServices | None:
    """For `--dist=loadscope`; the marks of `--dist=loadgroup` come to nothing under this pytest."""
    return BySharedServices(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Folders in turn, so that each one's services end with it; within, the order stays as it was shuffled."""
    yield

    def turn(item: pytest.Item) -> tuple[int, bool]:
        folder = item.path.relative_to(TESTS).parts[0]
        return TURNS.index(folder) if folder in TURNS else len(TURNS), item.path.name == LAST

    items.sort(key=turn)


@pytest.fixture(scope="module", autouse=True)
def _kept_kafka_clients() -> Iterator[None]:
    """Close what the module's tests left open: a client whose broker has ended tries to reach it for ever."""
    yield
    close_kafka_clients()
    close_readers()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A Postgres server on which test databases may be made."""
    if given := os.environ.get("DATABASE_URL"):
        yield given
        return
    with box_of("postgres") as box:
        yield box.env["DATABASE_URL"]


@pytest.fixture(scope="session")
def kafka_servers() -> Iterator[str]:
    """Bootstrap servers of a broker that tests may fill with topics."""
    if given := os.environ.get("PENSTOCK_KAFKA"):
        yield given
        return
    with box_of("kafka") as box:
        yield box.env["PENSTOCK_KAFKA"]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres_url: str) -> None:
    """Point Django at that server before it makes the test database: its settings were read before any fixture ran."""
    from django.db import connections

    address = environ.Env.db_url_config(postgres_url)
    connections.settings["default"].update(
        {name: address[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    )
