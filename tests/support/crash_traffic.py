"""Traffic of each kind of lane in the crash campaign, and the checks that hold wherever it was killed."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Final, Protocol

from dataplane.ledger.facts import Fact
from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.units import format_position
from dataplane.names import LaneKind, Purpose
from loadgen.scripted import Behaviour, Receiver, status
from tests.support import behaviours as so
from tests.support.cluster import key_of
from tests.support.crash_cells import CrashCell
from tests.support.patience import until

EACH: Final = 6  # messages per destination; fewer than the failures that suspend one
SOON_S: Final = 8.0  # longer than the start of a lane on a busy machine
LONG_S: Final = 600.0  # the tier of five minutes, however late a lane starts
IN_ORDER: Final = ("in-order", "in-order-fails", "in-order-holds")
LIMIT: Final = 4  # a destination's concurrency: the maximum of sends in flight
Facts = dict[tuple[str, str], set[str]]
FactsOf = Callable[[str], Facts]


class Traffic(Protocol):
    """Traffic of one kind of lane."""

    kind: LaneKind
    input: Purpose

    def begin(self, cell: CrashCell, pipe: str) -> dict[str, set[str]]:
        """Put messages on the lane's input; return their positions by expected outcome."""

    def later(self, cell: CrashCell, pipe: str, sent: dict[str, set[str]], /) -> None:
        """Make a change while the lane is at work."""

    def is_done(self, cell: CrashCell, pipe: str, sent: dict[str, set[str]], /) -> bool:
        """Return True if the lane has handled all of the traffic."""

    def is_covered(self, meta: MessageMeta, facts: Facts, /) -> bool:
        """Return True if the ledger has the outcome of a message on the input."""

    def check(self, cell: CrashCell, pipe: str, sent: dict[str, set[str]], facts_of: FactsOf) -> None:
        """Assert that ledger, records and receiver agree after one failure and the end of the traffic."""


def parse_offset(position: str) -> int:
    """Return the offset of a position given as text."""
    return int(position.rpartition("-")[2])


class _Steady:
    """Traffic that is complete from the beginning."""

    def later(self, _cell: CrashCell, _pipe: str, _sent: dict[str, set[str]], /) -> None:
        """Do nothing."""

    def is_done(self, cell: CrashCell, _pipe: str, _sent: dict[str, set[str]], /) -> bool:
        return cell.is_done()


