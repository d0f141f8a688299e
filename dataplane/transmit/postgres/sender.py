"""Postgres sender: all batches of a lane on one event loop, in a thread of its own; connections are reused."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from dataplane.transmit.http.sender import NOT_BEGUN, HttpPolicy, HttpResponse, ResponsePart
from dataplane.transmit.policy.delivery_verdict import DeliveryOutcome
from dataplane.transmit.policy.postgres_verdict import TIMEOUT, TOO_LONG
from dataplane.transmit.postgres.request import MAX_INSERTS, InsertRequest, room_for

if TYPE_CHECKING:
    from dataplane.transmit.postgres.connections import DatabaseConnection
    from dataplane.transmit.postgres.insertion import Insertion

log = logging.getLogger(__name__)

CLOSE_S: Final = 2.0  # for connections to close when the lane ends
SWEEP_S: Final = 5.0
WATCH_S: Final = 0.05
MAX_RECEIVED_BYTES: Final = 4 * 1024 * 1024  # during a batch: errors of a thousand rows have a tenth of it


class PostgresSender:
    """Sender of up to MAX_INSERTS batches at once: `begin` starts one, `poll` returns those that ended."""

    def __init__(self, policy: HttpPolicy) -> None:
        self._policy = policy
        self._loop: _InsertLoop | None = None  # started on first use: most lanes need none
        self._begun: dict[Future[HttpResponse], InsertRequest] = {}
        self._ended: deque[Future[HttpResponse]] = deque()

    @property
    def active(self) -> int:
        """Number of batches in flight."""
        return len(self._begun)

    @property
    def room(self) -> int:
        """Number of batches that may begin now."""
        return MAX_INSERTS - len(self._begun)

    def room_for(self, tenant: str) -> int:
        """Return the number of batches of a tenant that may begin now."""
        return room_for(tenant, self._begun.values())

    def begin(self, request: InsertRequest) -> None:
        """Start to insert a batch. `poll` returns a response with its token, whatever happens."""
        if self._loop is None:
            self._loop = _InsertLoop(self._policy)
        future = self._loop.begin(request)
        self._begun[future] = request
        future.add_done_callback(self._ended.append)

    def poll(self) -> list[HttpResponse]:
        """Return the responses of the batches that ended since the last call."""
        found = []
        while self._ended:
            future = self._ended.popleft()
            request = self._begun.pop(future, None)
            if request is not None:  # not cancelled
                found.append(_response_of(future, request))
        return found

    def cancel(self, wanted: Callable[[Any], bool]) -> list[Any]:
        """Cancel the batches whose tokens `wanted` selects; return those tokens. Their rows may be stored."""
        ended = [future for future, request in self._begun.items() if wanted(request.token)]
        tokens = [self._begun.pop(future).token for future in ended]
        for future in ended:
            if self._loop is not None:
                self._loop.abort(future)
        return tokens

    def close(self) -> None:
        """Cancel every batch and close every connection."""
        self.cancel(lambda _token: True)
        if self._loop is not None:
            self._loop.close()
            self._loop = None


def _response_of(future: Future[HttpResponse], request: InsertRequest) -> HttpResponse:
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, MemoryError):  # not caused by a message: the lane ends and is restarted
        raise error
    log.error("could not insert a batch", exc_info=error)
    return HttpResponse(request.token, 0, 0, type(error).__name__, "", False, verdict=NOT_BEGUN)


class _Job(Struct, eq=False):
    """A batch that is being inserted; the connection is None until there is one."""

    request: InsertRequest
    connection: "DatabaseConnection | None" = None


class _InsertLoop:
    """Thread with the event loop. Methods without an underscore are called from the lane's thread."""

    def __init__(self, policy: HttpPolicy) -> None:
        # Imported here, because only lanes with such a destination need the memory.
        from dataplane.transmit.postgres.connections import ConnectionPool, forget_environment

        forget_environment()
        self._pool = ConnectionPool(policy)
        self._jobs: dict[Future[HttpResponse], _Job] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="postgres-sender", daemon=True)
        self._thread.start()

    def begin(self, request: InsertRequest) -> Future[HttpResponse]:
        job = _Job(request)
        future = asyncio.run_coroutine_threadsafe(self._serve(job), self._loop)
        self._jobs[future] = job
        future.add_done_callback(self._jobs.pop)
        return future

    def abort(self, future: Future[HttpResponse]) -> None:
        self._loop.call_soon_threadsafe(self._abort, future)

    def close(self) -> None:
        ending = asyncio.run_coroutine_threadsafe(self._pool.close(), self._loop)
        try:
            ending.result(CLOSE_S)
        except TimeoutError:
            log.warning("connections to databases did not close in time")
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_S)

    def _abort(self, future: Future[HttpResponse]) -> None:
        job = self._jobs.get(future)
        if job is not None and job.connection is not None:
            job.connection.abort()  # not its task: psycopg would first ask the server to cancel, for up to 5 s
        else:
            future.cancel()

    def _run(self) -> None:
        sweeper = self._loop.create_task(self._sweep())
        self._loop.run_forever()
        sweeper.cancel()
        self._loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(self._loop), return_exceptions=True))
        self._loop.close()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            await self._pool.close_idle()

    async def _serve(self, job: _Job) -> HttpResponse:
        """Insert the batch of a job until its deadline."""
        from dataplane.transmit.postgres.connections import ConnectFailedError, connection_key
        from dataplane.transmit.postgres.insertion import Insertion

        request, began_s = job.request, time.monotonic()
        insertion = Insertion(request.to, request.rows, request.timeout_ms)
        answer = HttpResponse(request.token, 0, 0, "", "", False)
        deadline_s = self._loop.time() + request.timeout_ms / 1_000
        try:
            job.connection = await self._pool.take(connection_key(request.to, request.password), deadline_s)
            answer.connect_us, answer.address = _us_since(began_s), job.connection.address
            watch = self._loop.create_task(_watch(insertion, job.connection, deadline_s - self._loop.time()))
            await insertion.run(job.connection.link)
            watch.cancel()
            await self._pool.give_back(job.connection)
        except ConnectFailedError as exc:
            insertion.give_up(exc.verdict, exc.message)
        except TimeoutError:
            insertion.give_up(TIMEOUT, "no connection in time")
        answer.total_us = _us_since(began_s)
        return _with_outcome(answer, insertion.parts)


