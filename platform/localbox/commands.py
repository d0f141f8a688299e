"""The box's commands `up`, `down`, `status`, `archive`, `backup` and `restore`."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException

from dataplane.mirror.clusters import STANDBY, MirrorCluster, first_line, mirror_addresses
from localbox.backups import restore_backup, write_backup
from localbox.catalogue import DRAIN_S, programs, replicas
from localbox.end_processes import wait_gone
from localbox.kafka_training import ensure_kafka_archive
from localbox.settings import ROOT, BoxSettings, command
from localbox.spark import ensure_spark
from localbox.state import BoxSnapshot, last_json_line
from localbox.supervisor import Supervisor, end_leftovers, living, wait_written

_STOP_LIMIT_S: Final = DRAIN_S + 90.0


def up(settings: BoxSettings, *, names: Sequence[str] = (), extra: Sequence[str] = (), detach: bool = False) -> int:
    """Start the box; in the foreground, the process ends with it. If the box already runs, print its programs."""
    if snapshot := living(settings):
        print(f"penstock is already running at {settings.var} (supervisor pid {snapshot.supervisor.pid})")
        _print_programs(snapshot)
        _print_links(settings)
        return 0
    if detach:
        return _up_detached(settings, names, extra)
    print(f"penstock starts at {settings.var}", flush=True)
    supervisor = Supervisor(
        settings, programs(settings, names, extra), desired_replicas=partial(replicas, settings, names)
    )
    code = supervisor.run(on_ready=lambda: _print_links(settings))
    sys.stdout.flush()
    os._exit(code)  # everything is stopped; a thread that still waits for jars must not delay the exit


def archive(settings: BoxSettings) -> int:
    """Archive the classes of Spark and Kafka, unless they are archived already."""
    ensure_spark(settings)
    ensure_kafka_archive(settings)
    return 0


def down(settings: BoxSettings) -> int:
    """Stop the box, in any state; a box that does not run is not an error."""
    snapshot = wait_written(settings, limit_s=10)
    if snapshot is None:
        left = end_leftovers(settings)
        print("ended the processes that a killed supervisor left" if left else "penstock is not running")
        return 0
    snapshot.supervisor.send(signal.SIGTERM)
    if wait_gone(snapshot.supervisor, until=time.monotonic() + _STOP_LIMIT_S):
        end_leftovers(settings)  # of a supervisor that was killed meanwhile
        print("stopped")
        return 0
    snapshot.supervisor.send(signal.SIGKILL)
    end_leftovers(settings)
    print("stopped, but the supervisor had to be killed")
    return 0


def status(settings: BoxSettings) -> int:
    """Print the box's programs; return exit code 3 if the box does not run."""
    snapshot = living(settings)
    if snapshot is None:
        print(f"penstock is not running at {settings.var}")
        return 3
    _print_programs(snapshot)
    if STANDBY in settings.env:
        print(f"  mirror to {settings.env[STANDBY]}: {_mirror_summary(settings)}")
    return 0


def _mirror_summary(settings: BoxSettings) -> str:
    try:
        cluster = MirrorCluster(mirror_addresses(settings.env).standby)
        return cluster.read_records().summary(time.time_ns() // 1_000)
    except KafkaException as exc:
        return f"the standby cluster does not respond: {first_line(exc)}"
    except ValueError as exc:
        return str(exc)


def backup(settings: BoxSettings, archive: Path) -> int:
    """Write an archive of everything that the stopped box keeps. Raises BoxError."""
    summary = write_backup(settings, archive, now=datetime.now(UTC))
    print(f"{archive}: {summary.files:,} files, {summary.size:,} bytes, compressed {archive.stat().st_size:,}")
    if not (settings.var / "secrets.env").exists():
        print("Keep PENSTOCK_SECRET_KEY and PENSTOCK_FERNET_KEYS, too: the archive does not contain them.")
    if settings.env.get("PENSTOCK_LAKES"):
        print("Back up the stores of PENSTOCK_LAKES before the box starts again: the archive does not contain them.")
    return 0


def restore(settings: BoxSettings, archive: Path) -> int:
    """Bring back the archive into a var/ without anything of a box. Raises BoxError."""
    summary = restore_backup(settings, archive)
    what = f"{summary.files:,} files, {summary.size:,} bytes," if summary else "the rest of an interrupted restore"
    print(f"restored {what} to {settings.var}; start with `{command('up')}`")
    return 0


def sign_in_url(settings: BoxSettings) -> str | None:
    """Return the sign-in link that bootstrap made at the last start, or None."""
    url = last_json_line(settings.logs / "bootstrap.log").get("sign_in_url")
    return url if isinstance(url, str) else None


def _up_detached(settings: BoxSettings, names: Sequence[str], extra: Sequence[str]) -> int:
    """Start a supervisor in a session of its own and wait until it reports that all is ready, or exits."""
    log = settings.logs / "supervisor.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "localbox", "up", *(["--only", ",".join(names)] if names else [])]
    words += ["--with", ",".join(extra)] if extra else []
    with log.open("wb") as out:
        child = subprocess.Popen(
            words,
            cwd=ROOT,
            # Our own environment: the box derives the variables that are not set. Paths may be relative to ours.
            env=os.environ
            | {"PENSTOCK_VAR": str(settings.var), "PENSTOCK_CACHE": str(settings.cache)}
            | {"PYTHONPATH": settings.env["PYTHONPATH"]},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    seen = 0
    try:
        while True:
            code = child.poll()
            seen = _copy_new(log, seen)
            snapshot = living(settings)
            if code is not None:
                return code or 1
            if snapshot and snapshot.ready and snapshot.supervisor.pid == child.pid:
                _copy_new(log, seen)
                return 0
            time.sleep(0.05)
    except KeyboardInterrupt:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGTERM)
        child.wait()
        _copy_new(log, seen)
        return 130


def _copy_new(log: Path, seen: int) -> int:
    with log.open("rb") as file:
        file.seek(seen)
        new = file.read()
    sys.stdout.write(new.decode(errors="replace"))
    sys.stdout.flush()
    return seen + len(new)


def _print_programs(snapshot: BoxSnapshot) -> None:
    for entry in snapshot.programs:
        pid = f"pid {entry.process.pid}" if entry.process else ""
        port = f"port {entry.port}" if entry.port else ""
        restarts = f"{entry.restarts} restarts" if entry.restarts else ""
        detail = "  ".join(part for part in (entry.version, port, pid, restarts, entry.why) if part)
        print(f"  {entry.name:<13} {entry.state:<9} {detail}".rstrip())


def _print_links(settings: BoxSettings) -> None:
    if url := sign_in_url(settings):
        print(f"\n  Sign in:  {url}")
        print(f"  Events:   POST {settings.env['PENSTOCK_INGEST_URL']}/v1/events\n", flush=True)
