"""The senders of a transmit lane: HTTP requests, rows of Postgres, and records of Penstock's own Kafka."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from dataplane.transmit.destinations.targets import DestinationTarget
from dataplane.transmit.http.sender import HttpResponse, HttpSender
from dataplane.transmit.postgres.sender import PostgresSender
from dataplane.transmit.records.writer import RecordWriter

Sender = HttpSender | PostgresSender | RecordWriter


class Senders(Struct, frozen=True):
    """Senders with one interface: `begin` starts an attempt, `poll` returns those that ended, `room` limits both."""

    http: HttpSender
    postgres: PostgresSender
    records: RecordWriter

    def of(self, target: DestinationTarget) -> Sender:
        """Return the sender of a destination."""
        if target.row is not None:
            return self.postgres
        return self.http if target.posts else self.records

    def room_for(self, target: DestinationTarget) -> int:
        """Return the number of attempts of a destination that may begin now: no more than are left for others.

        Slow databases can keep all inserts of a lane waiting, so those are shared by tenants.
        """
        if target.row is not None:
            return self.postgres.room_for(target.tenant)
        return (self.of(target).room - target.active + 1) // 2

    def poll(self, wait_s: float) -> Iterator[HttpResponse]:
        """Yield the response of every attempt that ended; wait up to `wait_s` for one over HTTP."""
        yield from self.http.poll(wait_s)
        yield from self.records.poll()
        yield from self.postgres.poll()

    def cancel(self, wanted: Callable[[Any], bool]) -> list[Any]:
        """Cancel the attempts whose tokens `wanted` selects; return those tokens. A record cannot be cancelled."""
        return [*self.http.cancel(wanted), *self.postgres.cancel(wanted)]

    def close(self) -> None:
        """Close connections and files."""
        self.http.close()
        self.postgres.close()
        self.records.close()
