"""Test requests of destinations: asked for, and their answers."""

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dataplane.spec import SpecError
from mgmt import access, services
from mgmt.console.pages import as_curl, for_members, part_of, show, viewer_of
from mgmt.console.test_requests import tried
from mgmt.sandbox import SandboxRefused
from mgmt.services.test_requests import ask_test_of_destination

_PARTS: Final = {"answer": "test_request.html"}


@for_members
@require_safe
def destination_test(request: HttpRequest, test_id: str) -> HttpResponse:
    """A test request and what came back; it asks for news of itself until something did."""
    row = access.get_destination_test(viewer_of(request), test_id)
    context = {"tried": tried(row), "curl": as_curl(request, f"destination-tests/{row.id}/")}
    template, part = part_of(request, _PARTS) or ("test_request.html", "")
    return show(request, template, context, tenant=row.tenant, part=part)


@for_members
@require_POST
def ask_test(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Asks for one to a saved destination, with the body that was typed."""
    user = viewer_of(request)
    row = access.get_destination(user, pipe_id, name, access.SEND_TEST)
    body = request.POST.get("body", "").strip()
    try:
        test = ask_test_of_destination(
            destination=row, event=body.encode("utf-8", "replace"), by=user, now=timezone.now()
        )
    except SpecError as exc:
        messages.error(request, f"Nothing was sent: {exc.reason}.", "bad")
    except (services.Refused, SandboxRefused) as exc:
        messages.error(request, str(exc), "bad")
    else:
        return redirect("console:destination_test", test.id)
    return redirect("console:destination", pipe_id, name)
