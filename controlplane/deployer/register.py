"""Makes the data plane that is installed here a release, and asks for its rollout."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

import dataplane
from controlplane.compute.releases import Releases
from controlplane.settings import control_settings
from dataplane.names import WIRE_VERSION
from mgmt.models import Release
from mgmt.services import Refused, register_release, request_rollout

ROOT: Final = Path(str(dataplane.__file__)).parents[1]
log = structlog.get_logger(__name__)


def register_build(about: str = "") -> Release:
    """Build what is installed, and make it known; a cell that has no release gets it."""
    release = Releases(control_settings().var).pack(ROOT)
    return register_release(release=release, wire=WIRE_VERSION, about=about, now=datetime.now(UTC))


def bring_out() -> str:
    """Register what is installed, and roll it out if cells have another; returns its id.

    What has been rolled out before is not by itself rolled out again: it may have been taken back for a reason.
    """
    release = register_build()
    try:
        if not release.rollouts.exists():
            request_rollout(release=release, author=None, now=datetime.now(UTC))
    except Refused as exc:
        log.info("not rolled out", release=release.id, why=str(exc))
    return release.id
