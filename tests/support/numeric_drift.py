"""Details of an alert about numeric drift, as the Observer stores them."""

from datetime import UTC, datetime
from typing import Any, Final

from dataplane.ledger.number_sketch import NumberSketch
from mgmt.alerts.drift import DriftingField, drift_details
from mgmt.patterns.numbers import SIGNIFICANT, drift_of

SINCE: Final = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOUR: Final = 100


def number_sketch(*values: float) -> NumberSketch:
    """Return the sketch of these values."""
    found = NumberSketch()
    for value in values:
        found.add(value)
    return found


def drifting(source: str = "shop", path: str = "score") -> DriftingField:
    """Return a field whose values were 0.2 to 1 on earlier days and are 0.1 to 0.3 now."""
    usual = number_sketch(*[number / 1_000 for number in range(200, 1_000)]).encode()
    now = number_sketch(*[number / 1_000 for number in range(100, 300)])
    drift = drift_of(now, {HOUR - 24: usual, HOUR - 48: usual}, HOUR, SIGNIFICANT)
    assert drift
    return DriftingField(source, path, SINCE, drift)


def details(*fields: DriftingField) -> dict[str, Any]:
    """Return the details of an alert about these fields."""
    return drift_details(fields or [drifting()])
