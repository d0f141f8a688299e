"""Judge one step of a capacity test: outcome, bottleneck, and the capacity of each group. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from controlplane.autoscaler.figures import GroupRates
from controlplane.capacity_test.search import Outcome

Group = Literal["ingest", "process", "transmit"]
GROUPS: Final[tuple[Group, ...]] = ("ingest", "process", "transmit")  # in order of travel
LANES: Final[tuple[Literal["process", "transmit"], ...]] = ("process", "transmit")
UNITS: Final[Mapping[Group, str]] = {"ingest": "ingest replica", "process": "process lane", "transmit": "transmit lane"}

NEARLY: Final = 0.95  # of the wanted or arrived rate: a group below this share does not keep up
SLOW_ACK_US: Final = 1_000_000
BEHIND_S: Final = 1.0  # a group with a longer backlog, in seconds of arrivals, is behind
FULL: Final = 0.85  # of a core: the limit of a process with one loop
MACHINE_FULL: Final = 0.95
NONE, SENDER, MACHINE, DESTINATION, WAITING = "none", "sender", "machine", "destination", "waiting"


class RateStep(Struct, frozen=True):
    """One rate, held for some seconds.

    wanted, acked: events per second
    refused:       requests that were not ACKed
    sender_cpu, receiver_cpu: cores used by sender and receiver
    machine:       busy share (0..1) of all cores of this machine, by any process
    groups:        rates of each group; the backlog of ingest is not visible
    """

    wanted: float
    acked: float
    refused: int
    ack_p95_us: int
    sender_cpu: float
    receiver_cpu: float
    machine: float
    cores: int
    groups: Mapping[Group, GroupRates]


class Bottleneck(Struct, frozen=True):
    """Bottleneck of a step.

    where: a group, or NONE, SENDER, MACHINE, DESTINATION or WAITING
    words: the evidence, in words
    group: the group that reached its limit, so that its rate is exact and not an "at least"; "" if none did
    """

    where: str
    words: str
    group: str = ""


class GroupCapacity(Struct, frozen=True):
    """Capacity of one unit of a group: events per second, and CPU microseconds per event."""

    group: Group
    units: int
    per_s: float
    at_least: bool
    cpu_us: float


def outcome_of(step: RateStep) -> Outcome:
    """Return `held` if the wanted rate was sent, ACKed in time and settled by all lanes; else `sender` or `behind`."""
    if late_groups(step):
        return "behind"
    if step.acked >= NEARLY * step.wanted:
        return "held"
    return "sender" if step.sender_cpu >= FULL else "behind"


def late_groups(step: RateStep) -> list[Group]:
    """Return the groups that fell behind, in order of travel."""
    ingest: list[Group] = ["ingest"] if step.refused or step.ack_p95_us > SLOW_ACK_US else []
    return ingest + [group for group in LANES if _is_late(step.groups[group])]


def _is_late(figure: GroupRates) -> bool:
    return figure.backlog > BEHIND_S * figure.came or figure.settled < NEARLY * figure.came


def bottleneck_of(step: RateStep) -> Bottleneck:
    """Return the bottleneck of a step that did not hold, or of the last one that did if no rate was too high."""
    match outcome_of(step):
        case "held":
            return Bottleneck(NONE, f"none up to {step.acked:.0f} events per second")
        case "sender":
            words = f"the sender: it sends {step.acked:.0f} events per second with {_cores(step.sender_cpu)}"
            return Bottleneck(SENDER, words)
    late: Sequence[Group] = late_groups(step) or ["ingest"]
    full = [group for group in late if _cpu_per_unit(step.groups[group]) >= FULL]
    if full:
        used = _cores(_cpu_per_unit(step.groups[full[0]]))
        return Bottleneck(full[0], f"CPU of {full[0]}: each {UNITS[full[0]]} is at its limit with {used}", full[0])
    if late[-1] == "transmit" and step.receiver_cpu >= FULL:
        return Bottleneck(
            DESTINATION, f"the destination: the receiver is at its limit with {_cores(step.receiver_cpu)}"
        )
    if step.machine >= MACHINE_FULL:
        used = ", ".join(f"{group} {step.groups[group].cpu:.2f}" for group in GROUPS)
        ends = f"sender {step.sender_cpu:.2f}, receiver {step.receiver_cpu:.2f}"
        words = (
            f"the machine: its {step.cores} cores are {step.machine:.0%} busy ({used}, {ends}, rest: other processes)"
        )
        return Bottleneck(MACHINE, words)
    used = _cores(_cpu_per_unit(step.groups[late[0]]))
    words = (
        f"{late[0]} waits for something that is not CPU (a broker, a disk, a lock): each {UNITS[late[0]]} uses {used}"
    )
    return Bottleneck(WAITING, words, late[0])


def capacity_results(best: RateStep, bottleneck: Bottleneck) -> list[GroupCapacity]:
    """Return the capacity per unit of each group, from the best step that held."""
    return [
        GroupCapacity(
            group=group,
            units=figure.lanes,
            per_s=figure.settled / figure.lanes,
            at_least=group != bottleneck.group,
            cpu_us=figure.cpu / figure.settled * 1_000_000,
        )
        for group, figure in ((group, best.groups[group]) for group in GROUPS)
        if figure.lanes and figure.settled
    ]


def _cpu_per_unit(figure: GroupRates) -> float:
    return figure.cpu / max(1, figure.lanes)


def _cores(cores: float) -> str:
    return f"{cores:.2f} of a core"
