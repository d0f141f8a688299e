"""Builds the missing control records from their rows."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct

from controlplane.provisioner.desired_state import weights_by_pipe
from controlplane.provisioner.snapshot import RevisionSnapshot
from dataplane.names import ALL_KEYS_PERCENT
from dataplane.record_limits import CLIENT_MAX_BYTES, wire_bytes
from dataplane.schemas.standard import EPOCH
from dataplane.spec import SpecError, TableDestination, destination_of, encoding_of, parse_pipe_spec
from dataplane.tables.quotas import IN_DATA_PLANE
from dataplane.tables.records import (
    MAX_SUBJECT_BYTES,
    ApiKeyRecord,
    CellRecord,
    DestinationRecord,
    EventTypesRecord,
    PipeRecord,
    PlanRecord,
    QuotaRecord,
    Record,
    RedriveRecord,
    RegisteredSchema,
    ReplayRecord,
    SchemaRecord,
    ShadowRecord,
    SubjectRecord,
    TopicRecord,
    WebhookRecord,
    api_key_key,
    cell_key,
    destination_key,
    encode_record,
    event_types_key,
    pipe_key,
    plan_key,
    quota_key,
    record_key,
    redrive_key,
    replay_key,
    schema_key,
    shadow_key,
    subject_key,
    webhook_key,
)
from dataplane.tables.redrives import encode_offsets
from mgmt.deliveries.services.offset_sets import united
from mgmt.models import (
    Admission,
    ApiKey,
    Cell,
    Destination,
    LookupTable,
    Pipe,
    PipeMigration,
    PipeRevision,
    Ramp,
    Redrive,
    Replay,
    Shadow,
    SourceEventTypes,
    SourceSchema,
    SourceWebhook,
    Subject,
    SubjectVersion,
    TenantQuota,
)
from mgmt.registry.queries import as_registered, registered_schema

DestinationRecordState = Literal["active", "paused", "suspended", "removed"]
PipeState = Literal["active", "paused", "closed"]
_REPLAY_STATES: Final[Mapping[str, Literal["running", "paused"]]] = {
    Replay.State.RUNNING: "running",
    Replay.State.PAUSED: "paused",
}
# Every process of the data plane keeps the record of an ended run, so it has not the draft, of up to 1 MB.
_NO_DRAFT: Final = {"sources": {"none": {}}, "destinations": {"none": {"type": "lake"}}}


class BuiltRecords(Struct, frozen=True):
    """Records in the requested order, and the keys whose record could not be built: {key: why}."""

    records: list[Record]
    broken: dict[str, str]


def desired_records(keys: Iterable[str]) -> BuiltRecords:
    """Build the records of `keys` from the rows as they are now, which may be newer than those of the decision."""
    keys = list(keys)
    found: dict[str, Record] = {}
    broken: dict[str, str] = {}
    kinds = _by_kind(keys)
    for kind, build in BUILDERS.items():
        if kinds.get(kind):
            build(kinds[kind], found, broken)
    records = [found[key] for key in keys if key in found]
    broken |= {
        record_key(one): "the record is too large for the control topic" for one in records if _is_too_large(one)
    }
    return BuiltRecords([one for one in records if record_key(one) not in broken], broken)


def _is_too_large(record: Record) -> bool:
    """Return True if Kafka's client would refuse the record, which ends the publication of all others."""
    return wire_bytes(encode_record(record), record_key(record).encode(), []) > CLIENT_MAX_BYTES


def _by_kind(keys: Iterable[str]) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for key in keys:
        kind, _, name = key.partition("/")
        kinds.setdefault(kind, []).append(name)
    return kinds


