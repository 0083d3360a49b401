"""The engine of the environments with opponents inside: whose turn it is, what is paid and told."""

import copy
import pickle

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from seated import Drawing, Highest, Lowest, facts_of_ends, legal_actions, play

from marrakech_env import rules
from marrakech_env.batch import Batch
from marrakech_env.notation import format_position
from marrakech_env.rewards import SCHEMES, final_rewards, margins
from marrakech_env.seats import SeatedBatch
from marrakech_env.state import OVER

EMPTY = "/".join(["." * 14] * 7)

# ------------------------------------------------------------------------------- whose turn it is


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("opponents", ["random", Lowest(), {"random": 1, Highest(): 2}])
def test_only_the_caller_is_ever_asked(players, opponents):
    seats = SeatedBatch(20, players, opponents=opponents, seat=players - 1)
    seats.reset(seed=4)
    for _ in play(seats, 150):
        assert (seats.batch.states["player"] == players - 1).all()
        assert (seats.actors == players - 1).all()
        assert seats.batch.action_mask.any(1).all()
        assert (seats.batch.action_mask == rules.action_mask(seats.batch.states)).all()
    assert seats.batch.episode.min() > 0


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_rotating_seat_is_game_plus_episode(players):
    seats = SeatedBatch(7, players, "official;rugs=6", opponents="random", seat="rotate")
    seats.reset(seed=1)
    seen = set()
    for _ in play(seats, 120):
        expected = (np.arange(7) + seats.batch.episode) % players
        assert (seats.batch.states["player"] == expected).all()
        seen |= set(expected.tolist())
    assert seen == set(range(players))


def test_with_opponents_none_the_caller_plays_the_games_of_a_batch():
    seats, batch = SeatedBatch(9, 3, opponents=None), Batch(9, 3, seed=5)
    seats.reset(seed=5)
    rng = np.random.default_rng(5)
    for _ in range(200):
        assert (seats.batch.states == batch.states).all()
        movers = batch.states["player"].copy()
        actions = legal_actions(seats, rng)
        seats.step(actions)
        batch.step(actions)
        assert (seats.actors == movers).all()
        assert (seats.ended == np.flatnonzero(batch.done)).all()
        assert (seats.batch.final_scores[seats.ended] == batch.final_scores[seats.ended]).all()
    assert batch.episode.min() > 0


def test_a_game_is_the_same_alone_or_among_many():
    mixture = {"random": 2, Lowest(): 1, Highest(): 1}
    many = SeatedBatch(6, 3, opponents=mixture, seat="rotate", reward="dense")
    alone = [
        SeatedBatch(
            1, 3, opponents=mixture, seat="rotate", reward="dense", first_game=i, autoreset=False
        )
        for i in range(6)
    ]
    for seats in (many, *alone):
        seats.reset(seed=8)
    rng = np.random.default_rng(8)
    ends = 0
    for _ in range(150):
        actions = legal_actions(many, rng)
        many.step(actions)
        for i, one in enumerate(alone):
            one.step(actions[i : i + 1])
            assert (one.rewards[0] == many.rewards[i]).all()
            if len(one.ended):
                ends += 1
                facts, row = many.final_facts(), many.ended.tolist().index(i)
                for key, values in one.final_facts().items():
                    np.testing.assert_array_equal(values[0], facts[key][row])
                one.reset()
            assert one.batch.states[0] == many.batch.states[i]
            np.testing.assert_array_equal(one.observe()[0], many.observe()[i])
    assert ends >= 12


def test_equal_seeds_give_equal_games_and_leave_the_global_generators_alone():
    def record(seed):
        seats = SeatedBatch(8, 2, opponents={Drawing(): 1, "random": 1}, seat="rotate")
        seats.reset(seed=seed)
        return [seats.batch.states.copy() for _ in play(seats, 80)]

    legacy = np.random.mtrand._rand
    before = legacy.get_state()[1].copy()
    first, again, other = record(3), record(3), record(4)
    assert all((a == b).all() for a, b in zip(first, again))
    assert not all((a == b).all() for a, b in zip(first, other))
    assert (legacy.get_state()[1] == before).all()


# ------------------------------------------------------------------------------------- rewards


