"""Game: one game as an object, for notebooks, search, teaching and play.

`rules` and `Batch` play many games at once; `Game` plays one and says in words what happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import chance, notation, rules
from marrakech_env.actions import squares_of
from marrakech_env.notation import GameRecord, format_move, format_position, parse_position
from marrakech_env.render import render_ansi, render_svg
from marrakech_env.spec import RuleSet, resolve_rules, whole_number
from marrakech_env.state import LAY, OVER, STATE, Record, States, owned_colours, write_rules
from marrakech_env.tables import WALK

PHASES: Final = ("steer", "lay", "walk", "over")
"""The names of the phases, by their number in the state."""


@dataclass(frozen=True, slots=True)
class Event:
    """What one decision and its chance did. Fields of a thing that did not happen are None.

    Attributes:
        player: The seat that decided.
        phase: `steer`, `lay` or `walk`.
        action: The action, 0..14.
        outcome: The die 1..4, the colour drawn for the player's next rug 0..3, or -1.
        move: The move text with its chance, such as `L3` or `33-34=1`.
        die: The die of the walk, 1..4.
        path: The cells that Assam walked over, one for each square of the die; the last is where
            they stopped.
        toll_due: Dirhams that the player owed where Assam stopped.
        toll_paid: Dirhams that the player could pay of it.
        payee: The seat that received them.
        eliminated: Whether the player could not pay the toll and left the game.
        rug: The two cells of the rug laid, the one beside Assam first.
        covered: Cell and colour of each visible square that the rug covered.
        next_colour: The colour drawn for the player's next rug.
    """

    player: int
    phase: str
    action: int
    outcome: int
    move: str
    die: int | None = None
    path: tuple[int, ...] | None = None
    toll_due: int | None = None
    toll_paid: int | None = None
    payee: int | None = None
    eliminated: bool = False
    rug: tuple[int, int] | None = None
    covered: tuple[tuple[int, int], ...] | None = None
    next_colour: int | None = None


class Game:
    """One game of Marrakech, from a start or a position.

    A *move* is an action's number or a move text; legal moves are `legal_actions` and
    `legal_moves`. Chance that a move leaves open is drawn from the seed: `Game(seed=s)` has the
    dice of the AEC environment after `reset(seed=s)`.

    Lists are in seat order.

    Attributes:
        seed: The seed of the dice.
    """

    def __init__(
        self,
        num_players: int = 2,
        rules: str | RuleSet = "official",
        seed: int | None = None,
        position: str | None = None,
    ) -> None:
        """Starts a game.

        Args:
            num_players: 2, 3 or 4.
            rules: A preset, a RULES text or a rule set.
            seed: Whole number 0..2**64-1; None takes one from the system.
            position: A position text to start from, finished ones included. Number of players and
                rules are then those of the text, and the dice are those of the seed from turn 0.

        Raises:
            ValueError: An argument is not allowed; the message says what is.
        """
        self.seed = chance.checked_seed(seed)
        self._clock = np.zeros(1, chance.CLOCK)
        chance.set_clocks(self._clock, self.seed, 0)
        if position is None:
            template = np.zeros(1, STATE)
            write_rules(template, resolve_rules(rules, num_players))
        else:
            template = parse_position(position)
        self._states: States = np.zeros(1, STATE)
        chance.start_next(self._states, 0, template, self._clock)
        if position is not None:
            self._states = template
        # Before each move: the state and the number of walks.
        self._past: list[tuple[States, int]] = []
        self._history: list[Event] = []

    # ----------------------------------------------------------------------------------- play

    @property
    def legal_actions(self) -> list[int]:
        """The numbers of the legal actions, ascending; empty when the game is over."""
        actions: list[int] = np.flatnonzero(rules.action_mask(self._states)[0]).tolist()
        return actions

    @property
    def legal_moves(self) -> list[str]:
        """The texts of the legal actions without their chance, in the order of `legal_actions`."""
        return notation.legal_moves(self._states)

    def play(self, move: int | str, outcome: int | None = None) -> Event:
        """Takes one decision and its chance.

        Args:
            move: A legal action or a move text, with or without its chance.
            outcome: What chance does: the die 1..4, the colour of the mover's next rug, or -1
                where nothing is drawn. None takes it from the text, or else draws it. Where the
                text names one too, both must agree.

        Returns:
            What happened.

        Raises:
            ValueError: Not a legal move, or an impossible outcome; the message lists the legal
                moves, and nothing has changed.
        """
        action, named = self._read(move)
        if outcome is not None:
            number = whole_number(outcome)
            if number is None or named not in (None, number):
                raise self._error(move, f"the outcome {outcome!r} does not fit")
            named = number
        possible = [number for number, _ in self._outcomes(action)]
        if named is not None and named not in possible:
            raise self._error(move, f"the outcome {named} is not among {possible}")
        turn = int(self._clock["turn"][0])
        drawn = int(chance.draw(self._states[0], self._clock[0]))  # counts the walk, too
        after = self._states.copy()
        chosen = drawn if named is None else named
        rules.step(after, np.array([action]), np.array([chosen]), check=False)
        event = _event(self._states, action, chosen, after)
        self._past.append((self._states, turn))
        self._history.append(event)
        self._states = after
        return event

    def undo(self) -> Event:
        """Takes the last move back, and its dice: the same turn draws the same again.

        Returns:
            What is undone.

        Raises:
            IndexError: The game is at its start.
        """
        if not self._past:
            raise IndexError("nothing to undo: the game is at its start")
        self._states, self._clock["turn"] = self._past.pop()
        return self._history.pop()

    def copy(self) -> Game:
        """An independent game with the same position, history, seed and turn."""
        twin = Game(seed=self.seed, position=self.position)
        twin._states = self._states.copy()
        twin._clock = self._clock.copy()
        twin._past, twin._history = self._past.copy(), self._history.copy()
        return twin

    def chance_outcomes(self, move: int | str) -> list[tuple[int, float]]:
        """What chance can do after a move, and how likely.

        Returns:
            Outcomes in ascending order with their probabilities; -1 where nothing is drawn.

        Raises:
            ValueError: Not a legal move; the message lists the legal ones.
        """
        return self._outcomes(self._read(move)[0])

    def _outcomes(self, action: int) -> list[tuple[int, float]]:
        outcomes, probabilities = rules.chance_outcomes(self._states, action)
        return list(zip(outcomes.tolist(), probabilities.tolist(), strict=True))

    def _read(self, move: Any) -> tuple[int, int | None]:
        """A legal action, and the outcome that the move names."""
        if isinstance(move, str):
            try:
                action, named = notation.read_move(self._states, move)
            except ValueError as error:
                raise self._error(move, str(error)) from None
        else:
            action, named = whole_number(move), None
        if action is None or action not in self.legal_actions:
            raise self._error(move, "it is not legal")
        return action, named

    def _error(self, move: Any, reason: str) -> ValueError:
        legal = ", ".join(
            f"{text} ({action})"
            for text, action in zip(self.legal_moves, self.legal_actions, strict=True)
        )
        return ValueError(f"move {move!r}: {reason}; legal moves: {legal or 'none, it is over'}")

    # ---------------------------------------------------------------------------------- views

    @property
    def _record(self) -> Record:
        return self._states[0]

    @property
    def num_players(self) -> int:
        """2, 3 or 4."""
        return int(self._record["num_players"])

    @property
    def player(self) -> int | None:
        """The seat to act, None when the game is over."""
        return None if self._record["phase"] == OVER else int(self._record["player"])

    @property
    def phase(self) -> str:
        """`steer`, `lay`, `walk` (only with `steering=end`) or `over`."""
        return PHASES[self._record["phase"]]

    @property
    def is_over(self) -> bool:
        """Whether the game is over by the facts (rule 9)."""
        return bool(rules.is_over(self._states)[0])

    @property
    def position(self) -> str:
        """The game as a position text."""
        return format_position(self._states)

    @property
    def state(self) -> States:
        """A copy of the state, STATE (1,), for agents and `rules`."""
        return self._states.copy()

    @property
    def scores(self) -> list[int]:
        """Dirhams and visible squares of every player now, 0 for the eliminated."""
        scores: list[int] = rules.scores(self._states)[0].tolist()
        return scores

    @property
    def winner_shares(self) -> list[float]:
        """Shares of the win: 1/k for each of k winners, 0 until the game is over."""
        shares: list[float] = rules.winner_shares(self._states)[0].tolist()
        return shares

    @property
    def ranks(self) -> list[int]:
        """Places: 1 is best, equals share the better place, 0 until the game is over."""
        ranks: list[int] = rules.ranks(self._states)[0].tolist()
        return ranks

    @property
    def money(self) -> list[int]:
        """Dirhams of every player."""
        money: list[int] = self._record["money"][: self.num_players].tolist()
        return money

    @property
    def rugs_left(self) -> list[int]:
        """Rugs that every player has still to lay, all their colours together."""
        rugs = self._record["rugs"]
        return [
            sum(int(rugs[colour]) for colour in owned_colours(self._states, seat))
            for seat in range(self.num_players)
        ]

    @property
    def next_colours(self) -> list[int | None]:
        """The colour of every player's next rug, None where no rug is left."""
        colours = self._record["next_colour"].tolist()
        return [colours[seat] if left else None for seat, left in enumerate(self.rugs_left)]

    @property
    def turns_left(self) -> int:
        """Walks still to come if nobody is eliminated, that of the running turn included."""
        if self.player is None:
            return 0
        rugs = self.rugs_left
        if self.phase == "lay":  # the walk to this rug is over
            return sum(rugs) - (rugs[self.player] > 0)
        if self.chance_outcomes(self.legal_actions[0])[0][0] < 0:  # to steer for the next player
            return sum(rugs)
        return sum(rugs) + (rugs[self.player] == 0)  # a mover without a rug walks, too

    def tolls(self, player: int | None = None) -> NDArray[np.int64]:
        """What a player would owe for stopping on each cell, see `rules.tolls`: int64 (49,).

        Args:
            player: A seat; None for the player to act.

        Raises:
            ValueError: A seat that does not play.
        """
        tolls: NDArray[np.int64] = rules.tolls(self._states, player)[0]
        return tolls

    @property
    def history(self) -> list[Event]:
        """What happened so far, oldest first."""
        return self._history.copy()

    def record(self) -> GameRecord:
        """The game so far, to be written with `notation.format_game`."""
        start = self._past[0][0] if self._past else self._states
        moves = tuple((event.action, event.outcome) for event in self._history)
        return GameRecord(format_position(start), moves)

    @classmethod
    def from_record(cls, record: GameRecord, seed: int | None = None) -> Game:
        """A recorded game after its last move; `undo` goes back to its start.

        Args:
            record: A game.
            seed: The seed of the dice of moves to come.

        Raises:
            ValueError: The start is no position, or a move is not legal.
        """
        game = cls(seed=seed, position=record.start)
        for action, outcome in record.moves:
            game.play(action, outcome)
        return game

    def __str__(self) -> str:
        """The board and the players, as text."""
        return render_ansi(self._states)

    def __repr__(self) -> str:
        """How to make a game with this position and seed, without its history."""
        return f"Game(seed={self.seed}, position={self.position!r})"

    def _repr_svg_(self) -> str:
        """The board and the players, as a picture for notebooks."""
        return render_svg(self._states)


