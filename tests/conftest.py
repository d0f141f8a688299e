"""Real services for the tests that need them, started once a run: nothing here is faked.

DATABASE_URL and PENSTOCK_KAFKA in the environment are used as they are; what is not given is a box of the run's own.
"""

import os
from collections.abc import Iterator

import environ
import pytest

from localbox.testing import box_of

pytest.register_assert_rewrite("tests.rig")  # what differs is shown there, too
# A JVM that lives for a minute gains nothing from its second compiler, which takes a third of its start on two cores.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")


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
