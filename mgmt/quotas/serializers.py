"""Bodies of the API's quotas."""

from typing import Any

from rest_framework import serializers

from dataplane.tables.quotas import KINDS
from mgmt.web.parsers import StrictSerializer


class QuotaLineOut(serializers.Serializer[Any]):
    """One quota of a tenant."""

    kind = serializers.ChoiceField(list(KINDS), source="kind.name")
    limit = serializers.IntegerField()
    used = serializers.IntegerField(allow_null=True, help_text="Null for quotas that limit no count.")
    own = serializers.BooleanField(help_text="True if staff set the limit for this tenant.")
    unit = serializers.CharField(source="kind.unit")
    meaning = serializers.CharField(source="kind.meaning")


class QuotasOut(serializers.Serializer[Any]):
    """The quotas of a tenant."""

    tenant = serializers.CharField()
    quotas = QuotaLineOut(many=True)


class LimitsIn(StrictSerializer):
    """Limits by kind. Null resets a limit to its default; an omitted limit is unchanged."""

    def get_fields(self) -> dict[str, Any]:
        """Return a nullable integer field for each kind of quota."""
        return {
            kind.name: serializers.IntegerField(
                required=False, allow_null=True, min_value=kind.least, max_value=kind.most, help_text=kind.meaning
            )
            for kind in KINDS.values()
        }


class QuotasIn(StrictSerializer):
    """Limits to set for a tenant."""

    limits = LimitsIn()
    reason = serializers.CharField(max_length=200, help_text="Kept in the audit.")
