"""Rate limits of the API, by token or user, or by address if nobody is signed in. Requests are counted in Postgres.

Each token has a count of its own, so that one program does not stop another one of its user, or the user. Costly
operations are counted by user over all tokens.
"""

from datetime import timedelta
from typing import Any, ClassVar, Final

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from mgmt.models import ApiToken
from mgmt.tenancy.services.rate_limits import TryLimit, hit, network_of

PER_USER: Final = TryLimit("api: user", 1_200, timedelta(minutes=1))
PER_TOKEN: Final = TryLimit("api: token", 1_200, timedelta(minutes=1))
BROKER_READS: Final = TryLimit("api: broker reads", 120, timedelta(minutes=1))  # each takes a thread for up to seconds
EVENT_READS: Final = TryLimit("api: event reads", 120, timedelta(minutes=1))  # a listener asks once a second
COMPARISONS: Final = TryLimit("comparisons", 20, timedelta(minutes=1))  # each reads 100 events and runs them twice
SEARCHES: Final = TryLimit("message searches", 20, timedelta(minutes=1))  # each reads events for up to 3 s
PER_ADDRESS: Final = TryLimit("api: address", 120, timedelta(minutes=1))


class ApiThrottle(BaseThrottle):
    """Throttle that counts each request once."""

    def __init__(self) -> None:
        self._wait_s = 0

    def allow_request(self, request: Request, _view: Any) -> bool:
        """Count the request. Return False if it is over the limit."""
        if isinstance(request.auth, ApiToken):
            self._wait_s = hit(PER_TOKEN, request.auth.id, timezone.now())
        elif request.user.is_authenticated:
            self._wait_s = hit(PER_USER, str(request.user.pk), timezone.now())
        else:
            self._wait_s = hit(PER_ADDRESS, network_of(request.META.get("REMOTE_ADDR", "")), timezone.now())
        return not self._wait_s

    def wait(self) -> float:
        """Return the seconds until the window of the limit ends."""
        return float(self._wait_s)


class BrokerReadThrottle(BaseThrottle):
    """Further throttle of operations that read messages from the brokers, by user."""

    limit: ClassVar[TryLimit] = BROKER_READS

    def __init__(self) -> None:
        self._wait_s = 0

    def allow_request(self, request: Request, _view: Any) -> bool:
        """Count the request. Return False if it is over the limit; the permission class refuses strangers."""
        if request.user.is_authenticated:
            self._wait_s = hit(self.limit, str(request.user.pk), timezone.now())
        return not self._wait_s

    def wait(self) -> float:
        """Return the seconds until the window of the limit ends."""
        return float(self._wait_s)


class SearchThrottle(BrokerReadThrottle):
    """Further throttle of searches by body, by user; the console counts its own in the same place."""

    limit = SEARCHES


class EventReadThrottle(BrokerReadThrottle):
    """Further throttle of listeners, by user, apart from other reads: a listener leaves those to the console."""

    limit = EVENT_READS


class ComparisonThrottle(BrokerReadThrottle):
    """Further throttle of comparisons and rehearsals, by user; the console counts its own in the same place."""

    limit = COMPARISONS
