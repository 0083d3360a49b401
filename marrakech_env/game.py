"""The rules of one game, as compiled kernels on one record of `STATE`.

`rules` runs these over batches; agents and solvers call them inside their own kernels. Rule
numbers are those of `docs/rules.md`. Kernels that change the record say so; none of them checks
its arguments, and none draws chance: what the die or the rug pile shows is an argument.

All bitboards are uint64, and so must be every operand: mixed with int64 the result is int64.
"""

from __future__ import annotations

import numpy as np

from marrakech_env.compile import kernel
from marrakech_env.spec import BOARD_SIZE, MAX_PLAYERS, NUM_CELLS, NUM_COLOURS
from marrakech_env.state import (
    ALTERNATE,
    COIN,
    COVER_OWN,
    LAY,
    OVER,
    PLAY_ON,
    STEER,
    STEER_AT_END,
    TIE_BY_SQUARES,
    WALK,
    Bits,
    Int,
    Record,
)
from marrakech_env.state import has_two_colours as has_two_colours
from marrakech_env.tables import (
    BLOCKED_BY_EAST_LINKS,
    BLOCKED_BY_SOUTH_LINKS,
    DIE_PROBABILITY,
    FIRST_CELL,
    NUM_STEERINGS,
    ON_BOARD,
    SECOND_CELL,
)
from marrakech_env.tables import WALK as WALK_TABLE

_ZERO, _ONE, _SEVEN, _FOURTEEN = (np.uint64(n) for n in (0, 1, 7, 14))
NOT_WEST_EDGE = np.uint64(sum(1 << c for c in range(NUM_CELLS) if c % BOARD_SIZE))
NOT_EAST_EDGE = np.uint64(sum(1 << c for c in range(NUM_CELLS) if (c + 1) % BOARD_SIZE))
_EVERY_2, _EVERY_4, _EVERY_8, _BYTES = (
    np.uint64(n)
    for n in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101)
)

NO_SEAT = -1
"""Stands for a seat where there is none."""
NO_OUTCOME = -1
"""In the place of an outcome: chance does nothing."""
OUTCOMES = tuple(range(NO_OUTCOME, len(DIE_PROBABILITY)))
"""All numbers that an outcome can be: none, a colour or a roll."""

STEERINGS = np.uint32(0b111)
STRAIGHT_ON = np.uint32(0b010)


@kernel
def popcount(bits: Bits) -> Int:
    """Number of set bits; the compiler knows this idiom and makes it one instruction."""
    bits = bits - ((bits >> _ONE) & _EVERY_2)
    bits = (bits & _EVERY_4) + ((bits >> np.uint64(2)) & _EVERY_4)
    bits = (bits + (bits >> np.uint64(4))) & _EVERY_8
    return np.int64((bits * _BYTES) >> np.uint64(56))


@kernel
def cell_bit(cell: Int) -> Bits:
    """The bitboard of one cell."""
    return _ONE << np.uint64(cell)


@kernel
def region(board: Bits, cell: Int) -> Bits:
    """The side-connected region of a bitboard that contains a cell of it (rule 6)."""
    reached = _ZERO
    grown = cell_bit(cell)
    while grown != reached:
        reached = grown
        grown |= ((grown & NOT_EAST_EDGE) << _ONE) | ((grown & NOT_WEST_EDGE) >> _ONE)
        grown |= (reached << _SEVEN) | (reached >> _SEVEN)
        grown &= board
    return reached


@kernel
def owner(state: Record, colour: Int) -> Int:
    """The seat that owns a colour."""
    return colour >> 1 if has_two_colours(state) else colour


@kernel
def board_of(state: Record, player: Int) -> Bits:
    """The bitboard of all visible squares of a seat."""
    if has_two_colours(state):
        return state.colour_boards[2 * player] | state.colour_boards[2 * player + 1]
    return state.colour_boards[player]


@kernel
def rugs_left(state: Record, player: Int) -> Int:
    """Unlaid rugs of a seat, both colours together."""
    if has_two_colours(state):
        return np.int64(state.rugs[2 * player]) + np.int64(state.rugs[2 * player + 1])
    return np.int64(state.rugs[player])


