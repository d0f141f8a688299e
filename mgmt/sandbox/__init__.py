"""Evaluation of tenants' specs, events, filters and schemas in worker processes with limits of CPU time and memory.

None of this work can block the web process (docs/decisions/0233).
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any, Final, TypeVar

import msgspec

from dataplane.plan.compare import EventComparison
from dataplane.plan.dryrun import SampleEvent
from dataplane.sandbox.jobs import (
    Answer,
    CheckSchema,
    CheckSpec,
    CheckVersion,
    Compared,
    CompareEvents,
    FilterCopies,
    FilterCopy,
    FilterResult,
    ReadTypes,
    RefusedFilter,
    RefusedSchema,
    RefusedSpec,
    RefusedVersion,
    SchemaChecked,
    SchemaInput,
    Tried,
    TryEvent,
    TypesRead,
    VersionChecked,
)
from dataplane.schemas.types import Compatibility, SchemaRejectedError
from dataplane.spec import PipeSpec, SpecError, parse_pipe_spec
from dataplane.spec.schema import SchemaError
from dataplane.stages.enrich import TableRows
from mgmt.sandbox.errors import SandboxBrokenError, SandboxBusy, SandboxLimit, SandboxRefused, TooManyAtOnce
from mgmt.sandbox.pool import Pool

CHECK_S: Final = 1.0  # of CPU time, for a spec or a schema
TRY_S: Final = 2.0  # for a dry run
READ_S: Final = 2.0  # for an IDL file; a worker's first one also builds the grammar
MESSAGE_S: Final = 0.05  # for a live tail filter on one message
SLICE_S: Final = 0.2  # for a filter per job, so that other owners are served in between
COMPARE_SLICE_S: Final = 0.5  # for a comparison per job, so that other owners are served in between
WORKERS: Final = 2
MOST_KNOWN: Final = 1_000
_T = TypeVar("_T")
_known: dict[bytes, None] = {}  # digests of documents that passed the check, oldest first


class FilterRefusedError(Exception):
    """The filter is not a valid expression; the text names line and column."""


def checked_spec_of(document: Mapping[str, Any], *, owner: str = "") -> PipeSpec:
    """Return the parsed spec of a document. A worker checks it first; only then is it parsed in this process.

    Raises SpecError, also for a document that takes too long to check; SandboxBusy, TooManyAtOnce.
    """
    text = _json(document)
    if sha256(text).digest() not in _known:
        try:
            _spec_answer(trials().run(CheckSpec(text), cpu_s=CHECK_S, owner=owner))
        except SandboxLimit as exc:
            raise SpecError("$", f"is too expensive to check: use fewer or shorter expressions. {exc}") from exc
        _note_known(text)
    return parse_pipe_spec(document)


def try_event(
    document: Mapping[str, Any], sample: SampleEvent, *, salt: bytes, rows: TableRows, owner: str, follow: str = ""
) -> Tried:
    """Run an event through a spec. Raises SpecError, SandboxLimit, SandboxBusy, TooManyAtOnce."""
    text = _json(document)
    job = TryEvent(text, sample, salt, follow)
    found = _spec_answer(trials().run(job, cpu_s=TRY_S, owner=owner, rows=rows))
    _note_known(text)
    return _of(found, Tried)


def compare_events(
    live: Mapping[str, Any],
    draft: Mapping[str, Any],
    samples: Sequence[SampleEvent],
    *,
    revisions: tuple[int, int],
    details: Mapping[str, int],
    salt: bytes,
    rows: TableRows,
    owner: str,
) -> list[EventComparison]:
    """Run events through two specs. Returns the comparisons of the first events that the time allows, at least one.

    Raises SpecError, SandboxLimit, SandboxBusy, TooManyAtOnce.
    """
    job = CompareEvents(
        _json(live), _json(draft), list(samples), salt, revisions, dict(details), TRY_S, COMPARE_SLICE_S
    )
    cpu_s = 2 * CHECK_S + COMPARE_SLICE_S + TRY_S
    return _of(_spec_answer(trials().run(job, cpu_s=cpu_s, owner=owner, rows=rows)), Compared).events


def filter_copies(text: str, copies: Sequence[FilterCopy], *, owner: str) -> list[bool | None]:
    """Apply a filter to copies. Returns, for the first copies that the time limit allows, whether each passes.

    Raises FilterRefusedError; SandboxLimit if one message took too long; SandboxBusy.
    """
    job = FilterCopies(text, list(copies), MESSAGE_S, SLICE_S)
    try:
        found = tails().run(job, cpu_s=CHECK_S if not copies else SLICE_S + CHECK_S, owner=owner)
    except SandboxLimit as exc:
        limit = f"{MESSAGE_S * 1_000:.0f} ms of CPU time" if copies else str(exc)
        raise SandboxLimit(f"The filter needs more than {limit} for one message. Use a simpler one.") from exc
    if isinstance(found, RefusedFilter):
        raise FilterRefusedError(found.reason)
    return _of(found, FilterResult).passes


def check_schema(document: Any, *, before: Any = None, event: bytes = b"", owner: str = "") -> SchemaChecked:
    """Check a schema, compare it with `before`, and apply it to an event. Raises SchemaError, SandboxBusy."""
    try:
        texts = json.dumps(document).encode(), b"" if before is None else json.dumps(before).encode()
        found = trials().run(CheckSchema(*texts, event), cpu_s=CHECK_S, owner=owner)
    except RecursionError as exc:
        raise SchemaError((), "is nested too deeply") from exc
    except SandboxLimit as exc:
        raise SchemaError((), f"is too expensive to check: use fewer alternatives and patterns. {exc}") from exc
    if isinstance(found, RefusedSchema):
        raise SchemaError(tuple(found.path), found.reason)
    return _of(found, SchemaChecked)


def check_version(
    schemas: Sequence[SchemaInput], *, level: Compatibility, earlier: Sequence[tuple[int, int]] = (), owner: str
) -> VersionChecked:
    """Parse the last schema and compare it with the earlier versions, which are named by number and position.

    Raises SchemaRejectedError, also for a schema that takes too long to check; SandboxBusy, TooManyAtOnce.
    """
    try:
        found = trials().run(CheckVersion(list(schemas), level, list(earlier)), cpu_s=CHECK_S, owner=owner)
    except SandboxLimit as exc:
        raise SchemaRejectedError("", f"is too expensive to check: use fewer or smaller types. {exc}") from exc
    if isinstance(found, RefusedVersion):
        raise SchemaRejectedError(found.path, found.reason)
    return _of(found, VersionChecked)


def types_in(text: str, *, owner: str) -> list[tuple[str, str]]:
    """Return full name and schema of each named type of an Avro IDL or protocol file.

    Raises SchemaRejectedError, also for a file that takes too long to read; SandboxBusy, TooManyAtOnce.
    """
    try:
        found = trials().run(ReadTypes(text), cpu_s=READ_S, owner=owner)
    except SandboxLimit as exc:
        raise SchemaRejectedError("", f"is too expensive to read: divide the file. {exc}") from exc
    if isinstance(found, RefusedVersion):
        raise SchemaRejectedError(found.path, found.reason)
    return _of(found, TypesRead).types


@cache
def trials() -> Pool:
    """Return this process's pool of workers for specs, events and schemas."""
    return Pool(WORKERS)


