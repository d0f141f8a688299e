"""The box's programs: what runs, in which order, and how each is known to be ready."""

import contextlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from controlplane.compute.files import BrokenFileError, ComputeFiles
from localbox.probes import http_ready, tcp_ready
from localbox.program import Program, Stage
from localbox.services.kafka import kafka
from localbox.services.postgres import postgres
from localbox.services.redis import redis
from localbox.settings import REPLICAS_LEAST, ROOT, BoxSettings, reachable
from localbox.spark import ensure_spark_jars, spark_env

SERVICES: Final = ("postgres", "redis", "kafka")
_SERVICE_MAKERS: Final = {"postgres": postgres, "redis": redis, "kafka": kafka}
# Processes with metrics, in the order of their ports.
SHOWN: Final = ("web", "worker", "observer", "keeper", "echo", "ingest-1", "ingest-2")
DRAIN_S: Final = 60.0  # lanes take up to 25 s for their sends, the application some more to leave


def programs(settings: BoxSettings, names: Sequence[str] = (), extra: Sequence[str] = ()) -> list[Program]:
    """All of them, or those named, and those of the demo that are asked for as `extra`; ingest with two replicas.

    A service that is not wanted is not even looked for.
    """
    services = [make(settings) for name, make in _SERVICE_MAKERS.items() if not names or name in names]
    demo = [program for program in _demo(settings) if program.name in (*names, *extra)]
    ours = [_shown(settings, program) for program in (*_control(settings), *_data_plane(settings))]
    every = [*services, *_setup(), *ours, *demo]
    if not names:
        return every
    if unknown := set(names) - {program.name for program in every}:
        raise ValueError(f"no such program: {', '.join(sorted(unknown))}")
    kept = [program for program in every if program.name in names]
    return [without_others(program, frozenset(names)) for program in kept]


def without_others(program: Program, names: frozenset[str]) -> Program:
    """The program, waiting only for those among `names`; the rest is taken as being there."""
    return replace(program, after=tuple(name for name in program.after if name in names))


def _shown(settings: BoxSettings, program: Program) -> Program:
    """The program with a place of its own to serve its metrics at, if it has any."""
    if program.name not in SHOWN:
        return program
    return replace(program, env=program.env | _metrics_at(settings, SHOWN.index(program.name)))


def _metrics_at(settings: BoxSettings, place: int) -> dict[str, str]:
    return {"PENSTOCK_METRICS": f"127.0.0.1:{settings.ports['PENSTOCK_METRICS_PORT'] + place}"}


def _setup() -> list[Program]:
    return [
        Program("migrate", Stage.SETUP, _manage("migrate", "--noinput"), after=("postgres",), one_shot=True),
        Program("bootstrap", Stage.SETUP, _manage("bootstrap"), after=("migrate",), one_shot=True),
    ]


def _control(settings: BoxSettings) -> list[Program]:
    web = (sys.executable, "-m", "config.serve")
    worker = ["--pool", "threads", "--concurrency", "2", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    beat = ["--pidfile=", "--schedule", str(settings.var / "celerybeat-schedule")]
    celery = (_tool("celery"), "-A", "config")
    ready = ("bootstrap",)
    return [
        Program(
            "web",
            Stage.CONTROL,
            web,
            after=ready,
            probe=_answers(settings.env["PENSTOCK_WEB_URL"]),
            port=settings.ports["PENSTOCK_WEB_PORT"],
        ),
        Program(
            "worker", Stage.CONTROL, (*celery, "worker", "-l", "warning", *worker), after=(*ready, "redis", "kafka")
        ),
        Program("beat", Stage.CONTROL, (*celery, "beat", "-l", "warning", *beat), after=(*ready, "redis")),
        Program("observer", Stage.CONTROL, _manage("observe"), after=(*ready, "kafka")),
    ]


def _data_plane(settings: BoxSettings) -> list[Program]:
    """Needs no Postgres and no Redis: it starts when Kafka is there."""
    keeper = (sys.executable, "-m", "controlplane.compute.keeper")
    return [
        Program(
            "keeper",
            Stage.COMPUTE,
            keeper,
            after=("kafka",),
            env=spark_env(settings),
            prepare=partial(ensure_spark_jars, settings),
            stop_grace_s=DRAIN_S,
        ),
        _echo(settings),
        *(replica(settings, number) for number in range(1, REPLICAS_LEAST + 1)),
    ]


def _echo(settings: BoxSettings) -> Program:
    """The echo. It needs no other service."""
    host, port = settings.env["PENSTOCK_INGEST_HOST"], settings.ports["PENSTOCK_ECHO_PORT"]
    return Program(
        "echo",
        Stage.COMPUTE,
        (sys.executable, "-m", "dataplane.echo"),
        probe=_answers(f"http://{reachable(host)}:{port}"),
        port=port,
    )


def replicas(settings: BoxSettings, names: Sequence[str] = ()) -> list[Program] | None:
    """As many replicas of ingest as are asked for (controlplane.compute.files); None if nobody asks for any, or if the
    box runs other programs alone.
    """
    if names and "ingest-1" not in names:
        return None
    with contextlib.suppress(BrokenFileError):
        if (count := ComputeFiles(settings.var).replicas()) is not None:
            wanted = [replica(settings, number) for number in range(1, count + 1)]
            return [without_others(program, frozenset(names)) for program in wanted] if names else wanted
    return None


def replica(settings: BoxSettings, number: int) -> Program:
    """One replica of ingest; all listen on one port. Its name lasts: what it ACKed and could not tell is told by the
    next process of that name.
    """
    name, url = f"ingest-{number}", settings.env["PENSTOCK_INGEST_URL"]
    place = SHOWN.index("ingest-1") + number - 1
    return Program(
        name,
        Stage.INGEST,
        (sys.executable, "-m", "dataplane.ingest", "--replica", name),
        after=("kafka",),
        env=_metrics_at(settings, place),
        probe=_answers(url, f'"{name}"'),
        port=settings.ports["PENSTOCK_INGEST_PORT"],
        stop_grace_s=30.0,
    )


def _demo(settings: BoxSettings) -> list[Program]:
    """The receiver, the pipe to it, and the sender that goes on until it is stopped."""
    port = settings.ports["PENSTOCK_RECEIVER_PORT"]
    receiver = (sys.executable, "-m", "localbox.demo.receiver", "--port", str(port))
    url = f"http://127.0.0.1:{port}/"
    full = ("--full",) if settings.env.get("PIPE") == "full" else ()
    return [
        Program(
            "receiver",
            Stage.SERVICES,
            (*receiver, "--log", str(settings.var / "demo" / "received.log")),
            probe=partial(tcp_ready, "127.0.0.1", port),
            port=port,
        ),
        Program(
            "demo-pipe", Stage.SETUP, _manage("demo_pipe", "--url", url, *full), after=("bootstrap",), one_shot=True
        ),
        Program(
            "sender",
            Stage.DEMO,
            (sys.executable, "-m", "localbox.demo.sender"),
            after=("demo-pipe", "receiver", "ingest-1"),
        ),
    ]


def _answers(url: str, who: str = "") -> partial[str | None]:
    return partial(http_ready, f"{url}/readyz", who)


def _manage(*words: str) -> tuple[str, ...]:
    return (sys.executable, str(ROOT / "manage.py"), *words)


def _tool(name: str) -> str:
    return str(Path(sys.executable).parent / name)
