"""Cells on Kubernetes, as data: the Deployment that keeps a cell, and what its application asks Spark for. Pure.

A cell's Deployment has one pod. In it runs a keeper with one wish, whose application's executors are pods of their own.
"""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from controlplane.compute.port import Desired

MASTER: Final = "k8s://"  # what a master on Kubernetes begins with; the address of its API server follows
TEMPLATES: Final = Path("/etc/penstock/cells")  # where the pods find the two files of deploy/kubernetes/cells
CELL_LABEL: Final = "penstock-cell"
WISH: Final = "penstock-wish"  # the annotation that says what was asked for
PYTHON_MB: Final = 1_024  # for a lane, beside its executor's JVM
EXECUTOR_CPU: Final = "250m"  # what is kept free for a lane: most wait; a busy one takes more where there is more


class Pod(Struct, frozen=True):
    """What a program must know of the pod that it runs in to ask for others like it."""

    name: str
    namespace: str
    ip: str
    image: str


def pod_from(env: Mapping[str, str]) -> Pod | None:
    """POD_NAME, POD_NAMESPACE, POD_IP and POD_IMAGE; None where there is no POD_NAME. Raises KeyError."""
    if "POD_NAME" not in env:
        return None
    return Pod(env["POD_NAME"], env["POD_NAMESPACE"], env["POD_IP"], env["POD_IMAGE"])


def name_of(cell: str) -> str:
    """The Deployment of a cell."""
    return f"cell-{cell}"


def deployment(template: Mapping[str, Any], desired: Desired, pod: Pod) -> dict[str, Any]:
    """The template, filled in for this wish. The cell gets the image of whoever asks.

    The wish stands in the pod's arguments, so that another one replaces the pod: the old one has drained before the
    next begins, by the template's strategy.
    """
    filled: dict[str, Any] = deepcopy(dict(template))
    wish = msgspec.json.encode(desired).decode()
    label = {CELL_LABEL: desired.cell}
    inner = filled["spec"]["template"]
    filled["metadata"] |= {
        "name": name_of(desired.cell),
        "namespace": pod.namespace,
        "annotations": {WISH: wish},
        "labels": filled["metadata"]["labels"] | label,
    }
    filled["spec"]["selector"]["matchLabels"] |= label
    inner["metadata"]["labels"] |= label
    container = inner["spec"]["containers"][0]
    container |= {"image": pod.image, "args": ["--wish", wish]}
    container["env"].append({"name": "POD_IMAGE", "value": pod.image})
    return filled


def wish_in(manifest: Mapping[str, Any]) -> Desired | None:
    """What a Deployment was filled in for; None if it does not say, so that the next submit mends it."""
    try:
        return msgspec.json.decode(manifest["metadata"]["annotations"][WISH], type=Desired)
    except (KeyError, msgspec.DecodeError):
        return None


def spark_conf(cell: str, incarnation: str, pod: Pod) -> dict[str, str]:
    """Spark's settings, beside those for any cluster, where the driver runs in this pod and executors are pods.

    The driver asks for what it needs and for no more rights than that: no config maps, no volumes, no services.
    """
    return {
        "spark.driver.host": pod.ip,
        "spark.executor.memoryOverhead": f"{PYTHON_MB}m",
        # or Spark would end the application after 32 lost executors in all its life
        "spark.executor.failuresValidityInterval": "10m",
        "spark.kubernetes.namespace": pod.namespace,
        "spark.kubernetes.container.image": pod.image,
        "spark.kubernetes.driver.pod.name": pod.name,  # owns the executors: they go when it goes, however that comes
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.executor.podTemplateFile": str(TEMPLATES / "executor.yaml"),
        "spark.kubernetes.executor.podTemplateContainerName": "executor",
        "spark.kubernetes.executor.podNamePrefix": f"{name_of(cell)}-{incarnation[:8]}",
        "spark.kubernetes.executor.request.cores": EXECUTOR_CPU,
        f"spark.kubernetes.executor.label.{CELL_LABEL}": cell,
    }
