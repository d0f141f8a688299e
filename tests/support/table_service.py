"""The table query service as a process of its own, over a store that the test may write, and a client of it."""

import http.client
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from cryptography.fernet import Fernet

from dataplane.tables.access_tokens import TableAccess, sign_access
from dataplane.tables.lookup_store import LookupStore, lookup_folder
from dataplane.tables.lookups import TableRecord, encode_row, encode_table, row_key, table_key
from localbox.settings import ROOT
from localbox.testing import free_ports
from localbox.testing_kafka import role_env
from tests.support.patience import Patience

NO_KAFKA: Final = "127.0.0.1:1"
READY_S: Final = 60.0


class TableService:
    """The service with its files in `var`. Without a broker it serves what `fill` has stored."""

    def __init__(self, var: Path, kafka: str = NO_KAFKA) -> None:
        self.key = Fernet.generate_key().decode()
        self.port = int(free_ports()["PENSTOCK_TABLES_PORT"])
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = lookup_folder(var)
        self._log = var / "table-queries.log"
        path = os.pathsep.join([str(ROOT), str(ROOT / "platform")])
        self._env = os.environ | {
            "PYTHONPATH": path,
            "PENSTOCK_KAFKA": kafka,
            "PENSTOCK_VAR": str(var),
            "PENSTOCK_FERNET_KEYS": self.key,
            "PENSTOCK_INGEST_HOST": "127.0.0.1",
            "PENSTOCK_TABLES_PORT": str(self.port),
            "PENSTOCK_METRICS": "",
        }
        self._env |= role_env("tables")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process and wait until it is ready."""
        command = [sys.executable, "-m", "dataplane.table_queries"]
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=self._env, stdout=log, stderr=log)
        patience = Patience(READY_S)
        while not self._is_ready():
            assert self._process.poll() is None, self._log.read_text()
            assert not patience.is_over, f"not ready after {READY_S:g} s: {self._log.read_text()}"
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def stop(self) -> None:
        """Stop the process with SIGTERM and wait for its end."""
        if self._process is not None:
            self._process.terminate()
            assert self._process.wait(10) == 0
            self._process = None

    @property
    def log(self) -> str:
        """Output of the process."""
        return self._log.read_text()

    def fill(self, table: str, tenant: str, name: str, rows: dict[str, tuple[int, str | None]]) -> None:
        """Store a live table and rows (version, JSON text) as the replicator does, and confirm them."""
        store = LookupStore(self.folder)
        try:
            store.recount()
            records = [
                (row_key(table, key), encode_row(version, None if text is None else text.encode()))
                for key, (version, text) in rows.items()
            ]
            record = TableRecord(table, 1, tenant, name)
            store.apply([*records, (table_key(table), encode_table(record))], store.position().offset + len(rows) + 1)
            store.confirm(time.time_ns() // 1_000)
        finally:
            store.close()

    def token(self, table: str, tenant: str, name: str, lasts_s: int = 600) -> str:
        """Return an access token that lasts for this time."""
        return sign_access([self.key], TableAccess(tenant, table, name, int(time.time()) + lasts_s))

    def get(self, target: str, token: str = "") -> tuple[int, Any]:
        """Return status and decoded body of a GET. Raises OSError while the service is away."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", target, headers={"authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            body = answer.read()
            return answer.status, json.loads(body) if body[:1] == b"{" else body.decode()
        finally:
            connection.close()

    def _is_ready(self) -> bool:
        try:
            return self.get("/readyz")[0] == 200
        except OSError:
            return False
