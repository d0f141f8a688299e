"""Web process with slow or many clients: probes and pages answer, bodies and memory are bounded."""

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import psycopg.sql
import pytest

from config.front.app import FORM_BODY, MOST_WAITING, PAGE_THREADS
from localbox.ports import free_ports
from tests.support.front_app import PAGE_BODY
from tests.support.patience import until
from tests.support.served import Served, serving

SLOW = 50
SIGN_IN = (  # Django reads the body only with a CSRF cookie
    b"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: penstock_csrf=" + b"a" * 32 + b"\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n"
)
FRONT = ("-m", "tests.support.front_server", "tests.support.front_app", "{port}")


@pytest.fixture(scope="module")
def web_database(postgres_url: str) -> str:
    """URL of a database that has the role of requests."""
    create_role(postgres_url)
    return postgres_url


@pytest.fixture(scope="module")
def front(web_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Application that can block, behind the web front that serves pages."""
    log = tmp_path_factory.mktemp("front") / "front.log"
    with serving(*FRONT, log=log, env={"DATABASE_URL": web_database}, ready="/livez") as served:
        yield served


def create_role(url: str) -> None:
    """Create the role of requests, and a table that it may read, as `migrate` does."""
    name = psycopg.sql.Identifier(f"penstock_web_{url.rpartition('/')[2]}")
    with psycopg.connect(url, autocommit=True) as connection:
        with contextlib.suppress(psycopg.errors.DuplicateObject):
            connection.execute(psycopg.sql.SQL("CREATE ROLE {} NOLOGIN").format(name))
        connection.execute("CREATE TABLE IF NOT EXISTS mgmt_tenant ()")
        connection.execute(psycopg.sql.SQL("GRANT SELECT ON mgmt_tenant TO {}").format(name))


@pytest.fixture
def connections() -> Iterator[contextlib.ExitStack]:
    """Exit stack that closes the connections of a test."""
    with contextlib.ExitStack() as stack:
        yield stack


def open_gate(gate: Path, front: Served) -> None:
    """End the blocked requests; wait until a page is served, behind all requests that were waiting for a thread."""
    gate.touch()
    until(lambda: front.get("/")[0] == 200, "the queue is empty again", 20)


def answer_on(connection: socket.socket) -> bytes:
    """Return everything until the server closes the connection, and close it."""
    with connection:
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode()


def post(path: str, body: bytes, *headers: str, declared: int | None = None) -> bytes:
    length = len(body) if declared is None else declared
    lines = [f"POST {path} HTTP/1.1", "Host: h", f"Content-Length: {length}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def test_fifty_slow_headers_and_bodies_delay_neither_probes_nor_pages(
    web_database: str, tmp_path: Path, connections: contextlib.ExitStack
):
    port = free_ports(1)[0]
    env = {"DATABASE_URL": web_database, "PENSTOCK_WEB_PORT": str(port), "PENSTOCK_VAR": str(tmp_path)}
    web = Served("-m", "config.serve", log=tmp_path / "web.log", env=env, ready="/livez", port=port)
    connections.callback(web.close)
    slow = [web.connect(SIGN_IN, b"X-Slow: ") for _ in range(SLOW)]
    slow += [web.connect(SIGN_IN, b"Content-Length: 1000\r\n\r\nusername=") for _ in range(SLOW)]
    for connection in slow:
        connections.enter_context(connection)
        connection.setblocking(False)
    for path in ("/livez", "/readyz", "/sign-in/"):
        assert web.get(path)[0] == 200, path
    for connection in slow:
        with pytest.raises(BlockingIOError):  # neither answered nor closed meanwhile: all were open
            connection.recv(1)


def test_probes_answer_while_every_page_thread_is_blocked(
    front: Served, tmp_path: Path, connections: contextlib.ExitStack
):
    connections.callback(open_gate, tmp_path / "open", front)
    for _ in range(PAGE_THREADS):
        connections.enter_context(front.connect(get(f"/block{tmp_path}/open")))
    waiting = connections.enter_context(front.connect(get("/")))
    assert front.get("/livez") == (200, b"ok\n")
    assert front.get("/readyz") == (200, b"ok\n")
    waiting.setblocking(False)
    with pytest.raises(BlockingIOError):  # a page waits for a thread: all of them are blocked
        waiting.recv(1)


def test_requests_beyond_the_queue_are_refused_at_once(
    front: Served, tmp_path: Path, connections: contextlib.ExitStack
):
    connections.callback(open_gate, tmp_path / "open", front)
    for _ in range(PAGE_THREADS + MOST_WAITING):
        connections.enter_context(front.connect(get(f"/block{tmp_path}/open")))

    def is_refused() -> bool:
        with contextlib.suppress(TimeoutError):
            return front.get("/api/v1/me/", timeout_s=0.3)[0] == 503
        return False

    until(is_refused, "the queue is full", 20)
    status, body = front.get("/api/v1/me/")
    assert (status, json.loads(body)["code"]) == (503, "busy")
    assert front.get("/livez")[0] == 200


def test_readiness_probe_reports_unavailable_postgres(tmp_path: Path):
    away = {"DATABASE_URL": f"postgresql://x@127.0.0.1:{free_ports(1)[0]}/x"}
    with serving(*FRONT, log=tmp_path / "front.log", env=away, ready="/livez") as front:
        assert front.get("/readyz") == (503, b"Postgres does not respond\n")
        assert front.get("/livez")[0] == 200


def test_readiness_probe_takes_the_role_of_requests(tmp_path: Path, postgres_url: str):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE without_role")
    url = postgres_url.rpartition("/")[0] + "/without_role"
    with serving(*FRONT, log=tmp_path / "front.log", env={"DATABASE_URL": url}, ready="/livez") as front:
        status, why = front.get("/readyz")
        assert (status, b"Run manage.py migrate" in why) == (503, True), why
        create_role(url)
        until(lambda: front.get("/readyz")[0] == 200, "the role exists", 20)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("REVOKE ALL ON mgmt_tenant FROM penstock_web_without_role")
        until(lambda: b"Run manage.py migrate" in front.get("/readyz")[1], "the role has no rights", 20)


def test_trickled_body_is_cut_off_and_a_slow_one_that_keeps_the_minimum_rate_is_served(front: Served):
    trickled, steady = front.connect(post("/", b"", declared=60_000)), front.connect(post("/", b"", declared=60_000))
    for _ in range(12):
        steady.sendall(b"x" * 5_000)
        with contextlib.suppress(OSError):  # the server has cut it off meanwhile
            trickled.sendall(b"x")
        time.sleep(0.15)  # the pace of the client is the subject of the test
    assert status_of(answer_on(trickled)) == 408
    assert answer_on(steady).endswith(b"60000")


@pytest.mark.parametrize("declared", [True, False], ids=["declared length", "chunked"])
def test_body_over_the_limit_is_refused(front: Served, declared: bool):
    size = PAGE_BODY.most_bytes + 1
    if declared:  # refused before any byte is sent
        connection = front.connect(post("/api/v1/pipes/", b"", declared=size))
    else:
        head = b"POST /api/v1/pipes/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection = front.connect(head, b"%x\r\n" % size, b"x" * size, b"\r\n")
    answer = answer_on(connection)
    assert status_of(answer) == 413
    assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["code"] == "body-too-large"


@pytest.mark.parametrize("declared", [True, False], ids=["declared length", "chunked"])
def test_response_of_a_saml_provider_over_the_limit_is_refused_before_it_is_read(front: Served, declared: bool):
    path, size = "/sso/ten_1/saml/acs/", FORM_BODY.most_bytes
    assert answer_on(front.connect(post(path, b"x" * size))).endswith(str(size).encode())
    head = f"POST {path} HTTP/1.1\r\nHost: h\r\n".encode()
    if declared:  # refused before any byte is sent
        connection = front.connect(head, b"Content-Length: %d\r\n\r\n" % (size + 1))
    else:  # its chunk does not end
        chunk = b"%x\r\n" % (100 * size)
        connection = front.connect(head, b"Transfer-Encoding: chunked\r\n\r\n", chunk, b"x" * (size + 1))
    assert status_of(answer_on(connection)) == 413


def test_upload_is_streamed_after_authentication_of_its_sender(front: Served):
    path, size = "/tables/t_1/upload/", 3_000_000
    assert answer_on(front.connect(post(path, b"x" * size))).endswith(str(size).encode())
    assert status_of(answer_on(front.connect(post(path, b"", "Authorization: none", declared=size)))) == 401
    assert status_of(answer_on(front.connect(post(path, b"x", declared=size)))) == 408


def test_long_answers_to_clients_that_do_not_read_occupy_no_thread_and_no_memory(
    front: Served, connections: contextlib.ExitStack
):
    before = front.rss_bytes()
    lazy = [connections.enter_context(front.connect(get("/megabytes"))) for _ in range(2 * PAGE_THREADS)]
    until(lambda: front.get("/", timeout_s=30)[0] == 200, "pages answer", 60)
    assert front.rss_bytes() - before < 200_000_000  # of 480 MB in all answers together
    assert b"200" in lazy[0].recv(100)


def test_environ_conforms_to_wsgi_and_no_header_can_spoof_another(front: Served):
    connection = front.connect(
        b"GET /environ?q=%C3%BC HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.1.1.1\r\nX_Forwarded_For: 2.2.2.2\r\n"
        b"Cookie: a=1\r\nX-Twice: 1\r\nX-Twice: 2\r\nConnection: close\r\n\r\n"
    )
    head, _, body = answer_on(connection).partition(b"\r\n\r\n")
    environ = json.loads(body)
    assert environ["HTTP_X_FORWARDED_FOR"] == "1.1.1.1"
    assert environ["HTTP_X_TWICE"] == "1,2"
    assert (environ["QUERY_STRING"], environ["REMOTE_ADDR"]) == ("q=%C3%BC", "127.0.0.1")
    assert re.findall(rb"set-cookie: (\S+)", head.lower()) == [b"a=1", b"b=2"]


def test_terminating_server_finishes_begun_requests(web_database: str, tmp_path: Path):
    with serving(*FRONT, log=tmp_path / "front.log", env={"DATABASE_URL": web_database}, ready="/livez") as front:
        begun = front.connect(get(f"/block{tmp_path}/open"))
        until(lambda: front.get("/")[0] == 200, "what came before it is under way", 20)
        front.process.terminate()
        threading.Timer(0.5, (tmp_path / "open").touch).start()
        assert status_of(answer_on(begun)) == 200
        assert front.process.wait(30) == 0
