"""Box as root: it reports the user that it creates and each directory whose permissions it changes, before it does."""

import os
import pwd
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from localbox.services import postgres
from localbox.services.postgres import may_traverse

UID, GID = 70_001, 70_002
ACCOUNT = pwd.struct_passwd(("pgserver", "x", UID, GID, "", "/", "/usr/sbin/nologin"))


def status(mode: int, *, uid: int = 0, gid: int = 0) -> os.stat_result:
    return os.stat_result((stat.S_IFDIR | mode, 1, 1, 2, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("directory", "allowed"),
    [
        (status(0o700), False),
        (status(0o750), False),
        (status(0o701), True),
        (status(0o755), True),
        (status(0o700, uid=UID), True),
        (status(0o710, gid=GID), True),
        (status(0o700, gid=GID), False),
    ],
)
def test_traversal_follows_the_permission_bits_of_the_account(directory: os.stat_result, allowed: bool):
    assert may_traverse(directory, ACCOUNT) is allowed


def test_each_directory_is_reported_before_its_permissions_change(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: ACCOUNT)
    change, reports = Path.chmod, []

    def chmod(path: Path, mode: int) -> None:
        reports.append((path, capsys.readouterr().out))
        change(path, mode)

    with tempfile.TemporaryDirectory(dir="/tmp") as scratch:
        home = Path(scratch).resolve()
        var = home / "open" / "closed" / "var"
        var.mkdir(parents=True)
        for path, mode in ((home, 0o755), (home / "open", 0o711), (home / "open" / "closed", 0o700), (var, 0o700)):
            path.chmod(mode)
        monkeypatch.setattr(Path, "chmod", chmod)
        postgres._allow_traversal(var / "postgres", "pgserver")
        monkeypatch.undo()
        modes = [path.stat().st_mode & 0o777 for path in (home, home / "open", home / "open" / "closed", var)]
    assert modes == [0o755, 0o711, 0o701, 0o701]
    assert [path for path, _ in reports] == [home / "open" / "closed", var]
    for path, report in reports:
        assert report == f"lets all users traverse {path} (chmod o+x), because Postgres runs as pgserver\n"


def test_creation_of_the_user_is_reported_before_it_is_created(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    reports = {}

    def unknown(name: str) -> pwd.struct_passwd:
        raise KeyError(name)

    def run(command: list[str], **_options: object) -> None:
        reports[command[0], command[-1]] = capsys.readouterr().out

    monkeypatch.setattr(pwd, "getpwnam", unknown)
    monkeypatch.setattr(subprocess, "run", run)
    postgres._make_user("pgserver")
    report = "creates the system user pgserver, because Postgres does not run as root\n"
    assert reports == {("useradd", "pgserver"): report}
