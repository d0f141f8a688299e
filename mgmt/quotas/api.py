"""Quotas: a tenant reads its own, staff read and set those of all tenants."""

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.models import Tenant
from mgmt.quotas.queries import quota_lines
from mgmt.quotas.serializers import QuotasIn, QuotasOut
from mgmt.services import set_quota
from mgmt.web import access
from mgmt.web.api_view import StaffView, View, body_of
from mgmt.web.openapi import answers, operation


class TenantQuotasView(View):
    """Quotas of one of the user's tenants."""

    @operation("get_quotas", responses=answers(200, QuotasOut, "not-found"))
    def get(self, _request: Request, tenant: str) -> Response:
        """Return a tenant's quotas with their current use."""
        return _answer(access.get_tenant(self.user, tenant))


class StaffQuotasView(StaffView):
    """Quotas of any tenant."""

    @operation("get_tenant_quotas", responses=answers(200, QuotasOut, "not-found"))
    def get(self, _request: Request, tenant: str) -> Response:
        """Return any tenant's quotas with their current use. For staff."""
        return _answer(_tenant(tenant))

    @operation(
        "set_tenant_quotas",
        request=QuotasIn,
        responses=answers(200, QuotasOut, "invalid", "not-found", "body-too-large", "media-type"),
    )
    def patch(self, request: Request, tenant: str) -> Response:
        """Set a tenant's limits, or reset them to the defaults. The change is audited. For staff."""
        row, body = _tenant(tenant), body_of(request, QuotasIn)
        set_quota(tenant=row, limits=body["limits"], reason=body["reason"], by=self.user, now=timezone.now())
        return _answer(row)


def _tenant(tenant: str) -> Tenant:
    return Tenant.objects.get(id=tenant.replace("\x00", ""))


def _answer(tenant: Tenant) -> Response:
    return Response(QuotasOut({"tenant": tenant.id, "quotas": quota_lines(tenant, timezone.now())}).data)
