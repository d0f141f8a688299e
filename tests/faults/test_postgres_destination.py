"""A customer's Postgres is killed again and again under load: each event is one row, and a webhook notices nothing."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from dataplane.ledger.bins import Bin
from tests.support.lane_plane import LanePlane
from tests.support.patience import until
from tests.support.postgres_server import DATABASE, HOST, PASSWORD, USER, PostgresServer

pytestmark = pytest.mark.timeout(600)
PIPE: Final = "shop"
RATE: Final = 100.0
KILLS: Final = 3


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        server.make_table("events", "position bigint, child int, n int, PRIMARY KEY (position, child)")
        yield server


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[LanePlane]:
    with closing(LanePlane(tmp_path)) as plane:
        plane.wait_ready()
        yield plane


def test_events_are_rows_once_although_the_server_is_killed(plane: LanePlane, server: PostgresServer):
    retry = {"local_tries": 2, "span_s": 3_600, "delays_s": [1]}
    rows = {
        "type": "postgres", "host": HOST, "port": server.port, "database": DATABASE, "user": USER, "table": "events",
        "sslmode": "disable", "batch": {"max_wait_ms": 50}, "timeout_s": 2, "retry": retry,
        "columns": {"position": "meta.position", "child": "meta.child", "n": "body.n"},
    }  # fmt: skip
    hook = {"url": plane.receiver.url("/hook"), "retry": retry}
    key = plane.add_pipe(PIPE, {"rows": rows, "hook": hook}, credentials={"rows": {"password": PASSWORD}})
    with plane.sender(key, RATE) as sender:
        for _ in range(KILLS):
            inserted = count(server)
            until(lambda: count(server) > inserted + RATE, "rows arrive", seen=lambda: plane.whole(PIPE))  # noqa: B023
            server.kill()
            served = len(plane.receiver.got["/hook"])
            until(lambda: len(plane.receiver.got["/hook"]) > served + RATE, "the webhook is served", 5)  # noqa: B023
            time.sleep(1.0)
            server.start()
    whole = plane.settled(PIPE, sender.positions, 120)
    assert whole.at("rows", Bin.DELIVERED) == whole.at("hook", Bin.DELIVERED) == sender.positions
    assert whole.open() == whole.lost() == whole.units(Bin.DEAD, "rows") == 0
    total = len(sender.acked)
    assert server.rows("SELECT count(*), count(DISTINCT n) FROM events") == [(total, total)]


def count(server: PostgresServer) -> int:
    """Return the number of rows."""
    return int(server.rows("SELECT count(*) FROM events")[0][0])
