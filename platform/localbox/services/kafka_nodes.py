"""Brokers of the box's own Kafka: one, or three, each of which is a controller of the cluster, too."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

THREE: Final = 3
_NOTE: Final = "brokers"


class KafkaNode(NamedTuple):
    """One broker. `name`: of its program."""

    number: int
    name: str
    home: Path
    port: int
    controller_port: int

    @property
    def address(self) -> str:
        """Host and port for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def voter(self) -> str:
        """The node as a voter of the controllers' quorum."""
        return f"{self.number}@127.0.0.1:{self.controller_port}"

    @property
    def is_made(self) -> bool:
        """True if the node has data."""
        return (self.home / "log" / "meta.properties").exists()


def kafka_nodes(var: Path, ports: Mapping[str, int], count: int) -> tuple[KafkaNode, ...]:
    """Return the brokers of a box."""
    return tuple(
        KafkaNode(
            number,
            _name(number),
            var / _name(number),
            ports[f"{_variable(number)}_PORT"],
            ports[f"{_variable(number)}_CONTROLLER_PORT"],
        )
        for number in range(1, count + 1)
    )


def made_brokers(var: Path) -> int:
    """Return the number of brokers for which data in this directory were made; 0 if there are none."""
    note = var / _name(1) / _NOTE
    if note.exists():
        return int(note.read_text())
    return int((var / _name(1) / "log" / "meta.properties").exists())  # of a release with one broker


def note_brokers(nodes: Sequence[KafkaNode]) -> None:
    """Note the number of brokers next to the first one's data, before the data of any are made."""
    home = nodes[0].home
    home.mkdir(parents=True, exist_ok=True)
    (home / _NOTE).write_text(str(len(nodes)))


def _name(number: int) -> str:
    return "kafka" if number == 1 else f"kafka-{number}"


def _variable(number: int) -> str:
    return "PENSTOCK_KAFKA" if number == 1 else f"PENSTOCK_KAFKA_{number}"