def _build_cells(names: list[str], found: dict[str, Record], _broken: dict[str, str]) -> None:
    for cell in Cell.objects.filter(id__in=names).prefetch_related("topics"):
        # Lanes write to and read the newest generation; older ones are only drained (not implemented yet).
        topics: dict[Any, TopicRecord] = {}
        for topic in sorted(cell.topics.all(), key=lambda topic: topic.generation):
            topics[topic.purpose] = TopicRecord(topic.name, topic.generation, topic.partitions, topic.topic_id)
        found[cell_key(cell.id)] = CellRecord(
            cell=cell.id, version=cell.version, epoch=cell.epoch, lanes=dict(cell.lanes), topics=topics
        )


def _build_pipes(names: list[str], found: dict[str, Record], _broken: dict[str, str]) -> None:
    rows = PipeRevision.objects.filter(pipe_id__in=names, state__in=["ramping", "live"]).order_by()
    views = [RevisionSnapshot(*row) for row in rows.values_list("id", "pipe_id", "number", "state")]
    shares = Ramp.objects.filter(revision__in=[view.id for view in views], ended_at=None)
    weights = weights_by_pipe(views, dict(shares.values_list("revision_id", "share")))
    run_as = _run_as(names)
    draining = PipeMigration.objects.filter(pipe_id__in=names, state=PipeMigration.State.DRAINING)
    leaving = dict(draining.values_list("pipe_id", "source_id"))
    held = PipeMigration.objects.filter(pipe_id__in=names, state__in=PipeMigration.UNDER_WAY, held_at__isnull=False)
    held_at = dict(held.values_list("pipe_id", "target_id"))
    admitted = dict(Admission.objects.filter(pipe__in=names, ended_at=None).values_list("pipe_id", "share"))
    for pipe in Pipe.objects.filter(id__in=names).select_related("tenant"):
        if pipe.cell_id is None or pipe.id not in weights:
            continue
        found[pipe_key(pipe.id)] = PipeRecord(
            pipe=pipe.id,
            version=pipe.version,
            tenant=pipe.tenant_id,
            name=pipe.name,
            cell=pipe.cell_id,
            state=cast(PipeState, pipe.state),
            weights=weights[pipe.id],
            run_as=run_as[pipe.id],
            salt=pipe.tenant.mask_salt,
            cause=pipe.state_cause,
            leaving=leaving.get(pipe.id, ""),
            admitted=admitted.get(pipe.id, ALL_KEYS_PERCENT),
            by_shares=pipe.id in admitted,
            held_at=held_at.get(pipe.id, ""),
        )


def _run_as(pipes: list[str]) -> Mapping[str, dict[int, int]]:
    """Return, for each pipe, its rolled-back revisions and the revision that runs the messages stamped with them."""
    rolled_back = Ramp.objects.filter(revision__pipe__in=pipes, revision__state=PipeRevision.State.FAILED)
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for pipe, number, stable in rolled_back.values_list("revision__pipe_id", "revision__number", "stable__number"):
        found[pipe][number] = stable
    return found


def _build_plans(names: list[str], found: dict[str, Record], broken: dict[str, str]) -> None:
    wanted = set(names)
    rows = PipeRevision.objects.filter(pipe_id__in={name.partition("@")[0] for name in names}).order_by()
    for pipe, number, spec in rows.values_list("pipe_id", "number", "spec"):
        key = plan_key(pipe, number)
        if f"{pipe}@{number}" not in wanted:
            continue
        try:
            found[key] = PlanRecord(pipe=pipe, revision=number, spec=parse_pipe_spec(spec))
        except SpecError as exc:
            broken[key] = f"the spec cannot run: {exc}"


