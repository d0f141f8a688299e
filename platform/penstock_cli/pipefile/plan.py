"""Plan of `apply`: the differences between a document and a tenant, in the order in which they are resolved. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from penstock_cli.pipefile.model import Change, ChannelEntry, LivePipe, PipeDocument, TypeSettings
from penstock_cli.pipefile.spec_words import spec_words

_NO_TYPES: Final = TypeSettings("", {})  # the server stores no place of the type without subjects


def plan(document: PipeDocument, live: LivePipe, rows_differ: Mapping[str, str], *, credentials: bool) -> list[Change]:
    """Return the changes, none if the tenant is as the document says.

    rows_differ: by table, how its rows differ; tables without a difference are left out
    credentials: set every credential of the document again, as its stored value cannot be compared
    """
    return [
        *_tables(document, live, rows_differ),
        *_schemas(document, live),
        *_pipe(document, live),
        *_credentials(document, live, again=credentials),
        *_source_schemas(document, live),
        *_event_types(document, live),
        *_channels(document, live),
    ]


def missing_channels(document: PipeDocument, live: LivePipe) -> list[ChannelEntry]:
    """Return the channels that the tenant lacks, each once, in the order of the document and of the plan."""
    return [channel for channel in dict.fromkeys(document.channels) if channel.listed not in live.channels]


def _tables(document: PipeDocument, live: LivePipe, rows_differ: Mapping[str, str]) -> Iterator[Change]:
    for name, rows in document.tables.items():
        if name not in live.tables:
            yield Change("create-table", name, [f"table {name}: added"])
        if rows and (name not in live.tables or name in rows_differ):
            words = rows_differ.get(name, f"its rows are those of {rows.path.name}")
            yield Change("upload-rows", name, [f"table {name}: {words}"])


def _schemas(document: PipeDocument, live: LivePipe) -> Iterator[Change]:
    for subject, wanted in document.schemas.items():
        yield from _versions("register-version", f"subject {subject}", subject, wanted, live.versions.get(subject, ()))


def _source_schemas(document: PipeDocument, live: LivePipe) -> Iterator[Change]:
    for source, wanted in document.source_schemas.items():
        found = live.source_schemas.get(source, ())
        yield from _versions("register-source-schema", f"schema of source {source}", source, wanted, found)


def _versions(action: str, what: str, name: str, wanted: Sequence[Any], found: Sequence[Any]) -> Iterator[Change]:
    """Yield the differences of versions, of which only the missing ones can be registered."""
    for number, (one, other) in enumerate(zip(wanted, found, strict=False), 1):
        if one != other:
            words = f"{what}: version {number} differs, and a registered version never changes"
            yield Change("", name, [f"{words}; add a version to the file instead"])
    for number in range(len(found) + 1, len(wanted) + 1):
        yield Change(action, name, [f"{what}: version {number} added"])
    for number in range(len(wanted) + 1, len(found) + 1):
        yield Change("", name, [f"{what}: version {number} is not in the file; run `penstock export`"])


def _pipe(document: PipeDocument, live: LivePipe) -> Iterator[Change]:
    if not live.pipe_id:
        names = ", ".join(document.spec["destinations"])
        yield Change("create-pipe", document.name, [f"pipe {document.name}: added, with destinations {names}"])
    elif words := spec_words(live.spec, document.spec):
        yield Change("publish", document.name, words)
    wanted = document.loss_threshold_percent
    if wanted is not None and wanted != live.loss_threshold_percent:
        words = [f"loss threshold: {live.loss_threshold_percent:g} % becomes {wanted:g} %"]
        yield Change("set-loss-threshold", document.name, words)


def _credentials(document: PipeDocument, live: LivePipe, *, again: bool) -> Iterator[Change]:
    for name in document.credentials:
        if again or not live.credentials.get(name):
            yield Change("set-credential", name, [f"destination {name}: credential set"])


def _event_types(document: PipeDocument, live: LivePipe) -> Iterator[Change]:
    for source, wanted in document.event_types.items():
        found = live.event_types.get(source, _NO_TYPES)
        if found != (wanted if wanted.subjects else _NO_TYPES):
            words = f"event types of source {source}: {_subjects(found.subjects)} becomes {_subjects(wanted.subjects)}"
            if found.subjects and found.type_from != wanted.type_from:
                words += f", type from {wanted.type_from or 'none'}"
            yield Change("set-event-types", source, [words])


def _subjects(subjects: Mapping[str, str]) -> str:
    return ", ".join(f"{name or 'all'}={subject}" for name, subject in sorted(subjects.items())) or "none"


def _channels(document: PipeDocument, live: LivePipe) -> Iterator[Change]:
    for channel in missing_channels(document, live):
        yield Change("add-channel", channel.shown, [f"notification channel {channel.kind} {channel.shown}: added"])