class TransmitTraffic(_Steady):
    """Destinations that accept, refuse, fail, throttle, hang up, are gone, removed, paused, unknown; a topic."""

    kind: LaneKind
    input: Purpose

    def __init__(self, receiver: Receiver, kind: LaneKind = "transmit") -> None:
        self._receiver = receiver
        self.kind = kind
        self.input = "egress" if kind == "transmit" else "retry-out"

    def begin(self, cell: CrashCell, pipe: str) -> dict[str, set[str]]:
        answers: dict[str, int | Behaviour] = {
            "takes": 204,
            "refuses": 400,
            "fails": status(503, body=b"not today"),
            "gives-up": 503,
            "throttles": so.throttled("1"),
            "forgets": so.once(so.close, status(204)),
            "gone": 410,
            "removed": 204,
            "paused": 204,
            "batches": 204,
            "in-order": 204,
            "in-order-fails": 503,
            "in-order-holds": 400,
        }
        self._receiver.answers |= {f"/{pipe}/{name}": answer for name, answer in answers.items()}
        destinations: dict[str, dict[str, Any]] = {
            name: {
                "url": self._receiver.url(f"/{pipe}/{name}"),
                "timeout_s": 15,  # a busy machine answers late, and each timeout is one more attempt
                "concurrency": LIMIT,
                "retry": {"local_tries": 2, "span_s": 1 if name == "gives-up" else 3_600},
            }
            for name in answers
        }
        destinations["batches"]["batch"] = {"max_events": 4, "max_wait_ms": 200}
        for name in IN_ORDER:
            destinations[name]["ordered"] = True
        destinations["in-order-holds"]["after_dead"] = "hold"
        if self.kind == "transmit-retry":  # retried in place until the span has ended
            destinations["in-order-fails"]["retry"] = {"local_tries": 1, "span_s": 1}
        destinations["feed"] = {"type": "topic"}
        cell.cluster.make_output_topic(pipe, "feed")
        cell.cluster.publish_destinations(pipe, destinations)
        cell.cluster.publish_destinations(pipe, {"removed": destinations["removed"]}, "removed")
        cell.cluster.publish_destinations(pipe, {"paused": destinations["paused"]}, "paused")
        cell.send_junk(self.input)
        sent = {
            name: cell.send(self.input, pipe, name, EACH)
            for name in destinations.keys() | {"unknown"}
            if name not in IN_ORDER
        }
        for name in IN_ORDER:
            sent[name] = cell.send(self.input, pipe, name, EACH, key=f"{name}\0key".encode())
        return sent

    def is_covered(self, meta: MessageMeta, facts: Facts, /) -> bool:
        return any(
            format_position(meta.position) in positions
            for (node, _), positions in facts.items()
            if node == f"transmit:{meta.destination}"
        )

    def check(self, cell: CrashCell, pipe: str, sent: dict[str, set[str]], facts_of: FactsOf) -> None:
        facts = facts_of(pipe)
        first_of_key, *later = sorted(sent["in-order-holds"], key=parse_offset)
        unsent = cell.dead_by_bug(pipe)
        assert len(unsent) <= 1, "a bug concerns the message that hits it"
        if unsent:
            sent = {name: positions - unsent for name, positions in sent.items()}
            facts = defaultdict(set, {key: positions - unsent for key, positions in facts.items()})
        ends = {
            "takes": Fact.DELIVERED,
            "forgets": Fact.DELIVERED,
            "batches": Fact.DELIVERED,
            "in-order": Fact.DELIVERED,
            "feed": Fact.DELIVERED,
            "refuses": Fact.DEAD,
            "fails": Fact.PARKED,
            "throttles": Fact.PARKED,
            "gives-up": Fact.DEAD,
            "unknown": Fact.PARKED,
            "gone": Fact.HELD,
            "paused": Fact.HELD,
            "removed": Fact.CANCELLED,
        }
        for name, end in ends.items():
            known = {fact: at for (node, fact), at in facts.items() if node == f"transmit:{name}" and at}
            assert known == {end: sent[name]}, f"{name}: {known}"
        failed = {fact: at for (node, fact), at in facts.items() if node == "transmit:in-order-fails" and at}
        ways = (Fact.PARKED, Fact.RELEASED) if self.kind == "transmit" else (Fact.DEAD,)  # straight to the retry lane
        assert failed == dict.fromkeys(ways, sent["in-order-fails"])
        for name in ("takes", "forgets", "in-order"):
            self._check_delivered(pipe, name, sent[name])
        written = cell.written(pipe, "feed")
        assert {position for position, _ in written} == sent["feed"]
        assert len(set(written)) == len(sent["feed"]), "a repeated record is identical"
        first = dict.fromkeys(received.position for received in self._receiver.got[f"/{pipe}/in-order"])
        assert list(first) == sorted(sent["in-order"], key=parse_offset), "the messages of a key arrive in order"
        for name in ("removed", "paused", "unknown"):
            assert not self._receiver.got[f"/{pipe}/{name}"]
        refused = Counter(received.position for received in self._receiver.got[f"/{pipe}/refuses"])
        assert refused.keys() == sent["refuses"]
        assert max(refused.values()) <= 2, "repeated only if the dead letter was not stored yet"
        is_first = self.kind == "transmit"
        dead = unsent | sent["refuses"] | sent["gives-up"] | (set() if is_first else sent["in-order-fails"])
        held = sent["gone"] | sent["paused"]
        assert {received.position for received in self._receiver.got[f"/{pipe}/in-order-holds"]} == {
            first_of_key
        } - unsent
        is_dead, is_held = (facts["transmit:in-order-holds", fact] for fact in (Fact.DEAD, Fact.HELD))
        assert is_dead | is_held == sent["in-order-holds"]
        assert is_dead <= {first_of_key}, "later messages of its key are held behind it"
        assert dead <= cell.stored("dead", pipe).keys() <= dead | {first_of_key}
        if is_first:
            assert cell.stored("retry-out", pipe).keys() == sent["in-order-fails"]
        assert held | {*later} <= cell.stored("held", pipe).keys() <= held | sent["in-order-holds"]
        assert cell.stored("retry-in", pipe).keys() == sent["fails"] | sent["throttles"] | sent["unknown"]

    def _check_delivered(self, pipe: str, name: str, sent: set[str]) -> None:
        got = self._receiver.got[f"/{pipe}/{name}"]
        taken = Counter(received.position for received in got if received.answered == 204)
        assert taken.keys() == sent, "exactly the sent messages are delivered"
        assert sum(taken.values()) - len(taken) <= LIMIT, "more repeats than sends in flight"
        assert len({(received.position, received.id, received.digest) for received in got}) == len(sent)


