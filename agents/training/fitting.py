"""Fits the weights of the expectimax agent: `python -m marrakech_agents.fit` (about half an hour).

Policy iteration. In every round, games are played one full turn ahead (`turn`) with the present
weights, some seats by greedy; then the final score of every player is predicted anew by linear
regression on the facts of all positions between two turns. The targets have the luck of the dice
taken out: a position's target is the expected prediction after the next turn, over the die, plus
`trace` times what the predictions turned out wrong by later on. With `trace` 1 that is the final
score less the summed luck of the dice, which is unbiased; less than 1 has less noise and leans on
the present weights.

Legend: `N` positions, `P` players, `K` knots (numbers of turns left at which weights are kept).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import chance, game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import cell_at
from marrakech_env.spec import MAX_PLAYERS, RuleSet
from marrakech_env.state import LAY, OVER, STATE, STEER, Record, write_rules

from .. import greedy
from ..heuristic import one_turn as turn
from ..heuristic.evaluation import (
    FACTS,
    NUM_FACTS,
    NUM_TERMS,
    fill_facts,
    predict_scores,
    turns_since,
)
from ..heuristic.one_turn import MIND, new_weights
from ..heuristic.regions import MAX_STEPS, PATCHES, ROLL_CHANCE, survey, turns_left
from ..heuristic.weights import WEIGHTS_FILE, interpolate, spreads_of

KNOTS: Final = np.array([1, 2, 3, 4, 6, 8, 12, 18, 26, 36, 48])
TRACES: Final = (1.0, 1.0, 0.95, 0.95, 0.9)
"""`trace` of each round."""
GREEDY_SHARE: Final = {2: 0.0, 3: 0.67, 4: 0.67}
"""How likely a seat is played by greedy. With two players, self-play alone gave the stronger
weights; with more, it breeds a habit of hunting the leader that greedy tables do not share."""
EXPLORE: Final = 0.06
"""How likely a decision is replaced by a random one."""
RIDGE: Final = 3.0
SMOOTHING: Final = 30.0
"""Pull of the weights towards `PRIOR` and towards those of the neighbouring knots, in positions."""
PRIOR: Final = {"money": 1.0, "squares": 0.6, "toll": 0.6}
"""Weights of a player's own facts that are expected before any game was seen, all others 0."""
MAX_SCORE: Final = 90.0
"""Scores are cut here, so that the rare ruin of an opponent does not rule the regression."""
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


def main() -> None:
    """Fits and writes the weights for the wanted numbers of players."""
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
        options.out.write_text(json.dumps(data) + "\n", encoding="utf-8")


def fit(players: int, games: int, seed: int) -> dict[str, Any]:
    """The entry of the weights file for a number of players."""
    at_knots = np.tile(prior(), (players, len(KNOTS), 1))
    spread = (1.0, 4.0)
    for number, trace in enumerate(TRACES):
        rows, _, shares = play(at_knots, spread, players, games, seed + number)
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
    """The weights before any game: (`NUM_TERMS`,)."""
    weights = np.zeros(NUM_TERMS)
    for name, weight in PRIOR.items():
        weights[1 + list(FACTS).index(name)] = weight
    return weights


# ---------------------------------------------------------------------------------- self-play


def play(
    at_knots: FloatArray, spread: tuple[float, float], players: int, games: int, seed: int
) -> tuple[NDArray[np.void], FloatArray, FloatArray]:
    """Plays games with the present weights.

    Returns:
        ROW (N,) in the order of play, game by game; final scores and win shares (games, P).
    """
    rule_set = RuleSet.preset("official", players)
    template = np.zeros(1, STATE)
    write_rules(template, rule_set)
    clocks = np.zeros(games, chance.CLOCK)
    chance.set_clocks(clocks, seed, 0)
    rng = np.random.default_rng(seed)
    by_greedy = rng.random((games, MAX_PLAYERS)) < GREEDY_SHARE[players]
    rows = np.zeros(games * rule_set.rugs * players, ROW)
    finals, shares = np.zeros((games, players)), np.zeros((games, players))
    count = _play(
        template,
        clocks,
        by_greedy,
        new_weights(interpolate(at_knots, KNOTS), spreads_of(spread)),
        np.zeros(1, MIND),
        np.zeros(1, PATCHES),
        rows,
        finals,
        shares,
    )
    return rows[:count], finals, shares


