"""No spelling of a forbidden address gets a connection, whatever was saved: a canary listens, and hears nothing."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from dataplane.spec.guard import Network, parse_networks
from dataplane.transmit.sender import Answer, Ground, Post, Sender
from tests.rig.forbidden import urls

EVERYTHING = parse_networks("0.0.0.0/0,::/0")
CURL_MALFORMED, CURL_UNSUPPORTED, CURL_NO_HOST = 3, 1, 6
pytestmark = pytest.mark.timeout(120)


class Canary:
    """Accepts connections on every address of this host, and counts them."""

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


def tried(addresses: list[str], allowed: tuple[Network, ...] = ()) -> dict[str, Answer]:
    """One transfer to each, all at once."""
    sender = Sender(Ground(allowed))
    answers: dict[str, Answer] = {}
    for url in addresses:
        sender.begin(Post(url, url, ["Expect:"], b"{}", 5_000))
    while sender.active:
        answers |= {answer.token: answer for answer in sender.turn(0.05)}
    sender.close()
    return answers


def test_there_are_enough_forms_and_the_canary_would_hear_many_of_them(canary: Canary):
    forms = urls(canary.port)
    assert len(set(forms)) >= 250
    here = [url for url in forms if any(part in url for part in ("127", "localhost", "[::1]"))]
    tried(here, EVERYTHING)
    assert canary.heard >= 20, "without the guard these forms do arrive"


def test_no_form_of_a_forbidden_address_reaches_the_canary(canary: Canary):
    forms = urls(canary.port)
    answers = tried(forms)
    assert canary.heard == 0
    assert answers.keys() == set(forms)
    for url, answer in answers.items():
        assert answer.status == 0, url
        never_tried = answer.curl_code in (CURL_MALFORMED, CURL_UNSUPPORTED, CURL_NO_HOST)
        assert answer.forbidden or never_tried, f"{url}: {answer.message}"


def test_a_name_that_leads_inside_is_refused_once_it_is_resolved(canary: Canary):
    name = socket.gethostname()
    (answer,) = tried([f"http://{name}:{canary.port}/"]).values()
    assert (answer.status, canary.heard) == (0, 0)
    assert answer.forbidden or answer.curl_code == CURL_NO_HOST
