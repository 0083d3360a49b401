"""Files are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from marrakech_env.files import check_writable, write_atomically


def test_a_write_that_fails_names_the_file_and_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    write_atomically(path, b"old")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_one_and_its_target_is_written(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to("target")
    check_writable(link)
    assert not target.exists()
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_pipe_is_written_to_and_not_replaced() -> None:
    if not Path("/dev/fd").exists():
        pytest.skip("this system has no /dev/fd")
    read, write = os.pipe()
    try:
        path = Path(f"/dev/fd/{write}")
        check_writable(path)
        write_atomically(path, b"new")
        assert os.read(read, 9) == b"new"
    finally:
        os.close(read)
        os.close(write)


def test_what_cannot_be_written_is_found_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        check_writable(tmp_path)
    with pytest.raises(FileNotFoundError):
        check_writable(tmp_path / "no" / "file")
    with pytest.raises(OSError, match="name too long"):
        check_writable(tmp_path / ("x" * 250))  # the temporary name is longer
    path = tmp_path / "file"
    path.write_bytes(b"old")
    check_writable(path)
    check_writable(tmp_path / "new")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"