@kernel
def all_rugs_left(state: Record) -> Int:
    """Unlaid rugs of all seats together: the turns left if nobody is eliminated."""
    rugs: Int = 0
    for colour in range(NUM_COLOURS):  # those of the eliminated are gone
        rugs += state.rugs[colour]
    return rugs


@kernel
def next_player(state: Record, player: Int) -> Int:
    """The next other seat after `player` that holds a rug, or NO_SEAT."""
    seat = player
    for _ in range(state.num_players - 1):
        seat = seat + 1 if seat + 1 < state.num_players else 0
        if rugs_left(state, seat) > 0:  # the eliminated have none
            return seat
    return NO_SEAT


@kernel
def heading_of(state: Record) -> Int:
    """Assam's heading: where he stands and which way he looks."""
    return 4 * np.int64(state.assam) + state.facing


@kernel
def steerings_of(state: Record) -> tuple[Int, Int]:
    """The steerings of the coming walk, as a range: only straight on where it is unsteered."""
    return (1, 2) if state.phase == WALK else (0, NUM_STEERINGS)


@kernel
def colour_at(state: Record, cell: Int) -> Int:
    """The visible colour of a cell, -1 where it is empty."""
    bit = cell_bit(cell)
    visible: Int = -1
    for colour in range(NUM_COLOURS):  # no way out of the loop: nobody can foretell the colour
        visible = colour if state.colour_boards[colour] & bit else visible
    return visible


@kernel
def toll(state: Record, player: Int, cell: Int) -> tuple[Int, Int]:
    """What a seat owes for stopping on a cell, not limited by his money, and to whom (rule 6).

    Returns:
        The amount and the creditor; 0 and -1 on empty, own and neutral cells.
    """
    colour = colour_at(state, cell)
    if colour < 0:
        return 0, -1
    creditor = owner(state, colour)
    if creditor == player or state.eliminated[creditor]:
        return 0, -1
    return popcount(region(state.colour_boards[colour], cell)), creditor


@kernel
def legal_actions(state: Record) -> Bits:
    """The legal actions as 15 bits (rules 3 and 8); none when the game is over."""
    if state.phase == STEER:
        return STEERINGS
    if state.phase == LAY:
        return legal_placements(state) << np.uint32(3)
    return STRAIGHT_ON if state.phase == WALK else np.uint32(0)


@kernel
def legal_placements(state: Record) -> Bits:
    """The placements that the mover may lay, as 12 bits (rule 8).

    A placement on the board is forbidden only where its two cells are the two visible halves of
    one rug, that is, joined by a link; `tables` explains how the twelve links are looked up.
    """
    east, south = state.links_east, state.links_south
    if state.flags & COVER_OWN:
        others = ~board_of(state, state.player)
        east, south = east & others, south & others
    cell = np.uint64(state.assam)
    east = (east << _FOURTEEN) >> cell  # bit 14 + d is now the link at Assam's cell + d
    south = (south << _FOURTEEN) >> cell
    around_east = (
        (east >> np.uint64(6) & np.uint64(3))
        | (east >> np.uint64(10) & np.uint64(4))
        | (east >> np.uint64(12) & np.uint64(8))
        | (east >> np.uint64(16) & np.uint64(48))
    )
    around_south = (
        (south & _ONE)
        | (south >> np.uint64(5) & np.uint64(2))
        | (south >> np.uint64(6) & np.uint64(4))
        | (south >> np.uint64(10) & np.uint64(8))
        | (south >> np.uint64(11) & np.uint64(16))
        | (south >> np.uint64(16) & np.uint64(32))
    )
    blocked = (
        BLOCKED_BY_EAST_LINKS[state.facing, around_east]
        | BLOCKED_BY_SOUTH_LINKS[state.facing, around_south]
    )
    return ON_BOARD[heading_of(state)] & ~blocked


@kernel
def is_over(state: Record) -> bool:
    """Whether the game is over by the facts, whoever is named to move (rule 9)."""
    # Neither an eliminated player nor an unused seat holds a rug. All four seats are looked at
    # without a branch.
    rugs, eliminated = 0, 0
    for k in range(MAX_PLAYERS):
        rugs |= state.rugs[k]
        eliminated += state.eliminated[k] > 0
    is_alone = eliminated == state.num_players - 1 and not state.flags & PLAY_ON
    return bool(is_alone or rugs == 0)


