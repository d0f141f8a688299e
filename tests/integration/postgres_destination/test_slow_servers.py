"""Servers of a customer that are silent, stalled or never stop answering; locks; cancelled batches."""

import asyncio
import os
import signal
import socket
import threading
from contextlib import suppress
from typing import Any

import pytest
from psycopg import AsyncConnection, AsyncRawCursor

from dataplane.causes import Cause
from dataplane.spec import PostgresDestination
from dataplane.transmit.policy.delivery_verdict import OK
from dataplane.transmit.policy.postgres_verdict import DATABASE_ERROR
from dataplane.transmit.postgres.insertion import Insertion
from dataplane.transmit.postgres.request import InsertRequest
from dataplane.transmit.postgres.sender import PostgresSender
from tests.support.insertions import changed, ended, insert, row, until
from tests.support.postgres_server import PASSWORD, PostgresServer

GIGABYTE = 1_000_000_000


def test_silent_server_times_out_and_others_are_served_meanwhile(sender: PostgresSender, to: PostgresDestination):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        silent = changed(to, port=listener.getsockname()[1])
        sender.begin(InsertRequest("silent", silent, PASSWORD, [row(1)], 1_500))
        assert insert(sender, to, row(1)).verdict == OK
        assert sender.active == 1
        (answer,) = ended(sender, 1)
    assert answer.verdict is not None
    assert (answer.verdict.cause, answer.token) == (Cause.TIMEOUT, "silent")


def test_server_that_never_stops_answering_is_cut_off(sender: PostgresSender, to: PostgresDestination):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sent: list[int] = []
        threading.Thread(target=flood, args=(listener, sent), daemon=True).start()
        flooding = changed(to, port=listener.getsockname()[1], sslmode="disable")
        answer = insert(sender, flooding, row(1), timeout_ms=20_000)
    assert answer.verdict is not None
    assert (answer.verdict.cause, answer.message) == (Cause.PROTOCOL, "the response is too long")
    assert sum(sent) < GIGABYTE / 4


def test_server_that_never_stops_answering_before_it_is_ready_is_cut_off(
    sender: PostgresSender, to: PostgresDestination
):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sent: list[int] = []
        threading.Thread(target=flood, args=(listener, sent), kwargs={"is_ready": False}, daemon=True).start()
        flooding = changed(to, port=listener.getsockname()[1], sslmode="disable")
        answer = insert(sender, flooding, row(1), timeout_ms=20_000)
    assert answer.verdict is not None
    assert (answer.verdict.cause, answer.message) == (Cause.PROTOCOL, "the response is too long")
    assert sum(sent) < GIGABYTE / 4


def flood(listener: socket.socket, sent: list[int], *, is_ready: bool = True) -> None:
    """Sign a client in, and send one message of a gigabyte: an error of its first statement, or a notice before."""
    link, _ = listener.accept()
    with link:
        link.recv(1_000)
        for kind, content in (("R", bytes(4)), ("S", b"client_encoding\0UTF8\0"), ("Z", b"I")):
            if is_ready or kind == "R":
                link.sendall(kind.encode() + (len(content) + 4).to_bytes(4) + content)
        if is_ready:
            link.recv(1_000)
        link.sendall((b"E" if is_ready else b"N") + GIGABYTE.to_bytes(4) + b"M")
        with suppress(OSError):
            while sum(sent) < GIGABYTE:
                sent.append(link.send(b"x" * 65_536))


def test_lock_on_the_table_ends_the_statement_at_the_client_and_at_the_server(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    with server.admin() as connection, connection.transaction():
        connection.execute("LOCK TABLE events")
        answer = insert(sender, to, row(1), timeout_ms=700)
        assert answer.verdict is not None
        assert answer.verdict.cause == Cause.TIMEOUT
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        until(lambda: server.rows(waiting) == [(0,)])
    assert insert(sender, to, row(2)).verdict == OK


def test_cancelled_batch_gives_no_response_and_frees_its_place(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    with server.admin() as connection, connection.transaction():
        connection.execute("LOCK TABLE events")
        sender.begin(InsertRequest("waiting", to, PASSWORD, [row(1)], 30_000))
        until(lambda: server.rows("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == [(1,)])
        assert sender.cancel(lambda token: token == "waiting") == ["waiting"]
        assert sender.active == 0
    assert insert(sender, to, row(2)).token == "it"


def test_statement_of_a_stalled_server_does_not_replace_a_newer_row(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    """The server has all bytes of the first version when its lane gives up; it reads them after the next ones."""
    newest = changed(to, on_conflict="update")
    assert insert(sender, newest, row(1, 0)).verdict == OK
    (session,) = server.rows("SELECT pid FROM pg_stat_activity WHERE usename = 'writer'")
    os.kill(session[0], signal.SIGSTOP)
    try:
        stalled = insert(sender, newest, row(1, 1), timeout_ms=300)
        assert [insert(sender, newest, row(1, n)).verdict for n in (1, 2)] == [OK, OK]
    finally:
        os.kill(session[0], signal.SIGCONT)
    assert stalled.verdict is not None
    assert stalled.verdict.cause == Cause.TIMEOUT
    until(lambda: session not in server.rows("SELECT pid FROM pg_stat_activity WHERE usename = 'writer'"))
    assert server.rows("SELECT n FROM events") == [(2,)]


def test_cancelled_batch_does_not_replace_a_newer_row(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    newest = changed(to, on_conflict="update")
    with server.admin() as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN IF NEW.note = 'slow' THEN PERFORM pg_sleep(1); END IF; RETURN NEW; END $$"
        )
        connection.execute("CREATE TRIGGER slow BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION slow()")
    sender.begin(InsertRequest("cancelled", newest, PASSWORD, [row(1, 1, "slow")], 5_000))
    until(lambda: server.rows("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == [(1,)])
    assert sender.cancel(lambda _token: True) == ["cancelled"]
    assert [insert(sender, newest, row(1, n)).verdict for n in (1, 2)] == [OK, OK]
    until(lambda: server.rows("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == [(0,)])
    until(lambda: server.rows("SELECT count(*) FROM pg_stat_activity WHERE usename = 'writer'") == [(1,)])
    assert server.rows("SELECT n FROM events") == [(2,)]


def test_lane_that_is_silent_before_commit_leaves_no_row_locked(
    server: PostgresServer, to: PostgresDestination, monkeypatch: pytest.MonkeyPatch
):
    """As after a cut of the network: the server learns nothing of the lane's end."""
    execute = AsyncConnection.execute

    async def wait_before_commit(self: Any, query: Any, *args: Any) -> Any:
        if query == "COMMIT":
            await asyncio.sleep(1)
        return await execute(self, query, *args)

    async def run(insertion: Insertion) -> None:
        with server.admin() as admin:
            dsn = admin.info.dsn
        async with await AsyncConnection.connect(dsn, autocommit=True, cursor_factory=AsyncRawCursor) as link:
            await insertion.run(link)

    monkeypatch.setattr(AsyncConnection, "execute", wait_before_commit)
    silent = Insertion(to, [row(1)], 200)
    asyncio.run(run(silent))
    assert [part.verdict for part in silent.parts] == [DATABASE_ERROR]
    assert server.rows("SELECT n FROM events") == []
