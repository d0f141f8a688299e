"""Inserts into a real Postgres: rows once by key, refused rows alone, TLS verified, nothing else connected to."""

import asyncio
import json
import os
import resource
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import msgspec
import pytest
from psycopg import AsyncConnection, AsyncRawCursor

from dataplane.causes import Cause
from dataplane.ledger.meta import MessageMeta
from dataplane.plan.rows import CompiledRow
from dataplane.spec import PostgresDestination, parse_pipe_spec
from dataplane.transmit.http.sender import NOT_BEGUN, HttpPolicy, HttpResponse, ResponsePart
from dataplane.transmit.policy.delivery_verdict import OK, DeliveryVerdict
from dataplane.transmit.policy.postgres_verdict import DATABASE_ERROR, DATABASE_REFUSED, ROW_REFUSED
from dataplane.transmit.postgres.insertion import Insertion
from dataplane.transmit.postgres.request import MAX_REFUSED, InsertRequest
from dataplane.transmit.postgres.sender import PostgresSender
from tests.support.doc_blocks import documented_all
from tests.support.patience import Patience
from tests.support.postgres_server import DATABASE, HOST, PASSWORD, USER, PostgresServer
from tests.support.trust import Trust

LOOPBACK = (ip_network("127.0.0.0/8"),)
GIGABYTE = 1_000_000_000
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


def changed(to: PostgresDestination, **fields: Any) -> PostgresDestination:
    return msgspec.structs.replace(to, **fields)


def row(position: int, n: Any = 1, note: Any = "a") -> bytes:
    return msgspec.json.encode({"position": position, "child": 0, "n": n, "note": note})


def insert(
    sender: PostgresSender, to: PostgresDestination, *rows: bytes, password: str = PASSWORD, timeout_ms: int = 5_000
) -> HttpResponse:
    """Return the response to one batch."""
    sender.begin(InsertRequest("it", to, password, rows, timeout_ms))
    (answer,) = ended(sender, 1)
    return answer


def ended(sender: PostgresSender, count: int) -> list[HttpResponse]:
    found: list[HttpResponse] = []

    def have_come() -> bool:
        found.extend(sender.poll())
        return len(found) >= count

    until(have_come)
    return found


def until(truth: Callable[[], object]) -> None:
    patience = Patience(30)
    while not truth():
        assert not patience.is_over, "the condition did not hold in time"
        time.sleep(0.005)


def test_rows_are_inserted_once_by_their_key(server: PostgresServer, sender: PostgresSender, to: PostgresDestination):
    answers = [insert(sender, to, *(row(n) for n in numbers)) for numbers in (range(5), range(3, 8))]
    assert [(one.verdict, one.parts, one.address) for one in answers] == [(OK, (), HOST)] * 2
    assert server.rows("SELECT position FROM events ORDER BY 1") == [(n,) for n in range(8)]
    assert server.rows("SELECT DISTINCT application_name FROM pg_stat_activity WHERE usename = 'writer'") == [
        ("penstock",)
    ]


def test_rows_without_a_key_are_appended(server: PostgresServer, sender: PostgresSender, to: PostgresDestination):
    server.make_table("log", "n int, note text")
    plain = changed(to, table="log", columns={"n": "body.n", "note": "body.note"}, key=())
    for _ in range(2):
        assert insert(sender, plain, row(1)).verdict == OK
    assert server.rows("SELECT n, note FROM log") == [(1, "a"), (1, "a")]


