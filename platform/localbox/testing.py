"""What tests take from the box: `with Box(tmp_path / "var", only=["kafka"]) as box: ...`."""

from localbox.box import Box, free_ports
from localbox.settings import ROOT

__all__ = ["ROOT", "Box", "free_ports"]
