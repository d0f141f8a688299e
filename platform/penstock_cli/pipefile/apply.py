"""Compare a document with a tenant, and make the tenant as the document says."""

from collections.abc import Callable, Mapping
from typing import Any

from dataplane.spec import destination_of, endpoint_of
from penstock_cli.connection import Connection
from penstock_cli.errors import ApiProblemError
from penstock_cli.pipefile.live import read_live
from penstock_cli.pipefile.model import Change, LivePipe, PipeDocument
from penstock_cli.pipefile.plan import missing_channels, plan
from penstock_cli.pipefile.rows import row_difference, upload
from penstock_client.api.operations import (
    add_alert_channel,
    create_lookup_table,
    create_pipe,
    publish_revision,
    register_source_schema,
    register_version,
    rename_pipe,
    set_credential,
    set_event_types,
)
from penstock_client.models.channel_in import ChannelIn
from penstock_client.models.credential_in import CredentialIn
from penstock_client.models.event_types_in import EventTypesIn
from penstock_client.models.lookup_table_in import LookupTableIn
from penstock_client.models.patched_pipe_change_in import PatchedPipeChangeIn
from penstock_client.models.pipe_in import PipeIn
from penstock_client.models.revision_in import RevisionIn
from penstock_client.models.schema_draft_in import SchemaDraftIn
from penstock_client.models.source_schema_in import SourceSchemaIn


class PipeApply:
    """One document against one tenant. `changes` is the plan; `run` carries it out."""

    def __init__(
        self, connection: Connection, tenant: str, document: PipeDocument, *, credentials: bool = False
    ) -> None:
        self._connection, self._tenant, self._document = connection, tenant, document
        self._live = read_live(connection, tenant, document.name, document.schemas)
        rows = {
            name: words
            for name, source in document.tables.items()
            if source and name in self._live.tables
            if (words := row_difference(connection, self._live.tables[name], source))
        }
        self.changes = plan(document, self._live, rows, credentials=credentials)
        self._pipe_id = self._live.pipe_id
        self._tables = dict(self._live.tables)
        self._sent_credentials: set[str] = set()
        self._registered: dict[str, int] = {}
        self._registered_of_source: dict[str, int] = {}
        self._missing_channels = iter(missing_channels(document, self._live))  # changes of the plan hide their URLs

    def run(self, report: Callable[[str], None]) -> None:
        """Make all changes in their order; `report` gets a line after each. Raises ApiProblemError, CliError."""
        actions: Mapping[str, Callable[[str], str]] = {
            "create-table": self._create_table,
            "upload-rows": self._upload_rows,
            "register-version": self._register_version,
            "create-pipe": self._create_pipe,
            "publish": self._publish,
            "set-loss-threshold": self._set_loss_threshold,
            "set-credential": self._set_credential,
            "register-source-schema": self._register_source_schema,
            "set-event-types": self._set_event_types,
            "add-channel": self._add_channel,
        }
        for change in self.changes:
            if change.action and (done := actions[change.action](change.subject)):
                report(done)

    def _create_table(self, name: str) -> str:
        body = LookupTableIn(name=name, tenant=self._tenant)
        self._tables[name] = self._connection.call(create_lookup_table.sync_detailed, body=body).id
        return f"table {name} created"

    def _upload_rows(self, name: str) -> str:
        source = self._document.tables[name]
        if source is None:
            return ""
        upload(self._connection, self._tables[name], source)
        return f"rows of table {name} uploaded"

    def _register_version(self, subject: str) -> str:
        number = len(self._live.versions.get(subject, ())) + self._registered.setdefault(subject, 0)
        one = self._document.schemas[subject][number]
        body = SchemaDraftIn.from_dict(
            {"tenant": self._tenant, "subject": subject, "type": one.type, "schema": one.schema}
            | ({"references": list(one.references)} if one.references else {})
        )
        self._connection.call(register_version.sync_detailed, body=body)
        self._registered[subject] += 1
        return f"version {number + 1} of {subject} registered"

    def _register_source_schema(self, source: str) -> str:
        number = len(self._live.source_schemas.get(source, ())) + self._registered_of_source.setdefault(source, 0)
        body = SourceSchemaIn.from_dict({"schema": self._document.source_schemas[source][number]})
        self._connection.call(register_source_schema.sync_detailed, self._pipe_id, source, body=body)
        self._registered_of_source[source] += 1
        return f"version {number + 1} of the schema of source {source} registered"

    def _create_pipe(self, name: str) -> str:
        body = PipeIn.from_dict(
            {
                "name": name,
                "spec": self._document.spec,
                "tenant": self._tenant,
                "expected_per_s": self._document.expected_per_s,
            }
        )
        self._pipe_id = self._connection.call(create_pipe.sync_detailed, body=body).id
        return f"pipe {name} created as {self._pipe_id}"

    def _publish(self, name: str) -> str:
        credentials = _needed(self._document, self._live)
        body = RevisionIn.from_dict(
            {"spec": self._document.spec, "based_on": self._live.newest, "credentials": credentials}
        )
        try:
            revision = self._connection.call(publish_revision.sync_detailed, self._pipe_id, body=body)
        except ApiProblemError as exc:
            if exc.problem != "unchanged":
                raise
            return ""
        self._sent_credentials = set(credentials)
        return f"revision {revision.number} of {name} published"

    def _set_loss_threshold(self, _name: str) -> str:
        body = PatchedPipeChangeIn.from_dict({"loss_threshold_percent": self._document.loss_threshold_percent})
        self._connection.call(rename_pipe.sync_detailed, self._pipe_id, body=body)
        return f"loss threshold set to {self._document.loss_threshold_percent:g} %"

    def _set_credential(self, name: str) -> str:
        if name not in self._sent_credentials:
            body = CredentialIn.from_dict(self._document.credentials[name])
            self._connection.call(set_credential.sync_detailed, self._pipe_id, name, body=body)
        return f"credential of destination {name} set"

    def _set_event_types(self, source: str) -> str:
        wanted, version = self._document.event_types[source], self._live.type_versions.get(source)
        body: dict[str, Any] = {"type_from": wanted.type_from, "subjects": dict(wanted.subjects)}
        body |= {} if version is None else {"based_on": version}
        types = EventTypesIn.from_dict(body)
        self._connection.call(set_event_types.sync_detailed, self._pipe_id, source, body=types)
        return f"event types of source {source} set"

    def _add_channel(self, shown: str) -> str:
        channel = next(self._missing_channels)
        body = ChannelIn.from_dict(channel._asdict())
        self._connection.call(add_alert_channel.sync_detailed, self._tenant, body=body)
        needs = "; confirm it with the link in the e-mail" if channel.kind == "mail" else ""
        return f"notification channel {shown} added{needs}"


def _needed(document: PipeDocument, live: LivePipe) -> dict[str, dict[str, str]]:
    """Return the credentials that a revision must bring: of destinations that are new, or whose endpoint changes."""
    return {
        name: dict(secret)
        for name, secret in document.credentials.items()
        if not live.credentials.get(name) or _endpoint(live.spec, name) != _endpoint(document.spec, name)
    }


def _endpoint(spec: Mapping[str, Any], name: str) -> str:
    config = spec["destinations"].get(name)
    return endpoint_of(destination_of(config)) if config else ""


__all__ = ["Change", "PipeApply"]
