"""Help pages of the failure causes."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from mgmt.deliveries.causes import ALL, BY_CODE, ENDINGS
from mgmt.web.rendering import for_members, show, tenant_of


@for_members
@require_safe
def causes(request: HttpRequest) -> HttpResponse:
    """List all causes by ending."""
    groups = [(ending, title, [one for one in ALL if one.ending == ending]) for ending, title in ENDINGS.items()]
    context = {"groups": groups[::-1]}
    return show(request, "deliveries/causes.html", context, tenant=tenant_of(request))


@for_members
@require_safe
def cause(request: HttpRequest, code: str) -> HttpResponse:
    """Show the help page of one cause."""
    if code not in BY_CODE:
        raise Http404
    found = BY_CODE[code]
    return show(
        request, "deliveries/cause.html", {"cause": found, "ending": ENDINGS[found.ending]}, tenant=tenant_of(request)
    )
