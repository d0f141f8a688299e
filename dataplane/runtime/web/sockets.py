"""Limits of the sockets of Penstock's HTTP servers."""

import contextlib
import resource
import socket
from typing import Final

MOST_CONNECTIONS: Final = 4_096
# A client that reads nothing of a response for this long is disconnected. Without this limit it keeps its connection,
# and the response, as long as it wants, and MOST_CONNECTIONS of them stop the server.
UNREAD_MS: Final = 30_000
# Of a connection, in the kernel, which doubles it. The default is some MB for an endless response that is not read: the
# memory limit of a container includes them.
SEND_BUFFER_BYTES: Final = 128 * 1024


def limit_unread(listener: socket.socket) -> None:
    """Limit what connections of a listener hold of a response that is not read. They inherit its options (tcp(7))."""
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MS)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)


def allow_open_files(count: int) -> int:
    """Raise the soft limit of open files to `count`, or as far as possible; return it. Each connection takes one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft == resource.RLIM_INFINITY:
        return count
    if soft < most:
        with contextlib.suppress(ValueError, OSError):  # the limit stays: fewer connections
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            return most
    return soft
