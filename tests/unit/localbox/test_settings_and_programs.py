"""Variables of the box, and its programs as data."""

import socket
from pathlib import Path

import pytest

from localbox.catalogue import programs
from localbox.errors import BoxError
from localbox.jars import KAFKA, SPARK, JarSet, differences
from localbox.java import java_version
from localbox.managed_process import backoff_s
from localbox.ports import check_free, free_ports, is_free
from localbox.program import Program, StartStage, in_order
from localbox.services.kafka import properties
from localbox.settings import PORTS, ROOT, env_example, settings_from


def settings(tmp_path: Path, **given: str):
    return settings_from({"PENSTOCK_VAR": str(tmp_path / "var"), **given}, dotenv=None)


def test_addresses_follow_the_ports(tmp_path: Path):
    env = settings(tmp_path, PENSTOCK_WEB_PORT="9900", PENSTOCK_POSTGRES_PORT="9902").env
    assert env["PENSTOCK_WEB_URL"] == "http://127.0.0.1:9900"
    assert env["DATABASE_URL"] == "postgresql://penstock@127.0.0.1:9902/penstock"


def test_web_process_reaches_the_table_queries_of_its_box_in_production_too(tmp_path: Path):
    given = {"PENSTOCK_TABLES_PORT": "9008", "PENSTOCK_TABLES_URL": "https://tables.example.com"}
    for environment in ("development", "production"):
        env = settings(tmp_path, PENSTOCK_ENV=environment, **given).env
        assert env["PENSTOCK_TABLES_HOSTS"] == "http://127.0.0.1:9008"
        assert env["PENSTOCK_TABLES_URL"] == "https://tables.example.com"
    assert "PENSTOCK_TABLES_URL" not in settings(tmp_path, PENSTOCK_ENV="production").env


def test_service_with_a_configured_address_is_not_started_by_the_box(tmp_path: Path):
    given = settings(tmp_path, REDIS_URL="redis://elsewhere:6379/0")
    assert (given.owns_redis, given.owns_kafka) == (False, True)
    redis = programs(given, ["redis"])[0]
    assert redis.command is None


def test_empty_variable_counts_as_unset(tmp_path: Path):
    assert settings(tmp_path, DATABASE_URL="").owns_postgres


def test_secrets_are_generated_once_and_readable_by_the_owner_only(tmp_path: Path):
    first, second = settings(tmp_path), settings(tmp_path)
    assert first.env["PENSTOCK_FERNET_KEYS"] == second.env["PENSTOCK_FERNET_KEYS"] != ""
    assert (tmp_path / "var" / "secrets.env").stat().st_mode & 0o777 == 0o600


def test_production_has_no_generated_secrets(tmp_path: Path):
    assert "PENSTOCK_SECRET_KEY" not in settings(tmp_path, PENSTOCK_ENV="production").env


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1"])
def test_invalid_port_is_refused_by_name(tmp_path: Path, port: str):
    with pytest.raises(BoxError, match="PENSTOCK_WEB_PORT: needs a port"):
        settings(tmp_path, PENSTOCK_WEB_PORT=port)


def test_environment_overrides_dot_env(tmp_path: Path):
    dotenv = tmp_path / ".env"
    dotenv.write_text("# mine\nPENSTOCK_WEB_PORT=9900\nexport PENSTOCK_INGEST_PORT='9901'\n")
    ports = settings_from({"PENSTOCK_VAR": str(tmp_path), "PENSTOCK_WEB_PORT": "9950"}, dotenv=dotenv).ports
    assert (ports["PENSTOCK_WEB_PORT"], ports["PENSTOCK_INGEST_PORT"]) == (9950, 9901)


def test_env_example_is_up_to_date():
    assert (ROOT / ".env.example").read_text() == env_example(), "run: python -m localbox env-example > .env.example"


def test_default_ports_are_unique():
    assert len({variable.default for variable in PORTS}) == len(PORTS)


def test_port_in_use_is_reported_with_its_process_and_its_variable():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(BoxError, match=rf"port {port} is in use by .*pid \d+.*set PENSTOCK_WEB_PORT"):
            check_free({"PENSTOCK_WEB_PORT": port})
    assert is_free(port)


def test_free_ports_are_distinct():
    assert len(set(free_ports(20))) == 20


def test_programs_start_by_stage_and_may_wait_only_for_known_programs():
    late, early = Program("b", StartStage.INGEST, ("true",), after=("a",)), Program("a", StartStage.SERVICES, ("true",))
    assert [program.name for program in in_order([late, early])] == ["a", "b"]
    with pytest.raises(ValueError, match=r"b: waits for \['a'\]"):
        in_order([late])


def test_unknown_program_is_refused_by_name(tmp_path: Path):
    with pytest.raises(ValueError, match="no such program: kafak"):
        programs(settings(tmp_path), ["kafak"])


def test_back_off_doubles_up_to_30_s():
    assert [backoff_s(n) for n in (1, 2, 3, 6, 7, 50)] == [0.5, 1.0, 2.0, 16.0, 30.0, 30.0]


def test_kafka_listens_on_loopback_and_does_not_create_topics_automatically(tmp_path: Path):
    (node,) = settings(tmp_path).kafka_nodes
    given = properties([node], node)
    addresses = given["listeners"].split(",") + given["advertised.listeners"].split(",")
    assert all("://127.0.0.1:" in address for address in addresses)
    assert given["auto.create.topics.enable"] == "false"


def test_missing_changed_or_unpinned_jar_is_found(tmp_path: Path):
    (tmp_path / "good.jar").write_bytes(b"")
    (tmp_path / "changed.jar").write_bytes(b"other")
    (tmp_path / "strange.jar").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    pins = {"good.jar": empty, "changed.jar": empty, "missing.jar": empty}
    assert differences(tmp_path, pins) == ["changed.jar", "missing.jar", "strange.jar"]


@pytest.mark.parametrize(("jars", "count"), [(KAFKA, 46), (SPARK, 6)])
def test_every_jar_is_pinned_by_a_full_digest(jars: JarSet, count: int):
    assert len(jars.pins) == count
    assert all(len(digest) == 64 for digest in jars.pins.values())


def test_program_that_is_not_java_has_no_version(tmp_path: Path):
    assert java_version(tmp_path / "java") is None
