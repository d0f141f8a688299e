"""Bodies of the API: the signed-in user, the tenants, members and invitations."""

from typing import Any, Final

from django.utils import timezone
from rest_framework import serializers

from mgmt.models import ApiToken, Invitation, Membership
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


class RoleIn(serializers.Serializer[Any]):
    """The new role of a member."""

    role = serializers.ChoiceField(Membership.Role.choices)


class InvitationIn(serializers.Serializer[Any]):
    """A person to invite."""

    email = serializers.CharField(max_length=254)
    role = serializers.ChoiceField(Membership.Role.choices)


class InvitationOut(serializers.Serializer[Any]):
    """An open invitation. Its link is only in the e-mail."""

    id = serializers.CharField()
    email = serializers.CharField()
    role = serializers.ChoiceField(Membership.Role.choices)
    invited_by = serializers.CharField(source="invited_by.username", default=None, allow_null=True)
    sent_at = serializers.DateTimeField(help_text="Time of the newest e-mail.")
    mail_error = serializers.CharField(help_text="Reason why the newest e-mail was not sent; empty if it was.")
    expires_at = serializers.DateTimeField()
    is_expired = serializers.SerializerMethodField(help_text="True if the link no longer works: send it again.")

    def get_is_expired(self, row: Invitation) -> bool:
        """Compare with the clock of this request."""
        return not row.is_valid_at(timezone.now())


MEMBERS_EXAMPLE: Final = {
    "next": None,
    "previous": None,
    "results": [{"username": "alice", "role": "owner", "is_active": True}],
}
