"""A process lane's look-up tables: the host's store, the lane's part in keeping it, one pinned state for a batch.

Without a disk that takes the store there are no tables: the pipes that need some wait, all others go on, and the store
is opened as soon as it can be.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from dataplane.runtime.lookup_keeper import LookupKeeper
from dataplane.stages.enrich import TableGoneError
from dataplane.tables.lookup_store import LOOKUPS, LookupStore, lookup_folder
from dataplane.tables.lookups import TableRecord
from dataplane.tables.optional_files import OptionalFiles

OPEN_EVERY_S: Final = 5.0


class Tables(Protocol):
    """One state of all tables of a host."""

    def table(self, tenant: str, name: str) -> TableRecord | None:
        """The newest table of that name, be it removed; None if this host knows of none."""

    def row(self, table: str, key: str) -> Any:
        """The row, decoded anew for whoever asks; None if there is none."""


class NoTables:
    """What a host without a store knows."""

    def table(self, _tenant: str, _name: str) -> TableRecord | None:
        """None: whoever needs a table waits for it."""
        return None

    def row(self, _table: str, _key: str) -> Any:
        """None: there is no row."""
        return None


class TenantRows:
    """The tables of one tenant, as pinned."""

    def __init__(self, pinned: Tables, tenant: str) -> None:
        self._pinned, self._tenant = pinned, tenant

    def unknown(self, tables: Iterable[str]) -> str:
        """Return the first of these tables that this host neither holds nor knows to be removed, or ""."""
        return next((name for name in tables if self._pinned.table(self._tenant, name) is None), "")

    def row(self, table: str, key: str) -> Any:
        """The row; None if there is none. Raises TableGoneError."""
        record = self._pinned.table(self._tenant, table)
        if record is None or record.state == "removed":
            raise TableGoneError(table)
        return self._pinned.row(record.table, key)


class Lookups:
    """Opened inside the lane's process; closed with the lane."""

    def __init__(self, folder: Path, kafka: str = "", files: OptionalFiles | None = None) -> None:
        """Open the store, if the disk takes it; with the address of a Kafka, stand for keeper too."""
        self._folder, self._kafka = folder, kafka
        self._files = files or OptionalFiles()
        self.store: LookupStore | None = None
        self._keeper: LookupKeeper | None = None
        self._open()

    @contextmanager
    def pinned(self) -> Iterator[Tables]:
        """One state of all tables, whatever the keeper writes meanwhile."""
        if self.store is None and time.monotonic() >= self._due_s:
            self._open()
        if self.store is None:
            yield NoTables()
            return
        pinned = self.store.pin()
        try:
            yield pinned
        finally:
            pinned.close()

    def close(self) -> None:
        """Let another process be the keeper."""
        if self._keeper is not None:
            self._keeper.close()
        if self.store is not None:
            self.store.close()

    def _open(self) -> None:
        self._due_s = time.monotonic() + OPEN_EVERY_S
        with self._files.attempt(LOOKUPS):
            self.store = LookupStore(self._folder)
        if self.store is not None and self._kafka:
            self._keeper = LookupKeeper(self._kafka, self.store, self._folder, self._files)
            self._keeper.start()


def open_lookups(var: Path, kafka: str, files: OptionalFiles) -> Lookups:
    """This host's tables."""
    return Lookups(lookup_folder(var), kafka, files)
