"""Fields, text and changes of a subject's versions, as pages show them. Pure."""

import json
from collections.abc import Sequence
from typing import Any, Final

from mgmt.event_types.samples import SampleTooLargeError, sample_event
from mgmt.models import SubjectVersion
from mgmt.pipes.editor.diff import DiffLine, changed_lines
from mgmt.registry.fields import SchemaFieldChange, field_changes, field_rows

MOST_VERSIONS: Final = 50  # that a page lists; the API lists them all


def version_view(versions: Sequence[SubjectVersion], number: int, since_number: int) -> dict[str, Any]:
    """Return the context of the templates about one version.

    versions:     newest first
    number:       of the version; the newest one if there is no such version
    since_number: of the version to compare with; 0 for no comparison
    """
    shown = _chosen(versions, number)
    since = _chosen(versions, since_number) if since_number else None
    return {
        "shown": shown,
        "text": pretty(shown.schema.parsed) if shown else "",
        "example": _example(shown) if shown else "",
        "fields": field_rows(shown.schema.type, shown.schema.parsed) if shown else [],
        "since": since,
        "changes": _changes(since, shown),
        "diff": _diff(since, shown),
    }


def pretty(document: Any) -> str:
    """Return JSON as people read it."""
    return json.dumps(document, indent=2, ensure_ascii=False)


def _example(version: SubjectVersion) -> str:
    """Return an event that fits a version; "" if it would be too large to be of use."""
    try:
        return pretty(sample_event(version.schema.type, version.schema.document))
    except SampleTooLargeError:
        return ""


def _chosen(versions: Sequence[SubjectVersion], number: int) -> SubjectVersion | None:
    found = next((one for one in versions if one.number == number), None)
    return found or (versions[0] if versions else None)


def _changes(since: SubjectVersion | None, shown: SubjectVersion | None) -> list[SchemaFieldChange]:
    if since is None or shown is None:
        return []
    old, new = (field_rows(one.schema.type, one.schema.parsed) for one in (since, shown))
    return field_changes(old, new)


def _diff(since: SubjectVersion | None, shown: SubjectVersion | None) -> list[DiffLine]:
    if since is None or shown is None:
        return []
    old, new = (pretty(one.schema.parsed).splitlines() for one in (since, shown))
    return changed_lines(old, new)
