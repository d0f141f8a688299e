"""Readiness probes. Each returns None if its program is ready, else the reason in a few words."""

import http.client
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

_TIMEOUT_S = 2.0


def postgres_ready(url: str, *, make_database: bool) -> str | None:
    """Probe the database; with `make_database`, create it if the server does not have it."""
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            connection.execute("select 1")
        return None
    except psycopg.OperationalError as exc:
        if not make_database or "does not exist" not in str(exc):
            return _short(exc)
    try:
        _create_database(url)
    except psycopg.Error as exc:
        return _short(exc)
    return "database created"


def redis_ready(url: str) -> str | None:
    """Probe Redis for a PONG (a server that is still loading its data sends none)."""
    import redis

    try:
        with redis.Redis.from_url(url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S) as client:
            client.ping()
        return None
    except (redis.RedisError, OSError) as exc:
        return _short(exc)


def kafka_ready(servers: str, security: Mapping[str, str] | None = None, *, brokers: int = 1) -> str | None:
    """Probe a broker with a metadata request.

    servers:  bootstrap servers
    security: librdkafka settings to sign in with, by default those of this process
    brokers:  number of brokers that the cluster must have
    """
    from confluent_kafka import KafkaException

    from dataplane.kafka_clients import make_admin_client

    host, _, port = servers.split(",", maxsplit=1)[0].rpartition(":")
    if (why := tcp_ready(host or "127.0.0.1", int(port))) is not None:
        return why  # checked first, as librdkafka would back off for a second after a refused connection
    try:
        settings = {"bootstrap.servers": servers, "socket.timeout.ms": 2000, "log_level": 0}
        client = make_admin_client(settings, security)
        found = len(client.list_topics(timeout=_TIMEOUT_S).brokers)
        return None if found >= brokers else f"{found} of {brokers} brokers"
    except KafkaException as exc:
        return _short(exc)


def tcp_ready(host: str, port: int) -> str | None:
    """Probe that a process listens there."""
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT_S):
            return None
    except OSError as exc:
        return _short(exc)


def http_ready(url: str, who: str = "") -> str | None:
    """Probe that GET returns 200 and a body with `who`: if several listen on one port, any of them may answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", parts.path or "/")
        response = connection.getresponse()
        body = response.read(200)
        text = body.decode(errors="replace")
        if response.status != 200:
            return f"{response.status} {text}"
        return None if who in text else f"{who} has not responded yet"
    except (OSError, http.client.HTTPException) as exc:
        return _short(exc)
    finally:
        connection.close()


def _create_database(url: str) -> None:
    parts = urlsplit(url)
    server = parts._replace(path="/postgres").geturl()
    with psycopg.connect(server, connect_timeout=2, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(parts.path.lstrip("/"))))


def _short(exc: BaseException) -> str:
    return (str(exc).strip().splitlines() or [type(exc).__name__])[0][:200]
