"""GreedyAgent: looks at what one decision brings at once, as a sensible player does.

*Steering:* the least expected toll over the die, bankruptcy counted as `RUIN` dirhams more; among
equals, the one after which the next player will owe most.

*Laying:* own squares won and rivals' squares covered; patches that grow and patches that are cut,
by what visitors would owe there in the turns that are left; and the toll that the next player
faces from where Assam stands, at his best steering and on average.

Legend: `B` games; *board* is a record of `patches.PATCHES`; amounts are dirhams.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import lowest_cell, with_neighbours
from marrakech_env.spec import NUM_CELLS
from marrakech_env.state import LAY, STEER, STEER_AT_END, Bits, Int, Record, States, as_states
from marrakech_env.tables import FIRST_CELL, SECOND_CELL

from .heuristic.regions import (
    LANDINGS,
    MAX_STEPS,
    NOBODY,
    NUM_STEERINGS,
    PATCHES,
    ROLL_CHANCE,
    heading_of,
    next_player,
    survey,
    turns_left,
)

RUIN: Final = 20
"""What a bankruptcy counts on top of the money that is lost."""
LEADER_WEIGHT, RIVAL_WEIGHT = 0.6, 0.3
"""What a loss of the leading rival and of any other counts, with 3 and 4 players; the loss of the
only rival counts 1."""
AT_BEST, ON_AVERAGE = 0.5, 0.25
"""How the next player's expected toll counts: at the steering that costs him least, and averaged
over his steerings. Less than 1 in all: he will find a way out."""
_EQUAL: Final = 1e-9
_ONE = np.uint64(1)


class GreedyAgent:
    """Takes what is best at once; ties go to the lowest action."""

    def act(self, states: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Chooses an action in each game.

        Args:
            states: STATE (B,), unfinished games.
            rng: Not used: equal states get equal actions.

        Returns:
            int64 (B,), legal actions (1 in a finished game).

        Raises:
            ValueError: Not an array of states with one number of players.
        """
        states = as_states(states)
        actions = np.empty(len(states), np.int64)
        _choose(states, np.zeros(1, PATCHES), actions)
        return actions


@kernel
def _choose(states: States, scratch: NDArray[np.void], actions: NDArray[np.int64]) -> None:
    """Writes the decision of every game into `actions`."""
    for i in range(len(states)):
        actions[i] = decide(states[i], scratch[0])


@kernel
def decide(state: Record, board: Record) -> Int:
    """The decision of one game; `board` is scratch."""
    if state.phase == LAY:
        survey(state, board)
        return _best_placement(state, board)
    if state.phase == STEER:
        survey(state, board)
        if state.flags & STEER_AT_END:
            return _worst_walk_for_next(state, board)
        return _cheapest_steering(state, board)
    return 1


@kernel
def _bill(size: Int, money: Int) -> Int:
    """What a toll of `size` counts for a player with that much money."""
    return size if size <= money else money + RUIN


@kernel
def _cheapest_steering(state: Record, board: Record) -> Int:
    """The steering with the least expected toll; among equals, the worst one for who comes next."""
    player, heading = np.int64(state.player), heading_of(state)
    money = np.int64(state.money[player])
    best, least, income = 0, np.inf, -1.0
    for steering in range(NUM_STEERINGS):
        toll = 0.0
        for k in range(MAX_STEPS):
            cell = LANDINGS[heading, steering, k] >> 2
            bill = ROLL_CHANCE[k] * _bill(np.int64(board.size[cell]), money)
            toll += bill if board.owner[cell] != player else 0.0
        if toll < least - _EQUAL:
            best, least, income = steering, toll, -1.0
        elif toll < least + _EQUAL:
            if income < 0:  # what the best one so far brings is only asked for when there is a tie
                income = _income_after(state, board, heading, best)
            other = _income_after(state, board, heading, steering)
            if other > income + _EQUAL:
                best, income = steering, other
    return best


@kernel
def _income_after(state: Record, board: Record, heading: Int, steering: Int) -> float:
    """What the mover can expect of the next player after his own walk, on the board as it is."""
    player = np.int64(state.player)
    income = 0.0
    payer = next_player(state, player)
    if payer != NOBODY and turns_left(state) > 1:
        for k in range(MAX_STEPS):
            after = np.int64(LANDINGS[heading, steering, k])
            income += ROLL_CHANCE[k] * _expected_income(state, board, after, payer, player)
    return income


