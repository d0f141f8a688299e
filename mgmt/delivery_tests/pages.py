"""Test requests to destinations: send one, and show its response."""

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dataplane.spec import SpecError
from mgmt import services
from mgmt.delivery_tests.presenters import delivery_test_result
from mgmt.delivery_tests.services import request_destination_test
from mgmt.sandbox import SandboxRefused
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, show, viewer_of

_LIVE: Final = {"answer": "delivery_tests/test.html"}


@for_members
@require_safe
def destination_test(request: HttpRequest, test_id: str) -> HttpResponse:
    """Show a test request and its response; the page polls until there is one."""
    row = access.get_destination_test(viewer_of(request), test_id)
    context = {"tried": delivery_test_result(row), "curl": as_curl(f"destination-tests/{row.id}/")}
    return show(request, "delivery_tests/test.html", context, tenant=row.tenant, live=_LIVE)


@for_members
@require_POST
def ask_test(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Send a test request with the posted body to a saved destination."""
    user = viewer_of(request)
    row = access.get_destination(user, pipe_id, name, access.SEND_TEST)
    body = request.POST.get("body", "").strip()
    try:
        test = request_destination_test(
            destination=row, event=body.encode("utf-8", "replace"), by=user, now=timezone.now()
        )
    except SpecError as exc:
        messages.error(request, f"Nothing was sent: {exc.reason}.", "bad")
    except (services.ServiceError, SandboxRefused) as exc:
        messages.error(request, str(exc), "bad")
    else:
        return redirect("console:destination_test", test.id)
    return redirect("console:destination", pipe_id, name)
