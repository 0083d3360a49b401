"""Fits the weights of expectimax: `python -m marrakech_agents.training.fitting`, half an hour.

Policy iteration. In every round, games are played one full turn ahead with the present weights,
some seats by greedy. Then the final score of every player is predicted anew, by linear regression
on the facts of all positions between two turns. The target of a position is the expected prediction
after the next turn, over the die, plus `trace` times the later errors of the predictions. `trace` 1
is unbiased: the final score less the summed luck of the dice. A lower one has less noise.

Legend: `N` positions, `P` players, `K` knots (numbers of turns left at which weights are kept).
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import chance, game, rules
from marrakech_env.batch import Batch
from marrakech_env.compile import kernel
from marrakech_env.files import write_atomically
from marrakech_env.kernels.bitboards import cell_at
from marrakech_env.spec import MAX_PLAYERS
from marrakech_env.state import LAY, STEER, Int, States
from marrakech_env.tables import ROLL_CHANCE

from .. import greedy
from ..greedy import GREEDY_WORKSPACE
from ..heuristic import one_turn
from ..heuristic.evaluation import EXPECTIMAX_WORKSPACE, FACTS, NUM_FACTS, NUM_TERMS, write_scores
from ..heuristic.regions import map_regions
from ..heuristic.weights import WEIGHTS_FILE, Fit, interpolate

KNOTS: Final = np.array([1, 2, 3, 4, 6, 8, 12, 18, 26, 36, 48])
TRACES: Final = (1.0, 1.0, 0.95, 0.95, 0.9)
"""`trace` of each round."""
GREEDY_SHARE: Final = {2: 0.0, 3: 0.67, 4: 0.67}
"""Chance of a seat to be played by greedy, by number of players. With three and four, self-play
alone learns to hunt the leader, which pays less among other agents."""
EXPLORE: Final = 0.06
"""Chance of a random decision."""
RIDGE: Final = 3.0
SMOOTHING: Final = 30.0
"""Pull of the weights towards `PRIOR` and towards those of the neighbouring knots, in positions."""
PRIOR: Final = {"money": 1.0, "squares": 0.6, "toll": 0.6}
"""Weights of a player's own facts before the first game; all others are 0."""
MAX_SCORE: Final = 90.0
"""Highest score in the regression, so that the rare ruin of an opponent does not rule it."""
_SOME_DRAW: Final = 7