@kernel
def is_inside_turn(state: Record) -> bool:
    """Whether the mover has walked, and has still to lay or with `steering=end` to steer."""
    return bool(state.phase == LAY or (state.phase == STEER and state.flags & STEER_AT_END))


@kernel
def next_colour_weights(state: Record) -> tuple[Int, Int]:
    """How likely the mover's next rug, after the one he lays now, has his lower or upper colour.

    Returns:
        Two whole weights, to be divided by their sum; both 0 where no colour is drawn.
    """
    if not has_two_colours(state):
        return 0, 0
    top = state.next_colour[state.player]
    lower_colour = 2 * np.int64(state.player)
    lower = np.int64(state.rugs[lower_colour]) - (top == lower_colour)
    upper = np.int64(state.rugs[lower_colour + 1]) - (top == lower_colour + 1)
    if lower > 0 and upper > 0:
        if state.colour_rule == COIN:
            return 1, 1
        if state.colour_rule == ALTERNATE:
            return (0, 1) if top == lower_colour else (1, 0)
    return lower, upper  # a shuffled pile, or one colour that is left


@kernel
def likelier_colour(state: Record) -> Int:
    """The likelier colour of the mover's rug after this one, the lower of equals; -1 for none."""
    lower, upper = next_colour_weights(state)
    if lower + upper == 0:
        return NO_OUTCOME
    return 2 * np.int64(state.player) + (upper > lower)


@kernel
def outcome_chance(state: Record, outcome: Int) -> float:
    """The probability of an outcome of the coming decision, whatever its action is.

    Args:
        state: The game.
        outcome: One of `OUTCOMES`, or any other number: what is impossible has probability 0.
    """
    if state.phase == LAY:
        lower, upper = next_colour_weights(state)
        if lower + upper > 0:
            side = outcome - 2 * np.int64(state.player)
            weight = lower if side == 0 else (upper if side == 1 else 0)
            return np.float64(weight / (lower + upper))
    elif state.phase == WALK or (state.phase == STEER and not state.flags & STEER_AT_END):
        is_roll = outcome >= 0 and outcome < len(DIE_PROBABILITY)
        return np.float64(DIE_PROBABILITY[outcome]) if is_roll else 0.0
    return 1.0 if outcome == NO_OUTCOME else 0.0


@kernel
def step(state: Record, action: Int, outcome: Int) -> None:
    """Takes one legal decision and its chance outcome, in place; leaves a finished game alone.

    Args:
        state: The game.
        action: A legal action 0..14.
        outcome: The die 1..4 where the decision starts a walk; the colour of the mover's next
            rug where he lays with two colours (-1 for none); ignored elsewhere.
    """
    if state.phase == LAY:
        lay(state, action - 3, outcome)
        if state.flags & STEER_AT_END and not is_over(state):
            state.phase = STEER
        else:
            pass_turn(state)
    elif state.phase != OVER:
        state.facing = (np.int64(state.facing) + action + 3) & 3
        if state.phase == STEER and state.flags & STEER_AT_END:
            pass_turn(state)
        else:
            walk(state, outcome)


@kernel
def walk(state: Record, steps: Int) -> None:
    """Walks and pays, in place, and goes on to laying or to the next player (rules 5 to 8)."""
    heading = np.int64(WALK_TABLE[steps, heading_of(state)])
    state.assam = heading >> 2
    state.facing = heading & 3
    player = np.int64(state.player)
    amount, creditor = toll(state, player, heading >> 2)
    if amount > 0:
        paid = min(amount, np.int64(state.money[player]))
        state.money[player] -= paid
        state.money[creditor] += paid
        if paid < amount:
            eliminate(state, player)
    if rugs_left(state, player) > 0:  # the eliminated have none
        state.phase = LAY
    else:
        pass_turn(state)


@kernel
def eliminate(state: Record, player: Int) -> None:
    """Takes a seat out of the game, in place: his unlaid rugs are gone (rule 7)."""
    order = 1
    for other in range(state.num_players):
        order += state.eliminated[other] > 0
    state.eliminated[player] = order
    if has_two_colours(state):
        state.rugs[2 * player] = 0
        state.rugs[2 * player + 1] = 0
        state.next_colour[player] = -1
    else:
        state.rugs[player] = 0


