"""Model of test requests: one signed request to a destination at a person's request, with its response."""

from django.conf import settings
from django.db import models

from mgmt.ids import id_maker
from mgmt.pipes.models import Pipe
from mgmt.tenancy.models import Tenant


class DestinationTest(models.Model):
    """One test request: asked -> sending -> done. The row holds the request and later the response; kept for a day.

    It holds no secret: a saved destination's secret is decrypted when the request is made, and a request to an unsaved
    destination is signed with a temporary secret. `headers` has only the lines without secrets.
    """

    class State(models.TextChoices):
        ASKED = "asked"
        SENDING = "sending"
        DONE = "done"

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("test"), editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    pipe = models.ForeignKey(
        Pipe, models.CASCADE, null=True, related_name="+", help_text="Null for a destination that is not saved."
    )
    destination = models.CharField(max_length=40)
    config = models.JSONField(help_text="The destination as in a spec.")
    url = models.TextField()
    headers = models.JSONField()
    body = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    state = models.CharField(max_length=7, choices=State, default=State.ASKED)
    began_at = models.DateTimeField(null=True)
    status = models.PositiveIntegerField(default=0, help_text="HTTP status; 0 without a response.")
    outcome = models.CharField(
        max_length=12, blank=True, help_text="Outcome that a message with this response would have."
    )
    cause = models.CharField(max_length=40, blank=True)
    reason = models.CharField(max_length=300, blank=True)
    address = models.CharField(max_length=60, blank=True)
    dns_us = models.BigIntegerField(default=0)
    connect_us = models.BigIntegerField(default=0)
    tls_us = models.BigIntegerField(default=0)
    first_byte_us = models.BigIntegerField(default=0)
    total_us = models.BigIntegerField(default=0)
    answer = models.TextField(blank=True, help_text="The beginning of the response body.")

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "created_at"], name="test_requests_of_a_tenant"),
            models.Index(fields=["created_at"], name="test_requests_by_age"),
            models.Index(fields=["id"], condition=~models.Q(state="done"), name="test_requests_to_be_sent"),
        ]

    def __str__(self) -> str:
        return f"test request to {self.destination}: {self.state}"