@kernel
def _expected_income(state: Record, board: Record, heading: Int, payer: Int, player: Int) -> float:
    """What `player` can expect of the next walk of `payer`, who may choose his steering."""
    money = np.int64(state.money[payer])
    least, at_best, total = np.inf, 0.0, 0.0
    for steering in range(NUM_STEERINGS):
        toll, income = _walk_of(board, heading, steering, payer, player, money)
        total += income
        if toll < least:
            least, at_best = toll, income
    return AT_BEST * at_best + ON_AVERAGE * total / NUM_STEERINGS


@kernel
def _walk_of(
    board: Record, heading: Int, steering: Int, payer: Int, player: Int, money: Int
) -> tuple[float, float]:
    """What `payer` can expect to owe in a walk, and what of it goes to `player`."""
    toll, income = 0.0, 0.0
    for k in range(MAX_STEPS):
        cell = LANDINGS[heading, steering, k] >> 2
        owner = board.owner[cell]
        bill = ROLL_CHANCE[k] * _bill(np.int64(board.size[cell]), money)
        toll += bill if owner != payer else 0.0  # branches that nobody can foretell are dear
        income += bill if owner == player else 0.0
    return toll, income


@kernel
def _worst_walk_for_next(state: Record, board: Record) -> Int:
    """With `steering=end`: the steering after which the next player owes the mover most."""
    player, heading = np.int64(state.player), heading_of(state)
    payer = next_player(state, player)
    best, most = 1, 0.0
    if payer != NOBODY:
        money = np.int64(state.money[payer])
        for steering in range(NUM_STEERINGS):
            income = 0.0
            for k in range(MAX_STEPS):
                cell = LANDINGS[heading, steering, k] >> 2
                if board.owner[cell] == player:
                    income += ROLL_CHANCE[k] * _bill(np.int64(board.size[cell]), money)
            if income > most + _EQUAL:
                best, most = steering, income
    return best


@kernel
def _leader(state: Record, player: Int) -> tuple[int, int]:
    """The other seat with the highest score, and how many others are still in the game."""
    leader, most, rivals = NOBODY, -1, 0
    for other in range(state.num_players):
        if other != player and not state.eliminated[other]:
            rivals += 1
            if game.score(state, other) > most:
                leader, most = other, game.score(state, other)
    return leader, rivals


@kernel
def _best_placement(state: Record, board: Record) -> Int:
    """The action that lays the rug with the highest worth."""
    player, heading = np.int64(state.player), heading_of(state)
    own_board = state.colour_boards[state.next_colour[player]]
    leader, rivals = _leader(state, player)
    payer = next_player(state, player)
    # Dirhams that one more square in a patch will bring from visitors, a square of it: a turn in
    # 49 of those of the other players ends there.
    turns = turns_left(state) - 1
    prospect = turns * (state.num_players - 1) / (state.num_players * NUM_CELLS)
    if payer != NOBODY:
        _look_ahead(state, board, heading, payer)
    for owner in range(state.num_players):
        board.weights[owner + 1] = -1.0 if owner == player else _weight(owner, leader, rivals)
    board.weights[0] = 0.0  # NOBODY's
    legal = np.uint64(game.legal_placements(state))
    best, most = 0, -np.inf
    while legal:
        placement = lowest_cell(legal)
        legal &= legal - _ONE
        first = np.int64(FIRST_CELL[heading, placement])
        second = np.int64(SECOND_CELL[heading, placement])
        rug = game.cell_bit(first) | game.cell_bit(second)
        patch = _patch_with_rug(board, own_board, rug)
        worth = 2 + prospect * game.popcount(patch)
        for cell in (first, second):
            # Squares of the same colour stay in the patch.
            size = np.int64(0) if own_board & game.cell_bit(cell) else np.int64(board.size[cell])
            worth += board.weights[board.owner[cell] + 1] * (1 + prospect * size)
        if payer != NOBODY and turns > 0:
            if board.met & rug & ~own_board:
                income = _income_after_cut(state, board, heading, payer, patch, rug)
            else:
                income = _income_with_patch(state, board, heading, payer, patch)
            worth += (1 + _weight(payer, leader, rivals)) * income
        if worth > most + _EQUAL:
            best, most = placement, worth
    return best + 3


