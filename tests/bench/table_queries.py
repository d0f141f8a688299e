"""Table queries of a table with a million rows, over HTTP: time to the answer, idle and while its rows change."""

import http.client
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from controlplane.settings import control_settings
from controlplane.topics import TopicCreator, cluster_plans
from dataplane.names import LOOKUP_TOPIC
from dataplane.tables.lookup_store import LookupStore
from dataplane.tables.lookups import encode_row, row_key
from dataplane.tables.query_protocol import row_path
from tests.bench.lookups import TABLE, load_rows
from tests.bench.report import RUNS, Line
from tests.bench.stand import Stand
from tests.support.table_service import TableService

ROWS: Final = 1_000_000
CLIENTS: Final = 4
REQUESTS_PER_S: Final = 1_000  # of all clients
WRITES_PER_S: Final = 1_000
SECONDS: Final = 10


def bench_table_queries(at: Stand) -> list[Line]:
    """Time from a request to its complete answer, measured by clients that keep their connections."""
    kafka = at.cluster.kafka
    plans = cluster_plans(control_settings().topics)
    TopicCreator(kafka).ensure(plan for plan in plans if plan.name == LOOKUP_TOPIC)
    with tempfile.TemporaryDirectory(prefix="penstock-queries-") as name:
        service = TableService(Path(name), kafka)
        load_rows(service.folder, ROWS)
        store = LookupStore(service.folder)
        store.recount()
        store.close()
        service.start()
        try:
            lines = _lines("1 k/s, idle", service)
            with writing(kafka):
                lines += _lines(f"1 k/s, {WRITES_PER_S} rows/s written", service)
        finally:
            service.kill()
    return lines


def timed(service: TableService, target: Callable[[int], str]) -> list[float]:
    """Return the sorted times, in milliseconds, of requests at a constant rate over some connections.

    `target`: path of the request for a random row
    """
    token = service.token(TABLE, "ten", "customers")
    found: list[list[float]] = [[] for _ in range(CLIENTS)]
    clients = [threading.Thread(target=_ask, args=(service.port, token, n, target, found[n])) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert sum(map(len, found)) == REQUESTS_PER_S * SECONDS
    return sorted(ms for times in found for ms in times)


def _ask(port: int, token: str, number: int, target: Callable[[int], str], found: list[float]) -> None:
    """Send one client's share of the requests, each at its time; one that is late is sent at once."""
    chance, every_s = random.Random(number), CLIENTS / REQUESTS_PER_S
    headers = {"authorization": f"Bearer {token}"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    due_s = time.perf_counter()
    for _ in range(REQUESTS_PER_S * SECONDS // CLIENTS):
        due_s += every_s
        time.sleep(max(0.0, due_s - time.perf_counter()))
        path = target(chance.randrange(ROWS))
        began_s = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        found.append((time.perf_counter() - began_s) * 1e3)
        assert answer.status == 200, body
    connection.close()


@contextmanager
def writing(kafka: str) -> Iterator[None]:
    """Change rows of the table at a constant rate during the block."""
    ended = threading.Event()
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 5})

    def write() -> None:
        version = ROWS
        while not ended.is_set():
            for _ in range(WRITES_PER_S // 50):
                version += 1
                key = f"customer-{version * 7919 % ROWS}"
                producer.produce(
                    LOOKUP_TOPIC, encode_row(version, b'{"name":"changed","tier":"gold"}'), row_key(TABLE, key)
                )
            producer.poll(0)
            ended.wait(1 / 50)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
        producer.flush(10)


def _lines(what: str, service: TableService) -> list[Line]:
    """Measure queries, alternating with requests to the same server that read no table: these are the baseline."""
    queries, probes = list[list[float]](), list[list[float]]()
    for _ in range(RUNS):
        probes.append(timed(service, lambda _: "/livez"))
        queries.append(timed(service, lambda number: row_path(TABLE, f"customer-{number}")))
    p50 = Line(f"table query, {what}, p50", "ms", _at(0.5, queries), _at(0.5, probes))
    p99 = Line(f"table query, {what}, p99", "ms", _at(0.99, queries), _at(0.99, probes), need="under 5 ms")
    p99.met = p99.median < 5
    return [p50, p99]


def _at(share: float, runs: list[list[float]]) -> list[float]:
    """Return a percentile of each run's sorted times."""
    return [run[int(len(run) * share)] for run in runs]
