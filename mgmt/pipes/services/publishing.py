"""Republish a pipe's control record after a change of another row that the record is built from."""

from django.db.models import F

from mgmt.models import Pipe


def republish_pipe(*, pipe_id: str) -> None:
    """Raise the pipe's version. The Provisioner publishes the record after the caller's transaction commits."""
    Pipe.objects.filter(id=pipe_id).update(version=F("version") + 1)