@pytest.mark.parametrize("reward", SCHEMES)
@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("opponents", ["random", None])
def test_rewards_of_a_game_add_up_to_what_its_final_scores_say(reward, players, opponents):
    # little money, so that many games hold eliminations
    rules_text = "official;money=8"
    seats = SeatedBatch(100, players, rules_text, reward=reward, opponents=opponents, seat="rotate")
    seats.reset(seed=2)
    sums, games, out = np.zeros((100, players)), 0, 0
    for _ in play(seats, 100 if opponents else 100 * players):
        sums += seats.rewards
        ended = seats.ended
        if len(ended):
            batch = seats.batch
            expected = final_rewards(reward, batch.final_shares[ended], batch.final_scores[ended])
            np.testing.assert_allclose(sums[ended], expected, atol=1e-9)
            sums[ended] = 0.0
            games += len(ended)
            out += (batch.final_states["eliminated"][ended] > 0).sum()
    assert games >= 200
    assert out >= 50


def test_win_pays_one_minus_one_and_nothing_before_the_end():
    seats = SeatedBatch(30, 2, opponents="random")
    seats.reset(seed=1)
    paid = []
    for _ in play(seats, 200):
        running = np.setdiff1d(np.arange(30), seats.ended)
        assert not seats.rewards[running].any()
        paid += seats.rewards[seats.ended].ravel().tolist()
    assert {-1.0, 1.0} <= set(paid) <= {-1.0, 0.0, 1.0}


def last_rugs(player, learner_money, opponent_money):
    """Each of two players holds one rug; one of them is to lay his."""
    return f"{EMPTY} 33S {player}l {learner_money}:1,{opponent_money}:1 official;colours=single"


@pytest.mark.parametrize(("reward", "amount"), [("win", -1.0), ("score", -2.0), ("dense", 0.0)])
def test_the_learner_receives_the_return_when_an_opponents_move_ends_the_game(reward, amount):
    seats = SeatedBatch(
        1, 2, "official;colours=single", reward=reward, opponents="random", autoreset=False
    )
    seats.reset(seed=3, positions=[last_rugs(0, 10, 50)])
    seats.step([int(seats.batch.action_mask[0].argmax())])
    assert seats.ended.tolist() == [0]
    final = seats.batch.final_states
    assert final["phase"][0] == OVER
    money, score = final["money"][0].tolist(), seats.batch.final_scores[0].tolist()
    assert score[0] < score[1]
    if reward == "win":
        assert seats.rewards[0].tolist() == [amount, -amount]
    elif reward == "score":
        assert seats.rewards[0, 0] == (score[0] - score[1]) / 20 < -1.0
    else:  # only what changed since the position
        assert seats.rewards[0, 0] == pytest.approx((score[0] - score[1] + 40) / 20)
    assert sum(money) == 60


def test_dense_pays_what_the_opponents_do_between_two_decisions():
    seats = SeatedBatch(40, 3, reward="dense", opponents="random", seat=1)
    seats.reset(seed=6)
    before = np.zeros((40, 3))
    for _ in play(seats, 80):
        now = margins(rules.scores(seats.batch.states))
        running = np.setdiff1d(np.arange(40), seats.ended)
        np.testing.assert_allclose(seats.rewards[running], (now - before)[running], atol=1e-12)
        before = now
        before[seats.ended] = 0.0  # a game's first reward also holds what came before


def test_an_eliminated_learner_gets_his_reward_when_the_others_have_played_on():
    seats = SeatedBatch(60, 3, "official;money=2", reward="win", opponents="random", seat=0)
    seats.reset(seed=1)
    eliminated = 0
    for _ in play(seats, 60):
        assert not seats.batch.states["eliminated"][:, 0].any()  # he is never asked again
        for game in seats.ended:
            if seats.batch.final_states["eliminated"][game, 0]:
                eliminated += 1
                assert seats.rewards[game, 0] == -0.5
                assert seats.batch.final_scores[game, 0] == 0
    assert eliminated >= 20


# ------------------------------------------------------------------------------------- positions


POSITION = f"{EMPTY} 33S 1l 40:5+5:0,20:5+5:3 official"


