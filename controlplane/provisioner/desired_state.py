"""Control records that the rows require, by key and version. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from controlplane.control_topic import end_of
from controlplane.provisioner.snapshot import ProvisionerSnapshot, RevisionSnapshot
from dataplane.names import ALL_KEYS_PERCENT
from dataplane.tables.records import (
    api_key_key,
    cell_key,
    destination_key,
    event_types_key,
    pipe_key,
    plan_key,
    quota_key,
    redrive_key,
    replay_key,
    schema_key,
    shadow_key,
    subject_key,
    webhook_key,
)

OPEN = ("requested", "ramping")


def wanted_versions(snapshot: ProvisionerSnapshot) -> dict[str, int]:
    """Return the version of each record that should be in the control topic, in the order in which to write them.

    Redrives, releases, replays and shadow runs come last: their messages meet the state that their destination was
    given before, and the driver has the plan that a replay runs or that a draft is compared with.
    A subject precedes the event types that use it: ingest refuses events of a type whose subject it does not hold.
    A pipe's own record comes after its plans, schemas, event types, webhook settings and destinations, and its API keys
    after that: a reader that holds a key's record holds everything needed to accept events with it. A pipe has no
    record before one of its revisions is ramping, because it could run nothing.
    """
    placed = {p.id for p in snapshot.pipes if p.cell is not None}
    routed = weights_by_pipe(snapshot.revisions)
    wanted = {quota_key(tenant): version for tenant, version in snapshot.quotas.items()}
    wanted |= {cell_key(c.id): c.version for c in snapshot.cells if c.bound}
    wanted |= {plan_key(r.pipe, r.number): 1 for r in snapshot.revisions if r.pipe in placed and r.state != "failed"}
    wanted |= {schema_key(s.pipe, s.name): s.version for s in snapshot.schemas if s.pipe in placed}
    wanted |= {subject_key(tenant, name): version for (tenant, name), version in snapshot.subjects.items()}
    wanted |= {event_types_key(e.pipe, e.name): e.version for e in snapshot.event_types if e.pipe in placed}
    wanted |= {webhook_key(w.pipe, w.name): w.version for w in snapshot.webhooks if w.pipe in placed}
    wanted |= {destination_key(d.pipe, d.name): d.version for d in snapshot.destinations if d.pipe in placed}
    wanted |= {pipe_key(p.id): p.version for p in snapshot.pipes if p.id in placed and p.id in routed}
    wanted |= {api_key_key(k.name): k.version for k in snapshot.keys if k.pipe in placed}
    wanted |= {redrive_key(m.name): m.version for m in snapshot.redrives if m.pipe in placed}
    wanted |= {replay_key(r.name): r.version for r in snapshot.replays if r.pipe in placed}
    wanted |= {shadow_key(s.name): s.version for s in snapshot.shadows if s.pipe in placed}
    return wanted


class DesiredState(Struct, frozen=True):
    """A snapshot and the records that its rows require; decisions are made from both."""

    snapshot: ProvisionerSnapshot
    wanted: Mapping[str, int]

    def end_of(self, keys: Sequence[str]) -> int | None:
        """Return the control topic's offset after the records of these keys, or None while one is not published."""
        return end_of(keys, self.wanted, self.snapshot.published)


def weights_by_pipe(
    revisions: Iterable[RevisionSnapshot], shares: Mapping[int, int] | None = None
) -> dict[str, list[tuple[int, int]]]:
    """Return by pipe (revision number, percent of its keys): the newest ramping one first, the rest for the live one.

    `shares`: percent of the open ramps, by the revision's id; a revision that ramps without one takes all keys.
    """
    shares = shares or {}
    ramping: dict[str, tuple[int, int]] = {}
    live: dict[str, int] = {}
    for revision in revisions:
        if revision.state == "ramping":
            weight = (revision.number, shares.get(revision.id, 0))
            ramping[revision.pipe] = max(weight, ramping.get(revision.pipe, weight))
        elif revision.state == "live":
            live[revision.pipe] = revision.number
    only_live = {pipe: [(number, ALL_KEYS_PERCENT)] for pipe, number in live.items()}
    return only_live | {pipe: _weights(*weight, live.get(pipe)) for pipe, weight in ramping.items()}


def _weights(number: int, share: int, live: int | None) -> list[tuple[int, int]]:
    if not share or live is None:
        return [(number, ALL_KEYS_PERCENT)]
    return [(number, share), (live, ALL_KEYS_PERCENT - share)]