@kernel
def _patch_with_rug(board: Record, own_board: Bits, rug: Bits) -> Bits:
    """The patch that a rug forms with those of its colour beside it."""
    patch = rug
    beside = with_neighbours(rug) & own_board
    while beside:
        patch |= board.patch[lowest_cell(beside)]
        beside &= ~patch
    return patch


@kernel
def _weight(rival: Int, leader: Int, rivals: Int) -> float:
    """What a dirham or a square that a rival loses is worth to the mover."""
    if rivals == 1:
        return 1.0
    return LEADER_WEIGHT if rival == leader else RIVAL_WEIGHT


@kernel
def _look_ahead(state: Record, board: Record, heading: Int, payer: Int) -> None:
    """Writes what each steering of the next walk brings as long as no rug changes it."""
    player, money = np.int64(state.player), np.int64(state.money[payer])
    board.met = 0
    for steering in range(NUM_STEERINGS):
        for k in range(MAX_STEPS):
            cell = LANDINGS[heading, steering, k] >> 2
            owner = board.owner[cell]
            bill = ROLL_CHANCE[k] * _bill(np.int64(board.size[cell]), money)
            board.tolls[steering, k] = bill if owner != payer else 0.0
            board.incomes[steering, k] = bill if owner == player else 0.0
            board.met |= board.patch[cell]


@kernel
def _steerings_after(state: Record) -> tuple[int, int]:
    """Which steerings the next player may choose from once the mover has laid, as a range."""
    return (1, 2) if state.flags & STEER_AT_END else (0, NUM_STEERINGS)


@kernel
def _income_with_patch(
    state: Record, board: Record, heading: Int, payer: Int, patch: Bits
) -> float:
    """As `_expected_income` for the mover, once his rug has made `patch` and cut no patch met.

    All landings are summed up without a branch, which nobody could foretell.
    """
    bill = _bill(game.popcount(patch), np.int64(state.money[payer]))
    first, last = _steerings_after(state)
    least, at_best, total = np.inf, 0.0, 0.0
    for steering in range(first, last):
        toll, income = 0.0, 0.0
        for k in range(MAX_STEPS):
            is_patch = patch & game.cell_bit(LANDINGS[heading, steering, k] >> 2) != 0
            toll += ROLL_CHANCE[k] * bill if is_patch else board.tolls[steering, k]
            income += ROLL_CHANCE[k] * bill if is_patch else board.incomes[steering, k]
        total += income
        at_best = income if toll < least else at_best
        least = min(toll, least)
    return AT_BEST * at_best + ON_AVERAGE * total / (last - first)


@kernel
def _income_after_cut(
    state: Record, board: Record, heading: Int, payer: Int, patch: Bits, rug: Bits
) -> float:
    """The same where the rug also covers squares of patches that the walk can meet."""
    player, money = np.int64(state.player), np.int64(state.money[payer])
    patch_size = game.popcount(patch)
    first, last = _steerings_after(state)
    least, at_best, total = np.inf, 0.0, 0.0
    for steering in range(first, last):
        toll, income = 0.0, 0.0
        for k in range(MAX_STEPS):
            cell = np.int64(LANDINGS[heading, steering, k] >> 2)
            owner, size = np.int64(board.owner[cell]), np.int64(board.size[cell])
            is_patch = patch & game.cell_bit(cell) != 0
            if board.patch[cell] & rug and not is_patch:
                size = game.popcount(game.region(board.patch[cell] & ~rug, cell))
            owner, size = (player, patch_size) if is_patch else (owner, size)
            bill = ROLL_CHANCE[k] * _bill(size, money)
            toll += bill if owner != payer else 0.0
            income += bill if owner == player else 0.0
        total += income
        if toll < least:
            least, at_best = toll, income
    return AT_BEST * at_best + ON_AVERAGE * total / (last - first)
