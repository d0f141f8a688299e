"""Portal links of a destination in Penstock's API."""

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.portal.queries import open_portal_links, role_needed
from mgmt.portal.serializers import NewPortalLinkOut, PortalLinkIn, PortalLinkOut, RevokedPortalLinksOut
from mgmt.services import create_portal_link, revoke_portal_links
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import answers, operation

MOST_LISTED = 100


class PortalLinksView(View):
    """Open portal links of a destination."""

    @operation("list_portal_links", responses=answers(200, PortalLinkOut(many=True), "not-found"))
    def get(self, _request: Request, pipe: str, name: str) -> Response:
        """List the newest 100 open portal links of a destination."""
        row = access.get_destination(self.user, pipe, name)
        rows = open_portal_links(tenant_id=row.pipe.tenant_id, now=timezone.now(), destination_id=row.id)
        return Response(PortalLinkOut(rows[:MOST_LISTED], many=True).data)

    @operation(
        "create_portal_link",
        request=PortalLinkIn,
        responses=answers(
            201,
            NewPortalLinkOut,
            "invalid",
            "role-too-low",
            "not-found",
            "limit-reached",
            "body-too-large",
            "media-type",
        ),
    )
    def post(self, request: Request, pipe: str, name: str) -> Response:
        """Create a link with which a customer sees this destination in a frame of your site.

        Without `may_edit` it needs the role operator, with it editor. The response contains the address, which cannot
        be read again.
        """
        row = access.get_destination(self.user, pipe, name, access.SHARE_PORTAL)
        body = body_of(request, PortalLinkIn)
        row = access.get_destination(self.user, pipe, name, role_needed(may_edit=body["may_edit"]))
        link, token = create_portal_link(destination=row, author=self.user, now=timezone.now(), **body)
        url = f"{settings.PENSTOCK_WEB_URL}{reverse('console:portal', args=[token])}"
        headers = {"Cache-Control": "no-store"}
        return Response({**PortalLinkOut(link).data, "url": url}, status=201, headers=headers)

    @operation("revoke_portal_links", responses=answers(200, RevokedPortalLinksOut, "role-too-low", "not-found"))
    def delete(self, _request: Request, pipe: str, name: str) -> Response:
        """Revoke all portal links of a destination. They open nothing from the next request on."""
        row = access.get_destination(self.user, pipe, name, access.SHARE_PORTAL)
        return Response({"revoked": revoke_portal_links(destination=row, now=timezone.now(), by=self.user)})