def test_a_position_is_played_on_to_the_callers_decision():
    seats = SeatedBatch(3, 2, opponents=Lowest(), seat=1)
    seats.reset(seed=1, positions=[POSITION, None, POSITION])
    assert [format_position(state) for state in seats.batch.states[[0, 2]]] == [POSITION] * 2
    assert seats.batch.states["money"][1].tolist()[:2] == [30, 30]
    seats = SeatedBatch(1, 2, opponents=Lowest(), seat=0)
    seats.reset(seed=1, positions=[POSITION])
    assert seats.batch.states["player"][0] == 0
    assert seats.batch.states["rugs"][0, 2:].sum() == 9  # the opponent has laid


def test_a_position_keeps_the_dice_of_its_episode():
    seats = SeatedBatch(1, 2, opponents=None)
    seats.reset(seed=6, positions=[POSITION])
    batch = Batch(1, 2, seed=6)
    batch.set_position(0, POSITION)
    rng = np.random.default_rng(0)
    for _ in range(20):
        actions = legal_actions(seats, rng)
        seats.step(actions)
        batch.step(actions)
        assert (seats.batch.states == batch.states).all()


OUT_OF_THREE = f"{EMPTY} 33S 1s x1:0,50:9,40:9 official"


@pytest.mark.parametrize(
    ("positions", "players", "seat", "message"),
    [
        (["nonsense"], 2, 0, "."),
        ([7], 2, 0, "position text must be a str, not 7"),
        ([POSITION], 3, 0, "has 2 players"),
        ([f"{EMPTY} 33S - 60:0+0:-,x1:0 official"], 2, 0, "over"),
        ([OUT_OF_THREE], 3, 0, "seat 0 is eliminated"),
        ([OUT_OF_THREE], 3, "rotate", "'rotate' wants"),
    ],
)
def test_a_bad_position_changes_nothing(positions, players, seat, message):
    seats, twin = (SeatedBatch(1, players, opponents="random", seat=seat) for _ in range(2))
    for each in (seats, twin):
        each.reset(seed=3)
    with pytest.raises(ValueError, match=message):
        seats.reset(seed=4, positions=positions)
    for _ in zip(play(seats, 80), play(twin, 80)):
        assert (seats.batch.states == twin.batch.states).all()


def test_an_eliminated_player_who_is_not_the_caller_is_no_hindrance():
    for seat, opponents in ((1, "random"), (0, None), ("rotate", None)):
        seats = SeatedBatch(1, 3, opponents=opponents, seat=seat)
        seats.reset(seed=3, positions=[OUT_OF_THREE])
        assert format_position(seats.batch.states) == OUT_OF_THREE


@pytest.mark.parametrize("seat", [0, 1])
def test_a_position_that_opponents_may_end_is_tried_until_the_caller_has_a_decision(seat):
    # The opponent steers without money, and the caller's rugs fill the south: he may go broke.
    board = "/".join([".." * 7] * 4 + [f"{seat}-" * 7] * 3)
    players = ["0:3", "0:3"]
    players[seat] = "60:3"
    text = f"{board} 33S {1 - seat}s {','.join(players)} official;colours=single"
    seats = SeatedBatch(60, 2, "official;colours=single", opponents="random", seat=seat)
    seats.reset(seed=2, positions=[text] * 60)
    states = seats.batch.states
    assert (states["player"] == seat).all()
    assert (states["money"][:, seat] == 60).all()
    assert (states["rugs"][:, 1 - seat] == 2).all()  # the opponent survived his walk and laid
    assert seats.batch.action_mask.any(1).all()
    assert 0 < (seats.batch.episode > 0).sum() < 60  # some had to be tried again
    assert (
        seats.batch._arrays.clocks["turn"] == 1
    ).all()  # each try with its dice from the first on


def test_a_position_that_never_reaches_the_caller_is_refused():
    text = f"{EMPTY} 33S 1l 30:0,30:1 official;colours=single"  # the opponent lays the last rug
    seats = SeatedBatch(1, 2, "official;colours=single", opponents="random", seat=0)
    with pytest.raises(ValueError, match="ended before the caller's first decision"):
        seats.reset(seed=2, positions=[text])
    with pytest.raises(ResetNeeded):
        seats.step([1])
    seats.reset()
    seats.step([1])


