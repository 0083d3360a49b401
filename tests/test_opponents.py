"""Who plays the seats that the caller does not: mixtures, line-ups, the law of their draws."""

import gc
import weakref

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from seated import Highest, Lowest, Scripted, facts_of_ends, play

from marrakech_env import rules
from marrakech_env.batch import Batch
from marrakech_env.seats import SeatedBatch
from marrakech_env.tables import FIRST_CELL, SECOND_CELL

EMPTY = "/".join(["." * 14] * 7)


def test_a_mixture_is_drawn_by_weight_one_agent_a_game():
    seats = SeatedBatch(
        200, 3, "official;rugs=2", opponents={"random": 1, Lowest(): 3, Highest(): 0}, seat=1
    )
    seats.reset(seed=9)
    ends = [facts["opponents"] for facts in facts_of_ends(seats, 60)]
    assert set(ends) == {("random", None, "random"), ("lowest", None, "lowest")}
    share = np.mean([names[0] == "lowest" for names in ends])
    assert abs(share - 0.75) < 5 * np.sqrt(0.75 * 0.25 / len(ends))
    assert len(ends) > 1000


def test_a_list_names_the_agents_by_seat_and_ignores_the_callers_own_entry():
    seats = SeatedBatch(10, 3, "official;rugs=2", opponents=[Lowest(), None, "random"], seat=1)
    seats.reset(seed=1)
    ends = {facts["opponents"] for facts in facts_of_ends(seats, 30)}
    assert ends == {("lowest", None, "random")}


def test_a_rotating_caller_leaves_the_agents_of_a_list_in_their_seats():
    seats = SeatedBatch(10, 2, "official;rugs=2", opponents=[Lowest(), Highest()], seat="rotate")
    seats.reset(seed=1)
    ends = {facts["opponents"] for facts in facts_of_ends(seats, 30)}
    assert ends == {("lowest", None), (None, "highest")}


def test_mixtures_in_a_list_are_drawn_for_each_seat_alone():
    mixture = {"random": 1, Lowest(): 1}
    seats = SeatedBatch(100, 3, "official;rugs=2", opponents=[mixture, mixture, mixture])
    seats.reset(seed=1)
    ends = [facts["opponents"] for facts in facts_of_ends(seats, 40)]
    pairs, counts = np.unique([names[1] + names[2] for names in ends], return_counts=True)
    assert len(pairs) == 4
    assert (np.abs(counts / len(ends) - 0.25) < 5 * np.sqrt(0.1875 / len(ends))).all()


def test_new_opponents_enter_with_the_next_game_and_old_ones_are_let_go():
    old = Lowest()
    seats = SeatedBatch(20, 2, "official;rugs=4", opponents={old: 1, "random": 1})
    seats.reset(seed=2)
    started = dict.fromkeys(range(20))
    for _ in play(seats, 3):
        pass
    first = seats.batch.episode.copy()
    seats.set_opponents({Highest(): 1, "random": 1})
    reference = weakref.ref(old)
    del old
    for _ in play(seats, 30):
        for row, game in enumerate(seats.ended):
            name = seats.final_facts()["opponents"][row][1]
            is_first = seats.batch.episode[game] == first[game] + 1
            assert name in (("lowest", "random") if is_first else ("highest", "random"))
            started[game] = name
    assert None not in started.values()
    assert "highest" in started.values()
    seats.set_opponents("random")
    gc.collect()
    assert reference() is None


def test_many_changes_of_opponents_keep_the_line_ups_of_running_games():
    seats = SeatedBatch(30, 2, "official;rugs=8", opponents="random")
    seats.reset(seed=2)
    made = {}  # (game, episode) -> the number of the change before its start
    for change in range(12):
        seats.set_opponents({Scripted(_lowest, f"v{change}"): 1})
        for _ in play(seats, 5, seed=change):
            for row, game in enumerate(seats.ended):
                episode = int(seats.batch.episode[game]) - 1
                name = seats.final_facts()["opponents"][row][1]
                assert name == made.get((game, episode), "random")
                made[game, episode + 1] = f"v{change}"
    assert len(made) > 60


def test_an_agent_that_stays_in_the_mixture_is_asked_once_for_all_its_games():
    agent, calls = Lowest(), []
    really_act = agent.act
    agent.act = lambda states, rng: calls.append(len(states)) or really_act(states, rng)
    seats = SeatedBatch(20, 2, "official;rugs=8", opponents={agent: 1})
    seats.reset(seed=2)
    for _ in play(seats, 7):
        pass
    seats.set_opponents({Highest(): 1, agent: 3})
    calls.clear()
    seats._ask(seats._mixture.names.index("lowest"), np.arange(20))
    assert seats._mixture.names == ("random", "highest", "lowest")
    assert calls == [20]


def _lowest(states):
    return rules.action_mask(states).argmax(1)


def test_one_agent_object_in_two_places_is_one_agent():
    class Counting(Lowest):
        calls = 0

        def act(self, states, rng):
            self.calls += 1
            return super().act(states, rng)

    agent = Counting()
    seats = SeatedBatch(50, 3, opponents=[agent, agent, agent])
    seats.reset(seed=1)
    for _ in play(seats, 10):
        pass
    assert agent.calls <= 10 * 4 + 4  # both opponents' games in one call


