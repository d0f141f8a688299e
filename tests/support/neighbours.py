"""Two tenants of one cell: one sends expensive events at ten times its quota, the other a few plain ones."""

import http.client
import json
import statistics
import threading
import time
from typing import Any, Final

from tests.support.receiver import Received

QUOTA: Final = 100  # events a second: the quota of the flooding tenant
FLOOD: Final = 10 * QUOTA
BATCH: Final = 20
RATE: Final = 50.0  # events a second of the other tenant
# Four legal steps, about 3.5 ms of CPU each on a common server: the quota alone exceeds what one core can run.
STEPS: Final[list[dict[str, Any]]] = [
    {"op": "map", "path": f"r{number}", "expr": "body.l.map(x, body.l.filter(y, y > x).size())"} for number in range(4)
]
_DEAR: Final = json.dumps({"l": list(range(65))}).encode()


class Flood:
    """`with Flood(port, key):` sends at ten times the quota until the block ends; `accepted` counts events."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key
        self.accepted = self.refused = 0
        self.unknown = 0  # events whose request had no response: they may be stored
        self.positions: set[str] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flood")

    def __enter__(self) -> "Flood":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=15)
        body, due_s = b"\n".join([_DEAR] * BATCH), time.monotonic()
        while not self._stopping.wait(max(0.0, due_s - time.monotonic())):
            due_s = max(due_s + BATCH / FLOOD, time.monotonic() - 1.0)
            try:
                status, answer = post(connection, self._key, body, "application/x-ndjson")
            except (OSError, http.client.HTTPException):
                connection.close()  # ingest has closed an idle connection, or is overloaded
                self.unknown += BATCH
                continue
            items = answer["items"] if status in (202, 207) else []
            positions = {item["position"] for item in items if item["status"] == 202}
            self.positions |= positions
            self.accepted += len(positions)
            self.refused += BATCH - len(positions)
        connection.close()


def send_plain(port: int, key: str, seconds: float, run: int) -> set[str]:
    """Send plain events at a steady rate; return their positions. All of them must be accepted."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    begun_s, positions = time.monotonic(), set()
    for number in range(int(seconds * RATE)):
        time.sleep(max(0.0, begun_s + number / RATE - time.monotonic()))
        body = json.dumps({"run": run, "sent_ns": time.time_ns()}).encode()
        status, answer = post(connection, key, body, "application/json")
        assert status == 202, answer
        positions.add(answer["position"])
    connection.close()
    return positions


def post(connection: http.client.HTTPConnection, key: str, body: bytes, kind: str) -> tuple[int, dict[str, Any]]:
    """Send one request; return its status and response."""
    connection.request("POST", "/v1/events", body, {"authorization": f"Bearer {key}", "content-type": kind})
    with connection.getresponse() as answer:
        return answer.status, json.loads(answer.read())


def delays_ms(got: list[Received], run: int) -> list[float]:
    """Return the latencies of a run's plain events, from before they were sent until the receiver had them."""
    bodies = [(json.loads(received.body), received.at_ns) for received in got]
    return sorted((at_ns - body["sent_ns"]) / 1e6 for body, at_ns in bodies if body["run"] == run)


def p95_ms(delays: list[float]) -> float:
    """Return the 95th percentile."""
    return statistics.quantiles(delays, n=20, method="inclusive")[-1]
