"""Three brokers of a box: when it has them, and what their properties say."""

import re
from pathlib import Path

import pytest

from localbox.catalogue import programs
from localbox.errors import BoxError
from localbox.services.kafka import properties
from localbox.services.kafka_nodes import note_brokers
from localbox.settings import BoxSettings, settings_from

THREE = {"PENSTOCK_KAFKA_BROKERS": "3"}


def box(var: Path, **given: str) -> BoxSettings:
    return settings_from({"PATH": "", "PENSTOCK_VAR": str(var), **given}, dotenv=None)


def make_data(settings: BoxSettings) -> None:
    note_brokers(settings.kafka_nodes)
    for node in settings.kafka_nodes:
        (node.home / "log").mkdir(parents=True)
        (node.home / "log" / "meta.properties").touch()


def test_box_has_three_brokers_with_two_copies_in_sync(tmp_path: Path):
    settings = box(tmp_path, **THREE)
    assert [node.name for node in settings.kafka_nodes] == ["kafka", "kafka-2", "kafka-3"]
    assert settings.env["PENSTOCK_KAFKA"].count("127.0.0.1:") == 3
    assert (settings.env["PENSTOCK_REPLICATION"], settings.env["PENSTOCK_MIN_ISR"]) == ("3", "2")
    given = [properties(settings.kafka_nodes, node) for node in settings.kafka_nodes]
    assert [one["broker.rack"] for one in given] == ["zone-1", "zone-2", "zone-3"]
    assert {one["controller.quorum.voters"].count("@") for one in given} == {3}
    factors = {value for one in given for name, value in one.items() if name.endswith("replication.factor")}
    assert factors == {"3"}
    listeners = [port for one in given for port in re.findall(r":(\d+)", one["listeners"])]
    assert len(set(listeners)) == 6


def test_box_has_one_broker_without_the_variable(tmp_path: Path):
    settings = box(tmp_path)
    (node,) = settings.kafka_nodes
    assert settings.env["PENSTOCK_KAFKA"] == node.address
    assert "PENSTOCK_REPLICATION" not in settings.env
    assert not {"broker.rack", "broker.session.timeout.ms"} & properties([node], node).keys()


def test_box_with_data_of_three_brokers_has_three(tmp_path: Path):
    make_data(box(tmp_path, **THREE))
    assert len(box(tmp_path).kafka_nodes) == 3
    with pytest.raises(BoxError, match="was made with PENSTOCK_KAFKA_BROKERS=3"):
        programs(box(tmp_path, PENSTOCK_KAFKA_BROKERS="1"), ["kafka"])


def test_first_start_that_was_interrupted_is_repeated_with_three(tmp_path: Path):
    note_brokers(box(tmp_path, **THREE).kafka_nodes)
    assert len(box(tmp_path).kafka_nodes) == 3
    assert programs(box(tmp_path, **THREE), ["kafka"])


def test_data_of_three_brokers_set_no_copies_for_another_kafka(tmp_path: Path):
    make_data(box(tmp_path, **THREE))
    settings = box(tmp_path, PENSTOCK_KAFKA="b:1")
    assert len(settings.kafka_nodes) == 1
    assert "PENSTOCK_REPLICATION" not in settings.env


def test_name_kafka_selects_all_of_its_brokers(tmp_path: Path):
    names = {program.name for program in programs(box(tmp_path, **THREE), ["kafka"])}
    assert names == {"kafka", "kafka-2", "kafka-3"}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        pytest.param({"PENSTOCK_KAFKA_BROKERS": "2"}, "needs 1 or 3, got '2'", id="another number"),
        pytest.param(THREE | {"PENSTOCK_KAFKA": "b:1"}, "leave out PENSTOCK_KAFKA", id="another Kafka"),
        pytest.param(THREE | {"PENSTOCK_KAFKA_TLS": "true"}, "secures a box with one broker", id="secured"),
    ],
)
def test_request_for_brokers_that_cannot_be_met_is_refused(tmp_path: Path, given: dict[str, str], error: str):
    with pytest.raises(BoxError, match=error):
        programs(box(tmp_path, **given), ["kafka"])


@pytest.mark.parametrize("has_note", [True, False], ids=["", "of an earlier release"])
def test_data_of_one_broker_are_not_spread_later_and_the_box_can_be_stopped(tmp_path: Path, has_note: bool):
    make_data(box(tmp_path))
    if not has_note:
        (tmp_path / "kafka" / "brokers").unlink()
    settings = box(tmp_path, **THREE)  # as `make down` reads it
    assert len(settings.kafka_nodes) == 1
    with pytest.raises(BoxError, match="was made with PENSTOCK_KAFKA_BROKERS=1"):
        programs(settings, ["kafka"])
