"""Destinations' signing secrets, changed without a gap."""

import structlog
from django.db import transaction
from django.db.models import F

from mgmt.models import Destination
from mgmt.services.secrets import encrypt, new_signing_secret

log = structlog.get_logger(__name__)

MAX_SECRETS = 2  # messages are signed with each, so that the receiver may change over in its own time


@transaction.atomic
def rotate_signing_secret(*, destination: Destination) -> tuple[Destination, str]:
    """A new secret in front of the newest old one: the row, and the secret, which is not shown again.

    A lock, because a list inside one column cannot be guarded by a constraint, and two rotations at once must not
    drop each other's secret while both are shown as good.
    """
    row = Destination.objects.select_for_update().get(id=destination.id)
    secret = new_signing_secret()
    row.secrets = [encrypt(secret), *row.secrets][:MAX_SECRETS]
    row.version = F("version") + 1
    row.save(update_fields=["secrets", "version"])
    row.refresh_from_db()
    log.info("signing secret rotated", pipe=row.pipe_id, destination=row.name)
    return row, secret
