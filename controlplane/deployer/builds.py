"""Builds a release from the installed data plane, and requests its rollout."""

import contextlib
from datetime import UTC, datetime

import structlog

from controlplane.compute.files import ComputeFiles, StateFileError
from controlplane.compute.installed import installed_root
from controlplane.compute.releases import ReleaseStore
from controlplane.settings import control_settings
from dataplane.names import WIRE_VERSION
from mgmt.models import Release
from mgmt.services import ServiceError, give_to_ingest, register_release, request_rollout

log = structlog.get_logger(__name__)


def register_build(about: str = "") -> Release:
    """Build the installed data plane and register the release; a cell without a release gets it."""
    release = ReleaseStore(control_settings().var).pack(installed_root())
    now = datetime.now(UTC)
    return register_release(release=release, wire=WIRE_VERSION, about=about, now=now, for_ingest=True)


def publish_build(*, box_starts: bool = False) -> str:
    """Register the installed data plane, roll it out if cells have another release, and return the release's id.

    A release that was rolled out before is not rolled out again automatically: it may have been rolled back for a
    reason. `box_starts`: no replica of ingest runs, and the first ones run the installed code if that has changed.
    """
    release, now = register_build(), datetime.now(UTC)
    if box_starts and _is_newly_installed(release):
        give_to_ingest(release=release, now=now)
    try:
        if not release.rollouts.exists():
            request_rollout(release=release, author=None, now=now)
    except ServiceError as exc:
        log.info("not rolled out", release=release.id, why=str(exc))
    return release.id


def _is_newly_installed(release: Release) -> bool:
    """Return True if the last request for replicas was written while other code was installed, as the box decides."""
    with contextlib.suppress(StateFileError):
        desired = ComputeFiles(control_settings().var).replicas()
        return desired is None or desired.installed != release.id
    return True
