"""Template context of the editor: a draft with its dry run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

import msgspec

from dataplane.spec import SpecError
from dataplane.stages.decoding import decode_json
from mgmt.delivery_tests.presenters import tests_of
from mgmt.messages.queries.last_event import NoEventError, RecordUnavailableError, last_event
from mgmt.models import LookupTable, Pipe, Tenant
from mgmt.pipes.destination_presets import PRESETS
from mgmt.pipes.editor import fields
from mgmt.pipes.editor.draft import Draft
from mgmt.pipes.editor.dry_run import DryRunPanels, dry_run_panels, pretty
from mgmt.pipes.editor.errors import error_summary, with_error
from mgmt.pipes.editor.steps import HELP
from mgmt.pipes.queries.dry_run import dry_run_spec
from mgmt.sandbox import SandboxRefused

EXAMPLE: Final = json.dumps(
    {
        "id": "ord-4711",
        "created_at": "2026-03-14T09:26:53Z",
        "customer": {"id": "c-42", "email": "ada@example.com"},
        "order": {"total": 129.9, "lines": [{"sku": "A-1", "count": 2}, {"sku": "B-7", "count": 1}]},
    },
    indent=2,
)
_MOST_SAMPLE: Final = 256 * 1024  # characters


@dataclass(frozen=True)
class EditorContext:
    """Tenant, pipe and base revision of an edit; `pipe` is None for a new one.

    `start`: revision whose spec was loaded, 0 if it is not known
    """

    tenant: Tenant
    pipe: Pipe | None = None
    based_on: int = 0
    conflict: str = ""
    start: int = 0


def with_newest_event(draft: Draft, pipe: Pipe) -> Draft:
    """Return the draft with the pipe's newest event as sample; with the stored one, or an example, if there is none."""
    try:
        record = last_event(pipe)
    except (NoEventError, RecordUnavailableError) as exc:
        kind = "Your event" if draft.sample else "Sample event of the pipe" if pipe.sample else "Example event"
        note = f"{kind}. The newest event of the pipe is not available: {exc}."
        return replace(draft.with_sample(draft.sample or pretty(pipe.sample) or EXAMPLE), sample_note=note)
    note = f"Newest event of the pipe, from source {record.meta.source}."
    return replace(
        draft.with_sample(pretty(record.body.decode("utf-8", "replace")), record.meta.source), sample_note=note
    )


def with_stored_sample(draft: Draft, pipe: Pipe) -> Draft:
    """Return the draft with the sample that was stored when the pipe was created, unchanged if there is none."""
    if not pipe.sample:
        return draft
    return replace(draft.with_sample(pretty(pipe.sample)), sample_note="Sample event that the pipe was created with.")


def digest_of(draft: Draft) -> str:
    """Return a digest of the draft's document, which shows if a comparison is outdated; "" without a document."""
    try:
        return sha256(json.dumps(draft.document(), sort_keys=True).encode()).hexdigest()[:16]
    except (ValueError, SpecError, RecursionError):
        return ""


def page_context(editing: EditorContext, draft: Draft) -> dict[str, Any]:
    """Return the context of the editor's template."""
    tables = LookupTable.objects.filter(tenant=editing.tenant, state=LookupTable.State.LIVE).order_by("name")
    names = list(tables.values_list("name", flat=True))
    draft, trial = _tried(editing, _with_first_table(draft, names))
    rows = fields.destination_rows(draft)
    tests = tests_of(editing.tenant, [row.test for row in draft.destinations if row.test])
    return {
        "editing": editing,
        "pipe": editing.pipe,
        "draft": draft,
        "trial": trial,
        "sources": fields.source_rows(draft, names),
        "normalize": fields.step_rows(draft, "normalize", draft.normalize),
        "enrich": fields.enrich_rows(draft, names),
        "tables": names,
        "rules": fields.rule_rows(draft),
        "otherwise": fields.otherwise(draft),
        "destinations": [
            (row, trial.panels.get(f"destination-{row.place}"), tests.get(draft.destinations[row.place].test))
            for row in rows
        ],
        "execution": fields.execution_field(draft),
        "presets": PRESETS,
        "ways": _titled_panels(draft, trial),
        "helped": HELP,
        "next_number": editing.based_on + 1,
        "base_text": json.dumps(draft.base) if draft.base else "",
        "whole_error": draft.errors.get("", ""),
        "error_summary": error_summary(draft),
    }


def _with_first_table(draft: Draft, names: Sequence[str]) -> Draft:
    """Return the draft with the table that the browser shows as chosen, where none was chosen yet."""
    if not names or all(row.table for row in draft.sources if row.kind == "table"):
        return draft
    rows = (replace(row, table=row.table or names[0]) if row.kind == "table" else row for row in draft.sources)
    return replace(draft, sources=tuple(rows))


def _tried(editing: EditorContext, draft: Draft) -> tuple[Draft, DryRunPanels]:
    """Return the draft with the errors of a dry run, and the panels."""
    try:
        body = event_of(draft)
        document = draft.document_to_try()
        run = dry_run_spec(
            document,
            body,
            source=draft.sample_source if draft.sample_source in document.get("sources", {}) else "",
            tenant=editing.tenant,
            pipe_id=editing.pipe.id if editing.pipe else "",
        )
    except SpecError as exc:
        marked = draft if draft.errors else with_error(draft, exc.path, exc.reason)
        summary = error_summary(marked)
        return marked, DryRunPanels(failed=summary.first if summary else "", at=summary.target if summary else "")
    except ValueError as exc:
        marked = draft if draft.errors else replace(draft, errors={"spec": f"Not valid JSON: {exc}"})
        return marked, DryRunPanels(failed="the spec is not valid JSON")
    except SandboxRefused as exc:
        return draft, DryRunPanels(failed=str(exc))
    return draft, dry_run_panels(run, draft, list(document["destinations"]))


def event_of(draft: Draft) -> bytes:
    """Return the sample as bytes. Raises SpecError with path `source` (the field of the sample) if it is not JSON."""
    if len(draft.sample) > _MOST_SAMPLE:
        raise SpecError("source", f"needs an event of at most {_MOST_SAMPLE:,} characters, got {len(draft.sample):,}")
    sample = draft.sample.encode("utf-8", "replace")
    try:
        decode_json(sample)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise SpecError("source", f"needs JSON: {exc}") from exc
    return sample


def _titled_panels(draft: Draft, trial: DryRunPanels) -> list[tuple[str, Any]]:
    """Return (title, panel) pairs in order, for JSON mode."""
    names: Mapping[str, str] = {}
    if draft.as_json and not trial.failed:
        names = {f"destination-{place}": name for place, name in enumerate(draft.document()["destinations"])}
    return [(names.get(name, name), panel) for name, panel in trial.panels.items()]
