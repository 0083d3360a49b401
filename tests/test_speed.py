"""The benchmark script runs: every row is measured once, for a moment."""

import json
import subprocess
import sys
from pathlib import Path

PATH = Path(__file__).resolve().parents[1] / "benchmarks" / "speed.py"
YARDSTICK = """#!/bin/sh
echo "N =                1        64      1024      8192"
echo "+mask bytes    24.80     24.00     25.00     26.00"
echo "+obs uint8     14.00     15.00     16.00     17.00"
"""


def figures(tmp_path, *arguments):
    """What the script measures, by row."""
    path = tmp_path / "speed.json"
    command = [sys.executable, PATH, "--runs=1", "--seconds=0.01", f"--json={path}", *arguments]
    subprocess.run(command, check=True, capture_output=True)
    return json.loads(path.read_text(encoding="utf-8"))


def test_every_row_about_steps_gives_a_positive_figure(tmp_path):
    found = figures(tmp_path, "--only", "AEC")
    assert len(found) >= 3
    assert all(row["value"] > 0 and row["ratio"] is None for row in found.values())


def test_ratios_come_from_the_table_that_the_c_program_prints(tmp_path):
    program = tmp_path / "yardstick"
    program.write_text(YARDSTICK, encoding="utf-8")
    program.chmod(0o755)
    found = figures(tmp_path, "--only", "planes", "--yardstick", program)
    (row,) = found.values()
    assert row["ratio"] == row["value"] / 16e6
