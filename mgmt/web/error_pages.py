"""Public pages about the codes of errors: the targets of `type` in the responses of API and ingest."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from mgmt.web.error_help import codes, help_on
from mgmt.web.rendering import theme_of


@require_safe
def errors(request: HttpRequest) -> HttpResponse:
    """List all codes."""
    context = {"codes": [(code, help_on(code)) for code in codes()], "theme": theme_of(request)}
    return render(request, "web/errors.html", context)


@require_safe
def error(request: HttpRequest, code: str) -> HttpResponse:
    """Show what a code means and what to do. Raises Http404 for an unknown code."""
    if not (found := help_on(code)):
        raise Http404
    return render(request, "web/error.html", {"code": code, "found": found, "theme": theme_of(request)})