@cache
def tails() -> Pool:
    """Return this process's pool of one worker for live tail filters."""
    return Pool(1)


def _json(document: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(dict(document))
    except (OverflowError, UnicodeEncodeError, RecursionError) as exc:
        raise SpecError(
            "$", "contains a value that JSON cannot represent: an unpaired surrogate, or too many levels of nesting"
        ) from exc


def _spec_answer(found: Answer) -> Answer:
    if isinstance(found, RefusedSpec):
        raise SpecError(found.path, found.reason)
    return found


def _of(found: Answer, kind: type[_T]) -> _T:
    if not isinstance(found, kind):
        raise SandboxBrokenError(f"needed {kind.__name__}, got {type(found).__name__}")
    return found


def _note_known(text: bytes) -> None:
    _known[sha256(text).digest()] = None
    while len(_known) > MOST_KNOWN:
        _known.pop(next(iter(_known)), None)


__all__ = [
    "FilterCopy",
    "FilterRefusedError",
    "SandboxBusy",
    "SandboxLimit",
    "SandboxRefused",
    "SchemaInput",
    "TooManyAtOnce",
    "VersionChecked",
    "check_schema",
    "check_version",
    "checked_spec_of",
    "compare_events",
    "filter_copies",
    "tails",
    "trials",
    "try_event",
    "types_in",
]
