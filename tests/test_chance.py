"""The law of chance: keys, their uniform numbers, and what environments make of them."""

import numpy as np
import pytest

from marrakech_env import chance, rules
from marrakech_env.batch import Batch
from marrakech_env.spec import RuleSet

M64 = (1 << 64) - 1


def python_absorb(h, n):
    """The documented law in whole numbers of Python."""
    z = (h + 0x9E3779B97F4A7C15 * (n + 1)) & M64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


def python_uniform(seed, game, episode, turn, kind):
    key = 0
    for number in (seed, game, episode, 8 * turn + kind):
        key = python_absorb(key, number)
    return (key >> 11) * 2.0**-53


@pytest.mark.parametrize("seed", [0, 1, 2**63, M64])
def test_uniform_numbers_follow_the_documented_law(seed):
    for game, episode, turn, kind in [(0, 0, 0, 0), (5, 3, 47, 6), (10**9, 2**40, 199, 5)]:
        key = episode_key(seed, game, episode)
        assert chance.uniform(key, turn, kind) == python_uniform(seed, game, episode, turn, kind)


def episode_key(seed, game, episode):
    clocks = np.zeros(1, chance.CLOCK)
    chance.set_clocks(clocks, seed, game)
    return np.uint64(chance.absorb(clocks["game_key"][0], np.uint64(episode)))


def first_legal(mask):
    return mask.argmax(1)


@pytest.mark.parametrize("colours", ["shuffled", "coin", "alternate"])
def test_a_batch_draws_exactly_what_the_law_says(colours):
    rule_set = RuleSet.preset("official", 2, colours=colours, facing="random")
    batch = Batch(3, 2, rule_set, seed=11, first_game=7)
    for game in range(3):
        facing = int(4 * python_uniform(11, 7 + game, 0, 0, 0))
        assert batch.states["facing"][game] == facing
        for seat in (0, 1):
            upper = colours != "alternate" and python_uniform(11, 7 + game, 0, 0, 1 + seat) >= 0.5
            assert batch.states["next_colour"][game, seat] == 2 * seat + upper
    for turn in range(40):
        before = batch.states.copy()
        batch.step(np.ones(3, int))
        replay = before.copy()
        die = [(1, 2, 2, 3, 3, 4)[int(6 * python_uniform(11, 7 + g, 0, turn, 5))] for g in range(3)]
        rules.step(replay, np.ones(3, int), die)
        assert (replay == batch.states).all()
        before = batch.states.copy()
        actions = first_legal(batch.action_mask)
        batch.step(actions)
        drawn = []
        for game in range(3):
            outcomes, weights = rules.chance_outcomes(before[game], actions[game])
            u = python_uniform(11, 7 + game, 0, turn + 1, 6)
            drawn.append(int(outcomes[0 if u < weights[0] else -1]))
        rules.step(before, actions, drawn)
        assert (before == batch.states).all()


def test_the_die_shows_its_faces_as_often_as_it_should():
    """Chi-square over 60,000 rolls of many keys; 3 degrees of freedom, 0.1 % level is 16.3."""
    counts = np.zeros(5)
    for game in range(600):
        key = episode_key(3, game, 0)
        for turn in range(100):
            counts[(1, 2, 2, 3, 3, 4)[int(6 * chance.uniform(key, turn, chance.DIE_ROLL))]] += 1
    expected = 60_000 * np.array([1, 2, 2, 1]) / 6
    assert ((counts[1:] - expected) ** 2 / expected).sum() < 16.3


def test_a_shuffled_pile_is_weighted_draws():
    """Drawing each next rug by what is left gives every order of a pile the same probability."""
    pile_of_4 = {}

    def draw(lower, upper, order, probability):
        if lower + upper == 0:
            pile_of_4[order] = pile_of_4.get(order, 0) + probability
            return
        if lower:
            draw(lower - 1, upper, order + "0", probability * lower / (lower + upper))
        if upper:
            draw(lower, upper - 1, order + "1", probability * upper / (lower + upper))

    draw(2, 2, "", 1.0)
    assert len(pile_of_4) == 6
    np.testing.assert_allclose(list(pile_of_4.values()), 1 / 6)


def test_a_game_is_the_same_alone_and_among_others():
    many, alone = Batch(32, 3, seed=5), Batch(1, 3, seed=5, first_game=17)
    for _ in range(300):
        many.step(first_legal(many.action_mask))
        alone.step(first_legal(alone.action_mask))
        assert many.states[17] == alone.states[0]
        assert many.done[17] == alone.done[0]
        assert (many.final_scores[17] == alone.final_scores[0]).all()
    assert many.episode[17] > 0


def test_two_matches_of_one_seed_see_the_same_dice_even_after_an_elimination():
    """The die of a turn depends on the walks so far, not on who walks or what was laid."""
    first, second = (
        Batch(64, 4, "official;money=3", seed=1),
        Batch(64, 4, "official;money=3", seed=1),
    )
    rng = np.random.default_rng(0)
    rolls = [{}, {}]
    for which, batch in enumerate((first, second)):
        turn = np.zeros(64, int)
        while (batch.episode == 0).any():
            steering, running = batch.states["phase"] == 0, batch.episode == 0
            before = batch.states.copy()
            actions = (batch.action_mask * rng.random((64, 15))).argmax(1)
            batch.step(actions)
            for game in np.flatnonzero(steering & running & ~batch.done):
                for die in range(1, 5):
                    replay = before[game : game + 1].copy()
                    rules.step(replay, actions[game : game + 1], [die])
                    if replay[0] == batch.states[game]:
                        rolls[which].setdefault((game, turn[game]), set()).add(die)
            turn += steering
    assert (first.final_states["eliminated"] > 0).any()
    common = rolls[0].keys() & rolls[1].keys()
    assert len(common) > 1000
    assert all(rolls[0][key] & rolls[1][key] for key in common)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, "7", float("nan")])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(ValueError, match="seed"):
        Batch(1, seed=seed)
