"""What one step of a rating says: whether the cell kept up, what held it up if not, what each group took. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from controlplane.autoscaler.figures import Figure
from controlplane.rating.search import Outcome

Group = Literal["ingest", "process", "transmit"]
GROUPS: Final[tuple[Group, ...]] = ("ingest", "process", "transmit")  # in order of travel
LANES: Final[tuple[Literal["process", "transmit"], ...]] = ("process", "transmit")
UNITS: Final[Mapping[Group, str]] = {"ingest": "ingest replica", "process": "process lane", "transmit": "transmit lane"}

NEARLY: Final = 0.95  # of what was wanted, or of what came: less is not keeping up
SLOW_ACK_US: Final = 1_000_000
BEHIND_S: Final = 1.0  # a group with more than this waiting is behind
FULL: Final = 0.85  # of a core: a process with one loop gets no further
MACHINE_FULL: Final = 0.95
NONE, SENDER, MACHINE, DESTINATION, WAITING = "none", "sender", "machine", "destination", "waiting"


class Step(Struct, frozen=True):
    """One rate, held for some seconds.

    wanted, acked: events a second         refused: requests that were not ACKed
    sender_cpu, receiver_cpu: cores of the processes at both ends
    machine:       share of all cores of this machine that was busy, whoever used them
    groups:        of each group what it did; ingest has no backlog that anybody could see
    """

    wanted: float
    acked: float
    refused: int
    ack_p95_us: int
    sender_cpu: float
    receiver_cpu: float
    machine: float
    cores: int
    groups: Mapping[Group, Figure]


class Bottleneck(Struct, frozen=True):
    """What kept more from passing. `where`: a group, or a word above; and how it shows, in words.

    group: the one whose ceiling was reached, so that its rate is no mere "at least"; "" if none was
    """

    where: str
    words: str
    group: str = ""


class Rated(Struct, frozen=True):
    """What one unit of a group takes: events a second, and CPU microseconds that one of them costs."""

    group: Group
    units: int
    per_s: float
    at_least: bool
    cpu_us: float


def outcome_of(step: Step) -> Outcome:
    """Whether all that was wanted was sent, ACKed in time, and carried on as it came."""
    if late_groups(step):
        return "behind"
    if step.acked >= NEARLY * step.wanted:
        return "held"
    return "sender" if step.sender_cpu >= FULL else "behind"


def late_groups(step: Step) -> list[Group]:
    """The groups that fell behind, in order of travel."""
    ingest: list[Group] = ["ingest"] if step.refused or step.ack_p95_us > SLOW_ACK_US else []
    return ingest + [group for group in LANES if _is_late(step.groups[group])]


def _is_late(figure: Figure) -> bool:
    return figure.backlog > BEHIND_S * figure.came or figure.settled < NEARLY * figure.came


def bottleneck_of(step: Step) -> Bottleneck:
    """What held this step up: one that was not held, or the last one that was, if nothing was too much."""
    match outcome_of(step):
        case "held":
            return Bottleneck(NONE, f"none was reached up to {step.acked:.0f} events a second")
        case "sender":
            words = f"the sender: it sends {step.acked:.0f} events a second at {_cores(step.sender_cpu)}"
            return Bottleneck(SENDER, words)
    late: Sequence[Group] = late_groups(step) or ["ingest"]
    full = [group for group in late if _of_one(step.groups[group]) >= FULL]
    if full:
        used = _cores(_of_one(step.groups[full[0]]))
        return Bottleneck(full[0], f"CPU of {full[0]}: each {UNITS[full[0]]} is at its ceiling with {used}", full[0])
    if late[-1] == "transmit" and step.receiver_cpu >= FULL:
        return Bottleneck(
            DESTINATION, f"the destination: the receiver is at its ceiling with {_cores(step.receiver_cpu)}"
        )
    if step.machine >= MACHINE_FULL:
        used = ", ".join(f"{group} {step.groups[group].cpu:.2f}" for group in GROUPS)
        ends = f"sender {step.sender_cpu:.2f}, receiver {step.receiver_cpu:.2f}"
        words = f"the machine: its {step.cores} cores are busy to {step.machine:.0%} ({used}, {ends}, the rest others)"
        return Bottleneck(MACHINE, words)
    used = _cores(_of_one(step.groups[late[0]]))
    words = (
        f"{late[0]} waits for something that is not CPU (a broker, a disk, a lock): each {UNITS[late[0]]} uses {used}"
    )
    return Bottleneck(WAITING, words, late[0])


def rated(best: Step, bottleneck: Bottleneck) -> list[Rated]:
    """What each group's units took in the best step that held."""
    return [
        Rated(
            group=group,
            units=figure.lanes,
            per_s=figure.settled / figure.lanes,
            at_least=group != bottleneck.group,
            cpu_us=figure.cpu / figure.settled * 1_000_000,
        )
        for group, figure in ((group, best.groups[group]) for group in GROUPS)
        if figure.lanes and figure.settled
    ]


def _of_one(figure: Figure) -> float:
    return figure.cpu / max(1, figure.lanes)


def _cores(cores: float) -> str:
    return f"{cores:.2f} of a core"
