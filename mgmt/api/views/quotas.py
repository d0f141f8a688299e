"""Quotas: a tenant sees its own, staff see and set those of all."""

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt import access
from mgmt.api.quota_shapes import QuotasIn, QuotasOut
from mgmt.api.schema import answers, operation
from mgmt.api.views.base import View, body_of
from mgmt.api.views.control import StaffView
from mgmt.models import Tenant
from mgmt.queries.quotas import quota_lines
from mgmt.services import set_quota


class TenantQuotasView(View):
    """Of a tenant of the user's."""

    @operation("get_quotas", responses=answers(200, QuotasOut, "not-found"))
    def get(self, _request: Request, tenant: str) -> Response:
        """What the tenant may use, and how much of it is used now."""
        return _answer(access.get_tenant(self.user, tenant))


class StaffQuotasView(StaffView):
    """Of any tenant."""

    @operation("get_tenant_quotas", responses=answers(200, QuotasOut, "not-found"))
    def get(self, _request: Request, tenant: str) -> Response:
        """What a tenant may use, and how much of it is used now. For staff."""
        return _answer(_tenant(tenant))

    @operation(
        "set_tenant_quotas",
        request=QuotasIn,
        responses=answers(200, QuotasOut, "invalid", "not-found", "body-too-large", "media-type"),
    )
    def patch(self, request: Request, tenant: str) -> Response:
        """Give a tenant limits of its own, or take it back to the defaults. The change is audited. For staff."""
        row, body = _tenant(tenant), body_of(request, QuotasIn)
        set_quota(tenant=row, limits=body["limits"], reason=body["reason"], by=self.user, now=timezone.now())
        return _answer(row)


def _tenant(tenant: str) -> Tenant:
    return Tenant.objects.get(id=tenant.replace("\x00", ""))


def _answer(tenant: Tenant) -> Response:
    return Response(QuotasOut({"tenant": tenant.id, "quotas": quota_lines(tenant, timezone.now())}).data)
