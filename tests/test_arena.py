"""The arena: paired deals, line-ups, repeatability, what is refused, and being stopped."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from arena_players import Highest, Lowest, Noisy, entrants

from marrakech_env import arena
from marrakech_env.agent import load_agent
from marrakech_env.arena.endgames import play_endgames
from marrakech_env.arena.match import play_deals
from marrakech_env.batch import Batch
from marrakech_env.rules import action_mask
from marrakech_env.spec import RuleSet


class Watching(Noisy):
    """Notes the games that it sees."""

    def __init__(self) -> None:
        self.name = "watching"
        self.seen: list[Any] = []

    def act(self, states: Any, rng: np.random.Generator) -> Any:
        self.seen.append(states.copy())
        return super().act(states, rng)


class Stopping(Noisy):
    """Presses Ctrl-C at its k-th call."""

    name = "stopping"

    def __init__(self, calls: int) -> None:
        self.calls = calls

    def act(self, states: Any, rng: np.random.Generator) -> Any:
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return super().act(states, rng)


# --------------------------------------------------------------------------------------- deals


@pytest.mark.parametrize("players", [2, 3, 4])
def test_every_slot_has_every_seat_once_a_deal(players: int) -> None:
    """What each rotation gives is what a plain loop over one game gives."""
    agents = [Lowest(), *(Highest() for _ in range(players - 1))]
    rule_set = RuleSet.preset("official", players)
    got = play_deals(entrants(*agents), rule_set, seed=5, first_deal=30, num_deals=3)
    for deal, rotation in itertools.product(range(3), range(players)):
        batch = Batch(1, players, rule_set, seed=5, first_game=30 + deal)
        while not batch.done[0]:
            slot = (int(batch.states["player"][0]) + rotation) % players
            batch.step(agents[slot].act(batch.states, np.random.default_rng()))
        for slot in range(players):
            seat = (slot - rotation) % players
            scores = list(batch.final_scores[0])
            margin = scores.pop(seat) - max(scores)
            assert got.shares[deal, rotation, slot] == batch.final_shares[0, seat]
            assert got.margins[deal, rotation, slot] == margin
    assert len(np.unique(got.margins)) > 3  # the loop above compared something


@pytest.mark.parametrize("players", [2, 3, 4])
def test_wins_of_a_game_add_up_to_one(players: int) -> None:
    agents = [Noisy() for _ in range(players)]
    outcome = play_deals(entrants(*agents), RuleSet.preset("official", players), 0, 0, 50)
    np.testing.assert_allclose(outcome.shares.sum(axis=2), 1)


def test_a_shared_win_counts_half() -> None:
    """With two rugs each, nobody often pays anything, and all is equal."""
    rule_set = RuleSet.preset("official", rugs=2, colours="single")
    outcome = play_deals(entrants(Noisy(), Lowest()), rule_set, 0, 0, num_deals=100)
    shared = outcome.shares == 0.5
    assert shared.any()
    np.testing.assert_array_equal(outcome.margins[shared], 0)
    assert set(np.unique(outcome.shares)) == {0, 0.5, 1}


@pytest.mark.parametrize("players", [2, 3, 4])
def test_an_agent_against_itself_is_exactly_even_in_every_deal(players: int) -> None:
    result = arena.play(["random", "random"], players, deals=40)
    for pairing in result.pairings:
        np.testing.assert_allclose(pairing.deal_shares, 1 / players)
        # With more than two players a margin depends on who sits where, but not by whom.
        if players == 2:
            assert not pairing.deal_margins.any()


def test_all_line_ups_see_the_same_dice() -> None:
    first, second = Watching(), Watching()
    arena.play([first, Lowest()], deals=4, seed=3)
    arena.play([second, Highest()], deals=4, seed=3)
    for watching in (first, second):
        starts = np.concatenate(watching.seen[3:])  # after the warm-up
        starts = starts[(starts["rugs"].sum(axis=1) == 48) & (starts["phase"] == 0)]
        watching.seen = [starts]
    np.testing.assert_array_equal(first.seen[0]["next_colour"], second.seen[0]["next_colour"])


def test_agents_see_unfinished_games_of_their_own_turn_only() -> None:
    watching = Watching()
    tournament = arena.Tournament([watching, Lowest()], deals=30, seed=1)
    tournament.run()
    states = np.concatenate(watching.seen[3:])
    assert (states["phase"] != 3).all()
    assert len(states) == tournament.entrants[0].decisions
    assert action_mask(states).any(axis=1).all()


def test_agents_cannot_change_the_games() -> None:
    class Cheating(Lowest):
        def act(self, states: Any, rng: np.random.Generator) -> Any:
            actions = super().act(states, rng)
            states["money"] = 0
            return actions

    honest = arena.play([Lowest(), Highest()], deals=10).pairings[0]
    cheating = arena.play([Cheating(), Highest()], deals=10).pairings[0]
    np.testing.assert_array_equal(honest.deal_margins, cheating.deal_margins)


# ------------------------------------------------------------------------------- repeatability


def test_the_same_call_gives_the_same_result() -> None:
    first, second = (arena.play(["random", Noisy(), Lowest()], deals=50, seed=7) for _ in range(2))
    other = arena.play(["random", Noisy(), Lowest()], deals=50, seed=8)
    for a, b, c in zip(first.pairings, second.pairings, other.pairings):
        np.testing.assert_array_equal(a.deal_margins, b.deal_margins)
        assert a.win_share == b.win_share
        assert (a.deal_margins != c.deal_margins).any()
    assert [agent.rating for agent in first.agents] == [agent.rating for agent in second.agents]


def test_another_agent_in_the_tournament_changes_nothing_for_a_pair() -> None:
    pair = arena.play(["random", Noisy()], deals=50).pairings[0]
    three = arena.play(["random", Noisy(), Lowest()], deals=50).pairings[0]
    np.testing.assert_array_equal(pair.deal_margins, three.deal_margins)


def test_no_seed_takes_one_from_the_system() -> None:
    first, second = (arena.play([Noisy(), Lowest()], deals=4, seed=None) for _ in range(2))
    assert first.seed != second.seed
    again = arena.play([Noisy(), Lowest()], deals=4, seed=first.seed)
    np.testing.assert_array_equal(again.pairings[0].deal_margins, first.pairings[0].deal_margins)


@pytest.mark.parametrize("name", ["greedy", "expectimax", "value"])
def test_two_arenas_in_two_threads_share_their_agents(name: str) -> None:
    """What each gives is what it gives alone, late positions included."""
    agent, judge = load_agent(name), load_agent("expectimax")

    def measure(seed: int) -> tuple[Any, ...]:
        result = arena.play([agent, Noisy()], deals=8, seed=seed, baseline=judge)
        pairing = result.pairings[0]
        shown = (pairing.win_share, pairing.margin, pairing.luck_adjusted)
        return repr(shown), pairing.deal_margins.tolist(), play_endgames(agent)

    alone = [measure(seed) for seed in range(4)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(measure, range(4))) == alone


# ------------------------------------------------------------------------------------ line-ups


def pairs_of(result: arena.Result) -> list[tuple[str, str]]:
    return [(pairing.agent, pairing.opponent) for pairing in result.pairings]


def test_two_players_meet_in_every_pair() -> None:
    result = arena.play([Lowest(), Highest(), Noisy()], deals=5)
    assert pairs_of(result) == [("lowest", "highest"), ("lowest", "noisy"), ("highest", "noisy")]
    assert [pairing.games for pairing in result.pairings] == [10, 10, 10]


def test_more_players_sit_one_among_copies_of_another() -> None:
    result = arena.play([Lowest(), Highest()], num_players=4, deals=5)
    assert pairs_of(result) == [("lowest", "highest"), ("highest", "lowest")]
    assert [pairing.games for pairing in result.pairings] == [20, 20]
    assert result.even == 0.25


def test_agents_meet_a_field_and_not_each_other() -> None:
    result = arena.play([Lowest(), Highest()], deals=5, field=[Noisy(), "random"])
    assert pairs_of(result) == [
        ("lowest", "noisy"),
        ("lowest", "random"),
        ("highest", "noisy"),
        ("highest", "random"),
    ]
    assert [agent.name for agent in result.agents] == ["lowest", "highest", "noisy", "random"]


def test_mixed_tables_hold_different_agents() -> None:
    """A deal of an agent is its mean over all tables that it sat at."""
    agents = [Lowest(), Highest(), Noisy(), "random"]
    result = arena.play(agents, num_players=3, deals=6, tables="mixed")
    assert pairs_of(result) == [(n, "mixed") for n in ("lowest", "highest", "noisy", "random")]
    assert [pairing.games for pairing in result.pairings] == [6 * 3 * 3] * 4
    total = sum(pairing.deal_shares for pairing in result.pairings)
    np.testing.assert_allclose(total, 4 / 3)
    field = arena.play(agents[:2], 3, deals=6, field=agents[2:], tables="mixed")
    assert pairs_of(field) == [("lowest", "mixed"), ("highest", "mixed")]


def test_equal_names_are_numbered() -> None:
    result = arena.play(["random", "random", "random"], deals=1)
    assert [agent.name for agent in result.agents] == ["random", "random #2", "random #3"]


# ------------------------------------------------------------------------------------- refusal


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agents": []}, "too few agents.*two agents, or one and a field.*given: 0"),
        ({"agents": ["random"]}, "too few agents.*given: 1 and a field of 0"),
        ({"agents": [], "field": ["random"]}, "too few agents.*given: 0 and a field of 1"),
        ({"num_players": 3, "tables": "mixed"}, "at least 3 agents, or one and a field of 2"),
        ({"tables": "round"}, "'copies', 'both' or 'mixed', not 'round'"),
        ({"agents": ["random", "nobody"]}, "unknown agent 'nobody'; known names: .*random"),
        ({"agents": "random"}, "agents must be a list of agents, not the text 'random'"),
        ({"field": "random"}, "field must be a list of agents, not the text 'random'"),
        ({"num_players": 1}, "2, 3 or 4, not 1"),
        ({"num_players": 5}, "2, 3 or 4, not 5"),
        ({"rules": "chess"}, "unknown preset 'chess'"),
        ({"rules": RuleSet.preset("official", 3)}, "made for 3 players, not for 2"),
        ({"deals": 0}, "deals must be a whole number of 1 to 10,000,000, not 0"),
        ({"deals": 2.5}, "deals must be a whole number of 1 to 10,000,000, not 2.5"),
        ({"deals": 10**20}, "deals must be a whole number of 1 to 10,000,000, not 1000"),
        ({"seed": -1}, "a seed lies in"),
    ],
)
def test_bad_arguments_are_refused_before_playing(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arena.play(**{"agents": ["random", "random"], "deals": 1, **arguments})


def test_an_agent_for_another_number_of_players_is_refused() -> None:
    agent = Lowest()
    agent.num_players = 3
    with pytest.raises(ValueError, match="'lowest' is made for 3 players, not for 2"):
        arena.play([agent, Noisy()], deals=1)


@pytest.mark.parametrize("action", [99, -1, 3, None, "1"])
def test_an_illegal_action_names_agent_deal_action_and_legal_ones(action: Any) -> None:
    class Wrong(Noisy):
        name = "wrong"

        def act(self, states: Any, rng: np.random.Generator) -> Any:
            actions: list[Any] = super().act(states, rng).tolist()
            if len(actions) > 3:  # the first decisions of a round, to steer
                actions[1] = action
            return np.array(actions, object if len(actions) > 3 and action in (None, "1") else int)

    message = (
        rf"agent 'wrong' \(game 0 is deal 0 of seed 6\): game 1: action {action!r} is not legal; "
        "legal actions: 0, 1, 2"
    )
    with pytest.raises(arena.IllegalActionError, match=message):
        arena.play([Wrong(), Noisy()], deals=4, seed=6)


def test_a_wrong_number_of_actions_is_refused() -> None:
    class Short(Noisy):
        name = "short"

        def act(self, states: Any, rng: np.random.Generator) -> Any:
            return super().act(states, rng)[:-1]

    with pytest.raises(arena.IllegalActionError, match=r"'short'.*shape \(1,\).*shape \(0,\)"):
        arena.play([Short(), Noisy()], deals=4)


def test_an_error_inside_an_agent_names_the_agent() -> None:
    class Failing(Noisy):
        name = "failing"

        def act(self, states: Any, rng: np.random.Generator) -> Any:
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory") as error:
        arena.play([Noisy(), Failing()], deals=1)
    assert error.value.__notes__ == ["raised by the agent 'failing'"]


# ------------------------------------------------------------------------------------ stopping


def test_a_stopped_tournament_knows_its_whole_rounds_and_goes_on() -> None:
    stopping = Stopping(calls=250)
    tournament = arena.Tournament([stopping, Lowest()], deals=30, seed=2)
    with pytest.raises(KeyboardInterrupt):
        tournament.run()
    partial = tournament.result()
    assert not partial.complete
    known = partial.pairings[0].deals
    assert 0 < known < 30
    whole = arena.play([Noisy(), Lowest()], deals=30, seed=2)
    np.testing.assert_array_equal(
        partial.pairings[0].deal_margins, whole.pairings[0].deal_margins[:known]
    )
    stopping.calls = 10**9
    tournament.run()
    assert tournament.result().complete
    np.testing.assert_array_equal(
        tournament.result().pairings[0].deal_margins, whole.pairings[0].deal_margins
    )


def test_a_tournament_stopped_at_once_knows_nothing() -> None:
    tournament = arena.Tournament([Stopping(calls=5), Lowest(), Noisy()], deals=30)
    with pytest.raises(KeyboardInterrupt):
        tournament.run()
    result = tournament.result()
    assert result.pairings == []
    assert all(agent.rating is None for agent in result.agents)


def test_progress_counts_games_to_the_end() -> None:
    calls: list[tuple[int, int]] = []
    arena.play([Noisy(), Lowest()], 3, deals=5, progress=lambda *numbers: calls.append(numbers))
    assert [total for _, total in calls] == [30] * len(calls)
    played = [games for games, _ in calls]
    assert played == sorted(set(played))
    assert played[-1] == 30


def test_decisions_are_timed_without_the_first_ones() -> None:
    class Slow(Noisy):
        calls = 0

        def act(self, states: Any, rng: np.random.Generator) -> Any:
            self.calls += 1
            return super().act(states, rng)

    slow = Slow()
    result = arena.play([slow, Lowest()], deals=1, rules="official;rugs=2")
    summary = result.agents[0]
    assert summary.decisions == slow.calls - 3  # one game at a time, and the warm-up
    assert summary.ms_per_decision is not None
    assert summary.ms_per_decision > 0
