"""Kafka of a test run: plaintext, or with TLS, SCRAM and ACLs if PENSTOCK_KAFKA_TLS is `true`.

A secured run makes certificates and passwords once, and each of its brokers gets a copy: the settings of a user are
right for all of them, and a test need not pass them along with the address of a broker.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from controlplane.kafka_access.acls import KafkaRole, role_user
from controlplane.kafka_access.apply import KafkaAccess
from dataplane.kafka_clients import make_admin_client
from dataplane.spec.kafka_security import VARIABLE
from localbox.errors import BoxError
from localbox.services.kafka_tls import ADMIN, KafkaTls, ensure_kafka_tls, kafka_tls_in
from localbox.settings import ROOT

SWITCH: Final = "PENSTOCK_KAFKA_TLS"


def secure_run(parent: Path = ROOT / "var" / "test") -> None:
    """Make the files of a secured run, which end with this process. Raises BoxError if the run has a foreign broker."""
    if os.environ.get(SWITCH) != "true":
        return
    if "PENSTOCK_KAFKA" in os.environ:
        raise BoxError(f"{SWITCH}: a secured run starts its own brokers; leave out PENSTOCK_KAFKA")
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="kafka-access-", dir=parent))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    ensure_kafka_tls(KafkaTls(folder))
    os.environ[VARIABLE] = str(KafkaTls(folder).settings_file(ADMIN))


def run_access() -> KafkaTls | None:
    """Return the files of the run, None if its brokers are plaintext."""
    return KafkaTls(Path(os.environ[VARIABLE]).parent) if os.environ.get(SWITCH) == "true" else None


def role_env(role: KafkaRole) -> dict[str, str]:
    """Return the variable with which a process signs in as this role; {} if the brokers are plaintext."""
    access = run_access()
    return {VARIABLE: str(access.settings_file(role_user(role)))} if access else {}


def administrator() -> dict[str, str]:
    """Return the settings of a client that may do everything; {} if the brokers are plaintext."""
    access = run_access()
    return access.settings_of(ADMIN) if access else {}


def broker_env(var: Path) -> dict[str, str]:
    """Return variables for the box of a broker in this folder; if they secure it, put the run's files there first."""
    access = run_access()
    if access is None:
        return {}
    shutil.copytree(access.folder, kafka_tls_in(var).folder, dirs_exist_ok=True)
    return {SWITCH: "true"}


def write_acls(servers: str) -> None:
    """Write the ACLs of all roles to a broker of a secured run."""
    if security := administrator():
        KafkaAccess(make_admin_client({"bootstrap.servers": servers, "log_level": 3}, security)).set_role_acls()
