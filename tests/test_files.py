"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
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


def test_an_existing_file_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    before = os.umask(0o027)
    try:
        for mode in (0o600, 0o664, 0o755):
            old.chmod(mode)
            write_atomically(old, b"data")
            assert stat.S_IMODE(old.stat().st_mode) == mode
        write_atomically(new, b"data")
        assert stat.S_IMODE(new.stat().st_mode) == 0o640
    finally:
        os.umask(before)


def test_of_many_writers_one_is_left_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = [bytes([letter]) * 300_000 for letter in b"abcd"]
    errors: list[Exception] = []

    def write(text: bytes) -> None:
        try:
            for _ in range(20):
                write_atomically(path, text)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=[text]) for text in texts]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(0.01)
        assert not path.exists() or path.read_bytes() in texts
    assert errors == []
    assert list(tmp_path.iterdir()) == [path]


def test_a_named_pipe_gets_the_data_and_hangs_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    check_writable(path)
    with pytest.raises(OSError, match=r"no process reads from this pipe: '.*pipe'"):
        write_atomically(path, b"data")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()
    while True:  # until the reader has opened the pipe
        try:
            check_writable(path)  # wakes no reader
            write_atomically(path, b"x" * 200_000)
            break
        except OSError:
            reader.join(0.01)
    reader.join(10)
    assert read == [b"x" * 200_000]


def test_the_standard_output_is_written_to_where_it_stands(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if not Path("/dev/stdout").exists():
        pytest.skip("this system has no /dev/stdout")
    os.write(1, b"first ")
    check_writable(Path("/dev/stdout"))
    write_atomically(Path("/dev/stdout"), b"second ")
    os.write(1, b"third")
    assert capfd.readouterr().out == "first second third"
