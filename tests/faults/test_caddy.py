"""Caddy with the Caddyfile of docker-compose.yml: either ingest replica may die, and no event is sent twice."""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event, Lock
from typing import NamedTuple

import httpx
import pytest
from cryptography.fernet import Fernet

from localbox.ports import free_ports
from localbox.settings import ROOT
from tests.support.caddy import INGEST, TABLES, WEB, Caddy, caddy, sni
from tests.support.cluster import KEY, PIPE, Cluster, broker_for_cells
from tests.support.ingest_replica import Replica
from tests.support.patience import until
from tests.support.sender import CONNECTIONS, Sender
from tests.support.served import Served

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_800)]  # the first one builds Caddy

SENDERS = 12
MOST_EVENTS = 20_000
FOR_SECONDS = 500  # events, at most 240/s


class Upstream:
    """Server behind Caddy that a test may kill and start again on the same port."""

    def __init__(self, name: str, folder: Path) -> None:
        self.port = free_ports(1)[0]
        self._name, self._log = name, folder / f"{name}.log"
        self._log.touch()
        self.start()

    @property
    def ids(self) -> list[str]:
        """Return the events that reached the server, in order."""
        return self._log.read_text().split()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.support.upstream_server", self._name, str(self.port), str(self._log)]
        self._process = subprocess.Popen(command, cwd=ROOT)

    def kill(self) -> None:
        """Kill the server with SIGKILL; return once it has ended."""
        self._process.kill()
        self._process.wait(10)


class Outcome(NamedTuple):
    """Answer to one event; times are monotonic."""

    id: str
    began_s: float
    status: int
    retry_after: str


class Load:
    """SENDERS that each post one event after the other, until the block ends."""

    def __init__(self, front: Caddy) -> None:
        self._front = front
        self._numbers = itertools.count(1)
        self._ended = Event()
        self._lock = Lock()
        self._outcomes: list[Outcome] = []

    def __enter__(self) -> "Load":
        self._pool = ThreadPoolExecutor(SENDERS)
        self._done = [self._pool.submit(self._send) for _ in range(SENDERS)]
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._pool.shutdown()
        for sender in self._done:
            sender.result()

    @property
    def outcomes(self) -> list[Outcome]:
        """Return the answers until now."""
        with self._lock:
            return [*self._outcomes]

    def accepted_since(self, when_s: float) -> int:
        """Return how many events that began later were accepted."""
        return sum(one.began_s > when_s and one.status == 202 for one in self.outcomes)

    def _send(self) -> None:
        with self._front.client(INGEST) as client:
            while not self._ended.is_set():
                number, began_s = next(self._numbers), time.monotonic()
                assert number < MOST_EVENTS, "the load has a limit"
                answer = client.post("/v1/events", content=f"e{number}", extensions=sni(INGEST))
                outcome = Outcome(f"e{number}", began_s, answer.status_code, answer.headers.get("retry-after", ""))
                with self._lock:
                    self._outcomes.append(outcome)


@pytest.fixture
def upstreams(tmp_path: Path) -> Iterator[dict[str, Upstream]]:
    names = ("ingest-1", "ingest-2", "WEB", "ECHO", "TABLES")
    with ExitStack() as stack:
        made = {name: Upstream(name, tmp_path) for name in names}
        for one in made.values():
            stack.callback(one.kill)
        yield made


@pytest.fixture
def front(tmp_path: Path, upstreams: dict[str, Upstream]) -> Iterator[Caddy]:
    ports = {name: one.port for name, one in upstreams.items()}
    with caddy(tmp_path, [ports.pop("ingest-1"), ports.pop("ingest-2")], ports) as running:
        yield running


def test_killed_replica_fails_only_the_requests_that_it_had(front: Caddy, upstreams: dict[str, Upstream]):
    first, second = upstreams["ingest-1"], upstreams["ingest-2"]
    with Load(front) as load:
        until(lambda: len(first.ids) > 50 and len(second.ids) > 50, "both replicas have load", 60)
        first.kill()
        dead_s = time.monotonic()
        until(lambda: load.accepted_since(dead_s) > FOR_SECONDS, "the other replica takes all events", 60)
        before = len(first.ids)
        first.start()
        until(lambda: len(first.ids) > before + 50, "the replica gets events again", 60)
    failed = [one for one in load.outcomes if one.status != 202]
    assert [one for one in failed if one.began_s > dead_s] == [], "a request began when the replica was dead"
    assert {(one.status, one.retry_after) for one in failed} == {(502, "2")}, "it was killed with requests in progress"
    assert {one.id for one in failed}.isdisjoint(second.ids)
    assert len({*first.ids, *second.ids}) == len(first.ids) + len(second.ids), "no event was sent twice"
    assert len(failed) <= SENDERS


def test_event_is_sent_to_the_other_replica_if_no_connection_opens(front: Caddy, upstreams: dict[str, Upstream]):
    upstreams["ingest-1"].kill()
    ids = [f"e{number}" for number in range(10)]
    with front.client(INGEST) as client:
        answers = [client.post("/v1/events", content=id_, extensions=sni(INGEST)) for id_ in ids]
    assert [answer.status_code for answer in answers] == [202] * len(ids)
    assert upstreams["ingest-2"].ids == ids


