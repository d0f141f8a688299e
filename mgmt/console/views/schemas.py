"""The schema of a source: its versions, and trying and registering the next one."""

import json
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from dataplane.spec.compatible import Breaking
from dataplane.spec.schema import SchemaError, pointer_of, read_schema
from mgmt import access, services
from mgmt.console.pages import as_curl, for_members, show, viewer_of
from mgmt.console.views.pipe import shared
from mgmt.models import Source
from mgmt.queries.schemas import Tried, newest_event_by, schemas_of
from mgmt.sandbox import SandboxRefused
from mgmt.services.schemas import checked_next, is_read

SHOWN: Final = 20  # the API lists them all
EXAMPLE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "amount": {"type": "number", "minimum": 0}},
    "required": ["id"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Outcome:
    """What came of trying or registering what was typed.

    at:    where in it something is wrong; `error` says what
    ready: it could be registered as it is
    """

    error: str = ""
    at: str = ""
    broken: tuple[Breaking, ...] = ()
    tried: Tried | None = None
    ready: bool = False


@for_members
@require_http_methods(["GET", "POST"])
def schema(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """The versions of a source's schema; a POST tries the next one, or registers it."""
    if request.method != "POST":
        return _page(request, access.get_source(viewer_of(request), pipe_id, name))
    source = access.get_source(viewer_of(request), pipe_id, name, access.REGISTER_SCHEMA)
    typed = request.POST.get("schema", "")
    try:
        document = read_schema(typed)
        if request.POST.get("action") == "try":
            checked_next(source=source, document=document)
            return _page(request, source, typed, Outcome(tried=newest_event_by(source, document), ready=True))
        return _registered(request, source, document)
    except SchemaError as exc:
        return _page(request, source, typed, Outcome(exc.reason, pointer_of(exc.path)), status=422)
    except services.SchemaBreaking as exc:
        tried = newest_event_by(source, document)
        return _page(request, source, typed, Outcome(broken=tuple(exc.broken), tried=tried), status=409)
    except (services.Refused, SandboxRefused) as exc:
        status = 503 if isinstance(exc, SandboxRefused) else 409
        return _page(request, source, typed, Outcome(str(exc)), status=status)


def _registered(request: HttpRequest, source: Source, document: Any) -> HttpResponse:
    made, is_new = services.register_schema(source=source, document=document, author=viewer_of(request))
    if is_new:
        messages.success(request, f"Version {made.number} is registered. Ingest goes by it in seconds.", "fine")
    else:
        messages.info(request, f"Version {made.number} says just that: nothing was registered.", "fine")
    tried = newest_event_by(source, document)
    if tried is not None and tried.misfit is not None:
        messages.warning(request, str(tried), "wait")
    return redirect("console:schema", source.pipe_id, source.name)


def _page(
    request: HttpRequest, source: Source, typed: str = "", outcome: Outcome | None = None, status: int = 200
) -> HttpResponse:
    versions = list(schemas_of(source)[:SHOWN])
    newest = versions[0].document if versions else None
    path = f"pipes/{source.pipe_id}/sources/{source.name}/schemas/"
    context = shared(source.pipe, "settings") | {
        "source": source,
        "versions": [(one, _pretty(one.document)) for one in versions],
        "typed": typed or _pretty(newest if versions else EXAMPLE),
        "outcome": outcome,
        "is_read": is_read(source),
        "curl": as_curl(request, path, {"schema": newest if versions else EXAMPLE}),
    }
    return show(request, "schema.html", context, tenant=source.pipe.tenant, status=status)


def _pretty(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)
