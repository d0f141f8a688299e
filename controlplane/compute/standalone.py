"""Spark standalone: what an application asks of a cluster, and the commands of the cluster's own processes.

Executors come and go with lanes by Spark's dynamic allocation; who adds a host starts a worker on it, nothing else.
Workers hand their environment to executors: PENSTOCK_VAR, Kafka's address and secrets are set where workers start,
never on a command line.
"""

from pathlib import Path
from typing import Final

from controlplane.compute.processes import INCARNATION_VARIABLE

EXECUTORS: Final = 16
CORES: Final = 1  # of one executor: a lane that is taken back gives its executor back
EXECUTOR_MB: Final = 512


def cluster_conf(master: str, incarnation: str) -> dict[str, str]:
    """Spark's settings of an application on this master; none for a local one, which has all it needs."""
    if master.startswith("local"):
        return {}
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",  # there is no shuffle service to ask for
        "spark.dynamicAllocation.maxExecutors": str(EXECUTORS),
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
        "spark.dynamicAllocation.executorIdleTimeout": "10s",
        "spark.executor.cores": str(CORES),
        "spark.executor.memory": f"{EXECUTOR_MB}m",
        "spark.task.maxFailures": "1000",  # a lane's task is tried again for as long as the application lives
        f"spark.executorEnv.{INCARNATION_VARIABLE}": incarnation,
    }


def master_command(spark_home: Path, *, host: str, port: int, web_port: int) -> list[str]:
    """The cluster's master."""
    where = ["--host", host, "--port", str(port), "--webui-port", str(web_port)]
    return [str(spark_home / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master", *where]


def worker_command(spark_home: Path, master: str, *, host: str, cores: int, memory_mb: int, work: Path) -> list[str]:
    """A worker of the master at this URL, on ports of its own choice."""
    what = ["--host", host, "--webui-port", "0", "--cores", str(cores), "--memory", f"{memory_mb}m"]
    program = [str(spark_home / "bin" / "spark-class"), "org.apache.spark.deploy.worker.Worker"]
    return [*program, *what, "--work-dir", str(work), master]
