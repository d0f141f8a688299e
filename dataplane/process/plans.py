"""Plans of a lane, compiled once per (pipe, revision), with the tenant's salt if a step hashes."""

import base64
import logging

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from dataplane.plan import CompiledPlan, compile_plan
from dataplane.tables.control import ControlTable
from dataplane.tables.sealed import salt_place, unbind

log = logging.getLogger(__name__)


class PlanCache:
    """Cache of compiled plans. Messages wait while their plan is missing."""

    def __init__(self, table: ControlTable, fernet_keys: tuple[str, ...]) -> None:
        self._table = table
        self._fernet = MultiFernet([Fernet(key) for key in fernet_keys]) if fernet_keys else None
        self._known: dict[tuple[str, int], CompiledPlan] = {}
        self._reported: set[str] = set()

    def find(self, pipe: str, revision: int) -> CompiledPlan | None:
        """Return the plan for messages stamped with a revision; None while its spec or its salt is not known."""
        record = self._table.pipe(pipe)
        runs_as = record.run_as.get(revision, revision) if record else revision
        plan = self._known.get((pipe, runs_as))
        if plan is None:
            plan = self._compile(pipe, runs_as)
            if plan is not None:
                self._known[pipe, runs_as] = plan
        return plan

    def missing(self, pipe: str, revision: int) -> str:
        """Return the reason why `find` gave None, as text for the pipe's owner."""
        record = self._table.pipe(pipe)
        runs_as = record.run_as.get(revision, revision) if record else revision
        if self._table.plan(pipe, runs_as) is None:
            return f"Revision {runs_as} has not been loaded yet."
        return "The secret of its hash steps cannot be decrypted."

    def _compile(self, pipe: str, revision: int) -> CompiledPlan | None:
        known = self._table.plan(pipe, revision)
        if known is None:
            return None
        plan = compile_plan(known.spec)
        if not plan.needs_salt:
            return plan
        salt = self.salt(pipe)
        return None if salt is None else compile_plan(known.spec, salt)

    def salt(self, pipe: str) -> bytes | None:
        """Return the tenant's salt; None if there is none or it cannot be decrypted: no hash is made without it."""
        record = self._table.pipe(pipe)
        try:
            if record is None or not record.salt or self._fernet is None:
                raise ValueError("needs the pipe's record with a salt, and PENSTOCK_FERNET_KEYS")
            return base64.b64decode(
                unbind(self._fernet.decrypt(record.salt).decode(), salt_place(record.tenant)), validate=True
            )
        except (InvalidToken, ValueError) as exc:
            if pipe not in self._reported:
                self._reported.add(pipe)
                log.error(
                    "pipe=%s waits: cannot decrypt its salt: %s", pipe, exc or "no key of PENSTOCK_FERNET_KEYS matches"
                )
            return None
