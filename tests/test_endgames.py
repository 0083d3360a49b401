"""The solved late positions and how agents are measured by them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from marrakech_env import rules, solver
from marrakech_env.arena.cli import main
from marrakech_env.arena.endgames import load_endgames, play_endgames
from marrakech_env.state import as_states


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_sets_hold_a_thousand_different_positions_and_every_legal_action(players: int) -> None:
    games = load_endgames(players)
    assert len(np.unique(games.states)) == len(games.states) >= 1000
    assert (games.states["num_players"] == players).all()
    np.testing.assert_array_equal(~np.isnan(games.shares), rules.action_mask(games.states))
    assert (np.nanmax(games.shares, 1) > np.nanmin(games.shares, 1)).all()
    assert np.nanmin(games.shares) >= 0
    assert np.nanmax(games.shares) <= 1
    assert set(games.turns) == {2, 3}
    assert set(games.states["phase"]) == {0, 1}
    as_states(games.states)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_shipped_values_are_those_of_the_solver(players: int) -> None:
    games = load_endgames(players)
    for row in np.flatnonzero(games.turns == 2)[::160]:
        solution = solver.solve(games.states[row])
        seat = int(games.states["player"][row])
        shipped = games.shares[row, solution.actions]
        np.testing.assert_allclose(shipped, solution.shares[:, seat], atol=1e-6)


class Solver:
    """Plays what the shipped values say, or the opposite of it."""

    def __init__(self, players: int, worst: bool = False) -> None:
        games = load_endgames(players)
        values = -games.shares if worst else games.shares
        self.actions = np.nanargmax(values, axis=1)

    def act(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.actions


def test_the_best_actions_have_no_regret_and_the_worst_ones_have_one() -> None:
    games = load_endgames(3)
    best, worst = play_endgames(Solver(3), 3), play_endgames(Solver(3, worst=True), 3)
    assert [result.turns for result in best] == [2, 3]
    for result in best:
        assert result.positions == (games.turns == result.turns).sum()
        assert result.regret.value == 0
        assert result.optimal.value == 1
    spread = np.nanmax(games.shares, 1) - np.nanmin(games.shares, 1)
    for result in worst:
        assert result.regret.value == pytest.approx(spread[games.turns == result.turns].mean())
        assert result.optimal.value == 0


def test_better_agents_have_less_regret() -> None:
    regrets = [
        [result.regret.value for result in play_endgames(name)]
        for name in ("random", "greedy", "expectimax")
    ]
    assert (np.diff(regrets, axis=0) < 0).all()


def test_illegal_actions_and_unknown_agents_are_refused() -> None:
    class Zero:
        def act(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            return np.zeros(len(states), np.int64)

    with pytest.raises(ValueError, match=r"'Zero' \(late positions\): game \d+: action 0 is not"):
        play_endgames(Zero())
    with pytest.raises(ValueError, match="unknown agent"):
        play_endgames("greedi")
    with pytest.raises(ValueError, match="2, 3 or 4"):
        load_endgames(5)
    with pytest.raises(ValueError, match="a seed lies in"):
        play_endgames("greedy", seed=-1)


def test_the_command_prints_and_writes_them(tmp_path, capsys) -> None:
    path = tmp_path / "endgames.json"
    assert main(["--endgames", "greedy", "random", "--players", "3", "--json", str(path)]) == 0
    rows = json.loads(path.read_text())
    assert [(row["agent"], row["turns"]) for row in rows] == [
        ("greedy", 2),
        ("greedy", 3),
        ("random", 2),
        ("random", 3),
    ]
    printed = capsys.readouterr().out
    assert f"{100 * rows[0]['regret']['value']:.2f}" in printed


def test_an_error_inside_an_agent_is_no_bad_input(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("def act(states, rng):\n    raise ValueError('mine')\n")
    with pytest.raises(ValueError, match="mine") as caught:
        main(["--endgames", "broken.py:act"])
    assert caught.value.__notes__ == ["raised by the agent 'broken.py:act'"]


def test_ctrl_c_reports_the_agents_that_are_done(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stopping.py").write_text("def act(states, rng):\n    raise KeyboardInterrupt\n")
    assert main(["--endgames", "greedy", "stopping.py:act", "random"]) == 130
    printed = capsys.readouterr().out
    assert "greedy" in printed
    assert "random" not in printed


@pytest.mark.parametrize("option", [["--games", "7"], ["--field", "greedy"], ["--csv", "x.csv"]])
def test_options_about_games_are_refused_with_endgames(option, capsys) -> None:
    assert main(["greedy", "--endgames", *option]) == 2
    assert f"{option[0]} is about games" in capsys.readouterr().err


def test_no_agent_is_refused(capsys) -> None:
    assert main(["--endgames"]) == 2
    assert main([]) == 2
    assert capsys.readouterr().err.count("no agents given; try:") == 2
