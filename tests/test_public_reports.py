"""Faults that users of board games and of their libraries have reported in public, as tests.

Each report has one place: a test here, or the one that `GUARDS` names, beside the code that it
guards. A report about a library stands for the property of an environment that was behind it.
"""

import ast
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from borders import RULES, random_legal

from marrakech_env import rules
from marrakech_env.aec import env
from marrakech_env.batch import Batch
from marrakech_env.notation import format_position, parse_position
from marrakech_env.observation import FORMS, encode
from marrakech_env.state import LAY, MAX_MONEY, STATE, STEER, WALK
from marrakech_env.vector import MarrakechEnv

TESTS = Path(__file__).parent
EMPTY = "/".join(["." * 14] * 7)

GUARDS = {
    "PettingZoo 1307, 1186: a copy or a pickle made in mid-game goes on with the same steps": (
        "test_aec_chance.py::test_a_copy_in_mid_game_goes_on_with_identical_steps",
        "test_batch.py::test_a_copy_in_mid_game_goes_on_alike",
        "test_vector.py::test_copies_in_mid_game_take_identical_steps",
        "test_sb3.py::test_copies_in_mid_game_take_identical_steps",
        "test_seats.py::test_copies_in_mid_game_go_the_same_way",
    ),
    "PettingZoo 1147: the learner is told that an opponent's move has lost him the game": (
        "test_aec.py::"
        "test_the_learner_receives_the_negative_return_when_an_opponents_move_ends_the_game",
        "test_vector.py::"
        "test_learner_receives_the_negative_return_when_an_opponents_move_ends_the_game",
        "test_seats.py::test_the_learner_receives_the_return_when_an_opponents_move_ends_the_game",
    ),
    "PettingZoo 355, 1114: rewards of every agent add up to the return of the final scores": (
        "test_aec.py::test_what_each_agent_receives_adds_up_to_the_value_of_the_final_scores",
        "test_aec.py::test_the_same_over_500_games",
        "test_reward_law.py::test_rewards_of_a_game_add_up_to_what_its_final_scores_are_worth",
        "test_reward_law.py::test_the_same_over_500_games",
    ),
    "PettingZoo 652: whoever is bankrupt, in any seat, is never selected again": (
        "test_aec.py::test_a_bankrupt_seat_is_never_selected_again_and_terminates_with_the_others",
        "test_aec.py::test_a_bankruptcy_ends_a_game_of_two",
    ),
    "PettingZoo 1244, 1260: no agents are left once the terminated ones are drained": (
        "test_aec.py::test_all_agents_terminate_together_and_are_drained_in_seat_order",
    ),
    "PettingZoo 1223: a seed fixes the dice and leaves the global generators alone": (
        "test_aec_chance.py::test_a_seed_given_again_plays_the_same_game_again",
        "test_determinism.py::test_a_seed_plays_the_same_games_again",
        "test_determinism.py::test_the_global_random_states_are_left_alone",
    ),
    "PettingZoo 1233: an agent acts twice in a row, and the two phases share no legal action": (
        "test_aec.py::test_one_agent_acts_twice_in_a_row_with_disjoint_legal_actions",
        "test_vector.py::"
        "test_the_same_player_decides_twice_in_a_row_and_the_phases_share_no_action",
    ),
    "PettingZoo 1187: every render mode works without a display": (
        "test_aec_misuse.py::test_every_render_mode_works_without_a_display",
        "test_vector.py::test_every_render_mode_shows_the_game_without_a_display",
        "test_sb3.py::test_every_render_mode_works_without_a_display",
    ),
    "PettingZoo 446: the wheel in an empty environment imports and plays": (
        "test_packaging.py::test_wheel_plays_a_game",
        "test_packaging.py::test_empty_environment_plays_a_game",
    ),
    "sb3-contrib 322, 81: MaskablePPO takes 20,000 steps over the whole action space": (
        "test_sb3.py::test_maskable_ppo_over_the_whole_action_space",
    ),
    "sb3-contrib 226, 178: evaluation without masks raises instead of playing on": (
        "test_sb3.py::test_evaluation_without_masks_raises_instead_of_playing_on",
    ),
    "sb3-contrib 49, 154: masks are found in environments in processes of their own": (
        "test_sb3.py::test_wrappers_over_single_environments_find_the_masks",
    ),
    "tianshou 900: the rewards of the last step hold all seats": (
        "test_aec.py::test_nothing_is_due_before_the_end_and_then_every_seat_is_paid",
    ),
    "pgx 1043: two copies of one state stepped with different chance diverge": (
        "test_properties.py::test_copies_stepped_with_different_chance_diverge",
        "test_vector.py::test_two_copies_of_a_state_meet_different_chance",
    ),
    "pgx 1308: nothing that an agent receives holds a seed": (
        "test_aec_chance.py::test_nothing_that_an_agent_receives_holds_a_seed_or_a_clock",
    ),
}
"""Report -> the tests that guard it."""