def test_development_serves_both_replicas_without_tls(tmp_path: Path, upstreams: dict[str, Upstream]):
    replicas = [upstreams["ingest-1"], upstreams["ingest-2"]]
    ids = [f"e{number}" for number in range(30)]
    with caddy(tmp_path, [one.port for one in replicas], {}, config="ingest.caddyfile") as front:
        for id_ in ids:
            assert httpx.post(f"http://127.0.0.1:{front.plain}/v1/events", content=id_).status_code == 202
    assert all(one.ids for one in replicas)
    assert sorted(replicas[0].ids + replicas[1].ids) == sorted(ids)


def test_each_request_to_ingest_has_a_connection_of_its_own(front: Caddy):
    """A request on a connection that is older than the death of its replica would fail without having reached it."""
    answer = httpx.get(f"http://127.0.0.1:{front.plain}/pipes/")
    assert answer.json()["headers"]["connection"] == "close"


def test_no_replica_is_a_refusal_that_senders_repeat(front: Caddy, upstreams: dict[str, Upstream]):
    for name in ("ingest-1", "ingest-2"):
        upstreams[name].kill()
    answer = httpx.post(f"http://127.0.0.1:{front.plain}/v1/events", content="e1", timeout=30)
    assert answer.headers["retry-after"] == "2"
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["status"], problem["code"]) == (answer.status_code, "unavailable")
    assert answer.status_code in (502, 503)


@pytest.mark.parametrize(
    ("host", "path", "server"),
    [
        (WEB, "/pipes/", "WEB"),
        (WEB, "/echo/shop", "ECHO"),
        (TABLES, "/v1/tables/customers", "TABLES"),
        (INGEST, "/readyz", "ingest"),
    ],
)
def test_each_host_and_path_reaches_its_service_with_headers_of_caddy(front: Caddy, host: str, path: str, server: str):
    forged = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "evil.example.com"}
    with front.client(host) as client:
        seen = client.get(path, headers=forged, extensions=sni(host)).json()
        own_host = client.headers["host"]
    assert seen["server"].startswith(server)
    assert (seen["path"], seen["headers"]["host"]) == (path, own_host)
    assert seen["headers"]["x-forwarded-for"] == "127.0.0.1"
    assert seen["headers"]["x-forwarded-proto"] == "https"
    assert seen["headers"]["x-forwarded-host"] == own_host


def test_request_without_tls_is_redirected(front: Caddy):
    answer = httpx.get(f"http://127.0.0.1:{front.http}/pipes/", headers={"Host": WEB})
    assert (answer.status_code, answer.headers["location"].partition(":")[0]) == (308, "https")


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Served]:
    """Run the web process with the settings of production; no page of the test needs a database."""
    port = free_ports(1)[0]
    env = {
        "PENSTOCK_ENV": "production",
        "PENSTOCK_VAR": str(tmp_path / "var"),
        "PENSTOCK_SECRET_KEY": "a key of a test",
        "PENSTOCK_FERNET_KEYS": Fernet.generate_key().decode(),
        "PENSTOCK_MAIL_URL": "smtp://127.0.0.1:9",
        "PENSTOCK_WEB_PORT": str(port),
        "PENSTOCK_WEB_URL": f"https://{WEB}",
        "PENSTOCK_ALLOWED_HOSTS": WEB,
        "PENSTOCK_TRUSTED_PROXIES": "127.0.0.1",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
    }
    collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"]
    subprocess.run(collect, cwd=ROOT, env=os.environ | env, check=True)
    with closing(Served("-m", "config.serve", log=tmp_path / "web.log", env=env, ready="/livez", port=port)) as served:
        yield served


def test_production_counts_requests_through_caddy_as_https_and_no_others(
    tmp_path: Path, upstreams: dict[str, Upstream], pages: Served
):
    ports = {name: upstreams[name].port for name in ("ECHO", "TABLES")} | {"WEB": pages.port}
    with caddy(tmp_path, [upstreams["ingest-1"].port], ports) as front, front.client(WEB) as client:
        through = client.get("/sign-in/", extensions=sni(WEB))
    assert (through.status_code, "Sign in" in through.text) == (200, True)
    assert pages.get("/sign-in/", Host=WEB)[0] == 301, "to https"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with broker_for_cells(tmp_path / "broker") as broker:
        made = Cluster(broker.address, "c1", partitions=2)
        made.make_cell_topics(("process",))
        made.publish_cell()
        made.add_pipe(PIPE, KEY, {"crm": {"url": "http://127.0.0.1:1/"}})
        yield made


@pytest.fixture
def replicas(tmp_path: Path, cluster: Cluster) -> Iterator[list[Replica]]:
    made = []
    with ExitStack() as stack:
        for name in ("ingest-1", "ingest-2"):
            (tmp_path / name).mkdir()
            made.append(Replica(cluster, tmp_path / name, name))
            stack.callback(made[-1].close)
        yield made


def test_real_replica_is_killed_and_every_event_is_acked_in_the_end(tmp_path: Path, replicas: list[Replica]):
    nobody = dict.fromkeys(("WEB", "ECHO", "TABLES"), 9)
    ports = [replica.port for replica in replicas]
    with caddy(tmp_path, ports, nobody) as front, Sender(front.plain, KEY, 100.0) as sender:
        until(lambda: len(sender.acked) > 200, "events are ACKed", 60)
        replicas[0].kill()
        before = len(sender.acked)
        until(lambda: len(sender.acked) > before + 300, "the other replica takes all events", 60)
        replicas[0].start()
        until(lambda: len(sender.acked) > before + 600, "events are still ACKed", 60)
    assert {status for status, _ in sender.refusals} <= {502}
    assert len(sender.unknown) <= CONNECTIONS, "only requests in progress at the killed replica"
    assert len(sender.positions) == len(sender.acked)
