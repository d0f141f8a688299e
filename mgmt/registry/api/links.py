"""Links to a tenant's event catalogue in Penstock's API."""

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.registry.queries import open_links
from mgmt.registry.serializers import CatalogueLinkIn, CatalogueLinkOut, NewCatalogueLinkOut
from mgmt.services import create_catalogue_link, revoke_catalogue_link
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import answers, operation


class CatalogueLinksView(View):
    """Open links of a tenant. There are at most 20, and so no pages."""

    @operation("list_catalogue_links", responses=answers(200, CatalogueLinkOut(many=True), "not-found"))
    def get(self, _request: Request, tenant: str) -> Response:
        """List the links that open a tenant's event catalogue, newest first."""
        rows = open_links(access.get_tenant(self.user, tenant).id, timezone.now())
        return Response(CatalogueLinkOut(rows, many=True).data)

    @operation(
        "create_catalogue_link",
        request=CatalogueLinkIn,
        responses=answers(
            201,
            NewCatalogueLinkOut,
            "invalid",
            "role-too-low",
            "not-found",
            "limit-reached",
            "body-too-large",
            "media-type",
        ),
    )
    def post(self, request: Request, tenant: str) -> Response:
        """Create a link with which anyone can read the event catalogue: types, versions, fields and changes.

        It shows no pipes, members, traffic or events. The response contains its address, which cannot be read again.
        """
        row = access.get_tenant(self.user, tenant, access.SHARE_CATALOGUE)
        body = body_of(request, CatalogueLinkIn)
        link, token = create_catalogue_link(
            tenant=row, author=self.user, label=body["label"], days=body["days"], now=timezone.now()
        )
        url = f"{settings.PENSTOCK_WEB_URL}{reverse('console:shared_catalogue', args=[token])}"
        headers = {"Cache-Control": "no-store"}
        return Response({**CatalogueLinkOut(link).data, "url": url}, status=201, headers=headers)


class CatalogueLinkView(View):
    """One link."""

    @operation("revoke_catalogue_link", responses=answers(204, None, "role-too-low", "not-found"))
    def delete(self, _request: Request, tenant: str, link: str) -> Response:
        """Revoke a link. It no longer opens the catalogue; repeating the request changes nothing."""
        row = access.get_catalogue_link(self.user, tenant, link, access.SHARE_CATALOGUE)
        revoke_catalogue_link(link=row, now=timezone.now(), by=self.user)
        return Response(status=204)
