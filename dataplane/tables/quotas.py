"""Quotas: limits on what one tenant may use. Their kinds, defaults and bounds. Pure.

Staff may give a tenant its own limits; the others are the installation's defaults, from PENSTOCK_QUOTAS.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

MIB: Final = 1024 * 1024


class Quotas(Struct, frozen=True, kw_only=True):
    """The limits of one tenant. KINDS describes each."""

    events_per_s: int = 5_000
    bytes_per_s: int = 20 * MIB
    in_flight_bytes: int = 64 * MIB
    process_weight: int = 100
    pipes: int = 1_000
    destinations_per_pipe: int = 50
    topics: int = 50
    partitions: int = 200
    api_keys: int = 2_000
    live_tails: int = 8
    live_tails_per_user: int = 4
    subjects: int = 1_000
    schema_versions: int = 10_000
    replay_units_per_s: int = 500
    table_sources: int = 20


class QuotaKind(NamedTuple):
    """One kind of quota: its bounds, its unit and its meaning in words."""

    name: str
    least: int
    most: int
    unit: str
    label: str
    meaning: str


_LIST: Final = (
    QuotaKind("events_per_s", 1, 10_000_000, "events/s", "Events per second", "events that ingest accepts per second"),
    QuotaKind("bytes_per_s", 1_024, 10**11, "bytes/s", "Bytes per second", "request bodies, decompressed, per second"),
    QuotaKind(
        "in_flight_bytes", 8 * MIB, 10**11, "bytes", "Bytes in flight",
        "request bodies that one ingest replica is reading or storing at the same time",
    ),
    QuotaKind(
        "process_weight", 1, 10_000, "", "Processing weight",
        "share of the process lanes' CPU relative to other tenants while they compete; 100 is normal",
    ),
    QuotaKind("pipes", 0, 100_000, "pipes", "Pipes", "pipes that are not closed"),
    QuotaKind("destinations_per_pipe", 1, 50, "destinations", "Destinations per pipe", "destinations of one pipe"),
    QuotaKind("topics", 0, 10_000, "topics", "Topics", "destinations of type topic, over all pipes"),
    QuotaKind("partitions", 0, 100_000, "partitions", "Partitions", "partitions of these topics together"),
    QuotaKind("api_keys", 0, 1_000_000, "keys", "API keys", "keys that are neither revoked nor expired"),
    QuotaKind("live_tails", 0, 1_000, "live tails", "Live tails", "live tails that are open at the same time"),
    QuotaKind("live_tails_per_user", 0, 1_000, "live tails", "Live tails per user", "of these, by one user"),
    QuotaKind("subjects", 0, 100_000, "subjects", "Subjects", "subjects of the schema registry"),
    QuotaKind("schema_versions", 0, 1_000_000, "versions", "Schema versions", "versions of these subjects together"),
    QuotaKind(
        "replay_units_per_s", 1, 100_000, "units/s", "Replay rate",
        "highest rate of a replay, over all its destinations; a tenant has one replay at a time",
    ),
    QuotaKind(
        "table_sources", 0, 1_000, "sources", "Table sources",
        "sources of type table, over all pipes that are not closed; each costs every ingest replica a Kafka consumer",
    ),
)  # fmt: skip
KINDS: Final[Mapping[str, QuotaKind]] = {kind.name: kind for kind in _LIST}
# Quotas that the data plane enforces; the tenant's control record has them.
IN_DATA_PLANE: Final = ("events_per_s", "bytes_per_s", "in_flight_bytes", "process_weight")


class QuotaError(ValueError):
    """A limit cannot be set. `kind`: name of the quota; `reason`: what is needed."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason


def checked_limits(limits: Mapping[str, int | None]) -> dict[str, int]:
    """Return the limits without those that are None. Raises QuotaError for an unknown kind or an invalid limit."""
    given = {name: limit for name, limit in limits.items() if limit is not None}
    for name, limit in given.items():
        kind = KINDS.get(name)
        if kind is None:
            raise QuotaError(name, f"is not a kind of quota; the kinds are {', '.join(KINDS)}")
        if not kind.least <= limit <= kind.most:
            raise QuotaError(name, f"needs {kind.least} to {kind.most}, got {limit}")
    return given


def limits_of(defaults: Quotas, own: Mapping[str, int | None]) -> Quotas:
    """Return the limits that apply to a tenant: its own, and defaults for the others.

    An unknown kind is ignored: a later release may have written it.
    """
    return msgspec.structs.replace(defaults, **{k: v for k, v in own.items() if v is not None and k in KINDS})


def parse_quotas(text: str) -> Quotas:
    """Return an installation's defaults from `kind=limit,...`; others are those of Quotas. Raises QuotaError."""
    given: dict[str, int | None] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, limit = part.partition("=")
        if not limit.strip().isdecimal():
            raise QuotaError(name.strip(), f"needs kind=limit with a whole number, got {part!r}")
        given[name.strip()] = int(limit)
    return msgspec.structs.replace(Quotas(), **checked_limits(given))
