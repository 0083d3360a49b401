"""Training of the value network: self-play, targets, repeatability."""

import dataclasses

import numpy as np
import pytest
from positions import random_states

from marrakech_agents.expectimax import ExpectimaxAgent
from marrakech_agents.training import fixed_opponents
from marrakech_agents.training.self_play import ROW, Player, targets
from marrakech_agents.value_net.model import WEIGHT_NAMES
from marrakech_agents.value_net.network import MAX_MARGIN, NET, empty_net
from marrakech_agents.value_net.one_turn import new_evaluator, new_workspaces, value_between
from marrakech_env import arena
from marrakech_env.agent import load_agent
from marrakech_env.rules import step
from marrakech_env.spec import resolve_rules
from marrakech_env.state import LAY, STEER

torch = pytest.importorskip("torch")
from marrakech_agents import value  # noqa: E402 - it needs torch
from marrakech_agents.training import temporal_difference as td  # noqa: E402

SMALL = td.Settings(games=40, games_a_round=10, rows_a_step=128, workers=2, first_sibling=0.2)


def random_net(seed=0):
    net, rng = empty_net(0.02), np.random.default_rng(seed)
    for name in ("first", "bias", "second"):
        net[name] = rng.normal(0, 0.1, (1, *NET[name].shape))
    return net


def play(players=2, rules="official", games=6, epsilon=0.2, first=0, guests=0.0, siblings=0.0):
    player = Player(resolve_rules(rules, players), random_net())
    return np.concatenate(player.play(7, first, games, epsilon, guests, siblings))


def test_a_game_has_a_row_between_any_two_turns():
    games = play(games=5, epsilon=0.0)
    lengths = np.diff(np.flatnonzero(np.append(True, games["last"])))
    assert len(lengths) == 5
    assert games["last"].sum() == 5
    assert (lengths[1:] <= 47).all()
    assert len(games["inputs"]) == len(games["seats"]) == len(games["backup"]) <= 5 * 47


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("rules", ["official", "official;steering=end;money=8", "comp1110;money=9"])
@pytest.mark.parametrize(("guests", "siblings"), [(0.0, 0.0), (1.0, 0.0), (0.0, 0.5)])
def test_wins_of_all_seats_add_up_and_margins_are_bounded(players, rules, guests, siblings):
    games = play(players, rules, guests=guests, siblings=siblings)
    assert len(games["inputs"]) > 50
    for values in (games["value"], games["backup"]):
        np.testing.assert_allclose(values[:, :players, 1].sum(1), 1, atol=1e-5)
        assert (np.abs(values[:, :players, 0]) <= MAX_MARGIN).all()
        assert (values[:, players:, 1] == 0).all()


def test_a_game_is_the_same_alone_and_among_others():
    together, alone = play(games=6), play(games=1, first=3)
    starts = np.flatnonzero(np.append(True, together["last"][:-1]))
    rows = slice(starts[3], starts[3] + len(alone["inputs"]))
    np.testing.assert_array_equal(together["inputs"][rows], alone["inputs"])
    np.testing.assert_array_equal(together["backup"][rows], alone["backup"])


@pytest.mark.parametrize("players", [2, 4])
def test_siblings_are_more_rows_after_the_same_games(players):
    games, more = play(players), play(players, siblings=1.0)
    own = len(games)
    np.testing.assert_array_equal(more[:own], games)
    assert 5 * own < len(more["inputs"]) - own < 12 * own
    assert more["last"][own:].all()
    np.testing.assert_array_equal(targets(more, 0.9)[own:], more["backup"][own:])
    assert len(play(players, siblings=0.3)["inputs"]) < len(more["inputs"])


def test_one_sibling_is_what_was_played():
    """Without exploration the row of a turn is among its siblings, with the same value."""
    games = play(games=2, epsilon=0.0)
    own = len(games["inputs"])
    siblings = play(games=2, epsilon=0.0, siblings=1.0)["inputs"][own:]
    found = [(siblings == row).all(axis=1).any() for row in games["inputs"]]
    assert np.mean(found) == 1


def test_the_backup_of_a_sibling_is_the_lookahead_of_the_next_turn():
    """Rows that are siblings too have the same backup, up to the colour that is drawn next."""
    games = play(games=20, epsilon=0.0)
    own = len(games["inputs"])
    more = play(games=20, epsilon=0.0, siblings=1.0)
    equal = total = 0
    for row in range(own):
        same = own + np.flatnonzero((more["inputs"][own:] == games["inputs"][row]).all(axis=1))
        if len(same) and not games["last"][row]:
            difference = np.abs(more["backup"][same] - games["backup"][row]).max(axis=(1, 2))
            equal += (difference < 1e-6).any()
            total += 1
    assert equal > 0.5 * total > 100


def test_no_siblings_where_assam_is_steered_at_the_end():
    rules = "official;steering=end"
    assert len(play(rules=rules, siblings=1.0)["inputs"]) == len(play(rules=rules)["inputs"])


def test_the_backup_is_the_mean_of_the_values_that_follow():
    """Without exploration the value of the next row scatters around the backup."""
    games = play(games=300, epsilon=0.0)
    follows = ~games["last"][:-1]
    error = (games["value"][1:] - games["backup"][:-1])[follows]
    deviation = error.std(0) / np.sqrt(len(error))
    assert (np.abs(error.mean(0))[:2] < 5 * deviation[:2] + 1e-6).all()
    assert error.std() > 0.01