def test_update_keeps_the_last_row_of_a_key_also_within_a_batch(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    newest = changed(to, on_conflict="update")
    answer = insert(sender, newest, row(1, 1), row(2, 1), row(1, 2), row(1, 3))
    assert {part.verdict for part in answer.parts} <= {OK}
    assert server.rows("SELECT position, n FROM events ORDER BY 1") == [(1, 3), (2, 1)]


def test_refused_row_is_dead_alone_and_its_values_are_not_shown(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    rows = [row(n) for n in range(9)]
    rows[2], rows[7] = row(2, n="secret"), row(7, n=None)
    answer = insert(sender, to, *rows)
    dead = [part for part in answer.parts if part.verdict != OK]
    assert dead == [
        ResponsePart(2, 3, ROW_REFUSED, "SQLSTATE 22P02 InvalidTextRepresentation"),
        ResponsePart(7, 8, ROW_REFUSED, "SQLSTATE 23502 NotNullViolation column n"),
    ]
    assert sum(part.end - part.start for part in answer.parts) == 9
    assert server.rows("SELECT position FROM events ORDER BY 1") == [(n,) for n in (0, 1, 3, 4, 5, 6, 8)]


def test_text_with_a_null_character_is_a_refused_row(sender: PostgresSender, to: PostgresDestination):
    answer = insert(sender, to, row(1, note="a\0b"))
    assert (answer.verdict, answer.message) == (ROW_REFUSED, "SQLSTATE 22P05 UntranslatableCharacter")


def test_table_that_refuses_all_rows_gives_most_of_them_back(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    answer = insert(sender, to, *(row(n, None) for n in range(200)))
    assert [part.verdict for part in answer.parts] == [ROW_REFUSED] * MAX_REFUSED + [DATABASE_REFUSED]
    assert (answer.parts[-1].start, answer.parts[-1].end) == (MAX_REFUSED, 200)


POLICY = (
    "ALTER TABLE events ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY positive ON events TO writer USING (true) WITH CHECK (n > 0)",
)
RIGHT = (
    "CREATE OR REPLACE FUNCTION ask() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN IF NEW.n < 1 THEN RAISE 'no right' USING ERRCODE = '42501'; END IF; RETURN NEW; END $$",
    "CREATE TRIGGER ask BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION ask()",
)
DAMAGE = (
    "CREATE OR REPLACE FUNCTION damage() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN IF NEW.n < 1 THEN RAISE 'broken' USING ERRCODE = 'XX002'; END IF; RETURN NEW; END $$",
    "CREATE TRIGGER damage BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION damage()",
)


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        pytest.param(POLICY, "SQLSTATE 42501 InsufficientPrivilege", id="row-level security"),
        pytest.param(RIGHT, "SQLSTATE 42501 InsufficientPrivilege", id="trigger without a right"),
        pytest.param(DAMAGE, "SQLSTATE XX002 IndexCorrupted", id="internal error"),
    ],
)
def test_row_is_refused_alone_although_its_error_is_not_about_rows(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination, statements: tuple[str, ...], words: str
):
    with server.admin() as connection:
        for statement in statements:
            connection.execute(statement)
    answer = insert(sender, to, *(row(n, n=0 if n == 5 else 1) for n in range(9)))
    refused = [part for part in answer.parts if part.verdict != OK]
    assert refused == [ResponsePart(5, 6, ROW_REFUSED, words)]
    assert server.rows("SELECT position FROM events ORDER BY 1") == [(n,) for n in (0, 1, 2, 3, 4, 6, 7, 8)]


@pytest.mark.parametrize(
    ("statements", "verdict"),
    [pytest.param(RIGHT, DATABASE_REFUSED, id="42501 of a trigger"), pytest.param(DAMAGE, DATABASE_ERROR, id="XX")],
)
def test_rows_are_retried_if_none_is_accepted_and_their_error_is_not_about_rows(
    server: PostgresServer,
    sender: PostgresSender,
    to: PostgresDestination,
    statements: tuple[str, ...],
    verdict: DeliveryVerdict,
):
    with server.admin() as connection:
        for statement in statements:
            connection.execute(statement)
    answer = insert(sender, to, *(row(n, n=0) for n in range(3)))
    assert (answer.verdict, answer.parts) == (verdict, ())


@pytest.mark.parametrize(
    "using",
    [pytest.param("true", id="the new row"), pytest.param("note IS NULL", id="the row that it would replace")],
)
def test_row_that_a_policy_refuses_is_dead_although_it_is_alone(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination, using: str
):
    with server.admin() as connection:
        connection.execute("INSERT INTO events VALUES (1, 0, 1, 'kept')")
        connection.execute("ALTER TABLE events ENABLE ROW LEVEL SECURITY")
        check = "n > 0" if using == "true" else "true"
        connection.execute(f"CREATE POLICY limited ON events FOR ALL TO writer USING ({using}) WITH CHECK ({check})")
    answer = insert(sender, changed(to, on_conflict="update"), row(1, n=0))
    assert (answer.verdict, answer.message) == (ROW_REFUSED, "SQLSTATE 42501 InsufficientPrivilege")
    assert server.rows("SELECT n, note FROM events") == [(1, "kept")]


def test_right_that_is_revoked_within_a_batch_dead_letters_nothing(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    """The first half is stored; the refusals of the second half are about the right."""
    with server.admin() as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION revoke() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
            " IF NEW.n = 0 THEN RAISE 'refused'; END IF;"
            " IF NEW.n = 2 THEN REVOKE INSERT ON events FROM writer; END IF; RETURN NEW; END $$"
        )
        connection.execute("CREATE TRIGGER revoke BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION revoke()")
    answer = insert(sender, to, row(0, n=1), row(1, n=2), row(2, n=1), row(3, n=0))
    assert [(part.start, part.end, part.verdict) for part in answer.parts] == [(0, 2, OK), (2, 4, DATABASE_REFUSED)]


def test_each_refused_row_of_a_small_batch_counts(sender: PostgresSender, to: PostgresDestination):
    answer = insert(sender, to, row(1, None), row(2, None))
    assert [(part.start, part.verdict) for part in answer.parts] == [(0, ROW_REFUSED), (1, ROW_REFUSED)]


@pytest.mark.parametrize(
    ("fields", "password", "words"),
    [
        pytest.param({}, "wrong", "password authentication failed", id="password"),
        pytest.param({"user": "nobody"}, PASSWORD, "password authentication failed", id="user"),
        pytest.param({"database": "nothing"}, PASSWORD, 'database "nothing" does not exist', id="database"),
        pytest.param({"table": "nothing"}, PASSWORD, "42P01 UndefinedTable", id="table"),
        pytest.param({"schema": "nowhere"}, PASSWORD, "42P01 UndefinedTable", id="schema"),
        pytest.param({"columns": {"nothing": "1"}, "key": ()}, PASSWORD, "42703 UndefinedColumn", id="column"),
        pytest.param({"key": ("n",)}, PASSWORD, "42P10 InvalidColumnReference", id="no unique index"),
    ],
)
def test_wrong_configuration_is_refused_with_its_reason(
    sender: PostgresSender, to: PostgresDestination, fields: dict[str, Any], password: str, words: str
):
    answer = insert(sender, changed(to, **fields), row(1), row(2), password=password)
    assert (answer.verdict, answer.parts) == (DATABASE_REFUSED, ())
    assert words in answer.message


@pytest.mark.parametrize("policy", [pytest.param((), id="no policy"), pytest.param(POLICY, id="row-level security")])
def test_user_without_the_right_to_insert_is_refused(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination, policy: tuple[str, ...]
):
    with server.admin() as connection:
        for statement in (*policy, "REVOKE INSERT ON events FROM writer"):
            connection.execute(statement)
    answer = insert(sender, to, row(1, n=0))
    assert (answer.verdict, "42501 InsufficientPrivilege" in answer.message) == (DATABASE_REFUSED, True)


def test_names_of_a_customer_are_never_sql(server: PostgresServer, sender: PostgresSender, to: PostgresDestination):
    table, column = 'ev"; DROP TABLE events; --', 'a"b %s $1 ) é'
    server.make_table(table, f'"{column.replace(chr(34), chr(34) * 2)}" text PRIMARY KEY')
    hostile = changed(to, table=table, columns={column: "body"}, key=(column,))
    value = "'); DROP TABLE events; --"
    assert insert(sender, hostile, msgspec.json.encode({column: value})).verdict == OK
    for field in ("database", "user"):
        answer = insert(sender, changed(to, **{field: "host=/tmp port=1 service=x dbname=y"}), row(1))
        assert answer.verdict == DATABASE_REFUSED
    assert server.rows("SELECT count(*) FROM events") == [(0,)]


def test_environment_of_the_process_does_not_matter(
    server: PostgresServer, to: PostgresDestination, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    service = tmp_path / "service.conf"
    service.write_text("[x]\nhost=192.0.2.1\noptions=-c default_transaction_read_only=on\n")
    given = {"PGSERVICE": "x", "PGSERVICEFILE": str(service), "PGOPTIONS": "-c nonsense=1", "PGHOSTADDR": "192.0.2.1",
             "PGSSLCRL": "/nothing", "PGREQUIREAUTH": "none", "PGTARGETSESSIONATTRS": "standby"}  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    sender = PostgresSender(HttpPolicy(LOOPBACK))
    try:
        assert insert(sender, to, row(1)).verdict == OK
    finally:
        sender.close()
    assert not given.keys() & os.environ.keys()


def test_certificate_is_verified(server: PostgresServer, to: PostgresDestination, trust: Trust, tmp_path: Path):
    strangers = PostgresSender(HttpPolicy(LOOPBACK, ca_file=str(Trust(tmp_path, "strangers").ca_file)))
    try:
        of_platform = changed(to, ca="")
        answer = insert(strangers, of_platform, row(1))
        assert answer.verdict is not None
        assert answer.verdict.cause == Cause.TLS_CERTIFICATE
        assert insert(strangers, to, row(1)).verdict == OK, "the CA of the destination counts"
    finally:
        strangers.close()
    server.kill()
    server.serve_certificate(*trust.made("elsewhere", host="192.0.2.1"))
    server.start()
    sender = PostgresSender(HttpPolicy(LOOPBACK))
    try:
        answer = insert(sender, to, row(2))
    finally:
        sender.close()
        server.kill()
        server.serve_certificate(*trust.made("localhost"))
        server.start()
    assert answer.verdict is not None
    assert answer.verdict.cause == Cause.TLS_CERTIFICATE
    assert server.rows("SELECT position FROM events") == [(1,)]


def test_plain_connection_is_refused_where_tls_is_required(server: PostgresServer, to: PostgresDestination):
    plain = changed(to, sslmode="disable")
    strict = PostgresSender(HttpPolicy(LOOPBACK, https_only=True))
    try:
        answer = insert(strict, plain, row(1))
    finally:
        strict.close()
    assert answer.verdict is not None
    assert answer.verdict.cause == Cause.DESTINATION_FORBIDDEN


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "169.254.169.254", "0x7f000001"])
def test_internal_address_is_never_connected_to(host: str, to: PostgresDestination):
    guarded = PostgresSender(HttpPolicy())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.3)
        port = listener.getsockname()[1]
        try:
            answer = insert(guarded, changed(to, host=host, port=port), row(1))
        finally:
            guarded.close()
        with pytest.raises(TimeoutError):
            listener.accept()
    assert answer.verdict is not None
    assert answer.verdict.cause == Cause.DESTINATION_FORBIDDEN


