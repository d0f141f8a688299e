"""No spelling of a forbidden address gets a connection, whatever was saved: a listening canary counts none."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from dataplane.spec.guard import Network, parse_networks
from dataplane.transmit.http.sender import HttpPolicy, HttpRequest, HttpResponse, HttpSender
from tests.support.forbidden import urls

EVERYTHING = parse_networks("0.0.0.0/0,::/0")
CURL_MALFORMED, CURL_UNSUPPORTED, CURL_NO_HOST = 3, 1, 6
pytestmark = pytest.mark.timeout(120)


class Canary:
    """Listener on every address of this host that counts its connections."""

    def __init__(self) -> None:
        self.heard = 0
        self._listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, name="canary", daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):  # closed: the test is over
            while True:
                connection, _ = self._listener.accept()
                self.heard += 1
                connection.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def canary() -> Iterator[Canary]:
    made = Canary()
    yield made
    made.close()


def tried(addresses: list[str], allowed: tuple[Network, ...] = ()) -> dict[str, HttpResponse]:
    """Send one request to each URL, all at once, and return the answers."""
    sender = HttpSender(HttpPolicy(allowed))
    answers: dict[str, HttpResponse] = {}
    for url in addresses:
        sender.begin(HttpRequest(url, url, ["Expect:"], b"{}", 5_000))
    while sender.active:
        answers |= {answer.token: answer for answer in sender.poll(0.05)}
    sender.close()
    return answers


def test_address_forms_are_numerous_and_many_would_reach_the_canary(canary: Canary):
    forms = urls(canary.port)
    assert len(set(forms)) >= 250
    here = [url for url in forms if any(part in url for part in ("127", "localhost", "[::1]"))]
    tried(here, EVERYTHING)
    assert canary.heard >= 20, "without the guard these forms reach the canary"


def test_no_form_of_a_forbidden_address_reaches_the_canary(canary: Canary):
    forms = urls(canary.port)
    answers = tried(forms)
    assert canary.heard == 0
    assert answers.keys() == set(forms)
    for url, answer in answers.items():
        assert answer.status == 0, url
        never_tried = answer.curl_code in (CURL_MALFORMED, CURL_UNSUPPORTED, CURL_NO_HOST)
        assert answer.forbidden or never_tried, f"{url}: {answer.message}"


def test_hostname_of_a_forbidden_address_is_refused_after_resolution(canary: Canary):
    name = socket.gethostname()
    (answer,) = tried([f"http://{name}:{canary.port}/"]).values()
    assert (answer.status, canary.heard) == (0, 0)
    assert answer.forbidden or answer.curl_code == CURL_NO_HOST
