"""Pipes as code: one document of kind Pipe, with what its spec needs in the tenant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dataplane.spec.channels import host_of, shown_target


class ChannelEntry(NamedTuple):
    """Notification channel of the tenant. kind: one of dataplane.spec.channels.KINDS."""

    kind: str
    target: str

    @property
    def shown(self) -> str:
        """The target as it may be shown: of a webhook only the host, as its path can be a secret."""
        return host_of(self.target) if self.kind == "webhook" else self.listed.target

    @property
    def listed(self) -> "ChannelEntry":
        """The channel as the API lists it, without what is secret."""
        return ChannelEntry(self.kind, shown_target(self.kind, self.target))


class RowSource(NamedTuple):
    """File with the rows of a look-up table, CSV or JSON lines. key: column or field with the key."""

    path: Path
    key: str


class SchemaEntry(NamedTuple):
    """One version of a subject. schema: decoded JSON; references: as the API takes them."""

    type: str
    schema: Any
    references: Sequence[Mapping[str, Any]] = ()


class TypeSettings(NamedTuple):
    """Event types of a source: subject by type, and the place of the type."""

    type_from: str
    subjects: Mapping[str, str]


@dataclass(frozen=True)
class PipeDocument:
    """A document, checked and with its variables replaced.

    spec:        with all defaults, as the server stores it
    credentials: by destination
    tables:      look-up tables by name; None: the document has no rows for it
    schemas:     versions by subject, oldest first
    event_types: by source
    source_schemas: JSON Schemas by source, oldest first
    """

    name: str
    spec: Mapping[str, Any]
    loss_threshold_percent: float | None = None
    expected_per_s: int = 0
    credentials: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    channels: Sequence[ChannelEntry] = ()
    tables: Mapping[str, RowSource | None] = field(default_factory=dict)
    schemas: Mapping[str, Sequence[SchemaEntry]] = field(default_factory=dict)
    event_types: Mapping[str, TypeSettings] = field(default_factory=dict)
    source_schemas: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class LivePipe:
    """State of a tenant that belongs to one document.

    pipe_id:     empty if there is no pipe of this name
    newest:      number of the newest revision, on which the next one is based; 0 without a pipe
    spec:        of the newest revision, or of the live one if the newest failed or was rolled back
    credentials: True for a destination whose credential is stored
    tables:      id, by name; of those that the document or the spec names
    versions:    by subject, oldest first
    type_versions: version of the event types by source, which a change is based on
    source_schemas: JSON Schemas by source, oldest first
    """

    pipe_id: str = ""
    newest: int = 0
    spec: Mapping[str, Any] = field(default_factory=dict)
    loss_threshold_percent: float = 0.0
    credentials: Mapping[str, bool] = field(default_factory=dict)
    channels: frozenset[ChannelEntry] = frozenset()
    tables: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, Sequence[SchemaEntry]] = field(default_factory=dict)
    event_types: Mapping[str, TypeSettings] = field(default_factory=dict)
    type_versions: Mapping[str, int] = field(default_factory=dict)
    source_schemas: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """One difference between a document and a tenant.

    action:  what `apply` does about it; empty if it does nothing, as for a version that only the server has
    subject: name of the table, subject, destination or source, or the channel as it may be shown
    words:   the difference in words, one line each
    """

    action: str
    subject: str
    words: Sequence[str]