def test_connection_goes_to_the_checked_address_although_the_name_changes(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination, monkeypatch: pytest.MonkeyPatch
):
    """The second answer of the name server is an internal address: nothing may ask for it."""
    answers = [HOST]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (answers.pop(), server.port))])
    plain_name = changed(to, host="db.rebinding.example", sslmode="verify-full")
    answer = insert(sender, plain_name, row(1))
    assert answers == []
    assert answer.verdict is not None
    assert (answer.verdict.cause, answer.address) == (Cause.TLS_CERTIFICATE, "")


def test_dead_address_of_a_host_leaves_time_for_the_next(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination, monkeypatch: pytest.MonkeyPatch
):
    found = [(2, 1, 6, "", (address, server.port)) for address in ("127.0.0.2", HOST)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with socket.create_server(("127.0.0.2", server.port)):
        answer = insert(sender, to, row(1), timeout_ms=1_500)
    assert (answer.verdict, answer.address) == (OK, HOST)


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
    assert (answer.verdict.cause, answer.message) == (Cause.PROTOCOL, "the answer is too long")
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
    assert (answer.verdict.cause, answer.message) == (Cause.PROTOCOL, "the answer is too long")
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


def test_thread_that_could_not_start_does_not_block_its_host(
    sender: PostgresSender, to: PostgresDestination, monkeypatch: pytest.MonkeyPatch
):
    assert insert(sender, changed(to, host="localhost", table="none"), row(1)).verdict == DATABASE_REFUSED
    with monkeypatch.context() as broken:
        broken.setattr(threading.Thread, "start", failing(RuntimeError("can't start new thread")))
        assert insert(sender, to, row(1)).verdict == NOT_BEGUN
    assert insert(sender, to, row(1), timeout_ms=2_000).verdict == OK


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def test_error_of_the_resolver_does_not_block_its_host(
    sender: PostgresSender, to: PostgresDestination, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as broken:
        broken.setattr(socket, "getaddrinfo", failing(ValueError("unforeseen")))
        assert insert(sender, to, row(1), timeout_ms=2_000).verdict == NOT_BEGUN
    assert insert(sender, to, row(1), timeout_ms=2_000).verdict == OK


def test_full_disk_does_not_spoil_the_cas_of_a_destination(sender: PostgresSender, to: PostgresDestination):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(to.ca) // 2, hard))
    try:
        refused = insert(sender, to, row(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert refused.verdict == NOT_BEGUN
    assert insert(sender, to, row(1)).verdict == OK


def test_removed_temporary_files_do_not_matter_and_none_is_left(
    sender: PostgresSender, to: PostgresDestination, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert insert(sender, to, row(1)).verdict == OK
    for found in tmp_path.iterdir():
        shutil.rmtree(found)
    assert insert(sender, changed(to, ca=to.ca + "\n"), row(2)).verdict == OK
    assert not list(tmp_path.iterdir())


def test_idle_connection_that_the_server_closed_is_replaced(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    assert insert(sender, to, row(1)).verdict == OK
    with server.admin() as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'writer'")
    until(lambda: server.rows("SELECT count(*) FROM pg_stat_activity WHERE usename = 'writer'") == [(0,)])
    assert insert(sender, to, row(2)).verdict == OK


def test_close_ends_the_thread_and_the_connections(server: PostgresServer, to: PostgresDestination):
    sender = PostgresSender(HttpPolicy(LOOPBACK))
    assert insert(sender, to, row(1)).verdict == OK
    sender.close()
    assert not [one for one in threading.enumerate() if one.name == "postgres-sender"]
    until(lambda: server.rows("SELECT count(*) FROM pg_stat_activity WHERE usename = 'writer'") == [(0,)])


def test_statement_of_the_guide_creates_a_table_for_its_destination(server: PostgresServer, trust: Trust):
    _, _, statement = documented_all("topic-table-and-lake-destinations.md", "sql")
    with server.admin() as connection:
        connection.execute(statement)
        connection.execute("GRANT SELECT, INSERT ON orders TO writer")
    document = json.loads(documented_all("topic-table-and-lake-destinations.md", "json")[-1])["rows"]
    here = {"host": HOST, "port": server.port, "user": USER, "ca": trust.ca_file.read_text()}
    to = parse_pipe_spec({"sources": {"shop": {}}, "destinations": {"rows": document | here}}).destinations["rows"]
    assert isinstance(to, PostgresDestination)
    meta = MessageMeta(1, "id-1", "p", 1, "shop", 0, 0, 0, position=7)
    made = CompiledRow(to)(meta, b'{"order":{"id":"a-1","total":2.50}}')
    sender = PostgresSender(HttpPolicy(LOOPBACK))
    try:
        assert insert(sender, to, made, made).verdict == OK
    finally:
        sender.close()
    found = server.rows("SELECT position, order_id, total::text, event->'order'->>'id' FROM orders")
    assert found == [(7, "a-1", "2.5", "a-1")]
