"""The data plane's settings: environment variables read once, at a process's entry point."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from dataplane.addresses import DEFAULT_KAFKA, DEFAULT_WEB, INGEST_PORT
from dataplane.record_limits import BODY_BYTES
from dataplane.spec.clusters import Clusters, parse_clusters
from dataplane.spec.guard import Network, parse_networks
from dataplane.spec.kept import parse_lakes
from dataplane.spec.loops import Endpoint, parse_endpoints
from dataplane.tables.quotas import MIB, Quotas, parse_quotas


class Settings(Struct, frozen=True):
    """Limits and addresses. Each field names the variable it comes from."""

    kafka: str  # PENSTOCK_KAFKA: bootstrap servers
    var: Path  # PENSTOCK_VAR: where snapshots, journals and logs live
    fernet_keys: tuple[str, ...]  # PENSTOCK_FERNET_KEYS: comma-separated, the first encrypts
    ingest_host: str  # PENSTOCK_INGEST_HOST
    ingest_port: int  # PENSTOCK_INGEST_PORT
    grace_s: int  # PENSTOCK_GRACE_S: how late an event may be for its own minute
    max_event_bytes: int  # PENSTOCK_MAX_EVENT_BYTES: the body of one event, at most record_limits.BODY_BYTES
    max_body_bytes: int  # PENSTOCK_MAX_BODY_BYTES: one request, after decompression
    destination_allow: tuple[Network, ...]  # PENSTOCK_DESTINATION_ALLOW: networks allowed although not public
    destination_ca: str  # PENSTOCK_DESTINATION_CA: file of authorities to trust in place of the system's
    https_only: bool  # PENSTOCK_ENV is production: nothing is sent unencrypted
    checkpoint_ms: int  # PENSTOCK_CHECKPOINT_MS: how often a lane audits and commits
    max_unsettled: int  # PENSTOCK_MAX_UNSETTLED: messages in a lane's window, per partition
    web_url: str  # PENSTOCK_WEB_URL: where receipts are
    retry_rate_per_s: float  # PENSTOCK_RETRY_RATE: messages of one destination that a retrier lane brings back a second
    lakes: tuple[str, ...]  # PENSTOCK_LAKES: URLs below which tables may lie; the first where a spec names none
    clusters: Clusters  # PENSTOCK_KAFKA_CLUSTERS: a file of the Kafka clusters that sources may read
    dead_percent: int  # PENSTOCK_DEAD_PERCENT: of a pipe's messages in a minute that may die in its steps, ...
    dead_least: int  # PENSTOCK_DEAD_LEAST: ... once so many have come; past it the pipe is held
    fields: str  # PENSTOCK_FIELDS: what is looked at in a sample of the messages: values | names | off
    lake_every_s: float  # PENSTOCK_LAKE_EVERY_S: how often what has come is written to the lake
    own_ingest: frozenset[Endpoint]  # PENSTOCK_INGEST_URL, PENSTOCK_INGEST_PORT, PENSTOCK_OWN_INGEST: never sent to
    quotas: Quotas  # PENSTOCK_QUOTAS: limits of a tenant to which staff have given none of its own
    in_flight_bytes: int  # PENSTOCK_IN_FLIGHT_BYTES: bodies of all tenants that an ingest replica works on at once


def settings_from(env: Mapping[str, str] = os.environ) -> Settings:
    """Read the environment; every variable has a default that suits one box in development."""
    return Settings(
        kafka=env.get("PENSTOCK_KAFKA", DEFAULT_KAFKA),
        var=Path(env.get("PENSTOCK_VAR", "var")).absolute(),
        fernet_keys=tuple(filter(None, env.get("PENSTOCK_FERNET_KEYS", "").split(","))),
        ingest_host=env.get("PENSTOCK_INGEST_HOST", "127.0.0.1"),
        ingest_port=int(env.get("PENSTOCK_INGEST_PORT", str(INGEST_PORT))),
        grace_s=int(env.get("PENSTOCK_GRACE_S", "60")),
        max_event_bytes=_event_bytes(env.get("PENSTOCK_MAX_EVENT_BYTES", str(256 * 1024))),
        max_body_bytes=int(env.get("PENSTOCK_MAX_BODY_BYTES", str(5 * 1024 * 1024))),
        destination_allow=parse_networks(env.get("PENSTOCK_DESTINATION_ALLOW", "")),
        destination_ca=env.get("PENSTOCK_DESTINATION_CA", ""),
        https_only=env.get("PENSTOCK_ENV", "development") == "production",
        checkpoint_ms=int(env.get("PENSTOCK_CHECKPOINT_MS", "200")),
        max_unsettled=int(env.get("PENSTOCK_MAX_UNSETTLED", "20000")),
        web_url=env.get("PENSTOCK_WEB_URL", DEFAULT_WEB).rstrip("/"),
        lakes=parse_lakes(env.get("PENSTOCK_LAKES", ""), env.get("PENSTOCK_VAR", "var")),
        clusters=read_clusters(env.get("PENSTOCK_KAFKA_CLUSTERS", "")),
        lake_every_s=float(env.get("PENSTOCK_LAKE_EVERY_S", "10")),
        own_ingest=parse_endpoints(
            f"127.0.0.1:{env.get('PENSTOCK_INGEST_PORT', INGEST_PORT)}",
            env.get("PENSTOCK_INGEST_URL", ""),
            env.get("PENSTOCK_OWN_INGEST", ""),
        ),
        quotas=parse_quotas(env.get("PENSTOCK_QUOTAS", "")),
        in_flight_bytes=int(env.get("PENSTOCK_IN_FLIGHT_BYTES", str(256 * MIB))),
        fields=_fields_mode(env.get("PENSTOCK_FIELDS", "values")),
        dead_percent=int(env.get("PENSTOCK_DEAD_PERCENT", "50")),
        dead_least=int(env.get("PENSTOCK_DEAD_LEAST", "100")),
        retry_rate_per_s=float(env.get("PENSTOCK_RETRY_RATE", "1000")),
    )


def read_clusters(path: str) -> Clusters:
    """The clusters in a file; none without one. Raises OSError, ValueError."""
    return parse_clusters(Path(path).read_bytes()) if path else {}


def _event_bytes(text: str) -> int:
    """Raises ValueError for a limit under which events could be accepted that no topic stores."""
    if not 0 < int(text) <= BODY_BYTES:
        raise ValueError(f"PENSTOCK_MAX_EVENT_BYTES: needs 1 to {BODY_BYTES}, got {text}")
    return int(text)


def _fields_mode(text: str) -> str:
    """Raises ValueError: with a word that means nothing, more might be kept than was meant."""
    if text not in ("values", "names", "off"):
        raise ValueError(f"PENSTOCK_FIELDS: needs values, names or off, got {text!r}")
    return text
