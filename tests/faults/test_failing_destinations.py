"""One pipe to many destinations, each failing differently, then repaired: none harms another, and nothing is lost.

They all fail at once, so that one lane must handle all failures together; each test then checks one of them.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from dataplane.ledger.audit import AttemptRecord
from dataplane.ledger.bins import Bin
from loadgen.scripted import Behaviour, Received, Receiver, status
from localbox.ports import free_ports
from tests.support import behaviours as so
from tests.support.attempts import attempts_of
from tests.support.certificates import FLAWS, Kind, server_tls
from tests.support.data_plane import DataPlane
from tests.support.ledger_checks import Whole
from tests.support.messages import DeadLetter, dead_letters
from tests.support.patience import until

pytestmark = pytest.mark.timeout(1_200)
EVENTS: Final = 10  # too few to suspend a destination
PIPE: Final = "wild"
REDIRECTS: Final = (301, 302, 303, 307, 308)

# Recoverable: how they fail, and the reported cause (one of two where it depends on timing).
RECOVERABLE: Final[dict[str, tuple[Behaviour, str]]] = {
    "resets": (so.reset, "reset"),
    "closes": (so.close, "no-answer reset"),
    "hangs": (so.hang, "timeout"),
    "trickles": (so.trickle, "timeout"),
    "talks-nonsense": (so.garbage, "transport protocol"),
    "hints-on": (so.endless_hints, "informational"),
    **{f"fails-{code}": (status(code), "server-error") for code in (500, 502, 503, 504)},
    **{f"moved-{code}": (status(code), "redirect") for code in REDIRECTS},
    "throttles": (so.throttled(None), "throttled"),
    "throttles-junk": (so.throttled("soon"), "throttled"),
    "throttles-past": (so.throttled("-5"), "throttled"),
    "throttles-date": (so.throttled("Sun, 06 Nov 1994 08:49:37 GMT"), "throttled"),
}
ELSEWHERE: Final = {
    "refuses": "connect",
    "unknown-name": "dns",
    "expired": "tls-certificate",
    "self-signed": "tls-certificate",
    "wrong-host": "tls-certificate",
    "tls-1-0": "tls",
}
TLS_REASONS: Final = {
    "expired": "certificate has expired",
    "self-signed": "self-signed certificate",
    "wrong-host": "no alternative certificate subject name matches",
}
# The status line arrived, so it counts, whatever follows.
COUNTS_BY_STATUS: Final[dict[str, Behaviour]] = {
    "crumbs": so.crumbs,
    "cuts": so.cut,
    "ten-gigabytes": so.ten_gigabytes,
    "chunks-on": so.endless_chunks,
    "headers-on": so.endless_headers,
    "gzip-bomb": so.gzip_bomb(200_000_000),
}
NEVER_RETRIED: Final = (400, 401, 403, 404, 405, 408, 413, 422, 425)
NEVER_ANSWER: Final = ("hangs", "trickles")
FLAPS: Final = ("flaps", "forgets-answers")
HEALTHY: Final = "healthy"
GOOD_TLS: Final[Kind] = "good-tls"
ENOUGH_MEMORY: Final = 64 * 1024 * 1024


class Outcome(NamedTuple):
    """Observations after everything has settled."""

    positions: set[str]
    whole: Whole
    got: dict[str, list[Received]]
    attempts: dict[str, list[AttemptRecord]]
    letters: dict[str, list[DeadLetter]]
    healthy_s: float  # from the post to the healthy destination's last delivery, while the others misbehaved
    grown_bytes: int
    canary: int
    mended_ns: int


class Wild:
    """The pipe, its destinations, and their repair."""

    def __init__(self, plane: DataPlane, folder: Path) -> None:
        self.plane = plane
        self.canary = Receiver()
        self.refused_port = free_ports(1)[0]
        self.servers = {kind: Receiver(tls=server_tls(plane.trust, folder, kind)) for kind in (*FLAWS, GOOD_TLS)}
        self.destinations: dict[str, dict[str, Any]] = {}
        at = plane.receiver
        for name in (*RECOVERABLE, *COUNTS_BY_STATUS, *FLAPS, HEALTHY, *(f"says-{code}" for code in NEVER_RETRIED)):
            self._add(name, at.url(f"/{name}"))
        self._add("refuses", f"http://127.0.0.1:{self.refused_port}/refuses")
        self._add("unknown-name", "http://nowhere.invalid/unknown-name")
        for kind, server in self.servers.items():
            self._add(kind, server.url(f"/{kind}"))

    def _add(self, name: str, url: str) -> None:
        retry = {"local_tries": 2, "span_s": 3_600, "delays_s": [2]}
        timeout_s = 2 if name in NEVER_ANSWER else 8  # the others answer at once, but on a busy machine not within 2 s
        self.destinations[name] = {"url": url, "timeout_s": timeout_s, "retry": retry}

    def misbehave(self) -> None:
        answers = self.plane.receiver.answers
        answers |= {f"/{name}": behaviour for name, (behaviour, _) in RECOVERABLE.items()}
        answers |= {f"/{name}": behaviour for name, behaviour in COUNTS_BY_STATUS.items()}
        answers |= {f"/says-{code}": code for code in NEVER_RETRIED}
        answers["/flaps"] = so.flapping(status(204), status(503), each_s=2)
        answers["/forgets-answers"] = so.once(so.close, status(204))
        for code in REDIRECTS:
            answers[f"/moved-{code}"] = so.redirected(code, self.canary.url("/canary"))

    def recover(self) -> None:
        """Let everything answer; destinations at other addresses are moved to the receiver."""
        for name in (*RECOVERABLE, "flaps"):
            self.plane.receiver.answers[f"/{name}"] = 204
        moved = {name: {**self.destinations[name], "url": self.plane.receiver.url(f"/{name}")} for name in ELSEWHERE}
        self.plane.cluster.publish_destinations(PIPE, moved)

    def memory(self) -> int:
        """Return the resident memory of the transmit lane's process in bytes."""
        self.plane.heartbeats.refresh()
        return self.plane.heartbeats.latest["transmit-0"].rss_bytes

    def close(self) -> None:
        for server in (self.canary, *self.servers.values()):
            server.close()