class RetrierTraffic:
    """Messages due now or later, held and dead messages to return, and a destination that has recovered."""

    kind: LaneKind = "retrier"
    input: Purpose = "retry-in"

    def begin(self, cell: CrashCell, pipe: str) -> dict[str, set[str]]:
        names = ("crm", "held", "dead", "well")
        cell.cluster.publish_destinations(pipe, {name: {"url": "http://127.0.0.1:1/"} for name in names})
        cell.send_junk(self.input)
        sent = {"crm": cell.send(self.input, pipe, "crm", EACH)}
        sent["soon"] = cell.send(self.input, pipe, "crm", EACH, due_s=SOON_S)
        cell.tell_breaker(pipe, "well", "open")
        sent["well"] = cell.send(self.input, pipe, "well", EACH, due_s=LONG_S)
        sent["held"] = cell.send("held", pipe, "held", EACH)
        cell.ask_for("release", pipe, "held")
        sent["dead"] = cell.send("dead", pipe, "dead", EACH)
        cell.ask_for("redrive", pipe, "dead")
        return sent

    def later(self, cell: CrashCell, pipe: str, sent: dict[str, set[str]], /) -> None:
        """Report the destination as healthy once its messages wait in a tier."""
        waiting = sent["well"]
        until(lambda: cell.code() is not None or cell.stored("delay-5m", pipe).keys() >= waiting, "a tier has it", 240)
        cell.tell_breaker(pipe, "well", "closed")

    def is_done(self, cell: CrashCell, pipe: str, sent: dict[str, set[str]], /) -> bool:
        return cell.is_done() and cell.stored("retry-out", pipe).keys() >= set().union(*sent.values())

    def is_covered(self, _meta: MessageMeta, _facts: Facts, /) -> bool:
        return True  # its outcome is reported together with its result, in a later topic

    def check(self, cell: CrashCell, pipe: str, sent: dict[str, set[str]], facts_of: FactsOf) -> None:
        passed_on = cell.stored("retry-out", pipe)
        assert passed_on.keys() == set().union(*sent.values())
        in_tiers = sent["soon"] | sent["well"]
        for position, copies in passed_on.items():  # a slow lane may move a message to a tier and out before it commits
            moves = 2 if position in in_tiers else 1
            assert copies <= 1 + moves, f"{position}: a crash repeats each move of a message at most once"
        facts = facts_of(pipe)
        for name, positions in (("crm", sent["crm"] | sent["soon"]), ("well", sent["well"]), ("held", sent["held"])):
            assert facts[f"transmit:{name}", Fact.RELEASED] == positions, name
        assert facts["transmit:dead", Fact.REDRIVEN] == sent["dead"]


class ProcessTraffic(_Steady):
    """Two destinations, messages of two minutes, and a step that some of them fail; a pipe that explodes and routes
    its messages; and a pipe that admits nothing yet."""

    kind: LaneKind = "process"
    input: Purpose = "ingest"

    def begin(self, cell: CrashCell, pipe: str) -> dict[str, set[str]]:
        steps = [{"op": "cast", "path": "n", "to": "int"}]
        urls = {name: {"url": "http://127.0.0.1:1/"} for name in ("crm", "lake")}
        cell.cluster.add_pipe(pipe, key_of(f"{cell.name}-{pipe}"), urls, normalize=steps)
        cell.send_junk(self.input)
        good = cell.send(self.input, pipe, "", EACH, minutes=2)
        bad = cell.send(self.input, pipe, "", EACH, body=b'{"n":"many"}')
        lines = f"{pipe}-lines"
        routes = {"rules": [{"when": "body.lines > 1", "to": ["crm"]}]}
        explode = [{"op": "explode", "path": "lines"}]
        cell.cluster.add_pipe(lines, key_of(f"{cell.name}-{lines}"), urls, normalize=explode, routes=routes)
        many = cell.send(self.input, lines, "", EACH, body=b'{"lines":[1,2,3]}')
        none = cell.send(self.input, lines, "", EACH, body=b'{"lines":"none"}')
        words = cell.send(self.input, lines, "", EACH, body=b'{"lines":["no number"]}')
        later = f"{pipe}-later"
        cell.cluster.add_pipe(later, key_of(f"{cell.name}-{later}"), urls, admitted=0)
        held = cell.send(self.input, later, "", EACH, key=b"alice")
        return {"good": good, "bad": bad, "many": many, "none": none, "words": words, "held": held}

    def is_covered(self, meta: MessageMeta, facts: Facts, /) -> bool:
        return format_position(meta.position) in facts["ingest", Fact.SENT]

    def check(self, cell: CrashCell, pipe: str, sent: dict[str, set[str]], facts_of: FactsOf) -> None:
        facts = facts_of(pipe)
        assert facts["ingest", Fact.SENT] == sent["good"] | sent["bad"]
        assert facts["normalize", Fact.DEAD] == sent["bad"]
        for name in ("crm", "lake"):
            assert facts[f"transform:{name}", Fact.SENT] == sent["good"]
        egress = cell.stored("egress", pipe)
        assert egress.keys() == sent["good"]
        assert max(egress.values()) <= 4, "two destinations, and at most one repeat for a crash"
        assert cell.stored("dead", pipe).keys() == sent["bad"]
        self._check_lines(cell, f"{pipe}-lines", sent, facts_of(f"{pipe}-lines"))
        assert facts_of(f"{pipe}-later")["normalize", Fact.HELD] == sent["held"]
        held = cell.stored("held", f"{pipe}-later")
        assert held.keys() == sent["held"]
        assert max(held.values()) <= 2, "a crash repeats a message at most once"

    def _check_lines(self, cell: CrashCell, pipe: str, sent: dict[str, set[str]], facts: Facts) -> None:
        assert facts["ingest", Fact.SENT] == sent["many"] | sent["none"] | sent["words"]
        assert facts["normalize", Fact.DEAD] == sent["none"]
        assert facts["route", Fact.DEAD] == sent["words"]
        assert facts["route", Fact.FILTERED] == sent["many"], "the first of the three children has no destination"
        egress = cell.stored("egress", pipe)
        assert egress.keys() == sent["many"]
        assert set(egress.values()) <= {2, 3, 4}, "the other two children, and at most one repeat for a crash"
