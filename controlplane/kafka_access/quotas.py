"""Sets the quotas of a Kafka user. librdkafka has no request for it, so a Java client is started.

Its settings, with the password, are passed over a connection to that JVM on this machine, never on a command line.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from dataplane.kafka_java import java_properties

REQUEST_PERCENT: Final = 50.0  # of the time of one broker thread, per broker: many small requests are costly, too
JARS_VARIABLE: Final = "PENSTOCK_SPARK_JARS"
_TIMEOUT_MS: Final = 60_000  # a cold JVM on a busy machine needs more than 20 s for TLS and SCRAM


class QuotaNotSetError(Exception):
    """Kafka did not store the quota; the message says why."""


def quotas(bytes_per_s: int | None) -> dict[str, float | None]:
    """Return Kafka's quotas of a user by their names; None removes all of them."""
    if bytes_per_s is None:
        return {"consumer_byte_rate": None, "request_percentage": None}
    return {"consumer_byte_rate": float(bytes_per_s), "request_percentage": REQUEST_PERCENT}


def set_consume_quota(servers: str, security: Mapping[str, str], user: str, bytes_per_s: int | None) -> None:
    """Limit the bytes that all consumers of a user read per second and broker, and their requests; None removes both.

    Raises QuotaNotSetError.
    """
    gateway = _start_java()
    try:
        _alter(gateway.jvm, java_properties(servers, security), user, bytes_per_s)
    except Py4JJavaError as exc:
        raise QuotaNotSetError(f"Kafka refused the quota of {user}: {exc.java_exception.getMessage()}") from exc
    finally:
        gateway.shutdown()


def _alter(jvm: Any, properties: Mapping[str, str], user: str, bytes_per_s: int | None) -> None:
    given = jvm.java.util.Properties()
    for name, value in properties.items():
        given.setProperty(name, value)
    given.setProperty("default.api.timeout.ms", str(_TIMEOUT_MS))
    entity = jvm.java.util.HashMap()
    entity.put("user", user)
    quota = jvm.org.apache.kafka.common.quota
    operations = jvm.java.util.ArrayList()
    for name, limit in quotas(bytes_per_s).items():
        operations.add(quota.ClientQuotaAlteration.Op(name, limit))
    alterations = jvm.java.util.ArrayList()
    alterations.add(quota.ClientQuotaAlteration(quota.ClientQuotaEntity(entity), operations))
    admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(given)
    try:
        admin.alterClientQuotas(alterations).all().get()
    finally:
        admin.close()


def _start_java() -> JavaGateway:
    """Return a JVM with Kafka's client, which ends with this process. Raises QuotaNotSetError without Java or jars."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    clients = sorted(Path(os.environ.get(JARS_VARIABLE, "")).glob("kafka-clients-*.jar"))
    if java is None or not clients:
        raise QuotaNotSetError(f"needs Java on the PATH, and Spark's jars for Kafka in {JARS_VARIABLE}")
    jars = Path(pyspark.__file__).parent / "jars"
    (py4j,) = jars.glob("py4j-*.jar")
    log = [*jars.glob("slf4j-api-*.jar")]
    port, token = launch_gateway(
        jarpath=str(py4j),
        classpath=os.pathsep.join(map(str, [*clients, *log])),
        java_path=java,
        die_on_exit=True,
        enable_auth=True,
    )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