@kernel
def lay(state: Record, placement: Int, next_colour: Int) -> None:
    """Lays the mover's top rug, in place, and shows the next one (rule 8)."""
    player = np.int64(state.player)
    colour = np.int64(state.next_colour[player])
    heading = heading_of(state)
    first = np.int64(FIRST_CELL[heading, placement])
    second = np.int64(SECOND_CELL[heading, placement])
    rug = cell_bit(first) | cell_bit(second)
    north_west = cell_bit(min(first, second))
    for other in range(NUM_COLOURS):
        state.colour_boards[other] &= ~rug
    state.colour_boards[colour] |= rug
    # A rug that loses a half is linked no more, whichever of its two halves lies at the link.
    state.links_east &= ~(rug | rug >> _ONE)
    state.links_south &= ~(rug | rug >> _SEVEN)
    lies_east_west = abs(first - second) == 1
    state.links_east |= north_west if lies_east_west else _ZERO
    state.links_south |= _ZERO if lies_east_west else north_west
    # A position text may put a player without rugs to lay.
    state.rugs[colour] -= state.rugs[colour] > 0
    if has_two_colours(state):
        state.next_colour[player] = next_colour


@kernel
def pass_turn(state: Record) -> None:
    """Gives the turn to the next player who holds a rug, or ends the game, in place (rule 9)."""
    if is_over(state):
        state.player = 0
        state.phase = OVER
        return
    player: Int = np.int64(state.player)
    while True:
        player = player + 1 if player + 1 < state.num_players else 0
        if rugs_left(state, player) > 0:  # the eliminated have none
            break
    state.player = player
    state.phase = WALK if state.flags & STEER_AT_END else STEER


@kernel
def score(state: Record, player: Int) -> Int:
    """Dirhams and visible squares of a seat now, 0 for the eliminated (rule 10)."""
    if state.eliminated[player]:
        return 0
    return np.int64(state.money[player]) + popcount(board_of(state, player))


@kernel
def standing(state: Record, player: Int) -> Int:
    """A number that orders the seats as rule 10 does: more is better, equal is shared."""
    if state.eliminated[player]:
        return np.int64(state.eliminated[player])
    by_squares = state.flags & TIE_BY_SQUARES
    tie = popcount(board_of(state, player)) if by_squares else np.int64(state.money[player])
    # Above every order of elimination (at most 4); the tie break fits into 16 bits.
    return ((score(state, player) + 1) << 16) + tie


@kernel
def rank(state: Record, player: Int) -> Int:
    """The place of a seat as if the game ended now: 1 is best, equals share the better place."""
    own = standing(state, player)
    place = 1
    for other in range(state.num_players):
        place += standing(state, other) > own
    return place


@kernel
def winner_share(state: Record, player: Int) -> float:
    """The share of the win of a seat if the game ended now: 1/k among k winners (rule 10)."""
    if state.eliminated[player]:
        return 0.0
    own = standing(state, player)
    winners = 0
    for other in range(state.num_players):
        theirs = standing(state, other)
        if theirs > own:
            return 0.0
        winners += theirs == own
    return 1.0 / winners


@kernel
def clear_for_start(state: Record) -> None:
    """Empties the board and gives everybody money and rugs by the rule fields, in place."""
    for colour in range(NUM_COLOURS):
        state.colour_boards[colour] = 0
        state.rugs[colour] = 0
        state.next_colour[colour] = -1
    state.links_east = 0
    state.links_south = 0
    for player in range(MAX_PLAYERS):
        state.eliminated[player] = 0
        state.money[player] = state.start_money if player < state.num_players else 0
    for player in range(state.num_players):
        if has_two_colours(state):
            state.rugs[2 * player] = state.start_rugs // 2
            state.rugs[2 * player + 1] = state.start_rugs // 2
        else:
            state.rugs[player] = state.start_rugs
    state.player = 0
    state.assam = NUM_CELLS // 2
    state.phase = WALK if state.flags & STEER_AT_END else STEER


@kernel
def set_start_outcome(state: Record, player: Int, colour: Int) -> None:
    """Shows a seat's first rug after `clear_for_start`, in place; -1 with one colour."""
    state.next_colour[player] = colour if has_two_colours(state) else player
