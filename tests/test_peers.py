"""The comparison with other packages runs, and leaves out what is not installed."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("tyro")

PATH = Path(__file__).resolve().parents[1] / "benchmarks" / "peers.py"


@pytest.fixture(scope="module")
def peers():
    spec = importlib.util.spec_from_file_location("peers", PATH)
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up while it runs
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "peers", module)
        spec.loader.exec_module(module)
        yield module


def test_our_own_rows_play(peers):
    ours = [row for row in peers.ROWS if row.package == "marrakech-env"]
    assert len(ours) == 3
    for row in ours:
        if importlib.util.find_spec(row.module):
            assert peers.measured(peers.started(row, 4), 0.01) > 0


def test_what_is_not_installed_is_left_out_with_the_reason(peers):
    row = peers.Row("nothing", "no game", "no_such_module", peers.play_batch)
    assert "no_such_module" in str(peers.started(row, 4))
    assert peers.version_of("no-such-distribution") == "not installed"
