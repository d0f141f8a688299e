"""Read the state of a tenant that belongs to a document, by the API."""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from penstock_cli.connection import Connection
from penstock_cli.pipefile.model import ChannelEntry, LivePipe, SchemaEntry, TypeSettings
from penstock_cli.tenants import pipe_named
from penstock_client.api.operations import (
    get_event_types,
    get_revision,
    list_alert_channels,
    list_destinations,
    list_lookup_tables,
    list_source_schemas,
    list_sources,
    list_subject_versions,
    list_subjects,
)

_GONE: Final = ("failed", "retired")


def read_live(connection: Connection, tenant: str, name: str, subjects: Collection[str]) -> LivePipe:
    """Return the state of the pipe of this name, if there is one, and of these subjects. Raises CliError."""
    channels = connection.call(list_alert_channels.sync_detailed, tenant)
    tables = connection.pages(list_lookup_tables.sync_detailed)
    found: dict[str, Any] = {
        "channels": frozenset(ChannelEntry(str(one.kind), one.target) for one in channels),
        "tables": {one.name: one.id for one in tables if one.tenant == tenant},
    }
    pipe = pipe_named(connection, tenant, name)
    if pipe is not None:
        found |= _pipe(connection, pipe)
    named = {subject for types in found.get("event_types", {}).values() for subject in types.subjects.values()}
    versions = {
        subject: _versions(connection, tenant, subject)
        for subject in sorted({*subjects, *named, *encodings_of(found.get("spec", {}))})
    }
    return LivePipe(versions={subject: some for subject, some in versions.items() if some}, **found)


def encodings_of(spec: Mapping[str, Any]) -> set[str]:
    """Return the subjects of the encodings of a spec's destinations."""
    encodings = (one.get("encoding") for one in spec.get("destinations", {}).values())
    return {one["subject"] for one in encodings if one}


def tables_of(spec: Mapping[str, Any]) -> list[str]:
    """Return the look-up tables that a spec reads or writes."""
    names = [one["table"] for one in spec.get("enrich", [])]
    names += [one["table"] for one in spec.get("destinations", {}).values() if "table" in one]
    return sorted(set(names))


def _pipe(connection: Connection, pipe: Any) -> dict[str, Any]:
    newest = connection.call(get_revision.sync_detailed, pipe.id, pipe.newest_revision)
    if str(newest.state) in _GONE and pipe.live_revision:
        newest = connection.call(get_revision.sync_detailed, pipe.id, pipe.live_revision)
    destinations = connection.call(list_destinations.sync_detailed, pipe.id)
    types: dict[str, TypeSettings] = {}
    versions: dict[str, int] = {}
    schemas: dict[str, list[Any]] = {}
    for source in connection.call(list_sources.sync_detailed, pipe.id):
        one = connection.call(get_event_types.sync_detailed, pipe.id, source.name)
        versions[source.name] = one.version
        if one.types:
            types[source.name] = TypeSettings(one.type_from, {each.name: each.subject for each in one.types})
        if found := list(connection.pages(list_source_schemas.sync_detailed, pipe.id, source.name)):
            schemas[source.name] = [each.schema.to_dict() for each in sorted(found, key=lambda each: each.number)]
    return {
        "pipe_id": pipe.id,
        "newest": pipe.newest_revision,
        "spec": newest.spec.to_dict(),
        "loss_threshold_percent": pipe.loss_threshold_percent,
        "credentials": {one.name: one.has_credential for one in destinations},
        "event_types": types,
        "type_versions": versions,
        "source_schemas": schemas,
    }


def _versions(connection: Connection, tenant: str, name: str) -> list[SchemaEntry]:
    rows = connection.pages(list_subjects.sync_detailed, name=name)
    subject = next((one for one in rows if one.name == name and one.tenant == tenant), None)
    if subject is None:
        return []
    versions = sorted(connection.pages(list_subject_versions.sync_detailed, subject.id), key=lambda one: one.number)
    return [
        SchemaEntry(one.type_, json.loads(one.schema), tuple(dict(part) for part in one.references or ()))
        for one in versions
    ]
