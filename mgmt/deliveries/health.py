"""Decide whether a destination is failing or behind, from its attempts and waiting messages. Pure."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

SOON: Final = timedelta(minutes=1)  # an outage shorter than this ends without an alert if the breaker bridges it


class HealthPolicy(Struct, frozen=True):
    """Thresholds of the alerts `failing` and `delayed`.

    The threshold that ends an alert is stricter than the one that opens it and must hold for `recovery`, so that a
    destination that alternates between the two keeps one alert.

    window_min:      minutes whose attempts are counted, including the current one
    failing_ratio:   share of failed attempts from which a destination is failing
    failing_least:   fewest failed attempts that count as more than chance
    recovered_ratio: share of failed attempts up to which it has recovered
    waits:           age of the oldest undelivered message from which a destination is behind
    recovery:        time for which all must be well before an alert is resolved
    """

    window_min: int = 3
    failing_ratio: float = 0.5
    failing_least: int = 3
    recovered_ratio: float = 0.1
    waits: timedelta = timedelta(minutes=10)
    recovery: timedelta = timedelta(minutes=5)


class HealthFigures(Struct, frozen=True):
    """Measurements of one destination.

    delivered, failed: attempts of the window; a failed one is retried
    breaker_open:      a lane has stopped sending to it
    oldest:            age of its oldest undelivered message; None if none waits
    redriving:         messages return from a hold or from the dead letters, so old ones are expected
    """

    delivered: int = 0
    failed: int = 0
    breaker_open: bool = False
    oldest: timedelta | None = None
    redriving: bool = False

    @property
    def ratio(self) -> float:
        """Return the share of failed attempts; 0 without attempts."""
        return self.failed / (self.failed + self.delivered) if self.failed else 0.0


class Condition(Struct, frozen=True):
    """State that begins at one threshold and ends at a stricter one. `well_since`: all is well again since then."""

    since: datetime | None = None
    well_since: datetime | None = None


class Health(Struct, frozen=True):
    """The two conditions of a destination."""

    failing: Condition = Condition()
    delayed: Condition = Condition()


def next_health(was: Health, figures: HealthFigures, policy: HealthPolicy, now: datetime) -> Health:
    """Return the health after these measurements.

    A failing destination does not become delayed too: one outage opens one alert.
    """
    failing = next_condition(
        was.failing, bad=_fails(figures, policy), well=_succeeds(figures, policy), recovery=policy.recovery, now=now
    )
    late = figures.oldest is not None and figures.oldest >= policy.waits
    delayed = next_condition(
        was.delayed,
        bad=late and not figures.redriving and failing.since is None,
        well=figures.oldest is None or figures.oldest < policy.waits / 2,
        recovery=policy.recovery,
        now=now,
    )
    return Health(failing, delayed)


def next_condition(was: Condition, *, bad: bool, well: bool, recovery: timedelta, now: datetime) -> Condition:
    """Return the condition after a check: it begins when `bad`, and ends when `well` has held for `recovery`."""
    if was.since is None:
        return Condition(now if bad else None)
    if not well:
        return Condition(was.since)
    well_since = was.well_since or now
    return Condition() if now - well_since >= recovery else Condition(was.since, well_since)


def _fails(figures: HealthFigures, policy: HealthPolicy) -> bool:
    if figures.failed >= policy.failing_least and figures.ratio >= policy.failing_ratio:
        return True
    # An open breaker leaves few attempts, and the successes before the outage outweigh them for minutes.
    return figures.breaker_open and figures.oldest is not None and figures.oldest >= SOON


def _succeeds(figures: HealthFigures, policy: HealthPolicy) -> bool:
    """Return True if attempts succeed, or if none is needed."""
    tried = figures.delivered > 0 or figures.oldest is None
    return tried and not figures.breaker_open and figures.ratio <= policy.recovered_ratio