def _build_destinations(names: list[str], found: dict[str, Record], broken: dict[str, str]) -> None:
    wanted = set(names)
    rows = Destination.objects.filter(pipe_id__in={name.partition("/")[0] for name in names})
    for row in rows.select_related("pipe"):
        key = destination_key(row.pipe_id, row.name)
        if f"{row.pipe_id}/{row.name}" not in wanted:
            continue
        try:
            config = destination_of(row.config)
        except msgspec.ValidationError as exc:
            broken[key] = f"destination {row.name} cannot be used: {exc}"
            continue
        encoding = encoding_of(config)
        schema = None
        if encoding is not None:
            schema = registered_schema(row.pipe.tenant_id, encoding.subject, encoding.version)
        if encoding is not None and schema is None:
            broken[key] = f"destination {row.name} cannot be used: no version {encoding.version} of {encoding.subject}"
            continue
        found[key] = DestinationRecord(
            pipe=row.pipe_id,
            name=row.name,
            version=row.version,
            state=cast(DestinationRecordState, row.state),
            to=config,
            secrets=list(row.secrets),
            credential=row.credential,
            since_us=int(row.state_since.timestamp() * 1_000_000),
            probe=row.probe,
            table=_table_id(row.pipe.tenant_id, config.table) if isinstance(config, TableDestination) else "",
            schema=schema,
        )


def _table_id(tenant: str, name: str) -> str:
    """Return the id of the tenant's look-up table of that name; it cannot be removed while a revision feeds it."""
    live = LookupTable.objects.filter(tenant_id=tenant, name=name, state=LookupTable.State.LIVE)
    return live.values_list("id", flat=True).first() or ""


def _build_schemas(names: list[str], found: dict[str, Record], _broken: dict[str, str]) -> None:
    rows = SourceSchema.objects.filter(source__pipe_id__in={name.partition("/")[0] for name in names})
    for pipe, source, number, text in rows.order_by("number").values_list(
        "source__pipe_id", "source__name", "number", "text"
    ):
        if f"{pipe}/{source}" in names:  # the newest comes last
            found[schema_key(pipe, source)] = SchemaRecord(pipe, source, number, text)


def _build_subjects(names: list[str], found: dict[str, Record], _broken: dict[str, str]) -> None:
    wanted = {(tenant, subject) for tenant, _, subject in (name.partition("/") for name in names)}
    rows = Subject.objects.filter(tenant__in={one[0] for one in wanted}, name__in={one[1] for one in wanted})
    for row in rows:
        schemas = _newest_schemas(row) if (row.tenant_id, row.name) in wanted else []
        if schemas:
            key = subject_key(row.tenant_id, row.name)
            found[key] = SubjectRecord(row.tenant_id, row.name, schemas[-1].number, schemas)


def _newest_schemas(subject: Subject) -> list[RegisteredSchema]:
    """Return the newest versions of a subject that have MAX_SUBJECT_BYTES together as JSON text, the newest last."""
    rows = SubjectVersion.objects.filter(subject=subject).order_by("-number").select_related("schema")
    found: list[RegisteredSchema] = []
    size = 0
    for row in rows.iterator(chunk_size=20):
        size += len(msgspec.json.encode(row.schema.document))
        if found and size > MAX_SUBJECT_BYTES:
            break
        found.append(as_registered(row))
    return found[::-1]


def _build_event_types(names: list[str], found: dict[str, Record], _broken: dict[str, str]) -> None:
    rows = SourceEventTypes.objects.filter(source__pipe__in={name.partition("/")[0] for name in names})
    for row in rows.select_related("source").prefetch_related("types__subject"):
        pipe, source = row.source.pipe_id, row.source.name
        if f"{pipe}/{source}" in names:
            subjects = {one.name: one.subject.name for one in row.types.all()}
            found[event_types_key(pipe, source)] = EventTypesRecord(pipe, source, row.version, row.type_from, subjects)


def _build_webhooks(names: list[str], found: dict[str, Record], _broken: dict[str, str]) -> None:
    rows = SourceWebhook.objects.filter(source__pipe__in={name.partition("/")[0] for name in names})
    for row in rows.select_related("source"):
        pipe, source = row.source.pipe_id, row.source.name
        if f"{pipe}/{source}" in names:
            found[webhook_key(pipe, source)] = WebhookRecord(
                pipe, source, row.version, row.preset, list(row.secrets), list(row.headers)
            )


