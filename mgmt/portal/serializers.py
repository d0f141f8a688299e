"""Bodies of the customer portal in the API."""

from typing import Any

from rest_framework import serializers

from mgmt.portal.services import DEFAULT_MINUTES, MAX_MINUTES
from mgmt.web.parsers import StrictSerializer


class PortalLinkIn(StrictSerializer):
    """Portal link to create."""

    label = serializers.CharField(  # type: ignore[assignment]  # a field, not DRF's attribute
        max_length=80, help_text="For which customer it is."
    )
    minutes = serializers.IntegerField(
        min_value=1, max_value=MAX_MINUTES, default=DEFAULT_MINUTES, help_text="Until it expires."
    )
    may_redrive = serializers.BooleanField(default=False, help_text="The customer may send failed events again.")
    may_edit = serializers.BooleanField(
        default=False, help_text="The customer may change the URL and the signing secret, pause and resume."
    )
    accent = serializers.RegexField(
        r"^(#[0-9a-fA-F]{6})?$", default="", allow_blank=True, help_text="Colour of your site, as `#rrggbb`."
    )


class PortalLinkOut(serializers.Serializer[Any]):
    """Open portal link. Its address is not stored."""

    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field, not DRF's attribute
    may_redrive = serializers.BooleanField(help_text="The customer may send failed events again.")
    may_edit = serializers.BooleanField(help_text="The customer may change the URL and secret, pause and resume.")
    author = serializers.CharField(source="author.username", help_text="The user as whom the link acts.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class NewPortalLinkOut(PortalLinkOut):
    """New portal link, with its address."""

    url = serializers.CharField(help_text="Address for the frame. Anyone with it can use it. It cannot be read again.")


class RevokedPortalLinksOut(serializers.Serializer[Any]):
    """Result of a revocation."""

    revoked = serializers.IntegerField(help_text="Links that were open.")