@pytest.mark.parametrize("report", GUARDS)
def test_the_guard_of_a_report_exists(report):
    for guard in GUARDS[report]:
        file, _, name = guard.partition("::")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, guard


def test_four_players_with_a_bankruptcy_stay_inside_the_declared_spaces():
    """TorchRL 3702: a rollout crashed on the empty mask of a player who was out."""
    environment, rng, outs = env(4, "official;money=6", "planes"), np.random.default_rng(2), 0
    for seed in range(6):
        environment.reset(seed=seed)
        while not any(environment.terminations.values()):
            assert environment.agents == environment.possible_agents
            for agent in environment.agents:
                observation = environment.observe(agent)
                space = environment.observation_space(agent)
                assert observation in space
                shapes = {key: (v.shape, v.dtype) for key, v in observation.items()}
                assert shapes == {key: (s.shape, s.dtype) for key, s in space.items()}
                mask = observation["action_mask"]
                assert mask.any() == (agent == environment.agent_selection)
            environment.step(random_legal(environment.last()[0]["action_mask"], rng))
        outs += int((environment.game_state["eliminated"] > 0).sum())
        for agent in environment.agents:
            assert environment.observe(agent) in environment.observation_space(agent)
    assert outs >= 6


def test_a_serialised_state_keeps_its_phase():
    """OpenSpiel 1277: a state that came back from its text was in another phase."""
    seen = set()
    for players, rule_text in RULES.items():
        batch, rng = Batch(1, players, rule_text, seed=4), np.random.default_rng(4)
        for _ in range(60):
            state = batch.states
            copies = [
                parse_position(format_position(state)),
                np.frombuffer(state.tobytes(), STATE),
                pickle.loads(pickle.dumps(state)),
                np.array(pickle.loads(pickle.dumps(state[0])), STATE).reshape(1),
                copy.deepcopy(state),
            ]
            for other in copies:
                assert other["phase"] == state["phase"]
                assert other["player"] == state["player"]
                assert (rules.action_mask(other) == batch.action_mask).all()
            seen.add(int(state["phase"][0]))
            batch.step(random_legal(batch.action_mask, rng))
    assert seen == {STEER, LAY, WALK}


def test_a_deep_copy_of_an_environment_repeats_its_dice_so_one_plans_on_states():
    """Pgx 1043: planning on copies of an environment peeks at dice that are still to fall."""
    environment = MarrakechEnv(opponents=None)
    environment.reset(seed=5)
    ends = set()
    for _ in range(20):
        branch = copy.deepcopy(environment)
        branch.step(1)
        ends.add(format_position(branch.game_state))
    assert len(ends) == 1
    page = (TESTS.parent / "docs" / "environment.md").read_text(encoding="utf-8")
    assert "A deep copy of an environment repeats its dice, so plan on states" in page


@pytest.mark.parametrize("poor", [35, 36, MAX_MONEY])
def test_money_and_counts_never_overflow(poor):
    """NumPy 23912: small integers wrap around without a word."""
    assert STATE["money"].base.itemsize >= 2
    # 36 squares of one region, nearly all the money there can be, and 100 rugs
    row = "1>1<" * 3 + ".."
    board = "/".join([row] * 6 + ["." * 14])
    rich = MAX_MONEY
    states = parse_position(
        f"{board} 33S 0s {poor}:100,{rich}:100,{rich}:100,{rich}:100 official;money=1000;rugs=100"
    )
    total = int(states["money"].sum(dtype=np.int64))
    assert rules.tolls(states).max() == 36
    assert rules.scores(states)[0].tolist() == [poor, rich + 36, rich, rich]
    for form, described in FORMS.items():
        assert encode(states, form, 1)[0] in described.space(4)
    rules.step(states, [1], [1])
    assert int(states["money"].sum(dtype=np.int64)) == total
    assert states["money"][0].tolist() == [max(poor - 36, 0), rich + min(poor, 36), rich, rich]
    assert states["eliminated"][0, 0] == (poor < 36)
    assert rules.scores(states)[0, 1] == rich + min(poor, 36) + 36
    assert (rules.scores(states) >= 0).all()
