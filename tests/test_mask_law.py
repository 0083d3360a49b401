"""The mask law: an action is accepted exactly where the mask is True, in every environment."""

import numpy as np
import pytest
from borders import BORDERS, random_legal


def refusal(border, actions):
    """What a step says against these actions; None where it takes them."""
    try:
        border.step(actions)
    except ValueError as error:
        return str(error)
    return None


def check_mask_law(make, players, decisions, seed):
    """Proposes an action in one of the games, legal or not, the other games' actions being legal.

    An accepted action moves that game on, a refused one names the game and changes nothing.
    """
    border, rng = make(players, seed=seed), np.random.default_rng(seed)
    accepted = 0
    for _ in range(decisions):
        masks = border.masks()
        assert masks.any(1).all()
        actions = random_legal(masks, rng)
        game = int(rng.integers(len(masks)))
        if rng.random() < 0.5:
            actions[game] = rng.integers(-2, 18)
        action = int(actions[game])
        legal = 0 <= action < 15 and bool(masks[game, action])
        before = border.contents()
        message = refusal(border, actions)
        if legal:
            assert message is None
            assert border.contents() != before
            accepted += 1
        else:
            assert message.startswith(f"game {game}: action {action} ")
            assert border.contents() == before
    assert decisions / 3 < accepted < decisions


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("border", BORDERS)
def test_an_action_is_accepted_exactly_where_the_mask_is_true(border, players):
    check_mask_law(BORDERS[border], players, 1000, seed=players)


@pytest.mark.long
@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("border", BORDERS)
def test_the_same_over_a_million_decisions(border, players):
    check_mask_law(BORDERS[border], players, 333_334, seed=10 + players)
