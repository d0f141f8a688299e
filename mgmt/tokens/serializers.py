"""Bodies of the API: API tokens and service accounts."""

from typing import Any, Final

from rest_framework import serializers

from mgmt.models import ApiToken, Membership
from mgmt.tokens.services.tokens import DEFAULT_DAYS, MAX_DAYS
from mgmt.web.parsers import StrictSerializer
from mgmt.web.serializers import PageOut

MAX_ID: Final = 32


class TokenIn(StrictSerializer):
    """API token to create."""

    name = serializers.CharField(max_length=80, help_text="The program that uses it, such as `GitHub Actions`.")
    scope = serializers.ChoiceField(ApiToken.Scope.choices, help_text="At most that of its user's role.")
    pipe = serializers.CharField(
        max_length=MAX_ID,
        required=False,
        allow_null=True,
        default=None,
        help_text="Id of the only pipe it reaches. Default: all pipes, and what belongs to the tenant.",
    )
    service_account = serializers.CharField(
        max_length=MAX_ID,
        required=False,
        allow_null=True,
        default=None,
        help_text="Id of the service account whose token it is; owners only. Default: your own token.",
    )
    expires_in_days = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=DEFAULT_DAYS,
        min_value=1,
        max_value=MAX_DAYS,
        help_text="Null: never, which only owners may choose.",
    )


class TokenOut(serializers.Serializer[Any]):
    """API token, without its text, which is not stored."""

    id = serializers.CharField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="Its first characters.")
    scope = serializers.ChoiceField(ApiToken.Scope.choices)
    pipe = serializers.CharField(source="pipe_id", allow_null=True, help_text="The only pipe it reaches; null: all.")
    user = serializers.CharField(source="user.username", help_text="User name of its person or service account.")
    service_account = serializers.CharField(
        source="user.service_account.id", allow_null=True, default=None, help_text="Null if it is a person's."
    )
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Null: never.")
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="To the minute; null: never.")
    last_used_from = serializers.CharField(help_text="Address of that request; empty: never used.")
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewTokenOut(TokenOut):
    """New API token, with its text."""

    token = serializers.CharField(help_text="Send it as `Authorization: Bearer <token>`. It cannot be read again.")


class TokenPageOut(PageOut):
    """A page of API tokens, newest first."""

    results = TokenOut(many=True)


class ServiceAccountIn(StrictSerializer):
    """Service account to create."""

    name = serializers.CharField(max_length=40, help_text="1 to 40 characters: a-z, 0-9 and -, not - first.")
    role = serializers.ChoiceField(Membership.Role.choices)


class ServiceAccountChangeIn(StrictSerializer):
    """Changes of a service account. An omitted field is unchanged."""

    role = serializers.ChoiceField(Membership.Role.choices, required=False)
    is_active = serializers.BooleanField(required=False, help_text="False: its tokens are refused until it is true.")


class ServiceAccountOut(serializers.Serializer[Any]):
    """Service account: a user for programs, which never signs in."""

    id = serializers.CharField()
    name = serializers.CharField()
    username = serializers.CharField(source="user.username", help_text="As it is shown as an author.")
    role = serializers.ChoiceField(Membership.Role.choices)
    is_active = serializers.BooleanField(source="user.is_active")
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)


TOKENS_EXAMPLE: Final = {
    "next": None,
    "previous": None,
    "results": [
        {
            "id": "tok_06g1x2m7k3v9q0c4d8ab",
            "name": "GitHub Actions",
            "prefix": "pst_7k2m9q0c",
            "scope": "publish",
            "pipe": None,
            "user": "deploy@service-5c1e0a9b7d",
            "service_account": "svc_06g1x2m7k3v9q0c4d8ab",
            "created_at": "2026-01-31T12:00:00Z",
            "created_by": "alice",
            "expires_at": "2026-05-01T12:00:00Z",
            "last_used_at": "2026-02-03T08:15:00Z",
            "last_used_from": "192.0.2.7",
            "revoked_at": None,
        }
    ],
}
