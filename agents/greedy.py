"""GreedyAgent: the best decision by its immediate consequences, as a sensible player decides.

*Steering:* the least expected toll over the die, with `RUIN` dirhams more for a bankruptcy; among
equal steerings, the one after which the next player will owe most.

*Laying:* own squares won and other players' squares covered; regions that grow and regions that
are cut, by what visitors will owe there in the turns left; and the toll that the next player faces
from Assam's square, at their best steering and on average.

Legend: `B` games; `regions` is a record of `REGION_MAP`; amounts are dirhams.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.actions import FIRST_PLACEMENT
from marrakech_env.compile import kernel
from marrakech_env.game import NO_SEAT
from marrakech_env.kernels.bitboards import lowest_cell
from marrakech_env.kernels.regions import REGIONS
from marrakech_env.spec import MAX_PLAYERS, NUM_CELLS
from marrakech_env.state import LAY, STEER, STEER_AT_END, Bits, Int, Record, States, as_states
from marrakech_env.tables import (
    FIRST_CELL,
    LANDINGS,
    MAX_STEPS,
    NUM_STEERINGS,
    ROLL_CHANCE,
    SECOND_CELL,
)

from .heuristic.regions import REGION_MAP, cut_regions, joined_region, map_regions

RUIN: Final = 20
"""Cost of a bankruptcy on top of the money that is lost."""
LEADER_WEIGHT, OTHER_WEIGHT = 0.6, 0.3
"""Value of a dirham that the leading opponent loses and that another one loses, with 3 and 4
players; a loss of the only opponent counts 1."""
AT_BEST, ON_AVERAGE = 0.5, 0.25
"""Weights of the next player's expected toll at the steering that costs them least, and of its
mean over their steerings. The sum is below 1: they will find a way out."""
GREEDY_WORKSPACE: Final = np.dtype(
    [
        ("listed", REGIONS),  # the regions of the game
        ("regions", REGION_MAP),  # the same by square
        ("cut", REGION_MAP),  # the same once a rug has cut some
        ("weights", np.float64, (MAX_PLAYERS + 1,)),  # what a loss counts, by owner + 1
    ],
    align=True,
)
"""Workspace of one call."""
_EQUAL: Final = 1e-9
_NONE, _ONE = np.uint64(0), np.uint64(1)


class GreedyAgent:
    """Takes what is best at once; ties go to the lowest action."""

    def act(self, states: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose an action in each game.

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
        _choose(states, actions)
        return actions


@kernel
def _choose(states: States, actions: NDArray[np.int64]) -> None:
    """Write the decision of every game into `actions`."""
    workspaces = np.empty(1, GREEDY_WORKSPACE)
    for i in range(len(states)):  # a record alone would not keep the array in memory
        actions[i] = decide(states[i], workspaces[0])


@kernel
def decide(state: Record, work: Record) -> Int:
    """The decision of one game; `work` is a record of `GREEDY_WORKSPACE`."""
    map_regions(state, work.listed, work.regions)
    if state.phase == LAY:
        return _best_placement(state, work)
    if state.phase != STEER:
        return 1
    if state.flags & STEER_AT_END:
        return _dearest_steering_for_next(state, work.regions)
    return _cheapest_steering(state, work.regions)


@kernel
def _cheapest_steering(state: Record, regions: Record) -> Int:
    """The steering of least expected toll; among equals, the dearest one for the next player."""
    player, heading = np.int64(state.player), game.heading_of(state)
    best, least, income = np.int64(0), np.inf, -1.0
    for steering in range(NUM_STEERINGS):
        toll, _ = _walk(state, regions, heading, steering, player, _NONE)
        if toll < least - _EQUAL:
            best, least, income = np.int64(steering), toll, -1.0
        elif toll < least + _EQUAL:
            if income < 0:  # computed at the first tie only
                income = _income_after(state, regions, heading, best)
            other = _income_after(state, regions, heading, np.int64(steering))
            if other > income + _EQUAL:
                best, income = np.int64(steering), other
    return best


@kernel
def _dearest_steering_for_next(state: Record, regions: Record) -> Int:
    """With `steering=end`: the steering after which the next player owes the mover most."""
    heading, payer = game.heading_of(state), game.next_player(state, np.int64(state.player))
    best, most = np.int64(1), 0.0
    if payer != NO_SEAT:
        for steering in range(NUM_STEERINGS):
            _, income = _walk(state, regions, heading, steering, payer, _NONE)
            if income > most + _EQUAL:
                best, most = np.int64(steering), income
    return best


@kernel
def _income_after(state: Record, regions: Record, heading: Int, steering: Int) -> float:
    """The mover's expected income from the next player after a walk of their own."""
    payer, income = game.next_player(state, np.int64(state.player)), 0.0
    if payer != NO_SEAT and game.all_rugs_left(state) > 1:
        for k in range(MAX_STEPS):
            after = np.int64(LANDINGS[heading, steering, k])
            income += ROLL_CHANCE[k] * _expected_income(state, regions, after, payer, _NONE)
    return income


