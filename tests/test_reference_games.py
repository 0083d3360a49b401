"""Random games played at once in the compiled kernels and in the reference, compared throughout.

The games of one test form one batch of states, under many rule sets side by side; the reference
plays them one by one with the same actions and the same chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from reference import COMPASS, SQUARES, Game, Options

from marrakech_env import notation, rules
from marrakech_env.spec import RuleSet
from marrakech_env.state import STATE

Setting = tuple[str, dict[str, int | str]]

PRESETS: list[Setting] = [("official", {}), ("boardgamearena", {}), ("comp1110", {})]
SINGLE_OPTIONS: list[Setting] = [
    ("official", {name: value})
    for name, values in {
        "rugs": (2, 8, 30),
        "colours": ("coin", "alternate", "single"),
        "cover_own": (1,),
        "play_on": (1,),
        "steering": ("end",),
        "money": (0, 4, 8),
        "tie_break": ("squares",),
        "facing": ("N", "E", "W", "random"),
    }.items()
    for value in values
]
COMBINATIONS: list[Setting] = [
    ("boardgamearena", {"steering": "end"}),
    ("boardgamearena", {"steering": "end", "play_on": 1, "money": 8}),
    ("boardgamearena", {"colours": "single", "money": 8, "facing": "random"}),
    ("comp1110", {"steering": "end", "money": 8, "cover_own": 1}),
    ("comp1110", {"colours": "alternate", "rugs": 24, "tie_break": "squares"}),
    ("comp1110", {"colours": "shuffled", "rugs": 40, "money": 8, "play_on": 0}),
    ("official", {"colours": "coin", "rugs": 10, "play_on": 1, "money": 8}),
    ("official", {"colours": "alternate", "cover_own": 1, "steering": "end", "money": 8}),
    ("official", {"colours": "alternate", "rugs": 6, "money": 1000, "facing": "W"}),
    ("official", {"play_on": 1, "steering": "end", "money": 8, "tie_break": "squares"}),
]


def start(settings: list[Setting], num_players: int, rng: np.random.Generator) -> Iterator[tuple]:
    """Start one game for each setting, with drawn start chance: a state and a reference game."""
    for preset, changes in settings:
        rule_set = RuleSet.preset(preset, num_players=num_players, **changes)
        outcomes = np.asarray(rules.start_outcomes(rule_set, rng)).reshape(1, 1 + num_players)
        state = np.zeros(1, STATE)
        rules.reset(state, rule_set, outcomes)
        game = Game(Options(preset, num_players, **changes), outcomes[0].tolist())
        facing = game.options["facing"]
        assert facing in ("random", COMPASS[outcomes[0, 0]])
        for player, colour in enumerate(outcomes[0, 1:]):
            assert colour in (game.colours_of(player) if game.options.two_colours else [-1])
        yield state, game


def reference_answers(game: Game, players: list[int]) -> dict[str, list]:
    """What the reference says about a position, named as the kernels' functions are."""
    legal = game.legal_actions()
    return {
        "action_mask": [action in legal for action in range(15)],
        "tolls": game.tolls(),
        "tolls of the others": [game.tolls(player) for player in players],
        "colours": game.colours(),
        "scores": game.scores(),
        "is_over": [game.is_over()],
        "winner_shares": [float(share) for share in game.winner_shares()],
        "ranks": game.ranks(),
    }


def kernel_answers(states: np.ndarray, num_players: int) -> dict[str, np.ndarray]:
    """What the kernels say about a batch of positions."""
    others = [np.full(len(states), player) for player in range(num_players)]
    return {
        "action_mask": rules.action_mask(states),
        "tolls": rules.tolls(states),
        "tolls of the others": np.stack([rules.tolls(states, who) for who in others], axis=1),
        "colours": rules.colours(states),
        "scores": rules.scores(states),
        "is_over": rules.is_over(states)[:, None],
        "winner_shares": rules.winner_shares(states),
        "ranks": rules.ranks(states),
    }


def compare(states: np.ndarray, games: list[Game], chosen: np.ndarray) -> None:
    """Compare the texts, the chance and every answer about the chosen games."""
    answers = kernel_answers(states, games[0].num_players)
    for index in chosen:
        game, text = games[index], games[index].text()
        assert notation.format_position(states[index]) == text
        for name, expected in reference_answers(game, list(game.players)).items():
            actual = answers[name][index].tolist()
            assert actual == expected, f"{name} of game {index} in {text}"
        for action in game.legal_actions():
            outcomes, probabilities = rules.chance_outcomes(states[index], action)
            actual = dict(zip(outcomes.tolist(), probabilities.tolist()))
            expected = {outcome: float(p) for outcome, p in game.chance_outcomes(action)}
            assert actual == pytest.approx(expected), f"action {action} in {text}"


