"""The box's programs: their commands, their order, and their readiness probes."""

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from controlplane.compute.files import ComputeFiles, DesiredReplicas, StateFileError
from controlplane.compute.installed import INSTALLED_VARIABLE, foreign_path, installed_root
from controlplane.compute.releases import ReleaseStore
from controlplane.kafka_access.acls import KafkaRole, role_user
from dataplane.mirror.clusters import STANDBY
from dataplane.names import RELEASE_VARIABLE, replica_name
from dataplane.spec.kafka_security import VARIABLE
from localbox.errors import BoxError
from localbox.probes import http_ready, tcp_ready
from localbox.program import Program, StartStage
from localbox.services.kafka import kafka, tls_of
from localbox.services.kafka_tls import ADMIN
from localbox.services.postgres import postgres
from localbox.services.redis import redis
from localbox.settings import BALANCES_REPLICAS, ROOT, BoxSettings, reachable, replicas_least
from localbox.spark import ensure_spark_jars, spark_env

SERVICES: Final = ("postgres", "redis", "kafka")
_SERVICE_MAKERS: Final[dict[str, Callable[[BoxSettings], list[Program]]]] = {
    "postgres": lambda settings: [postgres(settings)],
    "redis": lambda settings: [redis(settings)],
    "kafka": kafka,
}
# Processes with metrics, in the order of their ports.
SHOWN: Final = ("web", "worker", "observer", "keeper", "echo", "table-queries", "mirror", "ingest-1", "ingest-2")
DEMO: Final = ("receiver", "demo-pipe", "demo-live", "sender")
# The role of each program on a secured Kafka; replicas of ingest have theirs. Other programs use no Kafka.
ROLE_OF: Final[dict[str, KafkaRole]] = {
    "web": "web",
    "worker": "control",
    "beat": "control",
    "observer": "control",
    "keeper": "cells",
    "table-queries": "tables",
    "mirror": "control",
    "demo-pipe": "control",
}
DRAIN_S: Final = 60.0  # lanes take up to 25 s for their sends, and the application some more to exit


def programs(settings: BoxSettings, names: Sequence[str] = (), extra: Sequence[str] = ()) -> list[Program]:
    """Return all programs or those in `names`, plus the demo's programs in `extra`; ingest has its least replicas.

    A service that is not needed is not searched for. Raises ValueError for an unknown name.
    """
    services = [one for name, make in _SERVICE_MAKERS.items() if not names or name in names for one in make(settings)]
    demo = [program for program in _demo(settings) if program.name in (*names, *extra)]
    planes = [_with_metrics(settings, program) for program in (*_control(settings), *_data_plane(settings))]
    every = [*services, *_setup(), *_kafka_access(settings), *planes, *demo]
    every = [_with_kafka_role(settings, program) for program in every]
    if not names:
        return every
    if unknown := set(names) - {program.name for program in every}:
        raise ValueError(f"no such program: {', '.join(sorted(unknown))}")
    if "kafka" in names:
        names = (*names, *(node.name for node in settings.kafka_nodes), "kafka-access")
    kept = [program for program in every if program.name in names]
    return [without_others(program, frozenset(names)) for program in kept]


def without_others(program: Program, names: frozenset[str]) -> Program:
    """Return the program, waiting only for those among `names`; the others are assumed to run."""
    return replace(program, after=tuple(name for name in program.after if name in names))


def _kafka_access(settings: BoxSettings) -> list[Program]:
    """Return the step that writes the ACLs of the roles, if the box's Kafka is secured."""
    tls = tls_of(settings)
    if tls is None:
        return []
    command = _manage("kafka_access", "roles", "--apply")
    env = {VARIABLE: str(tls.settings_file(ADMIN))}
    return [Program("kafka-access", StartStage.SETUP, command, after=("kafka",), one_shot=True, env=env)]


def _with_kafka_role(settings: BoxSettings, program: Program) -> Program:
    """Return the program with the settings of its role, after the ACLs of roles, if the box's Kafka is secured."""
    tls = tls_of(settings)
    role = "ingest" if program.name.startswith("ingest-") else ROLE_OF.get(program.name)
    if tls is None or role is None:
        return program
    after = tuple("kafka-access" if name == "kafka" else name for name in program.after)
    return replace(program, after=after, env=program.env | {VARIABLE: str(tls.settings_file(role_user(role)))})


def _with_metrics(settings: BoxSettings, program: Program) -> Program:
    """Return the program with its own address for metrics, if it has any."""
    if program.name not in SHOWN:
        return program
    return replace(program, env=program.env | _metrics_at(settings, SHOWN.index(program.name)))


def _metrics_at(settings: BoxSettings, number: int) -> dict[str, str]:
    return {"PENSTOCK_METRICS": f"127.0.0.1:{settings.ports['PENSTOCK_METRICS_PORT'] + number}"}


