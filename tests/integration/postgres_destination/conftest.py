"""A Postgres server of a customer, and a destination of it whose table is empty before each test."""

from collections.abc import Iterator

import pytest

from dataplane.spec import PostgresDestination
from dataplane.transmit.http.sender import HttpPolicy
from dataplane.transmit.postgres.sender import PostgresSender
from tests.support.insertions import LOOPBACK
from tests.support.postgres_server import DATABASE, HOST, USER, PostgresServer
from tests.support.trust import Trust

ROWS = "position bigint, child int, n int NOT NULL, note text, PRIMARY KEY (position, child)"


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    return Trust(tmp_path_factory.mktemp("trust"))


@pytest.fixture(scope="module")
def server(trust: Trust) -> Iterator[PostgresServer]:
    with PostgresServer(trust) as server:
        yield server


@pytest.fixture
def sender() -> Iterator[PostgresSender]:
    sender = PostgresSender(HttpPolicy(LOOPBACK))
    yield sender
    sender.close()


@pytest.fixture
def to(server: PostgresServer, trust: Trust) -> Iterator[PostgresDestination]:
    """A table of the server, empty before each test."""
    server.make_table("events", ROWS)
    columns = {"position": "meta.position", "child": "meta.child", "n": "body.n", "note": "body.note"}
    ca = trust.ca_file.read_text()
    yield PostgresDestination(HOST, DATABASE, USER, "events", server.port, columns=columns, ca=ca)
    with server.admin() as connection:
        connection.execute("DROP TABLE events")
