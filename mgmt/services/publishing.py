"""Has a pipe's record published anew, by whoever changed rows that it is built from besides the pipe's own."""

from django.db.models import F

from mgmt.models import Pipe


def republish_pipe(*, pipe_id: str) -> None:
    """Give the pipe its next version. The provisioner sees it when the caller's transaction ends, and publishes."""
    Pipe.objects.filter(id=pipe_id).update(version=F("version") + 1)
