"""Times and durations as typed by people: `10m`, `2h`, `2026-11-27T12:00:00Z`. Pure."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from penstock_cli.errors import CliError

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_AGO: Final = re.compile(r"(\d{1,6})([smhd])")


def time_from(text: str, now: datetime) -> datetime:
    """Return the time that a text names: so long before `now`, or a time of ISO 8601. Raises CliError."""
    if found := _AGO.fullmatch(text.strip()):
        return now - timedelta(**{_UNITS[found[2]]: int(found[1])})
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as exc:
        raise CliError(f"{text}: needs a duration such as 10m, or a time such as 2026-11-27T12:00:00Z") from exc
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def seconds_in_words(us: int | None) -> str:
    """Return a duration in microseconds as `1.2 s` or `35 ms`; `-` without any."""
    if us is None:
        return "-"
    return f"{us / 1_000:.0f} ms" if us < 1_000_000 else f"{us / 1_000_000:.1f} s"