def _build_keys(names: list[str], found: dict[str, Record], _broken: dict[str, str]) -> None:
    rows = ApiKey.objects.filter(digest__in=names)
    for digest, version, pipe, source, revoked, expires_at in rows.values_list(
        "digest", "version", "source__pipe_id", "source__name", "revoked_at", "expires_at"
    ):
        expires_us = int(expires_at.timestamp() * 1_000_000) if expires_at else 0
        found[api_key_key(digest)] = ApiKeyRecord(digest, version, pipe, source, revoked is not None, expires_us)


def _build_redrives(names: list[str], found: dict[str, Record], _broken: dict[str, str]) -> None:
    for row in Redrive.objects.filter(id__in=names, pipe__cell__isnull=False).select_related("pipe"):
        over = row.state in (Redrive.State.DONE, Redrive.State.ABORTED)
        found[redrive_key(row.id)] = RedriveRecord(
            move=row.id,
            version=row.version,
            cell=str(row.pipe.cell_id),
            pipe=row.pipe_id,
            destination=row.destination,
            what="redrive" if row.what == Redrive.What.REDRIVE else "release",
            offsets={} if over else encode_offsets(united(row.taken)),
            rate_per_s=row.rate_per_s,
            state="running" if row.state == Redrive.State.RUNNING else "aborted",
            through=row.through,
        )


def _build_replays(names: list[str], found: dict[str, Record], _broken: dict[str, str]) -> None:
    for row in Replay.objects.filter(id__in=names):
        found[replay_key(row.id)] = ReplayRecord(
            replay=row.id,
            version=row.version,
            cell=row.cell_id,
            pipe=row.pipe_id,
            revision=row.revision,
            destinations=row.destinations,
            since_us=_microseconds(row.since),
            until_us=_microseconds(row.until),
            bucket=row.bucket,
            rate_per_s=row.rate_per_s,
            state=_REPLAY_STATES.get(row.state, "ended"),
            where=row.where if row.is_under_way else "",
            keys=row.keys if row.is_under_way else [],
            ids=row.ids if row.is_under_way else [],
            rehearsal=row.rehearsal,
            revisions=row.revisions,
        )


def _build_shadows(names: list[str], found: dict[str, Record], broken: dict[str, str]) -> None:
    for row in Shadow.objects.filter(id__in=names):
        key, is_running = shadow_key(row.id), row.state == Shadow.State.RUNNING
        try:
            spec = parse_pipe_spec(row.spec if is_running else _NO_DRAFT)
        except SpecError as exc:
            broken[key] = f"the draft cannot run: {exc}"
            continue
        found[key] = ShadowRecord(
            shadow=row.id,
            version=row.version,
            cell=row.cell_id,
            pipe=row.pipe_id,
            spec=spec,
            revision=row.revision,
            since_us=_microseconds(row.since),
            until_us=_microseconds(row.until) if row.until else 0,
            most_events=row.most_events,
            state="running" if is_running else "ended",
        )


def _microseconds(at: datetime) -> int:
    """Return a time in microseconds since 1970."""
    return (at - EPOCH) // timedelta(microseconds=1)


def _build_quotas(names: list[str], found: dict[str, Record], _broken: dict[str, str]) -> None:
    for row in TenantQuota.objects.filter(tenant__in=names):
        limits = {name: row.limits.get(name) for name in IN_DATA_PLANE}
        found[quota_key(row.tenant_id)] = QuotaRecord(row.tenant_id, row.version, **limits)


Builder = Callable[[list[str], dict[str, Record], dict[str, str]], None]
BUILDERS: Final[dict[str, Builder]] = {
    "quota": _build_quotas,
    "cell": _build_cells,
    "plan": _build_plans,
    "schema": _build_schemas,
    "subject": _build_subjects,
    "event-types": _build_event_types,
    "webhook": _build_webhooks,
    "destination": _build_destinations,
    "pipe": _build_pipes,
    "key": _build_keys,
    "move": _build_redrives,
    "replay": _build_replays,
    "shadow": _build_shadows,
}