@pytest.mark.parametrize(
    ("kind", "name"),
    [(fixed_opponents.GREEDY, "greedy"), (fixed_opponents.EXPECTIMAX, "expectimax")],
)
def test_a_turn_of_a_fixed_opponent_is_valued_as_they_play_it(kind, name):
    evaluator, rng = new_evaluator(random_net())[0], np.random.default_rng(0)
    workspace, opponent = new_workspaces()[0], load_agent(name)
    opponents = fixed_opponents.new_opponents(ExpectimaxAgent().weights_for(3))[0]
    states = random_states("official;money=12", 3, 6, 1)
    for state in states[states["phase"] == STEER][::6]:
        fixed_opponents.value_opponent_turn(state, kind, opponents, workspace, evaluator)
        steering = int(opponent.act(state.reshape(1), rng)[0])
        assert workspace["turn"]["best"] == steering
        found, expected = workspace["turn"]["seat_win"].copy(), np.zeros(4)
        mover = int(state["player"])
        for steps, chance in enumerate((1 / 6, 1 / 3, 1 / 3, 1 / 6), start=1):
            after = state.reshape(1).copy()
            step(after, [steering], [steps])
            if after["phase"][0] == LAY:
                step(after, opponent.act(after, rng), [-1])
            laid = -1 if after["eliminated"][0, mover] else mover
            value_between(
                after[0], mover, laid, np.float32(1), workspace["other_work"], workspace, evaluator
            )
            for seat in range(3):
                slot = workspace["other_work"]["slot_of_seat"][seat]
                if slot < 4:
                    expected[seat] += chance * workspace["sums"]["win"][slot]
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_targets_are_lambda_returns_cut_at_exploring_turns():
    rng = np.random.default_rng(0)
    rows = 40
    games = np.zeros(rows, ROW)
    games["value"], games["backup"] = rng.random((2, rows, 4, 2), np.float32)
    games["explored"] = rng.random(rows) < 0.2
    games["last"] = np.isin(np.arange(rows), [11, 25, rows - 1])
    expected = games["backup"].copy()
    for start, end in ((0, 12), (12, 26), (26, rows)):
        for row in range(start, end):
            weight = 1.0
            for later in range(row + 1, end):
                if games["explored"][later]:
                    break
                weight *= 0.6
                expected[row] += weight * (games["backup"][later] - games["value"][later])
    np.testing.assert_allclose(targets(games, 0.6), expected, atol=1e-5)


def test_a_run_is_fixed_by_its_seed_however_many_threads_play():
    weights = []
    for seed, workers in ((1, 1), (1, 2), (2, 2)):
        settings = dataclasses.replace(SMALL, workers=workers)
        trainer = td.TDTrainer(2, seed=seed, settings=settings)
        for _ in range(2):
            trainer.round()
        weights.append(trainer.model().weights())
    for name in WEIGHT_NAMES:
        np.testing.assert_array_equal(weights[0][name], weights[1][name])
        assert (weights[0][name] != weights[2][name]).any()


def test_a_state_stays_as_it_is_while_training_goes_on():
    trainer, twin = (td.TDTrainer(3, seed=4, settings=SMALL) for _ in range(2))
    trainer.round()
    state = trainer.state()
    trainer.round()
    expected = trainer.model().weights()
    trainer.round()
    twin.restore(state)
    twin.round()
    for name in WEIGHT_NAMES:
        np.testing.assert_array_equal(twin.model().weights()[name], expected[name])


@pytest.mark.parametrize("name", ["games", "games_a_round", "rows_a_step", "uses", "workers"])
def test_settings_below_one_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
        td.Settings(**{name: 0})


@pytest.mark.parametrize("name", ["epsilon", "guests", "siblings", "first_sibling"])
def test_chances_outside_0_to_1_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be 0..1, not 1.5"):
        td.Settings(**{name: 1.5})


def test_a_restored_trainer_goes_on_as_if_nothing_had_happened(tmp_path):
    steady = td.TDTrainer(3, seed=4, settings=SMALL)
    steady.round()
    torch.save(steady.state(), tmp_path / "checkpoint.pt")
    steady.round()
    resumed = td.TDTrainer(3, seed=4, settings=SMALL)
    resumed.restore(torch.load(tmp_path / "checkpoint.pt", weights_only=True))
    resumed.round()
    assert resumed.num_games == steady.num_games == 20
    for name in WEIGHT_NAMES:
        np.testing.assert_array_equal(
            steady.model().weights()[name], resumed.model().weights()[name]
        )


def test_no_hidden_unit_starts_dead_or_always_active():
    trainer = td.TDTrainer(2, settings=td.Settings(games_a_round=20, learning_rate=1e-6))
    trainer.round()
    weights = trainer.model().weights()
    games = play(games=20)
    hidden = weights["bias"].size - 8
    active = (games["inputs"] @ weights["first"] + weights["bias"])[:, :hidden] > 0
    assert active.mean(0).min() > 0.02
    assert active.mean(0).max() < 0.98


def test_a_few_rounds_beat_the_network_that_knows_the_score_only():
    trainer = td.TDTrainer(2, settings=td.Settings(games=600, games_a_round=60))
    novice = trainer.agent(value.ONE_TURN)
    while trainer.done < 1:
        stats = trainer.round()
    assert stats["games"] == 600
    assert stats["loss_win"] < 0.66
    trained = trainer.agent(value.ONE_TURN)
    result = arena.play([trained], 2, "official", 200, seed=5, field=[novice])
    assert result.pairings[0].win_share.low > 0.6


def test_a_trained_model_is_saved_and_loaded(tmp_path):
    trainer = td.TDTrainer(2, "comp1110", settings=SMALL)
    trainer.round()
    trainer.save(tmp_path)
    loaded = value.load_model(tmp_path)
    assert loaded.head.rules == "comp1110"
    assert loaded.head.games == 10
    for name, tensor in trainer.model().weights().items():
        np.testing.assert_array_equal(loaded.weights()[name], tensor)
