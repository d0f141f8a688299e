"""Connections to a Postgres: TLS verified, only checked addresses, no setting of a customer or of the process."""

import os
import resource
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dataplane.causes import Cause
from dataplane.spec import PostgresDestination
from dataplane.transmit.http.sender import NOT_BEGUN, HttpPolicy
from dataplane.transmit.policy.delivery_verdict import OK
from dataplane.transmit.policy.postgres_verdict import DATABASE_REFUSED
from dataplane.transmit.postgres.sender import PostgresSender
from tests.support.insertions import LOOPBACK, changed, insert, row, until
from tests.support.postgres_server import HOST, PostgresServer
from tests.support.trust import Trust


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


def test_thread_that_could_not_start_does_not_block_its_host(
    sender: PostgresSender, to: PostgresDestination, monkeypatch: pytest.MonkeyPatch
):
    assert insert(sender, changed(to, host="localhost", table="none"), row(1)).verdict == DATABASE_REFUSED
    with monkeypatch.context() as broken:
        broken.setattr(threading.Thread, "start", failing(RuntimeError("can't start new thread")))
        assert insert(sender, to, row(1)).verdict == NOT_BEGUN
    assert insert(sender, to, row(1), timeout_ms=2_000).verdict == OK


def test_error_of_the_resolver_does_not_block_its_host(
    sender: PostgresSender, to: PostgresDestination, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as broken:
        broken.setattr(socket, "getaddrinfo", failing(ValueError("unforeseen")))
        assert insert(sender, to, row(1), timeout_ms=2_000).verdict == NOT_BEGUN
    assert insert(sender, to, row(1), timeout_ms=2_000).verdict == OK


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


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