async def _watch(insertion: "Insertion", connection: "DatabaseConnection", limit_s: float) -> None:
    """End an insertion that lasts too long, or whose answer is longer than any of an honest server.

    libpq keeps a message of up to 1 GiB in memory, and has no limit that could be set.
    """
    began_s, before = time.monotonic(), connection.received_bytes()
    while time.monotonic() - began_s < limit_s:
        await asyncio.sleep(min(WATCH_S, limit_s))
        if connection.link.closed:
            return
        if connection.received_bytes() - before > MAX_RECEIVED_BYTES:
            insertion.loss = (TOO_LONG, "the response is too long")
            break
    else:
        insertion.loss = (TIMEOUT, "no response in time; the rows may be stored")
    connection.abort()


def _with_outcome(answer: HttpResponse, parts: Sequence[ResponsePart]) -> HttpResponse:
    """Set the outcome of the batch, or those of its parts if they differ or each counts as a refusal."""
    first = parts[0]
    is_alike = all(part.verdict == first.verdict and part.message == first.message for part in parts)
    if len(parts) == 1 or (is_alike and first.verdict.outcome is not DeliveryOutcome.DEAD):
        answer.verdict, answer.message = first.verdict, first.message
    else:
        answer.parts = parts
    return answer


def _us_since(began_s: float) -> int:
    return int((time.monotonic() - began_s) * 1_000_000)
