"""A customer's Postgres on this host: with passwords, with TLS if wanted, killed and started again by a test."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import psutil
import psycopg
from psycopg import sql

from localbox.ports import free_ports
from localbox.services.postgres import find_binaries, prepare
from tests.support.patience import Patience
from tests.support.trust import Trust

HOST: Final = "127.0.0.1"
DATABASE, USER, PASSWORD = "shop", "writer", "the-pass'word\\"
_OWNER: Final = "penstock"  # of the cluster: it connects without a password
_SERVER_USER: Final = "pgserver"
_RULES: Final = f"host all {_OWNER} {HOST}/32 trust\nhost{{tls}} all all {HOST}/32 scram-sha-256\n"


class PostgresServer:
    """Server with the database `shop`, and the user `writer` that may insert into tables that a test creates."""

    def __init__(self, trust: Trust | None = None) -> None:
        self.port = free_ports(1)[0]
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))  # tmp_path is closed to the user of the server
        self._data = self._folder / "data"
        self._user = _SERVER_USER if os.geteuid() == 0 else None
        self._binaries = find_binaries(self._data)
        prepare(binaries=self._binaries, data=self._data, user=self._user)
        (self._data / "pg_hba.conf").write_text(_RULES.format(tls="ssl" if trust else ""))
        self._flags = {"listen_addresses": HOST, "port": str(self.port), "unix_socket_directories": "", "fsync": "off"}
        if trust is not None:
            self.serve_certificate(*trust.made("localhost"))
            self._flags |= {"ssl": "on"}
        self._process: subprocess.Popen[bytes] | None = None
        self._log = (self._folder / "postgres.log").open("ab")
        self.start()
        self._run(f"CREATE DATABASE {DATABASE}", database="postgres")
        with self.admin() as connection:
            text = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(USER), sql.Literal(PASSWORD))
            connection.execute(text)

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        flags = [flag for name, value in self._flags.items() for flag in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(
            [str(self._binaries / "postgres"), "-D", str(self._data), *flags],
            stdout=self._log, stderr=self._log, cwd="/", user=self._user, group=self._user,
            extra_groups=[] if self._user else None,
        )  # fmt: skip
        patience = Patience(60)
        while True:
            try:
                self._run("SELECT 1", database="postgres")
            except psycopg.OperationalError:
                assert self._process.poll() is None, "Postgres ended"
                assert not patience.is_over, "Postgres did not start"
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """Kill the server and all its sessions, as a crash of the host does."""
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        for process in (*server.children(), server):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait(30)

    def admin(self) -> psycopg.Connection[Any]:
        """Return a connection of the owner."""
        return psycopg.connect(host=HOST, port=self.port, user=_OWNER, dbname=DATABASE, autocommit=True)

    def make_table(self, name: str, columns: str) -> None:
        """Create a table into which the user may insert."""
        with self.admin() as connection:
            table = sql.Identifier(name)
            connection.execute(sql.SQL("CREATE TABLE {} ({})").format(table, sql.SQL(columns)))
            connection.execute(sql.SQL("GRANT INSERT, SELECT, UPDATE ON {} TO {}").format(table, sql.Identifier(USER)))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.admin() as connection:
            return connection.execute(query).fetchall()

    def _run(self, query: str, *, database: str) -> None:
        with psycopg.connect(host=HOST, port=self.port, user=_OWNER, dbname=database, autocommit=True) as connection:
            connection.execute(query)

    def serve_certificate(self, key: str, certificate: str) -> None:
        """Use this certificate from the next start on."""
        for name, text in (("server.key", key), ("server.crt", certificate)):
            path = self._data / name
            path.write_text(text)
            path.chmod(0o600)
            if self._user:
                shutil.chown(path, self._user, self._user)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
        self._log.close()
        shutil.rmtree(self._folder)
