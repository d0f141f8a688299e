"""Profiles: the environment wins, and a stored token is sent to its own installation only."""

import stat
from pathlib import Path

import pytest

from penstock_cli.errors import CliError, ExitCode
from penstock_cli.profiles import Profile, profile_from, save_profile

URL = "https://penstock.example.com"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    env = {"PENSTOCK_CONFIG_DIR": str(tmp_path)}
    save_profile("default", Profile(URL, "pst_default"), env)
    save_profile("test", Profile("https://test.example.com", "pst_test"), env)
    return env


def test_profiles_are_kept_side_by_side_in_a_private_file(env: dict[str, str], tmp_path: Path):
    assert profile_from("", env) == Profile(URL, "pst_default")
    assert profile_from("test", env) == Profile("https://test.example.com", "pst_test")
    assert profile_from("", env | {"PENSTOCK_PROFILE": "test"}).token == "pst_test"
    assert stat.S_IMODE((tmp_path / "profiles.json").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["profiles.json"]


def test_environment_wins_over_the_file(env: dict[str, str]):
    given = env | {"PENSTOCK_URL": "https://other.example.com/", "PENSTOCK_TOKEN": "pst_env"}
    assert profile_from("", given) == Profile("https://other.example.com", "pst_env")
    basic = env | {"PENSTOCK_USER": "alice", "PENSTOCK_PASSWORD": "password"}
    assert profile_from("", basic) == Profile(URL, user="alice", password="password")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("", {"PENSTOCK_URL": "https://attacker.example.com"}),  # the stored token must not be sent there
        ("missing", {}),
        ("", {"PENSTOCK_CONFIG_DIR": "/nonexistent"}),
    ],
)
def test_without_a_token_for_the_url_nobody_is_signed_in(env: dict[str, str], name: str, given: dict[str, str]):
    with pytest.raises(CliError) as refused:
        profile_from(name, env | given)
    assert refused.value.code == ExitCode.REFUSED
    assert "penstock login" in str(refused.value)