@kernel
def _play(
    template: NDArray[Any],
    clocks: NDArray[Any],
    by_greedy: NDArray[np.bool_],
    all_weights: NDArray[Any],
    minds: NDArray[Any],
    boards: NDArray[Any],
    rows: NDArray[Any],
    finals: FloatArray,
    shares: FloatArray,
) -> int:
    """Plays one game for every clock, in place; returns how many rows were written."""
    weights, mind, board, sheet = all_weights[0], minds[0], boards[0], minds[0].sheet
    plays, trial = template.copy(), template.copy()
    count = 0
    for number in range(len(clocks)):
        chance.start_next(plays, 0, template, clocks[number : number + 1])
        state, clock = plays[0], clocks[number]
        draws = 0
        while state.phase != OVER:
            greedily = by_greedy[number, state.player]
            if greedily:
                action = greedy.decide(state, board)
            else:
                action = turn.decide(state, weights, mind)
            if state.phase == STEER:
                row = rows[count]
                count += 1
                row.game, row.turns = number, turns_left(state)
                _predict(state, weights, board, sheet, row.predicted)
                for seat in range(state.num_players):
                    row.since[seat] = -1 if state.eliminated[seat] else turns_since(state, seat)
                    for k in range(NUM_FACTS):
                        row.facts[seat, k] = sheet.facts[seat, k]
                for k in range(MAX_STEPS):
                    trial[0] = state
                    game.step(trial[0], action, k + 1)
                    if trial[0].phase == LAY:
                        if greedily:
                            reply = greedy.decide(trial[0], board)
                        else:
                            reply = turn.decide(trial[0], weights, mind)
                        game.step(trial[0], reply, -1)
                    _predict(trial[0], weights, board, sheet, sheet.scores)
                    for seat in range(state.num_players):
                        row.backup[seat] += ROLL_CHANCE[k] * sheet.scores[seat]
            draws += 2
            if chance.uniform(~clock.key, draws, _SOME_DRAW) < EXPLORE:
                uniform = chance.uniform(~clock.key, draws + 1, _SOME_DRAW)
                action = cell_at(np.uint64(game.legal_actions(state)), uniform)
            chance.advance(state, action, clock)
        for seat in range(state.num_players):
            finals[number, seat] = min(MAX_SCORE, np.float64(game.score(state, seat)))
            shares[number, seat] = game.winner_share(state, seat)
    return count


@kernel
def _predict(
    state: Record, weights: Record, board: Record, sheet: Record, scores: FloatArray
) -> None:
    """Writes final scores, predicted or (in a finished game) real ones, into `scores`."""
    if game.is_over(state):
        for seat in range(state.num_players):
            scores[seat] = min(MAX_SCORE, np.float64(game.score(state, seat)))
        return
    survey(state, board)
    fill_facts(state, board, sheet)
    predict_scores(state, weights, sheet)
    for seat in range(state.num_players):
        scores[seat] = min(MAX_SCORE, max(0.0, sheet.scores[seat]))


# --------------------------------------------------------------------------------- regression


def targets(rows: NDArray[np.void], trace: float) -> FloatArray:
    """What the predictions should have been: (N, `MAX_PLAYERS`), NaN for those without one."""
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
    """Rows and seats of those who moved `since` turns ago, and their terms (n, `NUM_TERMS`)."""
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
    """Ridge regression of the goals on the terms, weights linear between knots.

    Returns:
        Weights (P, K, `NUM_TERMS`) and the predictions that they make, shaped as the goals.
    """
    rows["since"][:, players:] = -1
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
    """Weights (K, `NUM_TERMS`) of one regression."""
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
    """Constant and slope of the squared softmax width by turns left, by maximum likelihood."""
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
