"""Count of live tails that each tenant and user has open in this web process."""

import threading
from collections import Counter
from functools import cache


class TailQuotaError(Exception):
    """The tenant, or the user, has reached its quota of open live tails."""


class Seat:
    """One open live tail. Call `leave` when it ends; safe to repeat."""

    def __init__(self, seats: "Seats", tenant: str, user: str) -> None:
        self._seats, self._names = seats, (f"tenant/{tenant}", f"user/{tenant}/{user}")
        self._is_taken = True

    def leave(self) -> None:
        """Give the seat back."""
        with self._seats.lock:
            if self._is_taken:
                self._is_taken = False
                self._seats.count(self._names, -1)


class Seats:
    """Counts open live tails by tenant, and by user within a tenant."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._open: Counter[str] = Counter()

    def take(self, *, tenant: str, user: str, most: int, most_per_user: int) -> Seat:
        """Take a seat for one more live tail. Raises TailQuotaError."""
        with self.lock:
            if why := self.why_full(tenant=tenant, user=user, most=most, most_per_user=most_per_user):
                raise TailQuotaError(why)
            seat = Seat(self, tenant, user)
            self.count((f"tenant/{tenant}", f"user/{tenant}/{user}"), 1)
        return seat

    def why_full(self, *, tenant: str, user: str, most: int, most_per_user: int) -> str:
        """Return why the user may not open one more, in words; "" if they may."""
        if self._open[f"tenant/{tenant}"] >= most:
            return f"Your team has {most} live tails open, as many as its quota allows. Close one."
        if self._open[f"user/{tenant}/{user}"] >= most_per_user:
            return f"You have {most_per_user} live tails open, as many as your quota allows. Close one."
        return ""

    def count(self, names: tuple[str, ...], change: int) -> None:
        """Add `change` to these counts. The caller holds the lock."""
        for name in names:
            self._open[name] += change
            if not self._open[name]:
                del self._open[name]

    def open_by(self, tenant: str) -> int:
        """Return the number of live tails that a tenant has open in this process."""
        return self._open[f"tenant/{tenant}"]


@cache
def seats() -> Seats:
    """Return this process's seats."""
    return Seats()
