"""Bodies of the API's quotas."""

from typing import Any

from rest_framework import serializers

from dataplane.tables.quotas import KINDS
from mgmt.api.parsing import StrictSerializer


class QuotaLineOut(serializers.Serializer[Any]):
    """One quota of a tenant."""

    kind = serializers.ChoiceField(list(KINDS), source="kind.name")
    limit = serializers.IntegerField()
    used = serializers.IntegerField(allow_null=True, help_text="Null where it is not a count of something.")
    own = serializers.BooleanField(help_text="True if staff have set it for this tenant.")
    unit = serializers.CharField(source="kind.unit")
    meaning = serializers.CharField(source="kind.meaning")


class QuotasOut(serializers.Serializer[Any]):
    """The quotas of a tenant."""

    tenant = serializers.CharField()
    quotas = QuotaLineOut(many=True)


class LimitsIn(StrictSerializer):
    """Limits by kind. Null takes one back to the default; those left out stay as they are."""

    def get_fields(self) -> dict[str, Any]:
        """A whole number, or null, for each kind."""
        return {
            kind.name: serializers.IntegerField(
                required=False, allow_null=True, min_value=kind.least, max_value=kind.most, help_text=kind.meaning
            )
            for kind in KINDS.values()
        }


class QuotasIn(StrictSerializer):
    """Limits for a tenant, and why."""

    limits = LimitsIn()
    reason = serializers.CharField(max_length=200, help_text="It is kept in the audit.")