def _event(before: States, action: int, outcome: int, after: States) -> Event:
    """What happened between two states."""
    old, new = before[0], after[0]
    player = int(old["player"])
    facts: dict[str, Any] = {}
    if old["phase"] == LAY:
        rug = squares_of(action, before)
        colours = rules.colours(before)[0]
        assert rug is not None  # the action is legal
        facts["rug"] = rug
        facts["covered"] = tuple((cell, int(colours[cell])) for cell in rug if colours[cell] >= 0)
        facts["next_colour"] = outcome if outcome >= 0 else None
    elif outcome >= 1:
        facts["die"], facts["path"] = outcome, _path(old, action, outcome)
        cell = facts["path"][-1]
        due = int(rules.tolls(before, player)[0, cell])
        if due:
            gained = new["money"] - old["money"]
            colour = int(rules.colours(before)[0, cell])
            owners = range(int(old["num_players"]))
            facts["payee"] = next(s for s in owners if colour in owned_colours(before, s))
            facts["toll_due"], facts["toll_paid"] = due, int(-gained[player])
            facts["eliminated"] = bool(new["eliminated"][player])
    move = format_move(before, action, outcome)
    return Event(player, PHASES[old["phase"]], action, outcome, move, **facts)


def _path(state: Record, steering: int, die: int) -> tuple[int, ...]:
    """The cells of a walk, its start left out."""
    heading = 4 * int(state["assam"]) + (int(state["facing"]) + steering + 3) % 4
    return tuple(int(WALK[steps, heading]) >> 2 for steps in range(1, die + 1))
