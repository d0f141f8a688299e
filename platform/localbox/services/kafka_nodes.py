"""Brokers of the box's own Kafka: one, or three, each of which is a controller of the cluster, too."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

MOST: Final = 3


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
    made = [(var / _name(number) / "log" / "meta.properties").exists() for number in range(1, MOST + 1)]
    return MOST if any(made[1:]) else int(made[0])


def _name(number: int) -> str:
    return "kafka" if number == 1 else f"kafka-{number}"


def _variable(number: int) -> str:
    return "PENSTOCK_KAFKA" if number == 1 else f"PENSTOCK_KAFKA_{number}"
