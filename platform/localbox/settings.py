"""The box's settings: the variables that it reads, and the environment of every process that it starts."""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from cryptography.fernet import Fernet
from msgspec import Struct

from controlplane.kafka_access.acls import role_user
from dataplane import addresses as defaults
from localbox.errors import BoxError
from localbox.services.kafka_nodes import THREE, KafkaNode, kafka_nodes, made_brokers
from localbox.services.kafka_tls import kafka_tls_in

ROOT: Final = Path(__file__).resolve().parents[2]  # the checkout, or the folder of the installed wheel
IS_INSTALLED: Final = ROOT.name == "penstock_home"
BALANCES_REPLICAS: Final = sys.platform == "linux"  # SO_REUSEPORT shares a port's connections among its listeners


class Variable(NamedTuple):
    """One variable: its default in the box ("" = made or found by the box), and its meaning."""

    name: str
    default: str
    meaning: str


PORTS: Final = (
    Variable("PENSTOCK_WEB_PORT", str(defaults.WEB_PORT), "pages and API"),
    Variable(
        "PENSTOCK_INGEST_PORT", str(defaults.INGEST_PORT), "events are posted here; every ingest replica listens on it"
    ),
    Variable("PENSTOCK_POSTGRES_PORT", str(defaults.POSTGRES_PORT), "the box's Postgres (unless DATABASE_URL is set)"),
    Variable("PENSTOCK_REDIS_PORT", str(defaults.REDIS_PORT), "the box's Redis (unless REDIS_URL is set)"),
    Variable("PENSTOCK_KAFKA_PORT", str(defaults.KAFKA_PORT), "the box's Kafka (unless PENSTOCK_KAFKA is set)"),
    Variable(
        "PENSTOCK_KAFKA_CONTROLLER_PORT", str(defaults.KAFKA_CONTROLLER_PORT), "the same Kafka, for its own controller"
    ),
    Variable(
        "PENSTOCK_KAFKA_2_PORT", str(defaults.KAFKA_2_PORT), "the second of the box's three brokers, if it has them"
    ),
    Variable(
        "PENSTOCK_KAFKA_2_CONTROLLER_PORT", str(defaults.KAFKA_2_CONTROLLER_PORT), "controller of the second broker"
    ),
    Variable(
        "PENSTOCK_KAFKA_3_PORT", str(defaults.KAFKA_3_PORT), "the third of the box's three brokers, if it has them"
    ),
    Variable(
        "PENSTOCK_KAFKA_3_CONTROLLER_PORT", str(defaults.KAFKA_3_CONTROLLER_PORT), "controller of the third broker"
    ),
    Variable("PENSTOCK_RECEIVER_PORT", str(defaults.RECEIVER_PORT), "the demo's built-in receiver"),
    Variable("PENSTOCK_ECHO_PORT", str(defaults.ECHO_PORT), "the echo, a destination for pipes without an endpoint"),
    Variable("PENSTOCK_TABLES_PORT", str(defaults.TABLES_PORT), "look-up table rows, by key and by prefix"),
    Variable(
        "PENSTOCK_METRICS_PORT",
        str(defaults.METRICS_PORT),
        "the first of the ports on which the box's processes serve their metrics, one each",
    ),
)
VARIABLES: Final = (
    Variable(
        "DATABASE_URL", "", "Postgres that is not the box's own, such as postgresql://user:password@host:5432/name"
    ),
    Variable("REDIS_URL", "", "Redis that is not the box's own, such as redis://host:6379/0"),
    Variable("PENSTOCK_KAFKA", "", "Kafka that is not the box's own: bootstrap servers, host:port[,host:port]"),
    Variable(
        "PENSTOCK_KAFKA_SETTINGS",
        "",
        "how to sign in to Kafka: librdkafka settings of security as a JSON object, or a file with it (0502)",
    ),
    Variable(
        "PENSTOCK_STANDBY_KAFKA",
        "",
        "another Kafka that the mirror keeps as a standby: bootstrap servers; without it, no mirror runs (0315)",
    ),
    Variable("PENSTOCK_STANDBY_KAFKA_SETTINGS", "", "how to sign in to that Kafka, as in PENSTOCK_KAFKA_SETTINGS"),
    Variable(
        "PENSTOCK_KAFKA_TLS",
        "false",
        "true secures the box's own Kafka by TLS, SCRAM and ACLs when its data are made; it then stays secured (0502)",
    ),
    Variable(
        "PENSTOCK_KAFKA_BROKERS",
        "1",
        "brokers of the box's own Kafka when its data are made, 1 or 3; with 3, each record has three copies (0513)",
    ),
    Variable(
        "PENSTOCK_VAR", "var", "directory of all files that the box writes; of the wheel: ~/.local/share/penstock"
    ),
    Variable("PENSTOCK_CACHE", "~/.cache/penstock", "Kafka's jars, shared between clones"),
    Variable("PENSTOCK_ENV", "development", "development | production (then nothing secret has a default)"),
    Variable("PENSTOCK_SECRET_KEY", "", "signs sessions and links; in development generated once, in var/secrets.env"),
    Variable(
        "PENSTOCK_FERNET_KEYS", "", "encrypt destinations' secrets, the first key is used to write; generated as above"
    ),
    Variable("PENSTOCK_POSTGRES_PASSWORD", "", "of the Postgres in containers, from its first start; has no default"),
    Variable("PENSTOCK_WEB_HOST", "127.0.0.1", "address on which the pages are served"),
    Variable("PENSTOCK_WEB_URL", "", "how browsers reach the pages; follows host and port"),
    Variable("PENSTOCK_ALLOWED_HOSTS", "", "host names at which pages are served, comma-separated"),
    Variable(
        "PENSTOCK_TRUSTED_PROXIES",
        "",
        "networks of proxies in front of the pages, comma-separated; only their X-Forwarded-* headers count; in "
        "containers, by default, Caddy's",
    ),
    Variable("PENSTOCK_INGEST_HOST", "127.0.0.1", "address that ingest, the echo and table queries listen on"),
    Variable("PENSTOCK_INGEST_URL", "", "how sources reach ingest; follows host and port"),
    Variable(
        "PENSTOCK_ECHO_URL",
        "",
        "how lanes reach the echo, which the console offers to pipes without an endpoint; not offered if empty",
    ),
    Variable(
        "PENSTOCK_TABLES_URL",
        "",
        "how customers reach table queries; without it, tables are read only through pages and API",
    ),
    Variable(
        "PENSTOCK_TABLES_HOSTS",
        "",
        "how the web process reaches table queries: URLs, comma-separated; in the box, its own by default",
    ),
    Variable("PENSTOCK_METRICS", "", "where one process serves its metrics, host:port; the box gives each its own"),
    Variable("OTEL_EXPORTER_OTLP_ENDPOINT", "", "where traces go (OTLP, HTTP): http://127.0.0.1:4318; off if empty"),
    Variable("OTEL_EXPORTER_OTLP_HEADERS", "", "headers that the collector asks for: name=value[,name=value]"),
    Variable(
        "OTEL_TRACES_SAMPLER",
        "parentbased_always_on",
        "which traces are recorded; parentbased_traceidratio: a share of them",
    ),
    Variable("OTEL_TRACES_SAMPLER_ARG", "1.0", "that share, of the traces that no sender has begun"),
    Variable("PENSTOCK_PARTITIONS", "4", "partitions of a cell's topics"),
    Variable(
        "PENSTOCK_TAPS_PARTITIONS",
        "1",
        "partitions of a new cell's taps; more only once every cell runs a release that reads them (0475)",
    ),
    Variable("PENSTOCK_REPLICATION", "", "copies of each topic: 1 in development, 3 in production"),
    Variable("PENSTOCK_MIN_ISR", "", "copies that must have a record before it is ACKed: 1, in production 2"),
    Variable("PENSTOCK_GRACE_S", "60", "seconds that an event may be late and still count in its own minute"),
    Variable("PENSTOCK_FACTS_KEEP_D", "30", "days for which the ledger names the messages of a sealed minute"),
    Variable("PENSTOCK_SEALS_KEEP_D", "400", "days for which the account of a sealed minute is kept"),
    Variable("PENSTOCK_ATTEMPTS_KEEP_H", "72", "hours for which attempts are kept"),
    Variable("PENSTOCK_AUDIT_KEEP_D", "400", "days for which entries of a tenant's audit log are kept"),
    Variable("PENSTOCK_FAILING_RATIO", "0.5", "share of failed attempts from which a destination is failing"),
    Variable("PENSTOCK_FAILING_LEAST", "3", "fewest failed attempts in three minutes that count as failing"),
    Variable("PENSTOCK_RECOVERED_RATIO", "0.1", "share of failed attempts up to which it has recovered"),
    Variable("PENSTOCK_RECOVERY_S", "300", "seconds for which all must be well before its alert is resolved"),
    Variable("PENSTOCK_WAITS_S", "600", "age in seconds of the oldest undelivered message that opens an alert"),
    Variable(
        "PENSTOCK_CELL_MASTER",
        "local[16,1000]",
        "where Spark runs the cells: local[N,F], spark://... or k8s://https://...",
    ),
    Variable(
        "PENSTOCK_STANDBY_APPLICATIONS",
        "false",
        "true keeps a second Spark application ready for each cell on a local master, at the cost of its memory (0308)",
    ),
    Variable(
        "PENSTOCK_SPARE_EXECUTORS",
        "0",
        "executors that each cell on a cluster keeps in addition to one for a lane of each kind (0304)",
    ),
    Variable("PENSTOCK_LANES_MAX", "", "lanes of one kind in a cell unless staff say otherwise: half of the cores"),
    Variable(
        "PENSTOCK_CELLS_MAX", "1", "cells open to all tenants up to which the Autoscaler adds cells; staff may add more"
    ),
    Variable(
        "PENSTOCK_INGEST_MAX",
        "",
        "ingest replicas unless staff set them: in the box 2, or half of the cores (macOS: 1); 0 where others run it",
    ),
    Variable("PENSTOCK_MAX_EVENT_BYTES", "262144", "the largest event"),
    Variable("PENSTOCK_MAX_BODY_BYTES", "5242880", "the largest request, after decompression"),
    Variable(
        "PENSTOCK_QUOTAS",
        "",
        "limits of tenants for which staff have set none: kind=limit,... (docs/reference/quotas.md)",
    ),
    Variable("PENSTOCK_IN_FLIGHT_BYTES", "268435456", "bytes of request bodies that an ingest replica handles at once"),
    Variable(
        "PENSTOCK_OWN_INGEST",
        "",
        "more addresses of our own ingest, host:port or URL, comma-separated: no destination may be there",
    ),
    Variable("PENSTOCK_DESTINATION_ALLOW", defaults.DEFAULT_ALLOW, "private networks to which delivery is allowed"),
    Variable(
        "PENSTOCK_DESTINATION_CA",
        "",
        "file of CA certificates that are trusted at destinations, instead of the system's",
    ),
    Variable(
        "PENSTOCK_MAIL_URL",
        "consolemail://",
        "mail server for alerts and accounts: smtp+tls://user:password@host:587, or printed (not in production)",
    ),
    Variable("PENSTOCK_STAFF_MFA", "false", "members of staff need a second factor; true in production unless set"),
    Variable("PENSTOCK_MAIL_FROM", "penstock@localhost", "the sender of these mails"),
    Variable("PENSTOCK_OPERATOR_MAIL", "", "address that is notified of incidents that affect several tenants"),
    Variable("PENSTOCK_CHECKPOINT_MS", "200", "interval of a lane's checkpoints (audit and commit), in milliseconds"),
    Variable("PENSTOCK_MAX_UNSETTLED", "20000", "messages in a lane's ack window, per partition"),
    Variable(
        "PENSTOCK_DEAD_PERCENT",
        "50",
        "percent of a pipe's messages that may fail in its steps in a minute; then it is held",
    ),
    Variable("PENSTOCK_DEAD_LEAST", "100", "messages of a pipe in a minute below which that is not judged"),
    Variable("PENSTOCK_FIELDS", "values", "how fields of sampled events are counted: values, names or off (0602)"),
    Variable("PENSTOCK_RETRY_RATE", "1000", "messages of one destination that a retrier lane returns per second"),
    Variable("PENSTOCK_KAFKA_CLUSTERS", "", "file of the Kafka clusters that sources of pipes may read (0482)"),
    Variable("PENSTOCK_LAKES", "", "stores that lake destinations may use, as URLs; lake in PENSTOCK_VAR if none"),
    Variable("PENSTOCK_LAKE_EVERY_S", "10", "interval of writes to the lake, in seconds"),
    Variable(
        "PENSTOCK_STATE_PARTITIONS",
        "",
        "partitions of each streaming query's state: 1, 2 or 4; empty keeps them, and gives new queries 2 (0475)",
    ),
    Variable(
        "PENSTOCK_ROLLOUT_UP_S",
        "75",
        "seconds within which a cell's lanes, or a replica of ingest, must report from a new release",
    ),
    Variable(
        "PENSTOCK_ROLLOUT_WATCH_S", "90", "seconds for which a cell with a new release is watched before the next step"
    ),
    Variable(
        "PENSTOCK_ADMISSION_ABOVE",
        "500",
        "events per second; a new pipe that expects more is admitted by shares of its keys",
    ),
    Variable("PENSTOCK_ADMISSION_STEPS", "20,50,100", "those shares of the keys, in tens of percent"),
    Variable(
        "PENSTOCK_RAMP_STEPS", "1,5,25,50,100", "shares of the keys, in percent, by which a new revision is ramped"
    ),
    Variable("PENSTOCK_RAMP_HOLD_S", "30", "seconds that each of these steps lasts at least"),
    Variable("PENSTOCK_RAMP_EVIDENCE", "20", "messages that a step needs to be judged"),
    Variable("PENSTOCK_RAMP_PATIENCE_S", "300", "seconds that a step waits for so many"),
    Variable("PENSTOCK_PLACING_SHARD", "2", "cells that the pipes of one tenant may be on"),
    Variable("PENSTOCK_PLACING_HEADROOM", "0.3", "share of a cell's capacity that placement keeps free"),
    *PORTS,
)
_DEFAULTS: Final = {variable.name: variable.default for variable in VARIABLES}


