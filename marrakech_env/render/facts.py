"""What every picture says in words: the table of the players and who is to do what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marrakech_env import rules
from marrakech_env.state import (
    LAY,
    OVER,
    STEER,
    STEER_AT_END,
    WALK,
    State,
    as_states,
    one_state,
    owned_colours,
)


@dataclass(frozen=True, slots=True)
class RugPile:
    """The rugs of one colour that a player has left.

    Attributes:
        colour: 0..3.
        left: Rugs left, the visible top one included.
        is_next: Whether the player's next rug is of this colour, where they have two.
    """

    colour: int
    left: int
    is_next: bool


@dataclass(frozen=True, slots=True)
class Seat:
    """One player as pictures show them.

    Attributes:
        player: Seat, 0..3.
        money: Dirhams.
        squares: Visible squares of their colours; worth nothing after their elimination.
        score: Dirhams + squares, 0 when eliminated.
        piles: Their rugs, by colour.
        eliminated: 0 while in the game, else the order of elimination from 1.
        to_move: Whether TURN names them.
        share: Their share of the win, 0 until the game is over.
    """

    player: int
    money: int
    squares: int
    score: int
    piles: tuple[RugPile, ...]
    eliminated: int
    to_move: bool
    share: float


def seats(state: State) -> list[Seat]:
    """All players of a game in seat order.

    Raises:
        ValueError: Not one state.
    """
    record, states = one_state(state), as_states(state)
    over = record["phase"] == OVER
    scores = rules.scores(states)[0]
    shares = rules.winner_shares(states)[0] if over else np.zeros(len(scores))
    result = []
    for player in range(int(record["num_players"])):
        owned = owned_colours(record, player)
        piles = tuple(
            RugPile(
                colour=colour,
                left=int(record["rugs"][colour]),
                is_next=len(owned) == 2 and int(record["next_colour"][player]) == colour,
            )
            for colour in owned
        )
        result.append(
            Seat(
                player=player,
                money=int(record["money"][player]),
                squares=sum(int(record["colour_boards"][c]).bit_count() for c in owned),
                score=int(scores[player]),
                piles=piles,
                eliminated=int(record["eliminated"][player]),
                to_move=not over and player == int(record["player"]),
                share=float(shares[player]),
            )
        )
    return result


def status(state: State) -> str:
    """One line: who is to do what, or how the game ended.

    Raises:
        ValueError: Not one state.
    """
    record = one_state(state)
    phase, player = int(record["phase"]), int(record["player"])
    if phase == OVER:
        winners = [str(seat.player) for seat in seats(record) if seat.share > 0]
        if len(winners) == 1:
            return f"Game over: player {winners[0]} wins"
        return f"Game over: players {' and '.join(winners)} share the win"
    if phase == WALK:
        return f"Player {player} to roll, Assam walks straight on"
    if phase == STEER and record["flags"] & STEER_AT_END:
        return f"Player {player} to steer for the next walk"
    if phase == STEER:
        return f"Player {player} to steer and roll"
    assert phase == LAY
    return f"Player {player} to lay a rug of colour {record['next_colour'][player]}"


def standing(seat: Seat) -> str:
    """What to write beside a player's name: `wins`, `out (2nd)`, or nothing."""
    if seat.eliminated:
        return f"out ({('1st', '2nd', '3rd', '4th')[seat.eliminated - 1]})"
    if seat.share == 1:
        return "wins"
    return "shares the win" if seat.share > 0 else ""
