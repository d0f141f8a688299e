"""Compute on Kubernetes: a wish is a Deployment, and Kubernetes keeps it while the control plane is dead."""

from pathlib import Path

import yaml
from msgspec import Struct

from controlplane.compute.api_server import ApiServer
from controlplane.compute.pods import TEMPLATES, Pod, deployment, name_of, wish_in
from controlplane.compute.port import Desired, Observation


class KubernetesCompute(Struct, frozen=True):
    """The port over an API server. `pod`: the one that asks; `templates`: deploy/kubernetes/cells, as its volume.

    What runs is not asked for: heartbeats tell that of every cell, wherever it is.
    """

    api: ApiServer
    pod: Pod
    templates: Path = TEMPLATES

    def submit(self, desired: Desired) -> None:
        """Apply the cell's Deployment, unless it stands there for this wish already. Raises ComputeError."""
        if self.observe(desired.cell).desired != desired:
            template = yaml.safe_load((self.templates / "cell.yaml").read_text())
            self.api.apply(self._path(desired.cell), deployment(template, desired, self.pod))

    def stop(self, cell: str) -> None:
        """Remove the Deployment; its pod drains on the SIGTERM that it gets. Raises ComputeError."""
        self.api.delete(self._path(cell))

    def observe(self, cell: str) -> Observation:
        """Read the Deployment. Raises ComputeError."""
        found = self.api.get(self._path(cell))
        return Observation(wish_in(found) if found else None, None)

    def _path(self, cell: str) -> str:
        return f"/apis/apps/v1/namespaces/{self.pod.namespace}/deployments/{name_of(cell)}"
