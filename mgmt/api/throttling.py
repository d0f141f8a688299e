"""How many requests the API takes: of a user, and of an address where nobody is signed in. Counted in Postgres."""

from datetime import timedelta
from typing import Any, Final

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from mgmt.services.limits import Limit, hit, network_of

PER_USER: Final = Limit("api: user", 1_200, timedelta(minutes=1))
PER_ADDRESS: Final = Limit("api: address", 120, timedelta(minutes=1))


class ApiThrottle(BaseThrottle):
    """One count a request."""

    def __init__(self) -> None:
        self._wait_s = 0

    def allow_request(self, request: Request, _view: Any) -> bool:
        """Count the request; False over the limit."""
        if request.user.is_authenticated:
            self._wait_s = hit(PER_USER, str(request.user.pk), timezone.now())
        else:
            self._wait_s = hit(PER_ADDRESS, network_of(request.META.get("REMOTE_ADDR", "")), timezone.now())
        return not self._wait_s

    def wait(self) -> float:
        """Seconds until the window ends."""
        return float(self._wait_s)
