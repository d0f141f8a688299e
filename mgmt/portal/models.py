"""Model of portal links."""

from datetime import datetime

from django.conf import settings
from django.db import models

from mgmt.ids import id_maker
from mgmt.pipes.models import Destination


class PortalLink(models.Model):
    """Link with which a customer of the tenant sees one endpoint, in a frame of the tenant's site (decision 0111).

    Everything that it permits is in the row, so that its address has nothing that could be changed.

    digest: SHA-256 of the link's token, hex; the token itself is in the address only
    author: the user who acts when the customer does; without them, or their role, the link opens nothing
    """

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("ptl"), editable=False)
    destination = models.ForeignKey(Destination, models.CASCADE, related_name="portal_links")
    label = models.CharField(max_length=80, help_text="For which customer it is.")
    digest = models.CharField(max_length=64, unique=True)
    may_redrive = models.BooleanField(default=False)
    may_edit = models.BooleanField(default=False, help_text="URL, signing secret, pause and resume.")
    accent = models.CharField(max_length=7, blank=True, help_text="Colour of the customer's site, as #rrggbb.")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["destination", "expires_at"], name="portal_links_of_destination")]

    def __str__(self) -> str:
        return self.label

    def is_open_at(self, now: datetime) -> bool:
        """Return True if the link neither expired nor was revoked."""
        return self.revoked_at is None and now < self.expires_at
