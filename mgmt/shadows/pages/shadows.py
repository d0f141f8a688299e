"""Shadow runs of a pipe: list, the page of one, and its actions."""

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dataplane.spec import SpecError
from mgmt import services
from mgmt.ids import storable
from mgmt.models import PipeRevision, Shadow
from mgmt.pipes.editor.diff import DiffLine, changed_lines
from mgmt.pipes.editor.draft import readable
from mgmt.pipes.page_context import pipe_context
from mgmt.shadows.presenters import RESULTS, cost_of, fields_of, rejected_of, results_of, samples_of, shadow_line
from mgmt.shadows.queries import compared_revision, shadows_of
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, once, show, viewer_of

MOST: Final = 50
_LIST_LIVE: Final = {"head": "pipes/base.html", "shadows": "shadows/shadows.html"}
_LIVE: Final = {"head": "pipes/base.html", **dict.fromkeys(("state", "results"), "shadows/shadow.html")}


@for_members
@require_safe
def shadows(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """List the shadow runs of a pipe, newest first; `before` is the id before which the list begins."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    before = storable(request.GET.get("before", ""))
    rows = shadows_of(pipe).defer("spec", "samples", "fields")
    rows = rows.filter(id__lt=before) if before else rows
    get_rows = once(lambda: list(rows[: MOST + 1]))
    context = pipe_context(pipe, "shadows") | {
        "before": before,
        "get_lines": once(lambda: [shadow_line(row) for row in get_rows()[:MOST]]),
        "get_older": once(lambda: get_rows()[MOST - 1].id if len(get_rows()) > MOST else ""),
        "curl": as_curl(f"pipes/{pipe.id}/shadows/"),
    }
    return show(request, "shadows/shadows.html", context, tenant=pipe.tenant, live=_LIST_LIVE)


@for_members
@require_safe
def shadow(request: HttpRequest, pipe_id: str, shadow_id: str) -> HttpResponse:
    """Show a shadow run: state, messages by destination and result, fields, samples, cost and the draft's changes."""
    row = access.get_shadow(viewer_of(request), pipe_id, shadow_id)
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    newest = pipe.revisions.latest("number")
    context = pipe_context(pipe, "shadows") | {
        "line": shadow_line(row),
        "now": timezone.now(),
        "results": RESULTS,
        "get_results": once(lambda: results_of(row)),
        "get_fields": once(lambda: fields_of(row)),
        "get_rejected": once(lambda: rejected_of(row)),
        "get_samples": once(lambda: samples_of(row)),
        "cost": cost_of(row),
        "get_diff": once(lambda: _diff(row, compared_revision(row))),
        "newest": newest.number,
        "is_current": newest.number == row.based_on,
        "next_number": newest.number + 1,
        "at_once": services.is_live_failing(pipe),
        "curl": as_curl(f"pipes/{pipe.id}/shadows/{row.id}/"),
    }
    return show(request, "shadows/shadow.html", context, tenant=pipe.tenant, live=_LIVE)


@for_members
@require_POST
def stop(request: HttpRequest, pipe_id: str, shadow_id: str) -> HttpResponse:
    """Stop a shadow run; what it has compared is kept."""
    row = access.get_shadow(viewer_of(request), pipe_id, shadow_id, access.MOVE_MESSAGES)
    if services.stop_shadow(shadow=row, now=timezone.now(), by=viewer_of(request)):
        messages.success(request, "Stopping the shadow run. Its results are kept.", "fine")
    else:
        messages.info(request, f"Nothing was changed: the shadow run is {row.state}.", "wait")
    return redirect("console:shadow", pipe_id, row.id)


@for_members
@require_POST
def promote(request: HttpRequest, pipe_id: str, shadow_id: str) -> HttpResponse:
    """Publish the draft of a shadow run as the next revision."""
    row = access.get_shadow(viewer_of(request), pipe_id, shadow_id, access.PUBLISH_REVISION)
    try:
        revision = services.promote_shadow(shadow=row, author=viewer_of(request), now=timezone.now())
    except services.CredentialNeededError as exc:
        names = ", ".join(one.destination for one in exc.needed)
        words = f"Not promoted: the draft sends {names} to a new address. Edit it as draft, and enter the credential."
        messages.error(request, words, "bad")
    except SpecError as exc:
        messages.error(request, f"Not promoted: the draft is not valid any more: {exc}.", "bad")
    except services.ServiceError as exc:
        messages.error(request, f"Not promoted: {exc}", "bad")
    else:
        messages.success(request, f"Revision {revision.number} is published.", "fine")
        return redirect("console:pipe", pipe_id)
    return redirect("console:shadow", pipe_id, row.id)


def _diff(row: Shadow, live: PipeRevision) -> list[DiffLine]:
    return changed_lines(readable(live.spec).splitlines(), readable(row.spec).splitlines())
