"""The form `features`: every number against a slow computation, symmetry, bounds, perspective."""

from __future__ import annotations

import copy
from collections import defaultdict

import numpy as np
import pytest
from numpy.typing import NDArray
from positions import RULES, mirrored, random_states, sample
from reference import DIE, Game, Square, neighbour, on_board, turned, walk

from marrakech_env import notation, rules
from marrakech_env.observation import FEATURES, encode
from marrakech_env.state import LAY

Heading = tuple[Square, str]
FACES = [(face, float(chance)) for face, chance in DIE]


# ------------------------------------------------------------------- the slow computation


class Observer:
    """Computes the features of one seat from a game of the reference."""

    def __init__(self, game: Game, seat: int):
        self.game, self.seat = game, seat
        count = game.num_players
        self.seats = [(seat + k) % count for k in range(count)]
        self.here: Heading = game.assam, game.facing
        self.walkers = self.coming_walkers()

    def slots(self) -> list[int | None]:
        """The colours of the colour slots."""
        game = self.game
        if game.num_players > 2:
            return list(self.seats)
        colours: list[int | None] = []
        for seat in self.seats:
            owned = game.colours_of(seat)
            top = game.top[seat]
            if len(owned) == 1:
                colours += [owned[0], None]
            else:
                colours += owned[::-1] if top == owned[1] else owned
        return colours

    def coming_walkers(self) -> list[int]:
        """The seats of the next four walks, as far as there are rugs."""
        game, seats = self.game, []
        if game.phase == "-":
            return []
        rugs = [0 if game.eliminated[p] else game.rugs_left(p) for p in game.players]
        seat = game.player
        walked = game.phase == "l" or (game.phase == "s" and game.steers_last)
        if game.phase == "l":
            rugs[seat] -= 1
        if not walked:
            seats.append(seat)
            rugs[seat] -= 1
        while len(seats) < 4 and any(n > 0 for n in rugs):
            seat = (seat + 1) % game.num_players
            if rugs[seat] > 0:
                seats.append(seat)
                rugs[seat] -= 1
        return seats

    def walker(self, number: int) -> int | None:
        return self.walkers[number] if number < len(self.walkers) else None

    def steerings(self) -> list[int]:
        """The steerings that the next walk can have."""
        return {"-": [], "w": [1]}.get(self.game.phase, [0, 1, 2])

    def size(self, game: Game, square: Square) -> int:
        """Region size, up for own squares, down for those of others in the game."""
        if not on_board(square) or square not in game.board:
            return 0
        owner = game.owner(game.board[square].colour)
        if game.eliminated[owner]:
            return 0
        return len(game.region(square)) * (1 if owner == self.seat else -1)

    def income(self, game: Game, walker: int | None, square: Square) -> int:
        """What comes in when a seat stops on a square, money not being limited."""
        if walker is None or square not in game.board:
            return 0
        if walker == self.seat:
            return -game.due(walker, square)
        owner = game.owner(game.board[square].colour)
        return game.due(walker, square) if owner == self.seat else 0

    def ends(self, heading: Heading, steering: int) -> list[tuple[float, Heading]]:
        """Where a walk ends, with probabilities."""
        (square, facing) = heading
        return [(c, walk(square, turned(facing, steering - 1), face)) for face, c in FACES]

    def steered_income(self, game: Game, walker: int | None, heading: Heading) -> list[float]:
        """Expected income of one walk for each steering."""
        return [
            sum(c * self.income(game, walker, end[0]) for c, end in self.ends(heading, s))
            for s in range(3)
        ]

    def cheapest_income(self, game: Game, walker: int | None, heading: Heading) -> float:
        """The income where the walker steers to owe least; the lower income among equals."""
        if walker is None:
            return 0.0
        incomes = self.steered_income(game, walker, heading)
        dues = [
            sum(c * game.due(walker, end[0]) for c, end in self.ends(heading, s)) for s in range(3)
        ]
        return min(i for i, d in zip(incomes, dues) if d < min(dues) + 1e-5)

    def later_incomes(self, game: Game, steerings: list[int]) -> list[float]:
        """Expected income of the next four walks, steered at random among what is allowed."""
        places: dict[Heading, float] = {self.here: 1.0}
        incomes = []
        for number in range(4):
            after: dict[Heading, float] = defaultdict(float)
            for heading, chance in places.items():
                for steering in steerings:
                    for c, end in self.ends(heading, steering):
                        after[end] += chance * c / len(steerings)
            walker = self.walker(number)
            incomes.append(sum(c * self.income(game, walker, e[0]) for e, c in after.items()))
            places, steerings = after, [0, 1, 2]
        return incomes

    def window(self) -> list[Square]:
        """The squares of the window, some of them off the board, row by row."""
        (x, y), facing = self.here
        right, down = turned(facing, 1), turned(facing, 2)
        (rx, ry), (dx, dy) = (neighbour((0, 0), d) for d in (right, down))
        steps = range(-2, 3)
        return [(x + c * rx + r * dx, y + c * ry + r * dy) for r in steps for c in steps]

    def scores(self) -> list[int]:
        scores = self.game.scores()
        return [scores[seat] for seat in self.seats]

    # All entries of the schema, before their division.

    def facts(self) -> dict[str, list[float]]:
        game, seats = self.game, self.seats
        money = [game.money[p] for p in seats]
        turns = sum(game.rugs_left(p) for p in seats if not game.eliminated[p])
        own, *others = self.scores()
        margin = (own - max(others)) / (2 + turns)
        sizes: dict[int, list[int]] = defaultdict(list)
        for square, rug in game.board.items():
            if not game.eliminated[game.owner(rug.colour)]:
                sizes[rug.colour].append(len(game.region(square)))
        slots = self.slots()
        stock = {c: n for p in game.players for c, n in game.stock[p].items()}
        return {
            "turn": [game.phase != "-" and p == game.player for p in seats],
            "phase": [game.phase == phase for phase in "slw"],
            "walker": [p == self.walker(0) for p in seats],
            "eliminated": [game.eliminated[p] > 0 for p in seats],
            "money": money,
            "money_low": [min(m, low) / low for low in (5, 15) for m in money],
            "squares": [game.squares_of(p) for p in seats],
            "lead": [own - other for other in others],
            "late_margin": [min(max(margin, -5), 5)],
            "rugs": [stock.get(c, 0) for c in slots],
            "turns": [turns],
            "turns_low": [min(turns, 4) / 4, min(turns, 12) / 12],
            "largest": [max(sizes[c], default=0) for c in slots],
            "even_toll": [sum(sizes[c]) / 49 for c in slots],
            "facing_east_west": [game.facing in "EW"],
            "under": [self.size(game, game.assam)],
            "window_colours": [
                on_board(s) and s in game.board and game.board[s].colour == c
                for c in slots
                for s in self.window()
            ],
            "window_outside": [not on_board(s) for s in self.window()],
            "window_size": [self.size(game, s) for s in self.window()],
        }

    def even_amounts(self, game: Game) -> tuple[float, float]:
        """Income and dues of all coming walks, were every square an equally likely end."""
        own_walks, other_walks = 0, 0
        if self.game.phase != "-":
            for seat in range(self.game.num_players):
                rugs = 0 if self.game.eliminated[seat] else self.game.rugs_left(seat)
                rugs -= self.game.phase == "l" and seat == self.game.player
                if seat == self.seat:
                    own_walks = max(rugs, 0)
                else:
                    other_walks += max(rugs, 0)
        sizes = [self.size(game, square) for square in game.board]
        gain = sum(n for n in sizes if n > 0) / 49 * other_walks
        return gain, sum(-n for n in sizes if n < 0) / 49 * own_walks

    def ahead(self) -> dict[str, list[float]]:
        game, walker, allowed = self.game, self.walker(0), self.steerings()
        by_steering = [self.ends(self.here, s) if s in allowed else [] for s in range(3)]
        sizes = [[(c, self.size(game, end[0])) for c, end in ends] for ends in by_steering]
        return {
            "even_gain": [self.even_amounts(game)[0]],
            "even_cost": [self.even_amounts(game)[1]],
            "income": self.later_incomes(game, allowed) if allowed else [0.0] * 4,
            "ahead": [n for row in sizes for _, n in row or [(0, 0)] * 4],
            "ahead_own": [sum(c * max(n, 0) for c, n in row) for row in sizes],
            "ahead_others": [sum(c * max(-n, 0) for c, n in row) for row in sizes],
            "ruin": [
                sum(c for c, end in ends if game.due(walker, end[0]) > game.money[walker])
                if walker is not None
                else 0.0
                for ends in by_steering
            ],
        }

    def steering(self) -> dict[str, list[float]]:
        game, walker = self.game, self.walker(1)
        found: dict[str, list[float]] = {
            name: [0.0, 0.0, 0.0]
            for name in (
                "income",
                "next",
                "next_best",
                "near_own",
                "near_others",
                "near_squares",
                "shift",
            )
        }
        if game.phase == "s" and game.player == self.seat:
            found["income"] = self.steered_income(game, self.walker(0), self.here)
            for s in range(3):
                for c, end in self.ends(self.here, s):
                    (x, y), _ = end
                    near = [
                        self.size(game, (x + dx, y + dy))
                        for dx in range(-2, 3)
                        for dy in range(-2, 3)
                        if 0 < abs(dx) + abs(dy) <= 2
                    ]
                    found["next"][s] += c * sum(self.steered_income(game, walker, end)) / 3
                    found["next_best"][s] += c * self.cheapest_income(game, walker, end)
                    found["near_own"][s] += c * max(0, *near)
                    found["near_others"][s] += c * max(0, *(-n for n in near))
                    found["near_squares"][s] += c * sum(n < 0 for n in near)
                    found["shift"][s] += c * self.largest_shift(end)
            found = {name: list(np.subtract(row, np.mean(row))) for name, row in found.items()}
        return {f"steer_{name}": values for name, values in found.items()}

    def in_game(self, square: Square) -> int | None:
        """The seat that owns a square and is still in the game."""
        rug = self.game.board.get(square)
        owner = None if rug is None else self.game.owner(rug.colour)
        return None if owner is None or self.game.eliminated[owner] else owner

    def largest_shift(self, end: Heading) -> int:
        """The most that a legal rug at a heading shifts."""
        game = copy.deepcopy(self.game)
        game.assam, game.facing = end
        game.phase = "l"
        worth = {self.seat: 0, None: 1}
        rugs = [game.placement(action) for action in game.legal_actions()]
        return max((sum(worth.get(self.in_game(s), 2) for s in rug) for rug in rugs), default=0)

    def broken_rugs(self, squares: tuple[Square, Square], own: bool) -> int:
        """Rugs with both halves visible of which these squares cover a half."""
        rugs = {self.game.board[s] for s in squares if s in self.game.board}
        return sum(
            list(self.game.board.values()).count(rug) == 2
            for rug in rugs
            if (self.game.owner(rug.colour) == self.seat) == own
            and not self.game.eliminated[self.game.owner(rug.colour)]
        )

    def laying(self) -> dict[str, list[float]]:
        game, count = self.game, self.game.num_players
        legal = game.legal_actions() if game.phase == "l" and game.player == self.seat else []
        found: dict[str, list[float]] = {
            name: [0.0] * 12
            for name in (
                "legal",
                "own",
                "breaks_own",
                "breaks_others",
                "edge",
                "region",
                "next",
                "next_best",
                "gain",
                "cost",
                "even_gain",
                "even_cost",
            )
        }
        found["others"] = [0.0] * (12 * (count - 1))
        mine = [self.walker(k) == self.seat for k in range(4)]
        for action in legal:
            k, squares = action - 3, game.placement(action)
            after = copy.deepcopy(game)
            after.apply(action, game.chance_outcomes(action)[0][0])
            later = self.later_incomes(after, [0, 1, 2])
            owners = [game.owner(game.board[s].colour) for s in squares if s in game.board]
            found["legal"][k] = 1
            found["own"][k] = owners.count(self.seat)
            found["breaks_own"][k] = self.broken_rugs(squares, own=True)
            found["breaks_others"][k] = self.broken_rugs(squares, own=False)
            found["edge"][k] = sum(not {0, 6}.isdisjoint(square) for square in squares)
            for j, other in enumerate(self.seats[1:]):
                if not game.eliminated[other]:
                    found["others"][12 * j + k] = owners.count(other)
            found["region"][k] = len(after.region(squares[0]))
            found["next"][k] = later[0]
            found["next_best"][k] = self.cheapest_income(after, self.walker(0), self.here)
            found["even_gain"][k], found["even_cost"][k] = self.even_amounts(after)
            found["gain"][k] = sum(later[n] for n in (1, 2, 3) if not mine[n])
            found["cost"][k] = -sum(later[n] for n in (1, 2, 3) if mine[n])
        for name in ("region", "next", "next_best", "gain", "cost", "even_gain", "even_cost"):
            mean = np.mean([found[name][action - 3] for action in legal]) if legal else 0.0
            for action in legal:
                found[name][action - 3] -= mean
        return {f"lay_{name}": values for name, values in found.items()}

    def features(self) -> dict[str, list[float]]:
        return self.facts() | self.ahead() | self.steering() | self.laying()


