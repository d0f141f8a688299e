"""Base class of the views, and the check of request bodies."""

from typing import Any

from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from mgmt.models import Tenant, User
from mgmt.tenancy.row_scope import open_to_staff
from mgmt.web import access
from mgmt.web.pagination import refused
from mgmt.web.problems import ProblemError


class StrictView(APIView):
    """View that refuses query parameters which its operation does not have: a misspelt filter is not ignored."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the names of the query parameters. Raises ProblemError parameter-invalid."""
        super().initial(request, *args, **kwargs)
        known = getattr(getattr(self, str(request.method).lower(), None), "query_parameters", None)
        unknown = sorted(set(request.query_params) - known) if known is not None else []
        if unknown:
            takes = f"takes {', '.join(sorted(known))}" if known else "takes no query parameters"
            raise refused(unknown[0][:40], f"is not known here; this operation {takes}")


class View(StrictView):
    """View of the API for signed-in users (settings.REST_FRAMEWORK)."""

    @property
    def user(self) -> User:
        """The signed-in user; the permission class refuses anyone else."""
        user = self.request.user
        assert isinstance(user, User)  # noqa: S101 for the type checker
        return user


def body_of(request: Request, shape: type[BaseSerializer[Any]]) -> dict[str, Any]:
    """Return the request's body, checked by the serializer. Raises ValidationError."""
    serializer = shape(data=request.data)
    serializer.is_valid(raise_exception=True)
    checked: dict[str, Any] = serializer.validated_data
    return checked


def tenant_for(user: User, tenant_id: str | None, need: str) -> Tenant:
    """Return the tenant of a new row: the named one, else the token's or the user's only one.

    Raises ProblemError if none is named and the user has several, Forbidden if the role `need` is missing.
    """
    if tenant_id is not None:
        return access.get_tenant(user, tenant_id, need)
    if user.grant is not None:
        return access.get_tenant(user, user.grant.tenant_id, need)
    tenants = list(access.tenants_of(user)[:2])
    if len(tenants) != 1:
        reason = "needs the id of one of your tenants (see /api/v1/me/)"
        raise ProblemError("invalid", errors=[{"pointer": "#/tenant", "detail": reason, "code": "required"}])
    return access.get_tenant(user, tenants[0].id, need)


class StaffView(View):
    """View for staff."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise NotFound for users who are not staff, and for API tokens, before any row is read."""
        super().initial(request, *args, **kwargs)
        if not self.user.is_staff or self.user.grant is not None:
            raise NotFound
        open_to_staff()
