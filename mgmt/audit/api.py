"""Audit log of a tenant in the API."""

from datetime import datetime

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.audit.actions import ACTIONS
from mgmt.audit.queries import EntryFilter, audit_entries
from mgmt.audit.serializers import ENTRY_EXAMPLE, AuditEntryOut, AuditEntryPageOut
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import PAGE_PARAMETERS, answers, example, operation
from mgmt.web.pagination import TimePage, choice_of, page_of, text_of, time_of

FILTERS = [
    OpenApiParameter("actor", str, description="Only changes by this user name, or by `Penstock`."),
    OpenApiParameter("action", str, enum=list(ACTIONS), description="Only this kind of change."),
    OpenApiParameter("pipe", str, description="Only changes of this pipe and of what belongs to it."),
    OpenApiParameter("since", datetime, description="Only changes at this time or later."),
    OpenApiParameter("until", datetime, description="Only changes before this time."),
]


class AuditLogView(View):
    """Audit log of one tenant."""

    @operation(
        "list_audit_entries",
        parameters=[*FILTERS, *PAGE_PARAMETERS],
        responses=answers(200, AuditEntryPageOut, "parameter-invalid", "role-too-low", "not-found"),
        examples=[example({"next": None, "previous": None, "results": [ENTRY_EXAMPLE]})],
    )
    def get(self, request: Request, tenant: str) -> Response:
        """List who changed what in a tenant, newest first. For owners.

        An entry is part of the transaction of its change, and is never changed. Entries are deleted after 400 days,
        unless the installation has another retention. Secrets and bodies of messages are not part of any entry.
        """
        row = access.get_tenant(self.user, tenant, access.READ_AUDIT)
        wanted = EntryFilter(
            actor=text_of(request, "actor"),
            action=choice_of(request, "action", ACTIONS),
            pipe=text_of(request, "pipe"),
            since=time_of(request, "since"),
            until=time_of(request, "until"),
        )
        rows, paginator = page_of(audit_entries(row.id, wanted), request, TimePage())
        return paginator.get_paginated_response(AuditEntryOut(rows, many=True).data)
