"""Which tasks of the control plane come again and again, and how often. Pure: beat goes by it, and so do those who look
whether the tasks are done.
"""

from collections.abc import Mapping
from typing import Final

PROVISION: Final = "provisioner.tick"
EVERY_S: Final[Mapping[str, float]] = {
    PROVISION: 1.0,
    "lookups.publish": 1.0,
    "tester.send": 1.0,
    "deployer.tick": 2.0,
    "observer.tend": 2.0,
    "autoscaler.tick": 5.0,
    "observer.watch_patterns": 30.0,
}
