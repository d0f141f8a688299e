"""Finds free ports, and the processes that hold the others."""

import random
import socket
from collections.abc import Mapping
from typing import Final

import psutil

from localbox.errors import BoxError

_chance: Final = random.SystemRandom()  # two boxes that start at the same moment must choose different ports


def check_free(ports: Mapping[str, int], host: str = "127.0.0.1") -> None:
    """Raise BoxError if ports are taken, with the holder of each and the variable that changes it."""
    taken = [(name, port) for name, port in ports.items() if not is_free(port, host)]
    if taken:
        lines = (
            f"port {port} is in use by {_holder(port)}: stop that process, or set {name} to another port"
            for name, port in taken
        )
        raise BoxError("\n".join(lines))


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Return True if we could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that just ended do not count
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> list[int]:
    """Return distinct, random ports that are free at this moment.

    They are below the range of outgoing connections: a port within that range may be taken before a program listens.
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
        return "a process that we may not inspect"
    for connection in listening:
        if connection.laddr and connection.laddr.port == port and connection.pid:
            try:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
            except psutil.NoSuchProcess:
                break
    return "a process that we may not inspect"