# --------------------------------------------------------------------------- arguments and order


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_games": 0}, "num_games.*0"),
        ({"num_games": 2.5}, "num_games.*2.5"),
        ({"num_players": 1}, "2, 3 or 4"),
        ({"num_players": 5}, "2, 3 or 4"),
        ({"rules": "chess"}, "official, boardgamearena, comp1110"),
        ({"observation": "pixels"}, "planes, flat, features"),
        ({"reward": "gold"}, "win, score, dense"),
        ({"seat": 2}, r"0\.\.1 or 'rotate', not 2"),
        ({"seat": -1}, r"0\.\.1"),
        ({"seat": True}, "True"),
        ({"seat": 0.0}, "seat"),
        ({"seat": "north"}, "'north'"),
        ({"seat": None}, "None"),
        ({"opponents": "nobody at all"}, "unknown agent 'nobody at all'"),
        ({"opponents": 3}, "3"),
        ({"opponents": ["random"]}, "each of the 2 seats, not 1"),
        ({"opponents": ["random", None]}, "None"),
        ({"opponents": {}}, "positive weight"),
        ({"opponents": {"random": 0}}, "positive weight"),
        ({"opponents": {"random": -1}}, "-1"),
        ({"opponents": {"random": float("nan")}}, "nan"),
        ({"opponents": {"random": "much"}}, "'much'"),
        ({"opponents": {"random": True}}, "True"),
    ],
)
def test_bad_arguments_are_named_with_what_is_allowed(arguments, message):
    with pytest.raises(ValueError, match=message):
        SeatedBatch(**{"num_games": 2, **arguments})


def test_opponents_cannot_be_switched_on_or_off_later():
    with pytest.raises(ValueError, match="when the environment is made"):
        SeatedBatch(1).set_opponents(None)
    with pytest.raises(ValueError, match="when the environment is made"):
        SeatedBatch(1, opponents=None).set_opponents("random")


def test_bad_new_opponents_leave_the_old_ones():
    seats = SeatedBatch(5, 2, "official;rugs=2", opponents=Lowest())
    seats.reset(seed=1)
    with pytest.raises(ValueError, match="unknown agent"):
        seats.set_opponents({Highest(): 1, "nobody at all": 1})
    assert {facts["opponents"] for facts in facts_of_ends(seats, 20)} == {(None, "lowest")}


def test_step_wants_a_reset_before_and_an_open_environment():
    seats = SeatedBatch(2)
    with pytest.raises(ResetNeeded, match="reset"):
        seats.step([0, 0])
    seats.reset()
    seats.step([0, 0])
    seats.close()
    for call in (lambda: seats.step([0, 0]), seats.reset):
        with pytest.raises(ClosedEnvironmentError, match="closed"):
            call()


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1"])
def test_a_bad_seed_changes_nothing(seed):
    seats, twin = SeatedBatch(2), SeatedBatch(2)
    for each in (seats, twin):
        each.reset(seed=3)
    with pytest.raises(ValueError, match="seed"):
        seats.reset(seed=seed)
    for _ in zip(play(seats, 30), play(twin, 30)):
        assert (seats.batch.states == twin.batch.states).all()


def test_an_illegal_action_of_the_caller_changes_nothing_and_he_may_go_on():
    seats, twin = (SeatedBatch(3, 3, opponents=Drawing()) for _ in range(2))
    for each in (seats, twin):
        each.reset(seed=3)
    for bad in ([0, 9, 0], [0, 0], [0.0, 0.0, 0.0], None, [True, True, True], [0, 0, 2**40]):
        with pytest.raises(ValueError, match=r"legal actions.*: 0, 1, 2"):
            seats.step(bad)
    for _ in zip(play(seats, 60), play(twin, 60)):
        assert (seats.batch.states == twin.batch.states).all()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_in_mid_game_go_the_same_way(duplicate):
    seats = SeatedBatch(6, 3, opponents={Drawing(): 1, "random": 1}, seat="rotate", reward="dense")
    seats.reset(seed=12)
    for _ in play(seats, 25):
        pass
    twin = duplicate(seats)
    for _ in zip(play(seats, 120), play(twin, 120)):
        assert (seats.batch.states == twin.batch.states).all()
        assert (seats.rewards == twin.rewards).all()
        np.testing.assert_array_equal(seats.observe(), twin.observe())
    assert seats.batch.episode.min() > 0
