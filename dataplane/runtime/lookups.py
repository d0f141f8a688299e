"""Look-up tables of a process: the host's store, its replication, and one pinned snapshot for each batch.

If the disk cannot take the store there are no tables: pipes that need one wait, all others continue, and the process
retries to open the store.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from dataplane.runtime.lookup_replicator import LookupReplicator
from dataplane.stages.enrich import TableNotFoundError
from dataplane.tables.lookup_store import LOOKUPS, LookupStore, lookup_folder
from dataplane.tables.lookups import TableRecord
from dataplane.tables.optional_files import OptionalFiles

OPEN_EVERY_S: Final = 5.0


class LookupTables(Protocol):
    """Snapshot of all tables of a host."""

    def table(self, tenant: str, name: str) -> TableRecord | None:
        """Return the newest table of that name, even if removed; None if this host has no record of it."""

    def row(self, table: str, key: str) -> Any:
        """Return a freshly decoded row; None if there is none."""


class NoLookupTables:
    """Tables of a host without a store: none."""

    def table(self, _tenant: str, _name: str) -> TableRecord | None:
        """Return None, so that pipes with look-ups wait."""
        return None

    def row(self, _table: str, _key: str) -> Any:
        """Return None."""
        return None


class TenantRows:
    """Tables of one tenant in a pinned snapshot."""

    def __init__(self, pinned: LookupTables, tenant: str) -> None:
        self._pinned, self._tenant = pinned, tenant

    def unknown(self, tables: Iterable[str]) -> str:
        """Return the first of these tables that this host neither has nor knows to be removed, or ""."""
        return next((name for name in tables if self._pinned.table(self._tenant, name) is None), "")

    def row(self, table: str, key: str) -> Any:
        """Return the row; None if there is none. Raises TableNotFoundError if the table is unknown or removed."""
        record = self._pinned.table(self._tenant, table)
        if record is None or record.state == "removed":
            raise TableNotFoundError(table)
        return self._pinned.row(record.table, key)


class Lookups:
    """Look-up tables of a process, opened in it and closed with it."""

    def __init__(self, folder: Path, kafka: str = "", files: OptionalFiles | None = None) -> None:
        """Open the store, if the disk can take it; with a Kafka address, start its replication, too."""
        self._folder, self._kafka = folder, kafka
        self._files = files or OptionalFiles()
        self.store: LookupStore | None = None
        self._replicator: LookupReplicator | None = None
        self._open()

    def opened(self) -> LookupStore | None:
        """Return the store, after another attempt to open it if one is due; None while the disk cannot take it."""
        if self.store is None and time.monotonic() >= self._due_s:
            self._open()
        return self.store

    @contextmanager
    def pinned(self) -> Iterator[LookupTables]:
        """Pin one snapshot of all tables, which later writes of the replicator do not change."""
        store = self.opened()
        if store is None:
            yield NoLookupTables()
            return
        pinned = store.pin()
        try:
            yield pinned
        finally:
            pinned.close()

    def close(self) -> None:
        """Close the store and stop the replicator, so that another process can replicate."""
        if self._replicator is not None:
            self._replicator.close()
        if self.store is not None:
            self.store.close()

    def _open(self) -> None:
        self._due_s = time.monotonic() + OPEN_EVERY_S
        with self._files.attempt(LOOKUPS):
            self.store = LookupStore(self._folder)
        if self.store is not None and self._kafka:
            self._replicator = LookupReplicator(self._kafka, self.store, self._folder, self._files)
            self._replicator.start()


def open_lookups(var: Path, kafka: str, files: OptionalFiles) -> Lookups:
    """Open this host's tables, with replication."""
    return Lookups(lookup_folder(var), kafka, files)
