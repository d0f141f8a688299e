"""Help pages: every cause of the closed list, what it means and what to do."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from mgmt.console.causes import ALL, BY_CODE, ENDINGS
from mgmt.console.pages import for_members, show, tenant_of


@for_members
@require_safe
def causes(request: HttpRequest) -> HttpResponse:
    """All causes."""
    groups = [(ending, title, [one for one in ALL if one.ending == ending]) for ending, title in ENDINGS.items()]
    context = {"groups": groups[::-1]}
    return show(request, "causes.html", context, tenant=tenant_of(request))


@for_members
@require_safe
def cause(request: HttpRequest, code: str) -> HttpResponse:
    """One of them."""
    if code not in BY_CODE:
        raise Http404
    found = BY_CODE[code]
    return show(request, "cause.html", {"cause": found, "ending": ENDINGS[found.ending]}, tenant=tenant_of(request))
