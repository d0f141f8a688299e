"""Periodic tasks of the control plane, with their intervals.

Pure: beat schedules by this table, and the checks for missing ticks read it.
"""

from collections.abc import Mapping
from typing import Final

PROVISION: Final = "provisioner.tick"
EVERY_S: Final[Mapping[str, float]] = {
    PROVISION: 1.0,
    "lookups.publish": 1.0,
    "operational_events.publish": 1.0,
    "tester.send": 1.0,
    "deployer.tick": 2.0,
    "observer.tend": 2.0,
    "autoscaler.tick": 5.0,
    "observer.notify": 5.0,
    "observer.test_channels": 2.0,
    "observer.watch_destinations": 10.0,
    "observer.watch_kafka": 10.0,
    "observer.keep_rollups": 10.0,
    "observer.watch_patterns": 30.0,
}
