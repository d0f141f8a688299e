"""Model of the responses that retries with an idempotency key get."""

from django.conf import settings
from django.db import models


class IdempotentResponse(models.Model):
    """Response of the first request with a key; written in the transaction of the request's changes.

    The body is a Fernet token bound to the row's key, because it may show a secret that is stored nowhere else.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    token = models.CharField(max_length=32, blank=True, help_text="Id of the API token of the request; empty for none.")
    key = models.CharField(max_length=255, help_text="Value of the header Idempotency-Key.")
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of method, path, query and body.")
    roles = models.CharField(max_length=64, help_text="SHA-256 of the user's roles after the request.")
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField()
    body = models.TextField(help_text="Fernet token of the body in JSON.")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "token", "key"], name="one_response_per_idempotency_key"),
        ]
        indexes = [models.Index(fields=["created_at"], name="idempotent_responses_by_age")]

    def __str__(self) -> str:
        return f"{self.status} for {self.key}"
