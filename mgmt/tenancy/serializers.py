"""Bodies of the API: the signed-in user and the tenants."""

from typing import Any, Final

from rest_framework import serializers

from mgmt.models import ApiToken, Membership
from mgmt.web.serializers import PageOut


class TenancyOut(serializers.Serializer[Any]):
    """A tenant of which you are a member."""

    id = serializers.CharField(source="tenant_id")
    name = serializers.CharField(source="tenant.name")
    role = serializers.ChoiceField(Membership.Role.choices)


class MyTokenOut(serializers.Serializer[Any]):
    """API token of the request."""

    id = serializers.CharField()
    name = serializers.CharField()
    scope = serializers.ChoiceField(ApiToken.Scope.choices)
    pipe = serializers.CharField(source="pipe_id", allow_null=True, help_text="The only pipe it reaches; null: all.")
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Null: never.")


class MeOut(serializers.Serializer[Any]):
    """The signed-in user."""

    username = serializers.CharField()
    tenants = TenancyOut(many=True)
    token = MyTokenOut(allow_null=True, help_text="Null without an API token.")


class MemberOut(serializers.Serializer[Any]):
    """A member of a tenant."""

    username = serializers.CharField(source="user.username")
    role = serializers.ChoiceField(Membership.Role.choices)
    is_active = serializers.BooleanField(source="user.is_active", help_text="False if the user cannot sign in.")


class MemberPageOut(PageOut):
    """A page of members, newest membership first."""

    results = MemberOut(many=True)


MEMBERS_EXAMPLE: Final = {
    "next": None,
    "previous": None,
    "results": [{"username": "alice", "role": "owner", "is_active": True}],
}
