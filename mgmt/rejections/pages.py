"""Rejected events of a pipe: the list by kind, one kind with samples, and the form that accepts it."""

import json
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from dataplane.schemas.types import SchemaRejectedError, SchemaType
from mgmt import services
from mgmt.ledger.queries.bucket_range import SPANS, BucketRange, span_until
from mgmt.models import Rejection, Subject
from mgmt.pipes.page_context import pipe_context
from mgmt.registry.drafts import SchemaDraft, from_json
from mgmt.registry.services import DraftCheck, DraftIncompatibleError, check_draft
from mgmt.rejections.models import REJECTIONS_KEPT_D
from mgmt.rejections.queries import (
    AcceptingVersion,
    RejectionLine,
    masks_of,
    rejection_line,
    rejection_lines,
    schema_of,
    shown_samples,
)
from mgmt.sandbox import SandboxRefused
from mgmt.web import access
from mgmt.web.export import KINDS, export
from mgmt.web.rendering import as_curl, for_members, once, show, viewer_of

_COLUMNS: Final = (
    "id", "source", "event_type", "code", "pointer", "detail", "sender", "events", "first_at", "last_at",
)  # fmt: skip
_LIVE: Final = {"head": "pipes/base.html", "kinds": "rejections/rejections.html"}


@dataclass(frozen=True)
class AcceptResult:
    """Result of a check or of a refused registration. `at`: JSON pointer of the error."""

    error: str = ""
    at: str = ""
    check: DraftCheck | None = None


@for_members
@require_safe
def rejections(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """List the kinds of rejected events in the time range `range`; `format` exports them."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    span = _span(request)
    get_lines = once(lambda: rejection_lines(pipe, span))
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, map(_exported, get_lines()), _COLUMNS, name=f"rejections-{pipe.id}")
    context = pipe_context(pipe, "rejections") | {
        "span": span,
        "spans": list(SPANS),
        "now": timezone.now(),
        "get_lines": get_lines,
        "kept_d": REJECTIONS_KEPT_D,
        "curl": as_curl(f"pipes/{pipe.id}/rejections/?range={span.name}"),
    }
    return show(request, "rejections/rejections.html", context, tenant=pipe.tenant, live=_LIVE)


@for_members
@require_safe
def rejection(request: HttpRequest, pipe_id: str, number: int) -> HttpResponse:
    """Show one kind of rejected events: reason, sender, samples and what to do."""
    row = access.get_rejection(viewer_of(request), pipe_id, number)
    span, masks = _span(request), masks_of(row.pipe)
    subject, accepting = schema_of(row, masks)
    context = pipe_context(row.pipe, "rejections") | {
        "line": rejection_line(row, span),
        "span": span,
        "subject": subject,
        "accepting": accepting,
        "samples": shown_samples(row, masks),
        "has_masks": bool(masks),
        "has_source": row.pipe.sources.filter(name=row.source).exists(),
        "curl": as_curl(f"pipes/{row.pipe_id}/rejections/{row.pk}/"),
    }
    return show(request, "rejections/rejection.html", context, tenant=row.pipe.tenant)


@for_members
@require_http_methods(["GET", "POST"])
def accept(request: HttpRequest, pipe_id: str, number: int) -> HttpResponse:
    """Show the version that would accept the events with the result of its check; a POST checks or registers one."""
    row = access.get_rejection(viewer_of(request), pipe_id, number, access.REGISTER_SCHEMA)
    subject, accepting = schema_of(row, masks_of(row.pipe))
    if subject is None or accepting is None:
        return redirect("console:rejection", row.pipe_id, row.pk)
    if request.method == "POST":
        return _submitted(request, row, subject, accepting)
    newest = accepting.newest.schema.parsed
    text = _pretty(accepting.proposal.document if accepting.proposal else newest)
    result = None if accepting.proposal is None else _checked(row, subject, _draft(accepting, text))
    return _form(request, row, subject, accepting, text=text, result=result)


def _submitted(request: HttpRequest, row: Rejection, subject: Subject, accepting: AcceptingVersion) -> HttpResponse:
    text = request.POST.get("schema", "")
    draft = _draft(accepting, text)
    if request.POST.get("action") == "check":
        return _form(request, row, subject, accepting, text=text, result=_checked(row, subject, draft))
    try:
        version, is_new = services.register_version(
            tenant=row.pipe.tenant, subject=subject.name, draft=draft, author=viewer_of(request)
        )
    except DraftIncompatibleError as exc:
        result = AcceptResult(check=exc.check)
    except SchemaRejectedError as exc:
        result = AcceptResult(exc.reason, exc.path)
    except services.InvalidValue as exc:
        result = AcceptResult(exc.reason, exc.field)
    except (SandboxRefused, services.ServiceError) as exc:
        result = AcceptResult(str(exc))
    else:
        if is_new:
            words = f"Version {version.number} of {subject.name} registered. Ingest applies it within seconds."
            messages.success(request, words, "fine")
        else:
            messages.info(request, f"Equal to version {version.number}. Nothing was registered.", "fine")
        return redirect("console:rejection", row.pipe_id, row.pk)
    return _form(request, row, subject, accepting, text=text, result=result, status=409 if result.check else 422)


def _checked(row: Rejection, subject: Subject, draft: SchemaDraft) -> AcceptResult:
    """Check a draft at the subject's level. Stores nothing."""
    try:
        return AcceptResult(check=check_draft(tenant=row.pipe.tenant, subject=subject.name, draft=draft))
    except SchemaRejectedError as exc:
        return AcceptResult(exc.reason, exc.path)
    except (SandboxRefused, services.ServiceError) as exc:
        return AcceptResult(str(exc))


def _form(
    request: HttpRequest,
    row: Rejection,
    subject: Subject,
    accepting: AcceptingVersion,
    *,
    text: str,
    result: AcceptResult | None,
    status: int = 200,
) -> HttpResponse:
    context = pipe_context(row.pipe, "rejections") | {
        "line": rejection_line(row, _span(request)),
        "subject": subject,
        "accepting": accepting,
        "text": text,
        "result": result,
        "curl": as_curl("schemas/", {"subject": subject.name, "schema": accepting.newest.schema.parsed}),
    }
    return show(request, "rejections/accept.html", context, tenant=row.pipe.tenant, status=status)


def _draft(accepting: AcceptingVersion, text: str) -> SchemaDraft:
    schema = accepting.newest.schema
    return SchemaDraft(SchemaType(schema.type), text, from_json(schema.references))


def _span(request: HttpRequest) -> BucketRange:
    return span_until(request.GET.get("range", ""), timezone.now())


def _exported(line: RejectionLine) -> dict[str, Any]:
    row = {name: getattr(line.row, name) for name in _COLUMNS if name not in ("sender", "events")}
    return row | {"sender": line.sender, "events": line.events}


def _pretty(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)
