"""Connections to customers' databases: only to addresses that the guard permits, and with no setting but ours.

libpq reads `PG*` variables, service files, password files and client certificates of its user, and takes lists of hosts
and socket paths as host. None of them may matter here.
"""

import asyncio
import logging
import os
import select
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import NamedTemporaryFile
from typing import Any, Final, Self

import certifi
import psycopg
from msgspec import Struct
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.abc import PQGenConn
from psycopg.pq import TransactionStatus

from dataplane.spec import PostgresDestination
from dataplane.spec.guard import may_connect
from dataplane.transmit.http.sender import HttpPolicy
from dataplane.transmit.policy.delivery_verdict import DeliveryVerdict
from dataplane.transmit.policy.postgres_verdict import (
    FORBIDDEN,
    NO_HOST,
    TIMEOUT,
    TOO_LONG,
    connect_failure,
    judge_connect_failure,
)

IDLE_S: Final = 30.0  # connections that were not used for so long are closed
MOST_IDLE: Final = 128  # idle connections of a lane
MOST_ADDRESSES: Final = 4  # of a host, tried one after the other; each has an equal share of the time that is left
MOST_GREETING_BYTES: Final = 64 * 1024  # from a server before it is ready: certificates have less than a tenth of it
_BYTES_RECEIVED: Final = 128  # offset
_NO_FILE: Final = "/nonexistent"  # in place of the default file
logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of each refused statement


class ConnectFailedError(Exception):
    """There is no connection, for the reason in `verdict` and `message`."""

    def __init__(self, verdict: DeliveryVerdict, message: str) -> None:
        super().__init__(message)
        self.verdict, self.message = verdict, message


class ConnectionKey(Struct, frozen=True):
    """Settings that connections of one pool share."""

    host: str
    port: int
    database: str
    user: str
    password: str
    sslmode: str
    ca: str


class DatabaseConnection(Struct, eq=False):
    """Open connection; `address` is the one that was checked."""

    key: ConnectionKey
    link: AsyncConnection[Any]
    address: str
    used_s: float = 0.0

    def abort(self) -> None:
        """Shut the socket down: whatever waits for the server then fails at once."""
        if not self.link.closed:
            with socket.socket(fileno=os.dup(self.link.fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)

    def received_bytes(self) -> int:
        """Return the number of bytes that the server has sent."""
        return _received_bytes(self.link.fileno())

    def is_usable(self) -> bool:
        """Return False if the server has closed the idle connection, or has sent anything else."""
        if self.link.closed:
            return False
        poller = select.poll()
        poller.register(self.link.fileno(), select.POLLIN)
        return not poller.poll(0)


class _LimitedConnection(AsyncConnection[Any]):
    """Connection to a server that may not send much before it is ready: libpq would keep a notice of up to 1 GiB."""

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> PQGenConn[Self]:
        """Run the steps of libpq, each of which waits for the socket. Raises ConnectFailedError."""
        steps = super()._connect_gen(conninfo)
        try:
            fileno, wanted = next(steps)
            while True:
                if _received_bytes(fileno) > MOST_GREETING_BYTES:
                    raise ConnectFailedError(TOO_LONG, "the response is too long")
                fileno, wanted = steps.send((yield fileno, wanted))
        except StopIteration as exc:
            made: Self = exc.value
            return made
        finally:
            steps.close()


def _received_bytes(fileno: int) -> int:
    """Return tcpi_bytes_received of Linux' struct tcp_info."""
    with socket.socket(fileno=os.dup(fileno)) as copy:
        info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED + 8)
    return int.from_bytes(info[_BYTES_RECEIVED:], sys.byteorder)


def connection_key(to: PostgresDestination, password: str) -> ConnectionKey:
    """Return the key of a destination's connections."""
    return ConnectionKey(to.host, to.port, to.database, to.user, password, to.sslmode, to.ca)