def compare_texts(state: np.void, game: Game, action: int, outcome: int) -> None:
    """Compare the text of a move, and read both texts back."""
    text, move = game.text(), game.move_text(action, outcome)
    assert notation.parse_position(text)[0] == state, text
    assert notation.format_move(state, action, outcome) == move, text
    assert notation.parse_move(state, move) == (action, outcome), text


def play(states: np.ndarray, games: list[Game], rng: np.random.Generator) -> Counter:
    """Play all games to their end with random actions and chance, comparing after each decision."""
    counts: Counter = Counter(games=len(games))
    dirhams = [sum(game.money) for game in games]
    while live := [index for index, game in enumerate(games) if game.phase != "-"]:
        compare(states, games, np.array(live))
        # Games that are over stay in the batch: step has to leave them alone.
        actions, outcomes = np.zeros((2, len(games)), np.int64)
        for index in live:
            action = int(rng.choice(games[index].legal_actions()))
            values, weights = zip(*games[index].chance_outcomes(action))
            outcome = int(rng.choice(values, p=[float(weight) for weight in weights]))
            actions[index], outcomes[index] = action, outcome
        probe = int(rng.choice(live))
        compare_texts(states[probe], games[probe], int(actions[probe]), int(outcomes[probe]))
        rules.step(states, actions, outcomes)
        for index in live:
            games[index].apply(int(actions[index]), int(outcomes[index]))
            assert sum(games[index].money) == dirhams[index]
        counts["decisions"] += len(live)
    compare(states, games, np.arange(len(games)))
    counts["eliminations"] = sum(order > 0 for game in games for order in game.eliminated)
    counts["shared wins"] = sum(0 < max(game.winner_shares()) < 1 for game in games)
    return counts


def play_settings(settings: list[Setting], num_players: int, seed: int) -> Counter:
    """Play one game for each setting, all in one batch."""
    rng = np.random.default_rng([seed, num_players])
    states, games = zip(*start(settings, num_players, rng))
    return play(np.concatenate(states), list(games), rng)


@pytest.mark.parametrize("num_players", [2, 3, 4])
@pytest.mark.parametrize(
    "settings", [PRESETS * 5, SINGLE_OPTIONS * 3, COMBINATIONS * 3], ids=["preset", "one", "some"]
)
def test_random_games_agree(settings: list[Setting], num_players: int) -> None:
    play_settings(settings, num_players, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_three_thousand_random_games_agree(num_players: int, capsys: pytest.CaptureFixture) -> None:
    settings = PRESETS + SINGLE_OPTIONS
    counts: Counter = Counter()
    while counts["games"] < 3000:
        # Batches of some hundred games, so that a difference shows early.
        batch = (settings * 10)[: 3000 - counts["games"]]
        counts += play_settings(batch, num_players, seed=counts["games"])
    with capsys.disabled():
        print(f"\n{num_players} players:", ", ".join(f"{n} {name}" for name, n in counts.items()))
    assert counts["eliminations"] >= 500


def disturb(game: Game, rng: np.random.Generator) -> None:
    """Turn a position into one that games do not reach but texts may give.

    Players without rugs beside others that have some, odd sums of money, any player in any phase,
    eliminations out of nowhere, a player to move where the game is over.
    """
    for player in game.players:
        game.money[player] = int(rng.integers(0, 12))
        for colour in game.stock[player]:
            game.stock[player][colour] = int(rng.integers(0, 4) * rng.integers(0, 2))
        held = [colour for colour, n in game.stock[player].items() if n]
        if game.options.two_colours:
            game.top[player] = int(rng.choice(held)) if held else None
    for player in rng.permutation(game.num_players)[: rng.integers(0, game.num_players)]:
        if rng.random() < 0.5 and player in game.survivors() and len(game.survivors()) > 1:
            game.eliminated[player] = max(game.eliminated) + 1
            game.money[player], game.stock[player] = 0, dict.fromkeys(game.stock[player], 0)
            if game.options.two_colours:
                game.top[player] = None
    game.player = int(rng.choice(game.survivors()))
    phases = ["w", "s", "l"] if game.steers_last else ["s", "l"]
    game.phase = str(rng.choice(phases if game.top[game.player] is not None else phases[:-1]))


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_games_from_disturbed_positions_agree(num_players: int) -> None:
    rng = np.random.default_rng(num_players)
    games = []
    for preset, changes in (PRESETS + SINGLE_OPTIONS + COMBINATIONS) * 8:
        game = Game(Options(preset, num_players, **changes))
        for _ in range(rng.integers(0, 60)):
            if game.phase != "-":
                action = int(rng.choice(game.legal_actions()))
                game.apply(action, game.chance_outcomes(action)[-1][0])
        disturb(game, rng)
        games.append(Game.from_text(game.text()))
    states = np.concatenate([notation.parse_position(game.text()) for game in games])
    counts = play(states, games, rng)
    assert counts["eliminations"] > 0


def test_cells_are_numbered_row_by_row() -> None:
    assert [7 * y + x for x, y in SQUARES] == list(range(49))
