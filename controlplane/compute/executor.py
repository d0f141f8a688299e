"""Entry point of an executor's pod: runs Spark's executor from the installed PySpark, configured by Spark's variables.

Spark's own images have a script for this, which PySpark lacks. Run as `python -m controlplane.compute.executor`; Spark
adds the argument `executor`.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from controlplane.compute.installed import foreign_path, home_without_zip

MAIN: Final = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
JAVA_OPTION: Final = "SPARK_JAVA_OPT_"  # and a number, from 0
OPTIONS: Final = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def command(env: Mapping[str, str], home: Path) -> list[str]:
    """Return the JVM's command line, with Spark's jars from `home`. Raises KeyError if Spark did not set a variable."""
    numbers = sorted(int(name.removeprefix(JAVA_OPTION)) for name in env if name.startswith(JAVA_OPTION))
    heap = env["SPARK_EXECUTOR_MEMORY"]
    java = ["java", *(env[f"{JAVA_OPTION}{number}"] for number in numbers), f"-Xms{heap}", f"-Xmx{heap}"]
    classes = os.pathsep.join(filter(None, [env.get("SPARK_CLASSPATH", ""), f"{home}/jars/*"]))
    options = [word for option, variable in OPTIONS.items() for word in (option, env[variable])]
    return [*java, "-cp", classes, MAIN, *options]


def environment(env: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the environment of the executor and its Python workers: no data plane but the one that Spark ships."""
    return {
        **env,
        "SPARK_HOME": str(home),
        "PYTHONPATH": os.pathsep.join(foreign_path(env.get("PYTHONPATH", ""))),
        "PYSPARK_PYTHON": sys.executable,
    }


def main() -> None:
    """Become the executor, in PENSTOCK_VAR: in the directory of the installation, workers would import from there."""
    var = Path(os.environ.get("PENSTOCK_VAR", "var")).absolute()
    home = home_without_zip(var / "spark-home")
    os.chdir(var)
    words = command(os.environ, home)
    os.execvpe(words[0], words, environment(os.environ, home))  # noqa: S606


if __name__ == "__main__":
    main()