@pytest.fixture(scope="module")
def outcome(plane: DataPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    wild = Wild(plane, tmp_path_factory.mktemp("tls"))
    wild.misbehave()
    key = plane.add_pipe(PIPE, wild.destinations)
    before, got = wild.memory(), plane.receiver.got
    events = json.dumps([{"n": n} for n in range(EVENTS)]).encode()
    status, _, text = plane.post(key, events)
    assert status == 202
    positions = {item["position"] for item in json.loads(text)["items"]}

    healthy_s = until(lambda: len(got[f"/{HEALTHY}"]) >= EVENTS, "the healthy destination has everything", 30)
    failing = {*RECOVERABLE, *ELSEWHERE}

    def all_parked() -> bool:
        whole = plane.whole(PIPE)
        return all(whole.at(name, Bin.RETRYING) == positions for name in failing)

    until(all_parked, "everything that fails is parked", 60)
    grown = wild.memory() - before
    mended_ns = time.time_ns()
    wild.recover()
    whole = plane.settled(PIPE, positions, 200)

    attempts: dict[str, list[AttemptRecord]] = {name: [] for name in wild.destinations}
    for attempt in attempts_of(plane, PIPE):
        attempts[attempt.destination].append(attempt)
    letters: dict[str, list[DeadLetter]] = {}
    for letter in dead_letters(plane, PIPE):
        letters.setdefault(letter.node, []).append(letter)
    seen = {name: got[f"/{name}"] for name in wild.destinations}
    yield Outcome(positions, whole, seen, attempts, letters, healthy_s, grown, wild.canary.connections, mended_ns)
    wild.close()


def test_nothing_is_lost_and_every_unit_is_in_the_bin_its_destination_implies(outcome: Outcome):
    assert outcome.whole.lost() == 0
    for name in (*RECOVERABLE, *ELSEWHERE, *COUNTS_BY_STATUS, *FLAPS, HEALTHY, GOOD_TLS):
        assert outcome.whole.at(name, Bin.DELIVERED) == outcome.positions, name


def test_healthy_destination_waits_for_none_of_the_others(outcome: Outcome):
    assert Counter(received.position for received in outcome.got[HEALTHY]) == Counter(outcome.positions)
    assert outcome.healthy_s < 5


@pytest.mark.parametrize("name", [*RECOVERABLE, *ELSEWHERE])
def test_temporarily_failing_destination_gets_everything_after_its_repair(outcome: Outcome, name: str):
    taken = [received for received in outcome.got[name] if received.answered == 204]
    assert Counter(received.position for received in taken) == Counter(outcome.positions), "each exactly once"
    assert min(received.at_ns for received in taken) > outcome.mended_ns
    assert len({(r.position, r.id, r.digest) for r in outcome.got[name]}) == EVENTS, "same id and body each time"


@pytest.mark.parametrize(("name", "cause"), [(n, c) for n, (_, c) in RECOVERABLE.items()] + [*ELSEWHERE.items()])
def test_each_failure_is_reported_with_its_cause(outcome: Outcome, name: str, cause: str):
    failed = [attempt for attempt in outcome.attempts[name] if attempt.outcome in ("retry", "parked")]
    told = {attempt.reason.partition(":")[0] for attempt in failed}
    assert told
    assert told <= set(cause.split())
    assert all(attempt.next_us for attempt in failed if attempt.outcome == "parked"), "with the time of the next try"


@pytest.mark.parametrize("name", ["resets", "refuses", "unknown-name"])
def test_failed_message_is_retried_locally_first(outcome: Outcome, name: str):
    assert (1, "retry") in {(attempt.number, attempt.outcome) for attempt in outcome.attempts[name]}


@pytest.mark.parametrize(("name", "reason"), TLS_REASONS.items())
def test_bad_certificate_is_reported_with_its_flaw(outcome: Outcome, name: str, reason: str):
    failed = [
        attempt for attempt in outcome.attempts[name] if attempt.outcome in ("retry", "parked") and attempt.reason
    ]
    assert failed
    assert all(reason in attempt.reason for attempt in failed)


@pytest.mark.parametrize("name", NEVER_ANSWER)
def test_timeout_covers_the_whole_exchange_not_each_read(outcome: Outcome, name: str):
    failed = [attempt for attempt in outcome.attempts[name] if attempt.outcome in ("retry", "parked")]
    assert failed
    assert all(1_900_000 < attempt.total_us < 4_000_000 for attempt in failed)


@pytest.mark.parametrize("name", COUNTS_BY_STATUS)
def test_endless_response_counts_by_its_status_and_is_requested_once(outcome: Outcome, name: str):
    assert Counter(received.position for received in outcome.got[name]) == Counter(outcome.positions)


def test_no_destination_fills_the_lanes_memory(outcome: Outcome):
    assert outcome.grown_bytes < ENOUGH_MEMORY


@pytest.mark.parametrize("code", NEVER_RETRIED)
def test_4xx_is_dead_after_one_attempt(outcome: Outcome, code: int):
    name = f"says-{code}"
    assert Counter(received.position for received in outcome.got[name]) == Counter(outcome.positions)
    assert outcome.whole.at(name, Bin.DEAD) == outcome.positions
    assert {(letter.position, letter.cause) for letter in outcome.letters[f"transmit:{name}"]} == {
        (position, "rejected") for position in outcome.positions
    }


def test_redirect_is_never_followed(outcome: Outcome):
    for code in REDIRECTS:
        assert any(received.answered == code for received in outcome.got[f"moved-{code}"])
    assert outcome.canary == 0


def test_destination_that_accepts_without_a_response_gets_a_second_request_with_the_same_id(outcome: Outcome):
    got = outcome.got["forgets-answers"]
    assert Counter(received.position for received in got) == Counter([*outcome.positions] * 2)
    assert len({(r.position, r.id, r.digest) for r in got}) == EVENTS


def test_flapping_destination_accepts_each_message_once(outcome: Outcome):
    taken = [received.position for received in outcome.got["flaps"] if received.answered == 204]
    assert Counter(taken) == Counter(outcome.positions)