def test_an_agent_that_spoils_its_states_spoils_only_a_copy():
    def spoil(states):
        actions = _lowest(states)
        states["money"] = 0
        return actions

    spoilt, clean = (SeatedBatch(5, 2, opponents=agent) for agent in (Scripted(spoil), Lowest()))
    for seats in (spoilt, clean):
        seats.reset(seed=1)
        for _ in play(seats, 60):
            pass
    assert (spoilt.batch.states == clean.batch.states).all()


@pytest.mark.parametrize(
    "answer",
    [
        lambda states: np.full(len(states), 20),
        lambda states: np.full(len(states), -1),
        lambda states: np.zeros(len(states)),
        lambda states: np.zeros(len(states) + 1, int),
        lambda states: None,
        lambda states: 14 * rules.action_mask(states)[:, 0],  # lays where it should steer
    ],
)
def test_an_illegal_action_of_an_opponent_names_opponent_game_and_legal_actions(answer):
    seats = SeatedBatch(3, 2, opponents=Scripted(answer, "clumsy"))
    seats.reset(seed=1)
    with pytest.raises(ValueError, match=r"opponent 'clumsy'.*game.*legal actions.*: 0, 1, 2"):
        for _ in play(seats, 5):
            pass
    with pytest.raises(ResetNeeded):
        seats.step(seats.batch.action_mask.argmax(1))
    seats.set_opponents("random")
    seats.reset()
    for _ in play(seats, 5):
        pass


def test_an_exception_of_an_opponent_says_whose_it_is():
    def fail(states):
        raise RuntimeError("out of ideas")

    seats = SeatedBatch(2, 2, opponents=Scripted(fail, "tired"), seat=1)
    with pytest.raises(RuntimeError, match="out of ideas") as caught:
        seats.reset(seed=1)
    assert caught.value.__notes__ == ["raised by the agent 'tired'"]


# -------------------------------------------------------------------------- the law of the draws


def absorb(state, number):
    """As `chance` documents it, in whole numbers."""
    z = (state + 0x9E3779B97F4A7C15 * (number + 1)) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def uniform(seed, game, episode, turn, kind):
    key = absorb(absorb(absorb(absorb(0, seed), game), episode), 2**63)
    return (absorb(key, 8 * turn + kind) >> 11) * 2.0**-53


def test_random_plays_by_its_documented_law():
    seats = SeatedBatch(4, 2, opponents="random", seat=1)
    seats.reset(seed=77)
    batch = Batch(4, 2, seed=77)
    turns = 0
    for phase in (0, 1):  # seat 0 steers, then lays; the caller steers next
        mask = batch.action_mask
        us = np.array([uniform(77, game, 0, turns, phase) for game in range(4)])
        nth = (us * mask.sum(1)).astype(int)
        batch.step(np.array([np.flatnonzero(mask[g])[nth[g]] for g in range(4)]))
        turns += 1 - phase
    assert (batch.states == seats.batch.states).all()


def test_random_is_uniform():
    seats = SeatedBatch(12000, 2, opponents="random", seat=1)
    seats.reset(seed=5)  # seat 0 has steered and laid once
    states = seats.batch.states
    facing, (y, x) = states["facing"], np.divmod(states["assam"], 7)
    straight = (x == 3) | (y == 3)  # a roll of 1, 2 or 3 leaves him on his line
    steered = np.bincount(facing[straight], minlength=4)[[1, 2, 3]]
    assert_even(steered)
    near = states[straight & (x >= 2) & (x <= 4) & (y >= 2) & (y <= 4)]  # 12 placements on board
    heading = 4 * near["assam"].astype(int) + near["facing"]
    low = np.minimum(FIRST_CELL[heading], SECOND_CELL[heading]).astype(np.uint64)
    lies_east = np.abs(FIRST_CELL[heading] - SECOND_CELL[heading]) == 1
    links = np.where(lies_east, near["links_east"][:, None], near["links_south"][:, None])
    laid = (links >> low) & np.uint64(1)
    assert (laid.sum(1) == 1).all()
    assert_even(laid.sum(0))


def assert_even(counts):
    total, share = counts.sum(), 1 / len(counts)
    assert (np.abs(counts - total * share) < 5 * np.sqrt(total * share * (1 - share))).all(), counts


def test_agents_are_drawn_by_their_documented_law():
    mixture = {"random": 1, Lowest(): 1, Highest(): 2}
    for opponents, draw in ((mixture, 0), ([mixture] * 2, 1)):
        seats = SeatedBatch(60, 2, "official;rugs=2", opponents=opponents)
        seats.reset(seed=13)
        checked = 0
        for _ in play(seats, 24):
            for row, game in enumerate(seats.ended):
                u = uniform(13, int(game), int(seats.batch.episode[game]) - 1, 0, 3 + draw)
                expected = "random" if u < 0.25 else "lowest" if u < 0.5 else "highest"
                assert seats.final_facts()["opponents"][row] == (None, expected)
                checked += 1
        assert checked > 250
