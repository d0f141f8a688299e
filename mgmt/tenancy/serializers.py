"""Bodies of the API: the signed-in user and the tenants."""

from typing import Any

from rest_framework import serializers

from mgmt.models import Membership


class TenancyOut(serializers.Serializer[Any]):
    """A tenant of which you are a member."""

    id = serializers.CharField(source="tenant_id")
    name = serializers.CharField(source="tenant.name")
    role = serializers.ChoiceField(Membership.Role.choices)


class MeOut(serializers.Serializer[Any]):
    """The signed-in user."""

    username = serializers.CharField()
    tenants = TenancyOut(many=True)
