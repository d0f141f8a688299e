"""What a process spent and on which pipes, told beside the facts, and divided so that nothing is left over. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct

NOBODY: Final = ""  # the pipe of CPU that no pipe's work took


class PipeUsage(Struct, array_like=True, frozen=True):
    """What one writer did for one pipe.

    units:      events taken in (ingest), messages run (process), attempts (transmit and its like), messages passed on
                (retrier)
    size_bytes: of their bodies
    effort:     what the writer's CPU is divided by; means something only beside the efforts of the same record
    refused:    events that ingest refused because the tenant's quota was exceeded; a request that was refused before
                its body was read counts as one
    """

    pipe: str
    units: int
    size_bytes: int
    effort: int
    refused: int = 0


class Usage(Struct, array_like=True, frozen=True):
    """What one writer spent since it last said so.

    busy_us, idle_us: CPU of its whole process, while something was under way and while nothing was
    """

    busy_us: int
    idle_us: int
    pipes: list[PipeUsage]


class Spent(NamedTuple):
    """A pipe's part."""

    units: int
    size_bytes: int
    cpu_us: int
    refused: int = 0

    def __add__(self, other: "Spent") -> "Spent":  # type: ignore[override]
        """Both together."""
        return Spent(*map(sum, zip(self, other, strict=True)))


def spent(usage: Usage) -> dict[str, Spent]:
    """Each pipe's part, and under NOBODY the rest: what was idle, and what was busy with no pipe's work.

    All cpu_us together are busy_us + idle_us.
    """
    parts = divide(usage.busy_us, {one.pipe: one.effort for one in usage.pipes})
    rest_us = usage.idle_us + usage.busy_us - sum(parts.values())
    mine = {one.pipe: Spent(one.units, one.size_bytes, parts.get(one.pipe, 0), one.refused) for one in usage.pipes}
    return mine | {NOBODY: Spent(0, 0, rest_us)}


def divide(total: int, weights: Mapping[str, int]) -> dict[str, int]:
    """The total in whole parts by weight, exactly: what rounding leaves goes to the largest remainders.

    No part is a whole unit away from its share. Without any weight there are no parts.
    """
    whole = sum(weights.values())
    if not whole:
        return {}
    parts = {name: total * weight // whole for name, weight in weights.items()}
    by_rest = sorted(weights, key=lambda name: (-(total * weights[name] % whole), name))
    for name in by_rest[: total - sum(parts.values())]:
        parts[name] += 1
    return parts
