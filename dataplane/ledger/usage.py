"""CPU, events and bytes that a process spent, by pipe, reported with the facts and divided without remainder. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct

NO_PIPE: Final = ""  # the pipe under which CPU is counted that no pipe's work took


class PipeUsage(Struct, array_like=True, frozen=True):
    """Work of one writer for one pipe.

    units:      events accepted (ingest), messages run (process), attempts (the transmit lanes), messages passed on
                (retrier)
    size_bytes: size of their bodies
    effort:     weight by which the writer's CPU is divided; comparable only with the efforts of the same record
    refused:    events that ingest refused because the tenant's quota was exceeded; a request that was refused before
                its body was read counts as one
    """

    pipe: str
    units: int
    size_bytes: int
    effort: int
    refused: int = 0


class UsageReport(Struct, array_like=True, frozen=True):
    """Usage of one writer since its last report.

    busy_us, idle_us: CPU of its whole process, while work was in progress and while none was
    """

    busy_us: int
    idle_us: int
    pipes: list[PipeUsage]


class PipeShare(NamedTuple):
    """Share of one pipe in the usage of a writer."""

    units: int
    size_bytes: int
    cpu_us: int
    refused: int = 0

    def __add__(self, other: "PipeShare") -> "PipeShare":  # type: ignore[override]
        """Add two shares field by field."""
        return PipeShare(*map(sum, zip(self, other, strict=True)))


def spent(usage: UsageReport) -> dict[str, PipeShare]:
    """Return each pipe's share, and under NO_PIPE the rest: idle CPU, and CPU busy with no pipe's work.

    The sum of all cpu_us is busy_us + idle_us.
    """
    parts = divide(usage.busy_us, {one.pipe: one.effort for one in usage.pipes})
    rest_us = usage.idle_us + usage.busy_us - sum(parts.values())
    shares = {
        one.pipe: PipeShare(one.units, one.size_bytes, parts.get(one.pipe, 0), one.refused) for one in usage.pipes
    }
    return shares | {NO_PIPE: PipeShare(0, 0, rest_us)}


def divide(total: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Divide a total into whole parts by weight, exactly: the largest remainders get what rounding leaves.

    Each part differs from its exact share by less than 1. Without any weight there are no parts.
    """
    weight = sum(weights.values())
    if not weight:
        return {}
    parts = {name: total * own // weight for name, own in weights.items()}
    by_remainder = sorted(weights, key=lambda name: (-(total * weights[name] % weight), name))
    for name in by_remainder[: total - sum(parts.values())]:
        parts[name] += 1
    return parts
