"""Messages delivered by minute of the delivery, for rates and plots."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from mgmt.models import AttemptCount

DELIVERIES_KEPT_H: Final = 7  # the Observer deletes older counts


def deliveries_by_minute(*, pipe_id: str, first: int, last: int) -> Mapping[str, Mapping[int, int]]:
    """Return the messages that each destination accepted in each minute from `first` to `last`; one query."""
    rows = AttemptCount.objects.filter(pipe_id=pipe_id, minute__range=(first, last), delivered__gt=0)
    found: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for name, minute, delivered in rows.values_list("destination", "minute", "delivered"):
        found[name][minute] = delivered
    return found