class BoxSettings(Struct, frozen=True):
    """Directories and ports of the box, and which services are its own."""

    var: Path
    cache: Path
    ports: dict[str, int]  # by variable name
    owns_postgres: bool
    owns_redis: bool
    owns_kafka: bool
    has_secured_kafka: bool  # PENSTOCK_KAFKA_TLS: the box's own Kafka with TLS, SCRAM and ACLs
    kafka_nodes: tuple[KafkaNode, ...]  # brokers of the box's own Kafka
    env: dict[str, str]  # what every process of the box gets

    @property
    def logs(self) -> Path:
        """Folder of the logs."""
        return self.var / "log"

    @property
    def run(self) -> Path:
        """Folder of state and sockets of the running box."""
        return self.var / "run"


def replicas_least(*, balances: bool = BALANCES_REPLICAS) -> int:
    """Return the least number of ingest replicas: one may crash. Without balancing, all connections reach one."""
    return 2 if balances else 1


def replicas_most(cores: int, *, balances: bool = BALANCES_REPLICAS) -> int:
    """Return the number of ingest replicas up to which the Autoscaler adds some."""
    return max(2, cores // 2) if balances else 1


def command(name: str) -> str:
    """Return how people start a command of the box, such as `make up`."""
    return f"penstock box {name}" if IS_INSTALLED else f"make {name}"


def var_of(env: Mapping[str, str]) -> Path:
    """Return the directory of all files that the box writes."""
    usual = Path(env.get("XDG_DATA_HOME") or "~/.local/share") / "penstock" if IS_INSTALLED else ROOT / "var"
    return Path(env.get("PENSTOCK_VAR") or usual).expanduser().absolute()


# Not that of the current directory, which may be of another project.
DOTENV: Final = var_of(os.environ) / ".env" if IS_INSTALLED else ROOT / ".env"


def settings_from(given: Mapping[str, str] = os.environ, *, dotenv: Path | None = DOTENV) -> BoxSettings:
    """Read the environment, and the file `dotenv` for what it lacks. Makes var/ and, in development, the secrets in it.

    Raises BoxError, naming the variable, for a value that cannot be used.
    """
    env = {**_read_env_file(dotenv), **given} if dotenv else dict(given)
    env = {name: value for name, value in env.items() if value or name not in _DEFAULTS}
    var = var_of(given if IS_INSTALLED else env)  # the file of a wheel is in var/ itself
    ports = {port.name: _port(port.name, env.get(port.name, port.default)) for port in PORTS}
    nodes = kafka_nodes(var, ports, _kafka_brokers(env, made=made_brokers(var)))
    addresses = _addresses(env, ports, nodes)
    var.mkdir(parents=True, exist_ok=True)
    if env.get("PENSTOCK_ENV", "development") != "production":
        env.setdefault("PENSTOCK_DESTINATION_ALLOW", _DEFAULTS["PENSTOCK_DESTINATION_ALLOW"])
    env.setdefault("PENSTOCK_INGEST_MAX", str(replicas_most(os.cpu_count() or 1)))
    if len(nodes) > 1:
        env.setdefault("PENSTOCK_REPLICATION", str(len(nodes)))
        env.setdefault("PENSTOCK_MIN_ISR", str(len(nodes) - 1))
    own = {**_process_env(var), **addresses, **_secrets(env, var / "secrets.env")}
    tls = kafka_tls_in(var)
    if has_secured_kafka := _is_kafka_secured(env, is_made=tls.is_made):  # other roles get files of their own
        own["PENSTOCK_KAFKA_SETTINGS"] = str(tls.settings_file(role_user("control")))
    return BoxSettings(
        var=var,
        cache=Path(env.get("PENSTOCK_CACHE", _DEFAULTS["PENSTOCK_CACHE"])).expanduser().absolute(),
        ports=ports,
        owns_postgres="DATABASE_URL" not in env,
        owns_redis="REDIS_URL" not in env,
        owns_kafka="PENSTOCK_KAFKA" not in env,
        has_secured_kafka=has_secured_kafka,
        kafka_nodes=nodes,
        env={**env, **own, **{name: str(port) for name, port in ports.items()}},
    )


def env_example() -> str:
    """Return the text of `.env.example`: every variable, its default and its meaning."""
    lines = ["# Every variable of the box, the containers and the settings. Copy to .env and change what you need.", ""]
    for variable in VARIABLES:
        lines += [f"# {variable.meaning}", f"#{variable.name}={variable.default}", ""]
    return "\n".join(lines)


def new_secrets() -> str:
    """Return fresh values of the secrets, which must not have defaults, as lines for a .env file."""
    return f"PENSTOCK_SECRET_KEY={secrets.token_urlsafe(50)}\nPENSTOCK_FERNET_KEYS={Fernet.generate_key().decode()}\n"


def container_secrets() -> str:
    """Return fresh values of all secrets of docker-compose.yml, as lines for a .env file."""
    return f"{new_secrets()}PENSTOCK_POSTGRES_PASSWORD={secrets.token_urlsafe(32)}\n"


def _addresses(env: Mapping[str, str], ports: Mapping[str, int], nodes: Sequence[KafkaNode]) -> dict[str, str]:
    web_host = env.get("PENSTOCK_WEB_HOST", "127.0.0.1")
    ingest_host = env.get("PENSTOCK_INGEST_HOST", "127.0.0.1")
    defaults_of = {
        "DATABASE_URL": f"postgresql://penstock@127.0.0.1:{ports['PENSTOCK_POSTGRES_PORT']}/penstock",
        "REDIS_URL": f"redis://127.0.0.1:{ports['PENSTOCK_REDIS_PORT']}/0",
        "PENSTOCK_KAFKA": ",".join(node.address for node in nodes),
        "PENSTOCK_WEB_HOST": web_host,
        "PENSTOCK_WEB_URL": f"http://{reachable(web_host)}:{ports['PENSTOCK_WEB_PORT']}",
        "PENSTOCK_INGEST_HOST": ingest_host,
        "PENSTOCK_INGEST_URL": f"http://{reachable(ingest_host)}:{ports['PENSTOCK_INGEST_PORT']}",
        "PENSTOCK_TABLES_HOSTS": f"http://{reachable(ingest_host)}:{ports['PENSTOCK_TABLES_PORT']}",
    }
    if env.get("PENSTOCK_ENV", "development") != "production":
        defaults_of["PENSTOCK_ECHO_URL"] = f"http://{reachable(ingest_host)}:{ports['PENSTOCK_ECHO_PORT']}/echo/"
        defaults_of["PENSTOCK_TABLES_URL"] = defaults_of["PENSTOCK_TABLES_HOSTS"]
    return defaults_of | {name: env[name] for name in defaults_of if name in env}


def reachable(host: str) -> str:
    """Return the address at which this machine reaches a listener."""
    return "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 compared, not bound


def _process_env(var: Path) -> dict[str, str]:
    bin_dir = Path(sys.executable).parent
    return {
        "PENSTOCK_VAR": str(var),
        "PENSTOCK_BOX": str(var),  # the mark by which `down` knows the box's orphans
        "PATH": f"{bin_dir}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}",
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYSPARK_PYTHON": sys.executable,  # otherwise Spark's workers start another Python
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def _secrets(env: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return the secrets: in development generated once and kept, in production only those of the environment."""
    names = ("PENSTOCK_SECRET_KEY", "PENSTOCK_FERNET_KEYS")
    if env.get("PENSTOCK_ENV", "development") == "production":
        return {name: env[name] for name in names if name in env}
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(new_secrets())
    return _read_env_file(path) | {name: env[name] for name in names if name in env}


def _read_env_file(path: Path) -> dict[str, str]:
    """Parse NAME=value lines; quotes around the whole value are removed."""
    if not path.is_file():
        return {}
    lines = (line.strip() for line in path.read_text().splitlines())
    pairs = (line.removeprefix("export ").split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, value in pairs}


def _is_kafka_secured(env: Mapping[str, str], *, is_made: bool) -> bool:
    """Return whether the box's own Kafka is secured. One that was made so never starts without TLS."""
    if (wish := env.get("PENSTOCK_KAFKA_TLS", "false")) not in ("true", "false"):
        raise BoxError(f"PENSTOCK_KAFKA_TLS: needs true or false, got {wish!r}")
    if "PENSTOCK_KAFKA" not in env:
        return is_made or wish == "true"
    if wish == "true":
        raise BoxError("PENSTOCK_KAFKA_TLS is for the box's own broker: leave out PENSTOCK_KAFKA")
    return False


def _kafka_brokers(env: Mapping[str, str], *, made: int) -> int:
    """Return the number of brokers of the box's own Kafka: that of its data, if it has them (`made`)."""
    wish = env.get("PENSTOCK_KAFKA_BROKERS", "1")
    if wish not in ("1", str(THREE)):
        raise BoxError(f"PENSTOCK_KAFKA_BROKERS: needs 1 or {THREE}, got {wish!r}")
    if "PENSTOCK_KAFKA" not in env:
        return made or int(wish)
    if wish != "1":
        raise BoxError("PENSTOCK_KAFKA_BROKERS is for the box's own brokers: leave out PENSTOCK_KAFKA")
    return 1


def _port(name: str, text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise BoxError(f"{name}: needs a port from 1 to 65535, got {text!r}")
    return int(text)
