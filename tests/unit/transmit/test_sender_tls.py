"""The sender over real local TLS: trusted CAs, client certificates, and nothing sent in clear text."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from dataplane.transmit.http.sender import ClientIdentity, HttpPolicy, HttpRequest, HttpResponse, HttpSender
from dataplane.transmit.policy.delivery_verdict import judge
from tests.support.trust import Trust

LOOPBACK = (ip_network("127.0.0.0/8"),)


class Server:
    """Server that answers each request with 200 and the name in the client's certificate."""

    def __init__(self, trust: Trust, *, asks: bool) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(trust.server_file)
        if asks:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(trust.ca_file)
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}/"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._answer, args=(plain,), daemon=True).start()

    def _answer(self, plain: socket.socket) -> None:
        with plain, contextlib.suppress(OSError), self._context.wrap_socket(plain, server_side=True) as tls:
            while tls.recv(65_536):
                name = str((tls.getpeercert() or {}).get("subject", "nobody")).encode()
                tls.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(name), name))


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    return Trust(Path(tmp_path_factory.mktemp("trust")))


@pytest.fixture
def asking(trust: Trust) -> Iterator[Server]:
    with contextlib.closing(Server(trust, asks=True)) as server:
        yield server


def posted(sender: HttpSender, url: str, identity: ClientIdentity | None = None) -> HttpResponse:
    sender.begin(HttpRequest("token", url, ["Expect:"], b"{}", 5_000, identity=identity))
    while True:
        for answer in sender.poll(0.1):
            return answer


def identity(trust: Trust, name: str) -> ClientIdentity:
    key, certificate = trust.made(name)
    return ClientIdentity(certificate, key)


def test_client_certificate_is_presented_and_identities_share_no_connection(trust: Trust, asking: Server):
    alice, bob = identity(trust, "alice"), identity(trust, "bob")
    with contextlib.closing(HttpSender(HttpPolicy(LOOPBACK, ca_file=str(trust.ca_file)))) as sender:
        for _ in range(2):
            assert b"'alice'" in posted(sender, asking.url, alice).body
            assert b"'bob'" in posted(sender, asking.url, bob).body
        assert posted(sender, asking.url).status == 0, "no response without a certificate"


def test_unusable_client_certificate_is_a_failed_attempt(trust: Trust, asking: Server):
    with contextlib.closing(HttpSender(HttpPolicy(LOOPBACK, ca_file=str(trust.ca_file)))) as sender:
        answer = posted(sender, asking.url, ClientIdentity("junk", "junk"))
    assert judge(answer.status, answer.curl_code).cause == "tls"


def test_ca_that_the_host_does_not_know_is_not_trusted(asking: Server):
    with contextlib.closing(HttpSender(HttpPolicy(LOOPBACK))) as sender:
        answer = posted(sender, asking.url)
    assert judge(answer.status, answer.curl_code).cause == "tls-certificate"


def test_http_is_refused_before_a_connection_where_only_https_is_allowed(trust: Trust):
    with contextlib.closing(Server(trust, asks=False)) as server:
        policy = HttpPolicy(LOOPBACK, https_only=True, ca_file=str(trust.ca_file))
        with contextlib.closing(HttpSender(policy)) as sender:
            refused = posted(sender, server.url.replace("https", "http"))
            assert (refused.status, refused.address) == (0, "")
            assert "http" in refused.message, "the reason of the attempt names it"
            assert posted(sender, server.url).status == 200
