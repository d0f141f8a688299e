"""The editor's page: a draft, tried on an event, as what its template draws."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from dataplane.spec import SpecError
from dataplane.stages.decoding import decode_json
from mgmt.console.editor import fields
from mgmt.console.editor.draft import Draft
from mgmt.console.editor.errors import with_error
from mgmt.console.editor.steps import HELP
from mgmt.console.editor.trial import Trial, pretty, trial_of
from mgmt.console.test_requests import tests_of
from mgmt.models import LookupTable, Pipe, Tenant
from mgmt.queries.dry_run import dry_run_spec
from mgmt.queries.last_event import NoEvent, RecordsAway, last_event
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
class Editing:
    """Whose pipe is edited, on top of which revision; no pipe for a new one."""

    tenant: Tenant
    pipe: Pipe | None = None
    based_on: int = 0
    conflict: str = ""


def with_newest_event(draft: Draft, pipe: Pipe) -> Draft:
    """The draft with the pipe's newest event to try it on; with an example, and why, if there is none to be had."""
    try:
        record = last_event(pipe)
    except (NoEvent, RecordsAway) as exc:
        note = f"This is an example. The pipe's newest event cannot be taken: {exc}."
        return replace(draft.with_sample(draft.sample or EXAMPLE), sample_note=note)
    note = f"The pipe's newest event, from {record.meta.source}."
    return replace(
        draft.with_sample(pretty(record.body.decode("utf-8", "replace")), record.meta.source), sample_note=note
    )


def page_context(editing: Editing, draft: Draft) -> dict[str, Any]:
    """Everything that the template draws."""
    draft, trial = _tried(editing, draft)
    rows = fields.destination_rows(draft)
    tables = LookupTable.objects.filter(tenant=editing.tenant, state=LookupTable.State.LIVE).order_by("name")
    names = list(tables.values_list("name", flat=True))
    tests = tests_of(editing.tenant, [row.test for row in draft.destinations if row.test])
    return {
        "editing": editing,
        "pipe": editing.pipe,
        "draft": draft,
        "trial": trial,
        "sources": fields.source_rows(draft),
        "normalize": fields.step_rows(draft, "normalize", draft.normalize),
        "enrich": fields.enrich_rows(draft, names),
        "tables": names,
        "rules": fields.rule_rows(draft),
        "otherwise": fields.otherwise(draft),
        "destinations": [
            (row, trial.panels.get(f"destination-{row.place}"), tests.get(draft.destinations[row.place].test))
            for row in rows
        ],
        "ways": _ways(draft, trial),
        "helped": HELP,
        "next_number": editing.based_on + 1,
        "base_text": json.dumps(draft.base) if draft.base else "",
        "whole_error": draft.errors.get("", ""),
    }


def _tried(editing: Editing, draft: Draft) -> tuple[Draft, Trial]:
    """The draft with what a dry run found wrong with it, and the dry run."""
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
        told = draft if draft.errors else with_error(draft, exc.path, exc.reason)
        return told, Trial(failed=f"{exc.path.removeprefix('$.')}: {exc.reason}", at=next(iter(told.errors)))
    except ValueError as exc:
        told = draft if draft.errors else replace(draft, errors={"spec": f"This is not JSON: {exc}"})
        return told, Trial(failed="the spec is not JSON")
    except SandboxRefused as exc:
        return draft, Trial(failed=str(exc))
    return draft, trial_of(run, draft, list(document["destinations"]))


def event_of(draft: Draft) -> bytes:
    """Raises SpecError with the path `source`, the sample's own field, if it is no JSON."""
    if len(draft.sample) > _MOST_SAMPLE:
        raise SpecError("source", f"needs an event of at most {_MOST_SAMPLE} characters, got {len(draft.sample)}")
    sample = draft.sample.encode("utf-8", "replace")
    try:
        decode_json(sample)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise SpecError("source", f"needs JSON: {exc}") from exc
    return sample


def _ways(draft: Draft, trial: Trial) -> list[tuple[str, Any]]:
    """All panels in their order, for the page that shows the spec as JSON."""
    names: Mapping[str, str] = {}
    if draft.as_json and not trial.failed:
        names = {f"destination-{place}": name for place, name in enumerate(draft.document()["destinations"])}
    return [(names.get(name, name), panel) for name, panel in trial.panels.items()]