class ConnectionPool:
    """Idle connections by their settings. Used in the sender's event loop only."""

    def __init__(self, policy: HttpPolicy) -> None:
        self._policy = policy
        self._idle: list[DatabaseConnection] = []  # the one used longest ago first
        self._lookups: dict[tuple[str, int], asyncio.Future[list[str]]] = {}

    async def take(self, key: ConnectionKey, deadline_s: float) -> DatabaseConnection:
        """Return an idle connection, or open one until the deadline (of the loop's time). Raises ConnectFailedError."""
        for place in reversed(range(len(self._idle))):
            if self._idle[place].key == key:
                connection = self._idle.pop(place)
                if connection.is_usable():
                    return connection
                await connection.link.close()
                break
        async with asyncio.timeout_at(deadline_s):
            return await self._open(key, deadline_s)

    async def give_back(self, connection: DatabaseConnection) -> None:
        """Keep a connection for the next batch, unless it is broken or in a transaction."""
        if connection.link.pgconn.transaction_status != TransactionStatus.IDLE:
            await connection.link.close()
            return
        connection.used_s = time.monotonic()
        self._idle.append(connection)
        if len(self._idle) > MOST_IDLE:
            await self._idle.pop(0).link.close()

    async def close_idle(self, older_than_s: float = IDLE_S) -> None:
        """Close the connections that were not used for so long."""
        before_s = time.monotonic() - older_than_s
        while self._idle and self._idle[0].used_s <= before_s:
            await self._idle.pop(0).link.close()

    async def close(self) -> None:
        """Close all idle connections."""
        await self.close_idle(0.0)

    async def _open(self, key: ConnectionKey, deadline_s: float) -> DatabaseConnection:
        if key.sslmode == "disable" and self._policy.https_only:
            raise ConnectFailedError(FORBIDDEN, "TLS is required")
        found = [one for one in await self._addresses(key) if may_connect(one, self._policy.allowed)]
        permitted = found[:MOST_ADDRESSES]
        if not permitted:
            raise ConnectFailedError(FORBIDDEN, "the host has no public address")
        failure = ConnectFailedError(NO_HOST, "")
        for number, address in enumerate(permitted):
            rest_s = deadline_s - asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(rest_s / (len(permitted) - number)):
                    return DatabaseConnection(key, await self._connect(key, address), address)
            except TimeoutError:
                failure = ConnectFailedError(TIMEOUT, "no connection in time")
            except ConnectFailedError as exc:
                failure = exc
            except psycopg.Error as exc:
                reason = connect_failure(str(exc))
                failure = ConnectFailedError(judge_connect_failure(reason), reason)
        raise failure

    async def _connect(self, key: ConnectionKey, address: str) -> AsyncConnection[Any]:
        with self._ca_file(key.ca) as ca_file:
            return await _LimitedConnection.connect(
                host=key.host,
                hostaddr=address,
                port=key.port,
                dbname=key.database,
                user=key.user,
                password=key.password,
                sslmode=key.sslmode,
                sslrootcert=ca_file,
                sslcertmode="disable",
                gssencmode="disable",
                passfile=_NO_FILE,
                application_name="penstock",
                client_encoding="UTF8",
                target_session_attrs="any",
                autocommit=True,
                prepare_threshold=None,  # a pooler may give each transaction another session
                cursor_factory=AsyncRawCursor,
            )

    async def _addresses(self, key: ConnectionKey) -> list[str]:
        """Return the addresses of a host. Look-ups of one host are shared, because none can be cancelled."""
        place = (key.host, key.port)
        if place not in self._lookups:
            future = asyncio.get_running_loop().create_future()
            threading.Thread(target=_look_up, args=(*place, future, future.get_loop()), daemon=True).start()
            self._lookups[place] = future  # after the start, which may fail
            future.add_done_callback(lambda _: self._lookups.pop(place))
        try:
            return await asyncio.shield(self._lookups[place])
        except OSError as exc:
            raise ConnectFailedError(NO_HOST, exc.strerror or "the host is unknown") from exc

    @contextmanager
    def _ca_file(self, ca: str) -> Iterator[str]:
        """Provide the CAs as a file, because libpq takes no text, until the connection is open."""
        if not ca:
            yield self._policy.ca_file or ssl.get_default_verify_paths().cafile or certifi.where()
            return
        with NamedTemporaryFile("w", prefix="penstock-ca-", suffix=".pem") as file:
            file.write(ca)
            file.flush()
            yield file.name


def _look_up(host: str, port: int, future: "asyncio.Future[list[str]]", loop: asyncio.AbstractEventLoop) -> None:
    """Resolve a host in a thread of its own, which a slow name server keeps from no other host."""
    found: list[str] | Exception
    try:
        found = [str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except UnicodeError:
        found = OSError("not a host name")
    except Exception as exc:
        found = exc
    with suppress(RuntimeError):  # the sender was closed
        if isinstance(found, Exception):
            loop.call_soon_threadsafe(future.set_exception, found)
        else:
            loop.call_soon_threadsafe(future.set_result, found)


def forget_environment() -> None:
    """Remove the variables that libpq reads: a service or option named there would apply to customers' databases."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
