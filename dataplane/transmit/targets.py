"""Where to send: a destination's current record, its signing keys opened, and its own queue and share of the lane."""

import logging
from collections import deque
from typing import Any, Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from dataplane.tables.control import ControlTable
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.rules import ask_body, compile_rules
from dataplane.transmit.sender import KEPT_BYTES, MAX_ANSWER_BYTES
from dataplane.transmit.signature import signing_key

log = logging.getLogger(__name__)

_OURS: Final = ("Expect:", "User-Agent: Penstock/1")  # no `Expect: 100-continue`, which costs a round trip


class Target:
    """One destination of one pipe as this lane sees it. While it is locked none of its messages goes out unsigned."""

    def __init__(self, record: DestinationRecord, keys: list[bytes] | None) -> None:
        self.active = 0
        self.queue: deque[Any] = deque()
        self.adopt(record, keys)

    def adopt(self, record: DestinationRecord, keys: list[bytes] | None) -> None:
        """A newer record: what is queued goes to the new address. No `keys`: its secrets cannot be opened."""
        self.record = record
        self.keys = keys or []
        self.locked = keys is None
        self.timeout_ms = int(record.to.timeout_s * 1_000)
        self.rules = compile_rules(record.to.rules)
        self.keep_bytes = MAX_ANSWER_BYTES if ask_body(self.rules) else KEPT_BYTES
        self.fixed_headers = [*_OURS, *(f"{name}: {value}" for name, value in record.to.headers.items())]
        self.secret_texts: tuple[str, ...] = ()


class Targets:
    """All destinations this lane has met."""

    def __init__(self, table: ControlTable, fernet_keys: tuple[str, ...]) -> None:
        self._table = table
        self._fernet = MultiFernet([Fernet(key) for key in fernet_keys]) if fernet_keys else None
        self._known: dict[tuple[str, str], Target] = {}
        table.on_change(self._changed)

    def find(self, pipe: str, name: str) -> Target | None:
        """The target, or None while the control table does not know it."""
        target = self._known.get((pipe, name))
        if target is None:
            record = self._table.destination(pipe, name)
            if record is None:
                return None
            target = self._known[pipe, name] = Target(record, self._open(record))
        return target

    def _changed(self, record: object) -> None:
        if isinstance(record, DestinationRecord):
            target = self._known.get((record.pipe, record.name))
            if target is not None:
                target.adopt(record, self._open(record))

    def _open(self, record: DestinationRecord) -> list[bytes] | None:
        """The signing keys, or None if one cannot be opened: one tenant's secret must not stop the whole lane."""
        if not record.secrets:
            return []
        try:
            if self._fernet is None:
                raise ValueError("needs PENSTOCK_FERNET_KEYS, got nothing")
            return [signing_key(self._fernet.decrypt(token).decode()) for token in record.secrets]
        except (InvalidToken, ValueError) as exc:
            why = str(exc) or "no key of PENSTOCK_FERNET_KEYS opens it"
            log.error("pipe=%s destination=%s waits: its signing secret: %s", record.pipe, record.name, why)
            return None
