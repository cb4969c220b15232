"""What lies in the user's cache folder stays within bounds, and nobody else can read it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from stepper.files.own_files import roomy


def test_the_oldest_files_go_first(tmp_path: Path) -> None:
    for age, name in enumerate("abcd"):
        (tmp_path / name).write_bytes(bytes(10))
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_bytes(bytes(100))
    assert roomy(tmp_path, 25) == tmp_path
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "folder"]
    assert (tmp_path / "folder" / "old").exists(), "what is not its own is left"


def test_a_link_leads_nowhere_else(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(bytes(100))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "link").symlink_to(other)
    assert roomy(tmp_path / "cache", 0) is not None
    assert other.exists()


def test_a_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    made = roomy(tmp_path / "cache" / "stepper" / "kept", 100)
    assert made is not None and made.is_dir()
    assert os.name != "posix" or not stat.S_IMODE(made.stat().st_mode) & 0o077


def test_where_no_folder_can_be_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert roomy(tmp_path / "cache" / "stepper", 100) is None