ROW: Final = np.dtype(
    [
        ("facts", np.float32, (MAX_PLAYERS, NUM_FACTS)),
        ("predicted", np.float64, (MAX_PLAYERS,)),  # present prediction of the final score
        ("backup", np.float64, (MAX_PLAYERS,)),  # its expectation after the turn to come
        ("since", np.int8, (MAX_PLAYERS,)),  # turns since a player moved, -1 for the eliminated
        ("turns", np.int16),  # turns left
        ("game", np.int64),
    ],
    align=True,
)
"""A position between two turns."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def main() -> None:
    """Fit and write the weights for the wanted numbers of players."""
    parser = argparse.ArgumentParser(description="Fit the weights of the expectimax agent.")
    parser.add_argument("--players", type=int, nargs="+", default=[2, 3, 4], choices=[2, 3, 4])
    parser.add_argument("--games", type=int, default=2500, help="games a round (default 2500)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--out", type=Path, default=WEIGHTS_FILE, help="file; others are kept in it"
    )
    options = parser.parse_args()
    data: dict[str, Any] = {"facts": list(FACTS), "players": {}}
    if options.out.exists():
        old = json.loads(options.out.read_text(encoding="utf-8"))
        data["players"] = old["players"] if old["facts"] == data["facts"] else {}
    for players in options.players:
        started = time.perf_counter()
        entry = fit(players, options.games, options.seed)
        seconds = round(time.perf_counter() - started)
        entry = {"games": options.games, "seed": options.seed, "seconds": seconds, **entry}
        data["players"][str(players)] = entry
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(options.out, (json.dumps(data) + "\n").encode())


def fit(players: int, games: int, seed: int) -> dict[str, Any]:
    """Return the entry of the weights file for a number of players."""
    at_knots = np.tile(prior(), (players, len(KNOTS), 1))
    spread = (1.0, 4.0)
    for number, trace in enumerate(TRACES):
        rows, shares = play(at_knots, spread, players, games, seed + number)
        goals = targets(rows, trace)
        at_knots, predictions = regress(rows, goals, players)
        spread = fit_spread(rows, predictions, shares)
        error = np.sqrt(np.nanmean((goals - predictions) ** 2))
        print(
            f"{players} players, round {number}: {len(rows)} positions, error {error:.2f} dirhams",
            flush=True,
        )
    return {
        "knots": KNOTS.tolist(),
        "spread": list(spread),
        "weights": np.round(at_knots, 4).tolist(),
    }


def prior() -> FloatArray:
    """Return the weights before the first game: (`NUM_TERMS`,)."""
    weights = np.zeros(NUM_TERMS)
    for name, weight in PRIOR.items():
        weights[1 + list(FACTS).index(name)] = weight
    return weights


# ---------------------------------------------------------------------------------- self-play


def play(
    at_knots: FloatArray, spread: tuple[float, float], players: int, games: int, seed: int
) -> tuple[NDArray[np.void], FloatArray]:
    """Play games with the present weights.

    Returns:
        ROW (N,) in the order of play, game by game; win shares (games, P).
    """
    weights = Fit(KNOTS, at_knots, np.array(spread)).table()
    batch = Batch(games, players, seed=seed)
    by_greedy = np.random.default_rng(seed).random((games, MAX_PLAYERS)) < GREEDY_SHARE[players]
    clocks = np.zeros(games, chance.CLOCK)
    chance.set_clocks(clocks, seed, 0)
    shares = np.zeros((games, players))
    parts = []
    for decision in itertools.count(1):
        running = np.flatnonzero(batch.episode == 0)
        if not len(running):
            break
        states = batch.states[running]
        greedily = by_greedy[running, states["player"]]
        actions = _decide(states, greedily, weights)
        steers = states["phase"] == STEER
        rows = _rows(states[steers], actions[steers], greedily[steers], weights)
        rows["game"] = running[steers]
        parts.append(rows)
        _explore(states, clocks[running], decision, actions)
        batch.step_games(running, actions)
        shares += batch.final_shares
    rows = np.concatenate(parts)
    return rows[np.argsort(rows["game"], kind="stable")], shares


def _rows(
    states: States, actions: IntArray, greedily: NDArray[np.bool_], weights: NDArray[np.void]
) -> NDArray[np.void]:
    """The rows of positions before a walk, with the backups of the chosen steerings."""
    rows = _predict(states, weights)
    for steps, probability in enumerate(ROLL_CHANCE, 1):
        after = states.copy()
        rules.step(after, actions, np.full(len(after), steps), check=False)
        lays = after["phase"] == LAY
        laid = after[lays]
        no_colours = np.full(len(laid), game.NO_OUTCOME)  # the evaluation does not use them
        rules.step(laid, _decide(laid, greedily[lays], weights), no_colours, check=False)
        after[lays] = laid
        rows["backup"] += probability * _predict(after, weights)["predicted"]
    return rows


def _decide(states: States, greedily: NDArray[np.bool_], weights: NDArray[np.void]) -> IntArray:
    """The decisions of greedy or of one full turn of lookahead: int64 (B,)."""
    actions = np.empty(len(states), np.int64)
    _write_decisions(states, greedily, weights, actions)
    return actions


@kernel
def _write_decisions(
    states: States, greedily: NDArray[np.bool_], weights: NDArray[np.void], actions: IntArray
) -> None:
    """Write the decision of every game into `actions`."""
    workspaces, greedy_workspaces = np.zeros(1, EXPECTIMAX_WORKSPACE), np.zeros(1, GREEDY_WORKSPACE)
    for i in range(len(states)):
        if greedily[i]:
            actions[i] = greedy.decide(states[i], greedy_workspaces[0])
        else:
            actions[i] = one_turn.decide(states[i], weights[0], workspaces[0])


@kernel
def _explore(states: States, clocks: NDArray[np.void], decision: Int, actions: IntArray) -> None:
    """Replace some actions by random ones, with a stream of chance of its own for each game."""
    for i in range(len(states)):
        key = ~chance.absorb(clocks[i].game_key, np.uint64(0))
        if chance.uniform(key, 2 * decision, _SOME_DRAW) < EXPLORE:
            legal = np.uint64(game.legal_actions(states[i]))
            actions[i] = cell_at(legal, chance.uniform(key, 2 * decision + 1, _SOME_DRAW))


def _predict(states: States, weights: NDArray[np.void]) -> NDArray[np.void]:
    """Rows with the facts and the predicted final scores, in a finished game the real ones."""
    rows = np.zeros(len(states), ROW)
    rows["since"] = -1
    _write_predictions(states, weights, rows)
    return rows


@kernel
def _write_predictions(states: States, weights: NDArray[np.void], rows: NDArray[np.void]) -> None:
    """Write all fields of rows but `backup` and `game`."""
    workspaces = np.zeros(1, EXPECTIMAX_WORKSPACE)
    for i in range(len(states)):
        state, row, work = states[i], rows[i], workspaces[0]
        map_regions(state, work.listed, work.regions)
        write_scores(state, work.regions, weights[0], work)
        row.turns = game.all_rugs_left(state)
        for seat in range(state.num_players):
            row.predicted[seat] = min(MAX_SCORE, max(0.0, work.scores[seat]))
            row.since[seat] = work.since[seat]
            for k in range(NUM_FACTS):
                row.facts[seat, k] = work.facts[seat, k]


# --------------------------------------------------------------------------------- regression


def targets(rows: NDArray[np.void], trace: float) -> FloatArray:
    """Return the targets of the predictions: (N, `MAX_PLAYERS`), NaN for the eliminated."""
    goals = rows["backup"].copy()
    number = rows["game"]
    steps = np.arange(len(rows)) - np.searchsorted(number, number)  # place in its own game
    last = np.append(number[1:] != number[:-1], True)
    for step in range(steps.max(), -1, -1):
        now = np.flatnonzero((steps == step) & ~last)
        goals[now] += trace * (goals[now + 1] - rows["predicted"][now + 1])
    goals[rows["since"] < 0] = np.nan
    return goals


def terms_of(rows: NDArray[np.void], since: int) -> tuple[Any, Any, FloatArray]:
    """Return rows and seats that moved `since` turns ago, and their terms (n, `NUM_TERMS`)."""
    playing = rows["since"] >= 0
    row, seat = np.nonzero(rows["since"] == since)
    facts = rows["facts"].astype(np.float64)
    own = facts[row, seat]
    others = (facts * playing[:, :, None]).sum(1)[row] - own
    others /= np.maximum(1, playing.sum(1)[row] - 1)[:, None]
    return row, seat, np.concatenate([np.ones((len(row), 1)), own, others], 1)


def regress(
    rows: NDArray[np.void], goals: FloatArray, players: int
) -> tuple[FloatArray, FloatArray]:
    """Regress the goals on the terms, with ridge and weights that are linear between knots.

    Returns:
        Weights (P, K, `NUM_TERMS`), and their predictions in the shape of the goals.
    """
    weights = np.zeros((players, len(KNOTS), NUM_TERMS))
    predictions = np.full(goals.shape, np.nan)
    for since in range(players):
        row, seat, terms = terms_of(rows, since)
        turns = np.clip(rows["turns"][row], KNOTS[0], KNOTS[-1])
        weights[since] = _regress(terms, turns, goals[row, seat] - terms @ prior()) + prior()
        table = interpolate(weights[since][None], KNOTS)[0]
        predictions[row, seat] = (table[turns] * terms).sum(1)
    return weights, predictions


def _regress(terms: FloatArray, turns: NDArray[Any], goals: FloatArray) -> FloatArray:
    """Return the weights (K, `NUM_TERMS`) of one regression."""
    size = len(KNOTS) * NUM_TERMS
    matrix, vector = np.zeros((size, size)), np.zeros(size)
    upper = np.clip(np.searchsorted(KNOTS, turns), 1, len(KNOTS) - 1)
    part = ((turns - KNOTS[upper - 1]) / (KNOTS[upper] - KNOTS[upper - 1]))[:, None]
    for knot in range(1, len(KNOTS)):
        here = upper == knot
        both = np.concatenate([terms[here] * (1 - part[here]), terms[here] * part[here]], 1)
        block = slice((knot - 1) * NUM_TERMS, (knot + 1) * NUM_TERMS)
        matrix[block, block] += both.T @ both
        vector[block] += both.T @ goals[here]
    scale = terms.var(0) + 1e-6
    scale[0] = 1.0
    matrix += np.diag(np.tile(RIDGE * scale, len(KNOTS)))
    pull = np.diag(SMOOTHING * scale)
    for knot in range(1, len(KNOTS)):
        low = slice((knot - 1) * NUM_TERMS, knot * NUM_TERMS)
        high = slice(knot * NUM_TERMS, (knot + 1) * NUM_TERMS)
        for one, other in ((low, high), (high, low)):
            matrix[one, one] += pull
            matrix[one, other] -= pull
    solution: NDArray[Any] = np.linalg.solve(matrix, vector)
    return solution.reshape(len(KNOTS), NUM_TERMS)


def fit_spread(
    rows: NDArray[np.void], predictions: FloatArray, shares: FloatArray
) -> tuple[float, float]:
    """Fit constant and slope of the squared softmax width by turns left: maximum likelihood."""
    players = shares.shape[1]
    scores = np.nan_to_num(predictions[:, :players], nan=-np.inf)
    scores -= scores.max(1, keepdims=True)
    won = shares[rows["game"]]
    best = (np.inf, 1.0, 1.0)
    for constant in (0.5, 1.0, 2.0, 3.0, 5.0, 8.0):
        for slope in np.geomspace(0.3, 8.0, 24):
            exponents = scores / np.sqrt(constant + slope * rows["turns"])[:, None]
            logs = exponents - np.log(np.exp(exponents).sum(1, keepdims=True))
            loss = -(won * np.where(won > 0, logs, 0.0)).sum(1).mean()
            best = min(best, (float(loss), constant, float(slope)))
    return best[1], best[2]


if __name__ == "__main__":
    main()
