"""A process lane's look-up tables: the host's store, the lane's part in keeping it, one pinned state for a batch."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dataplane.runtime.lookup_keeper import LookupKeeper
from dataplane.stages.enrich import TableGoneError
from dataplane.tables.lookup_store import LookupStore, Pinned, lookup_folder


class TenantRows:
    """The tables of one tenant, as pinned."""

    def __init__(self, pinned: Pinned, tenant: str) -> None:
        self._pinned, self._tenant = pinned, tenant

    def knows(self, tables: Iterable[str]) -> bool:
        """Whether this host holds all these tables, or knows them to be removed."""
        return all(self._pinned.table(self._tenant, name) is not None for name in tables)

    def row(self, table: str, key: str) -> Any:
        """The row; None if there is none. Raises TableGoneError."""
        record = self._pinned.table(self._tenant, table)
        if record is None or record.state == "removed":
            raise TableGoneError(table)
        return self._pinned.row(record.table, key)


class Lookups:
    """Opened inside the lane's process; closed with the lane."""

    def __init__(self, folder: Path, kafka: str = "") -> None:
        """Open the store; with the address of a Kafka, stand for keeper too."""
        self.store = LookupStore(folder)
        self._keeper = LookupKeeper(kafka, self.store, folder) if kafka else None
        if self._keeper is not None:
            self._keeper.start()

    @contextmanager
    def pinned(self) -> Iterator[Pinned]:
        """One state of all tables, whatever the keeper writes meanwhile."""
        pinned = self.store.pin()
        try:
            yield pinned
        finally:
            pinned.close()

    def close(self) -> None:
        """Let another process be the keeper."""
        if self._keeper is not None:
            self._keeper.close()
        self.store.close()


def open_lookups(var: Path, kafka: str) -> Lookups:
    """This host's tables."""
    return Lookups(lookup_folder(var), kafka)
