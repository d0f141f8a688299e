"""A customer: sends events at a steady rate, records all responses, and resends events without a clear one."""

import hashlib
import http.client
import itertools
import json
import threading
import time
from typing import NamedTuple

CONNECTIONS = 8


class Acked(NamedTuple):
    """Content of a 202, and the digest of the sent body."""

    id: str
    position: str
    bucket: int
    digest: str


class Sender:
    """`with Sender(port, key, rate): ...` sends until the block ends and every event has been ACKed."""

    def __init__(self, port: int, key: str, rate: float, *, field: str = "n") -> None:
        self._port, self._key, self._rate, self._field = port, key, rate, field
        self.acked: list[Acked] = []
        self.unknown: list[str] = []  # digests of bodies whose attempt had no response, or a refusal
        self.refusals: list[tuple[int, str | None]] = []  # status and Retry-After of every response but a 202
        self._numbers = itertools.count()
        self._stopping = threading.Event()
        self._began = 0.0
        self._threads = [threading.Thread(target=self._run, name=f"sender-{n}") for n in range(CONNECTIONS)]

    def __enter__(self) -> "Sender":
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(90)
            assert not thread.is_alive(), "a sender does not end"

    @property
    def positions(self) -> set[str]:
        """Return the positions of the ACKed events."""
        return {acked.position for acked in self.acked}

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=15)
        while not self._stopping.is_set():
            number = next(self._numbers)
            pause_s = self._began + number / self._rate - time.monotonic()
            if pause_s > 0 and self._stopping.wait(pause_s):
                break
            body = json.dumps({self._field: number, "note": "x" * 200}).encode()
            while not self._try(connection, body):
                time.sleep(0.2)
        connection.close()

    def _try(self, connection: http.client.HTTPConnection, body: bytes) -> bool:
        digest = hashlib.sha256(body).hexdigest()
        headers = {"authorization": f"Bearer {self._key}", "content-type": "application/json"}
        try:
            connection.request("POST", "/v1/events", body, headers)
            with connection.getresponse() as answer:  # it owns the socket if ingest closes the connection
                text = answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            self.unknown.append(digest)
            return False
        if answer.status == 202:
            known = json.loads(text)
            self.acked.append(Acked(known["id"], known["position"], known["bucket"], digest))
            return True
        self.refusals.append((answer.status, answer.getheader("retry-after")))
        self.unknown.append(digest)
        return False