# ------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_every_feature_equals_the_slow_computation(num_players: int) -> None:
    for states, game in sample(num_players, each=6, seed=num_players):
        for seat in range(num_players):
            vector = encode(states, "features", seat)[0]
            expected = Observer(game, seat).features()
            assert expected.keys() == {entry.name for entry in FEATURES.entries}
            for entry in FEATURES.entries:
                found = vector[FEATURES.part(entry.name, num_players)] * entry.divisor
                np.testing.assert_allclose(
                    found,
                    np.array(expected[entry.name], np.float64),
                    rtol=1e-4,
                    atol=1e-4,
                    err_msg=f"{entry.name} of seat {seat} in {game.text()}",
                )


def reflected(vector: NDArray[np.float32], num_players: int) -> NDArray[np.float32]:
    """What the observer sees of the reflected position: left and right change places."""
    placements = [3 * (-side % 4) + 2 - turn for side in range(4) for turn in range(3)]
    expected = vector.copy()
    for entry in FEATURES.entries:
        part = FEATURES.part(entry.name, num_players)
        values = vector[part]
        if entry.name == "facing_east_west":
            expected[part] = 1 - values
        elif entry.name.startswith("window"):
            expected[part] = values.reshape(-1, 5, 5)[:, :, ::-1].ravel()
        elif entry.name.startswith("lay"):
            expected[part] = values.reshape(-1, 12)[:, placements].ravel()
        elif entry.name.startswith(("ahead", "steer", "ruin")):
            expected[part] = values.reshape(3, -1)[::-1].ravel()
    return expected


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_a_reflection_mirrors_the_features(num_players: int) -> None:
    for states, game in sample(num_players, each=10, seed=40):
        other = notation.parse_position(mirrored(game.text()))
        for seat in range(num_players):
            expected = reflected(encode(states, "features", seat)[0], num_players)
            found = encode(other, "features", seat)[0]
            np.testing.assert_allclose(found, expected, atol=1e-4, err_msg=game.text())


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_legal_placements_are_those_of_the_mask(num_players: int) -> None:
    for rule_text in RULES:
        states = random_states(rule_text, num_players, 8, seed=41)
        legal = encode(states, "features")[:, FEATURES.part("lay_legal", num_players)]
        np.testing.assert_array_equal(legal, rules.action_mask(states)[:, 3:])


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_only_the_player_to_move_sees_consequences_of_actions(num_players: int) -> None:
    states = random_states("official", num_players, 16, seed=42)
    steer = slice(
        FEATURES.part("steer_income", num_players).start,
        FEATURES.part("steer_shift", num_players).stop,
    )
    place = slice(
        FEATURES.part("lay_legal", num_players).start,
        FEATURES.part("lay_even_cost", num_players).stop,
    )
    for seat in range(num_players):
        seen = encode(states, "features", seat)
        to_move = rules.action_mask(states).any(axis=1) & (states["player"] == seat)
        laying = states["phase"] == LAY
        assert not seen[~(to_move & laying), place].any()
        assert seen[to_move & laying, place].any(axis=1).all()
        assert not seen[~(to_move & ~laying), steer].any()
        assert seen[to_move & ~laying, steer].any()