def _setup() -> list[Program]:
    return [
        Program("migrate", StartStage.SETUP, _manage("migrate", "--noinput"), after=("postgres",), one_shot=True),
        Program("bootstrap", StartStage.SETUP, _manage("bootstrap", "--box-starts"), after=("migrate",), one_shot=True),
    ]


def _control(settings: BoxSettings) -> list[Program]:
    web = (sys.executable, "-m", "config.serve")
    worker = ["--pool", "threads", "--concurrency", "3", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    beat = ["--pidfile=", "--schedule", str(settings.var / "celerybeat-schedule")]
    celery = (str(Path(sys.executable).parent / "celery"), "-A", "config")
    ready = ("bootstrap",)
    return [
        Program(
            "web",
            StartStage.CONTROL,
            web,
            after=ready,
            probe=_http_probe(settings.env["PENSTOCK_WEB_URL"]),
            port=settings.ports["PENSTOCK_WEB_PORT"],
        ),
        Program(
            "worker",
            StartStage.CONTROL,
            (*celery, "worker", "-l", "warning", *worker),
            after=(*ready, "redis", "kafka"),
            env={INSTALLED_VARIABLE: _installed_release()},
        ),
        Program("beat", StartStage.CONTROL, (*celery, "beat", "-l", "warning", *beat), after=(*ready, "redis")),
        Program("observer", StartStage.CONTROL, _manage("observe"), after=(*ready, "kafka")),
    ]


def _data_plane(settings: BoxSettings) -> list[Program]:
    """Return the data plane's programs. They need neither Postgres nor Redis and start once Kafka is ready."""
    keeper = (sys.executable, "-m", "controlplane.compute.keeper")
    return [
        Program(
            "keeper",
            StartStage.COMPUTE,
            keeper,
            after=("kafka",),
            env=spark_env(settings),
            prepare=partial(ensure_spark_jars, settings),
            stop_grace_s=DRAIN_S,
        ),
        _echo(settings),
        _table_queries(settings),
        *_mirror(settings),
        *_replicas_at_start(settings),
    ]


def _echo(settings: BoxSettings) -> Program:
    """Return the echo, which needs no other service."""
    host, port = settings.env["PENSTOCK_INGEST_HOST"], settings.ports["PENSTOCK_ECHO_PORT"]
    return Program(
        "echo",
        StartStage.COMPUTE,
        (sys.executable, "-m", "dataplane.echo"),
        probe=_http_probe(f"http://{reachable(host)}:{port}"),
        port=port,
    )


def _table_queries(settings: BoxSettings) -> Program:
    """Return the table queries, which share the host's look-up tables with the lanes."""
    host, port = settings.env["PENSTOCK_INGEST_HOST"], settings.ports["PENSTOCK_TABLES_PORT"]
    return Program(
        "table-queries",
        StartStage.COMPUTE,
        (sys.executable, "-m", "dataplane.table_queries"),
        after=("kafka",),
        probe=_http_probe(f"http://{reachable(host)}:{port}"),
        port=port,
    )


def _mirror(settings: BoxSettings) -> list[Program]:
    """Return the mirror, if there is a standby cluster."""
    if STANDBY not in settings.env:
        return []
    command = (sys.executable, "-m", "dataplane.mirror")
    return [Program("mirror", StartStage.COMPUTE, command, after=("kafka",), stop_grace_s=30.0)]


def _replicas_at_start(settings: BoxSettings) -> list[Program]:
    """Return the replicas that start with the box: the least number, of the desired releases."""
    with contextlib.suppress(StateFileError, OSError):
        if desired := _desired_replicas(settings):
            return _replicas_of(settings, replace(desired, count=replicas_least()))
    return _replicas_of(settings, DesiredReplicas(replicas_least()))


def replicas(settings: BoxSettings, names: Sequence[str] = ()) -> list[Program] | None:
    """Return the desired replicas of ingest; None if none were requested, or if the box runs only other programs.

    Raises BoxError if the request, or the file of a release, cannot be read or was changed after the build.
    """
    if names and replica_name(1) not in names:
        return None
    try:
        if (desired := _desired_replicas(settings)) is None:
            return None
        wanted = [_with_kafka_role(settings, program) for program in _replicas_of(settings, desired)]
    except (StateFileError, OSError) as exc:
        raise BoxError(str(exc)) from exc
    return [without_others(program, frozenset(names)) for program in wanted] if names else wanted


def _desired_replicas(settings: BoxSettings) -> DesiredReplicas | None:
    """Return the requested replicas (controlplane.compute.files), or None.

    They are of the installed code if that has changed since the request: its packages may not fit another release.
    Raises StateFileError.
    """
    desired = ComputeFiles(settings.var).replicas()
    if desired and desired.installed != _installed_release():
        return DesiredReplicas(desired.count)
    return desired


def _replicas_of(settings: BoxSettings, desired: DesiredReplicas) -> list[Program]:
    return [replica(settings, number, desired.release_of(number)) for number in range(1, desired.count + 1)]


def replica(settings: BoxSettings, number: int, release: str = "") -> Program:
    """Return one replica of ingest; all replicas listen on one port. `release`: "" for that of the installed code.

    Its name is stable: the next process of that name reports the ACKs that this one could not report. A release that
    was rolled out may be bad, so it does not stop the start of the box. Raises ReleaseError.
    """
    name, url = replica_name(number), settings.env["PENSTOCK_INGEST_URL"]
    installed = _installed_release()
    release = release or installed
    metrics_number = SHOWN.index(replica_name(1)) + number - 1
    return Program(
        name,
        StartStage.INGEST,
        (sys.executable, "-m", "dataplane.ingest", "--replica", name),
        after=("kafka",),
        env=_metrics_at(settings, metrics_number) | _release_env(settings, release),
        probe=_http_probe(url, expected_replica(name)),
        port=settings.ports["PENSTOCK_INGEST_PORT"],
        stop_grace_s=30.0,
        prepare=partial(_pack_installed, settings.var) if release == installed else None,
        patient=release != installed,
    )


@cache
def _installed_release() -> str:
    """Return the release of the installed data plane, which may not be packed yet."""
    return ReleaseStore.identify(installed_root())


def _pack_installed(var: Path) -> None:
    ReleaseStore(var).pack(installed_root())


def _release_env(settings: BoxSettings, release: str) -> dict[str, str]:
    """Return the variables with which Python imports the data plane from the release. Raises ReleaseError.

    PYTHONSAFEPATH: else Python searches the working directory first, which may contain another data plane.
    """
    store = ReleaseStore(settings.var)
    archive = store.path_of(release) if release == _installed_release() else _archive(settings.var, release)
    path = [str(archive), *_path_without_data_plane(settings.env["PYTHONPATH"])]
    return {RELEASE_VARIABLE: release, "PYTHONPATH": os.pathsep.join(path), "PYTHONSAFEPATH": "1"}


@cache
def _path_without_data_plane(path: str) -> list[str]:
    """Return the entries without a data plane; read once, because a checkout may be exchanged while the box runs."""
    return foreign_path(path)


def _archive(var: Path, release: str) -> Path:
    """Return the release's file. It is read again only if it was modified: the supervisor asks twice a second.

    Raises ReleaseError.
    """
    return _checked_archive(var, release, ReleaseStore(var).modified_ns(release))


@cache
def _checked_archive(var: Path, release: str, _modified_ns: int) -> Path:
    return ReleaseStore(var).archive(release)


def expected_replica(name: str, *, balances: bool = BALANCES_REPLICAS) -> str:
    """Return the text by which `/readyz` of the shared port is the replica's own; "" (any) if one may get all requests.

    Without balancing, the replica that gets no requests would never be seen as ready.
    """
    return f'"{name}"' if balances else ""


def _demo(settings: BoxSettings) -> list[Program]:
    """Return the receiver, the step that makes the pipe to it, and the endless sender, which starts once it is live.

    The box is ready before that: a new pipe is live once the lanes run.
    """
    port = settings.ports["PENSTOCK_RECEIVER_PORT"]
    receiver = (sys.executable, "-m", "loadgen.receiver", "--port", str(port))
    url = f"http://127.0.0.1:{port}/"
    full = ("--full",) if settings.env.get("PIPE") == "full" else ()
    return [
        Program(
            "receiver",
            StartStage.SERVICES,
            (*receiver, "--log", str(settings.var / "demo" / "received.log")),
            probe=partial(tcp_ready, "127.0.0.1", port),
            port=port,
        ),
        Program(
            "demo-pipe",
            StartStage.SETUP,
            _manage("demo_pipe", "--url", url, *full),
            after=("bootstrap",),
            one_shot=True,
        ),
        Program(
            "demo-live",
            StartStage.DEMO,
            (sys.executable, "-m", "localbox.demo.live"),
            after=("demo-pipe",),
            one_shot=True,
            patient=True,
        ),
        Program(
            "sender",
            StartStage.DEMO,
            (sys.executable, "-m", "localbox.demo.sender"),
            after=("demo-live", "receiver", "ingest-1"),
        ),
    ]


def _http_probe(url: str, who: str = "") -> partial[str | None]:
    return partial(http_ready, f"{url}/readyz", who)


def _manage(*words: str) -> tuple[str, ...]:
    return (sys.executable, str(ROOT / "manage.py"), *words)
