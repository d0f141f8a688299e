"""Caddy of the version in docker-compose.yml with the committed Caddyfile, in front of servers on free ports."""

import contextlib
import os
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

from localbox.ports import free_ports
from localbox.settings import ROOT
from tests.support.go_tools import go_tool
from tests.support.patience import until

FOLDER = ROOT / "deploy" / "compose"
IMAGE: str = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["caddy"]["image"]
WEB, INGEST, TABLES = "web.localhost", "in.localhost", "tables.localhost"  # Caddy signs these names itself


class Caddy:
    """Running Caddy. `plain`: the port on which ingest is reached without TLS."""

    def __init__(self, https: int, http: int, plain: int, context: ssl.SSLContext) -> None:
        self.http, self.plain = http, plain
        self._https, self._context = https, context

    def client(self, host: str) -> httpx.Client:
        """Return a client of one of the hosts, which no name server knows."""
        limits = httpx.Limits(max_keepalive_connections=1)
        headers = {"Host": f"{host}:{self._https}"}
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self._https}",
            verify=self._context,
            headers=headers,
            limits=limits,
            timeout=30,
        )


def sni(host: str) -> dict[str, str]:
    """Return the extensions of a request to that host."""
    return {"sni_hostname": host}


@contextmanager
def caddy(
    folder: Path, upstreams: Sequence[int], others: Mapping[str, int], config: str = "Caddyfile"
) -> Iterator[Caddy]:
    """Run Caddy until the block ends.

    upstreams: ports of the ingest replicas
    others:    ports of WEB, ECHO and TABLES
    config:    file of deploy/compose; ingest.caddyfile serves only `plain`
    """
    http, https, plain, admin = free_ports(4)
    addresses = {f"{name}_UPSTREAM": f"127.0.0.1:{port}" for name, port in others.items()}
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
        "CADDY_ADMIN": f"127.0.0.1:{admin}",
        "HTTP_PORT": str(http),
        "HTTPS_PORT": str(https),
        "INGEST_PORT": str(plain),
        "INGEST_UPSTREAMS": " ".join(f"127.0.0.1:{port}" for port in upstreams),
        "PENSTOCK_WEB_URL": f"https://{WEB}",
        "PENSTOCK_INGEST_URL": f"https://{INGEST}",
        "PENSTOCK_TABLES_URL": f"https://{TABLES}",
        **addresses,
    }
    program = go_tool("caddy", f"v{IMAGE.rpartition(':')[2]}")
    authority = folder / "data" / "caddy" / "pki" / "authorities" / "local" / "root.crt"
    with (folder / "caddy.log").open("wb") as log:
        command = [str(program), "run", "--config", str(FOLDER / config)]
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:

        def answers() -> bool:
            assert process.poll() is None, (folder / "caddy.log").read_text()
            with contextlib.suppress(httpx.HTTPError):
                return httpx.get(f"http://127.0.0.1:{plain}/readyz").status_code == 200
            return False

        until(answers, "Caddy answers", 60)
        if config == "Caddyfile":
            until(authority.exists, "Caddy has made its authority", 60)
        cafile = str(authority) if authority.exists() else None
        yield Caddy(https, http, plain, ssl.create_default_context(cafile=cafile))
    finally:
        process.terminate()
        process.wait(30)
