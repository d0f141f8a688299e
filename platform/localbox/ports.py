"""Ports: which are free, and who holds the ones that are not."""

import random
import socket
from collections.abc import Mapping
from typing import Final

import psutil

from localbox.errors import BoxError

_chance: Final = random.SystemRandom()  # two boxes that start in the same moment must not choose alike


def check_free(ports: Mapping[str, int], host: str = "127.0.0.1") -> None:
    """Raise BoxError naming every taken port, its holder and the variable that changes it."""
    taken = [(name, port) for name, port in ports.items() if not is_free(port, host)]
    if taken:
        told = (
            f"port {port} is held by {_holder(port)}: end that, or set {name} to another port" for name, port in taken
        )
        raise BoxError("\n".join(told))


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether we could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that just ended do not count
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> list[int]:
    """Distinct ports that are free at this moment, chosen by chance.

    From below the range that systems take for outgoing connections: a port from within it may be gone by the time it is
    listened on.
    """
    chosen: list[int] = []
    while len(chosen) < count:
        port = _chance.randrange(15_000, 32_000)
        if port not in chosen and is_free(port):
            chosen.append(port)
    return chosen


def _holder(port: int) -> str:
    try:
        listening = [c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    except psutil.AccessDenied:
        return "a process we may not look at"
    for connection in listening:
        if connection.laddr and connection.laddr.port == port and connection.pid:
            try:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
            except psutil.NoSuchProcess:
                break
    return "a process we may not look at"