@kernel
def _expected_income(
    state: Record, regions: Record, heading: Int, payer: Int, joined: Bits
) -> float:
    """The mover's expected income from the next walk of `payer`, who chooses the steering.

    Args:
        state: The game.
        regions: Its regions.
        heading: Assam's heading then.
        payer: A seat.
        joined: The region that the mover's rug forms, 0 without a rug.
    """
    first, last = (1, 2) if state.flags & STEER_AT_END else (0, NUM_STEERINGS)
    least, at_best, total = np.inf, 0.0, 0.0
    for steering in range(first, last):
        toll, income = _walk(state, regions, heading, steering, payer, joined)
        total += income
        at_best = income if toll < least else at_best
        least = min(toll, least)
    return AT_BEST * at_best + ON_AVERAGE * total / (last - first)


@kernel
def _walk(
    state: Record,
    regions: Record,
    heading: Int,
    steering: Int,
    payer: Int,
    joined: Bits,
) -> tuple[float, float]:
    """The expected toll of `payer` in a walk, and what the mover gets of it."""
    player, money, joined_size = (
        np.int64(state.player),
        np.int64(state.money[payer]),
        game.popcount(joined),
    )
    toll, income = 0.0, 0.0
    for k in range(MAX_STEPS):
        cell = LANDINGS[heading, steering, k] >> 2
        owner, size = np.int64(regions.owner[cell]), np.int64(regions.size[cell])
        is_joined = joined & game.cell_bit(cell) != 0
        owner, size = (player, joined_size) if is_joined else (owner, size)
        due = ROLL_CHANCE[k] * (size if size <= money else money + RUIN)
        toll += due if owner != payer else 0.0
        income += due if owner == player else 0.0
    return toll, income


@kernel
def _best_placement(state: Record, work: Record) -> Int:
    """The action that lays the best rug."""
    regions = work.regions
    player, heading = np.int64(state.player), game.heading_of(state)
    own_board = state.colour_boards[state.next_colour[player]]
    _weigh_losses(state, player, work.weights)
    payer = game.next_player(state, player)
    # Dirhams that a square more in a region will bring, for each of its squares: of every 49 turns
    # of the other players one ends there.
    turns = game.all_rugs_left(state) - 1
    prospect = turns * (state.num_players - 1) / (state.num_players * NUM_CELLS)
    ahead = _NONE  # regions of other colours that the next walk can end on
    for steering in range(NUM_STEERINGS):
        for k in range(MAX_STEPS):
            ahead |= regions.region[LANDINGS[heading, steering, k] >> 2]
    ahead &= ~own_board
    legal = np.uint64(game.legal_placements(state))
    best, most = np.int64(0), -np.inf
    while legal:
        placement = lowest_cell(legal)
        legal &= legal - _ONE
        first = np.int64(FIRST_CELL[heading, placement])
        second = np.int64(SECOND_CELL[heading, placement])
        rug = game.cell_bit(first) | game.cell_bit(second)
        joined = joined_region(regions, own_board, rug)
        gain = 2 + prospect * game.popcount(joined)
        for cell in (first, second):
            # Squares of the same colour stay in the region.
            size = np.int64(0) if own_board & game.cell_bit(cell) else np.int64(regions.size[cell])
            owner = np.int64(regions.owner[cell])
            gain += work.weights[owner + 1] * (1 + prospect * size)
        if payer != NO_SEAT and turns > 0:
            if rug & ahead:  # cuts a region that the next walk can end on
                work.cut = regions
                cut_regions(work.cut, joined, first, second)
                income = _expected_income(state, work.cut, heading, payer, joined)
            else:
                income = _expected_income(state, regions, heading, payer, joined)
            gain += (1 + work.weights[payer + 1]) * income
        if gain > most + _EQUAL:
            best, most = placement, gain
    return FIRST_PLACEMENT + best


@kernel
def _weigh_losses(state: Record, player: Int, weights: NDArray[np.float64]) -> None:
    """Write what the loss of a dirham or a square counts for `player`, by owner + 1."""
    leader, most, opponents = np.int64(NO_SEAT), np.int64(-1), 0
    for other in range(state.num_players):
        if other != player and not state.eliminated[other]:
            opponents += 1
            if game.score(state, other) > most:
                leader, most = np.int64(other), game.score(state, other)
    weights[NO_SEAT + 1] = 0.0
    for owner in range(state.num_players):
        weight = LEADER_WEIGHT if owner == leader else OTHER_WEIGHT
        weights[owner + 1] = 1.0 if opponents == 1 else weight
    weights[player + 1] = -1.0
