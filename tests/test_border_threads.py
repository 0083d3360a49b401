"""Threads: a border refuses a second one, and opponents do no harm to borders that share them."""

import copy
import sys
import threading

import numpy as np
import pytest
from borders import random_legal
from gymnasium.error import ResetNeeded
from seated import Lowest
from whole_borders import MAKERS, SHORT, WITH_OPPONENTS, actions, contents, play, reset, views

import marrakech_env.aec
from marrakech_env.aec import env, raw_env
from marrakech_env.rules import action_mask
from marrakech_env.vector import MarrakechVectorEnv


class Waiting(Lowest):
    """Waits in `act` where it is told to, until it is let go on."""

    name = "waiting"

    def __init__(self):
        self.waits, self.inside, self.go_on = False, threading.Event(), threading.Event()

    def pause(self, *_):
        if self.waits:
            self.inside.set()
            assert self.go_on.wait(20)

    def act(self, states, rng):
        self.pause()
        return super().act(states, rng)

    def __deepcopy__(self, memo):
        return self


def in_thread(work):
    """Starts work in a thread and returns a function that waits for its result."""
    results = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()

    def result():
        thread.join(30)
        return results[0]

    return result


@pytest.mark.parametrize("call", ["step", "reset"])
@pytest.mark.parametrize("kind", MAKERS)
def test_a_second_thread_inside_a_border_is_refused_and_changes_nothing(kind, call, monkeypatch):
    agent = Waiting()
    if kind in WITH_OPPONENTS:
        border = MAKERS[kind](agent)
    else:  # nobody else decides there, so it is held where it prints
        monkeypatch.setattr(marrakech_env.aec, "picture", agent.pause)
        border = MAKERS[kind](agent, render_mode="human")
    reset(border, seed=3)
    play(border, 3)  # the next decision lays a rug, and then it is an opponent's turn
    twin = copy.deepcopy(border)

    def work(border):
        return repr(border.step(actions(border)) if call == "step" else reset(border, 4))

    agent.waits = True
    result = in_thread(lambda: work(border))
    assert agent.inside.wait(20)
    calls = [lambda: border.step(0), lambda: reset(border), lambda: reset(border, 5), border.close]
    calls += [*views(border), lambda: copy.deepcopy(border)]
    if kind in WITH_OPPONENTS:
        calls.append(lambda: border.set_opponents("random"))
    for each in calls:
        with pytest.raises(RuntimeError, match="one environment belongs to one thread at a time"):
            each()
    agent.waits = False
    agent.go_on.set()
    assert result() == work(twin)
    assert contents(border) == contents(twin)
    assert play(border, 6) == play(twin, 6)


@pytest.mark.long  # threads meet by chance
@pytest.mark.parametrize("kind", MAKERS)
def test_threads_that_fight_for_a_border_get_errors_and_leave_it_whole(kind):
    border = MAKERS[kind](Lowest())
    reset(border, seed=0)

    def fight(number):
        rng = np.random.default_rng(number)
        for _ in range(150):
            try:
                if rng.random() < 0.1:
                    reset(border)
                if hasattr(border, "last"):
                    border.observe("player_0")
                border.step(actions(border))
            except (RuntimeError, ValueError, ResetNeeded, LookupError):
                pass  # refused, or the action of another moment
        return True

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        assert all(result() for result in [in_thread(lambda n=n: fight(n)) for n in range(4)])
    finally:
        sys.setswitchinterval(before)
    twin = MAKERS[kind](Lowest())
    reset(border, seed=9)
    reset(twin, seed=9)
    assert play(border, 20) == play(twin, 20)


class Buffered:
    """Draws legal actions into one array that all its callers get."""

    name = "buffered"

    def __init__(self):
        self.kept = np.zeros(64, np.int64)

    def act(self, states, rng):
        answer = self.kept[: len(states)]
        answer[:] = random_legal(action_mask(states), rng)
        return answer


def test_an_opponent_that_writes_into_its_last_answer_cannot_smuggle_in_illegal_actions():
    agent = Buffered()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for result in [in_thread(lambda: outcome(agent)) for _ in range(3)]:
            assert result() in ("played", "refused")
    finally:
        sys.setswitchinterval(before)


def outcome(agent):
    """Whether an agent's actions were all legal; either way no state is damaged."""
    vector = MarrakechVectorEnv(32, 3, SHORT, opponents=agent)
    _, infos = vector.reset(seed=1)
    rng = np.random.default_rng(2)
    for _ in range(100):
        try:
            *_, infos = vector.step(random_legal(infos["action_mask"], rng))
        except ValueError as error:
            return "refused" if "opponent 'buffered'" in str(error) else str(error)
        states = vector.game_states
        assert (states["rugs"].sum(1) <= 6).all()
        assert (states["money"].sum(1) == 90).all()
    return "played"


@pytest.mark.parametrize("make", [env, raw_env])
def test_environments_of_different_threads_play_on_their_own(make):
    def game():
        environment = make(2, SHORT)
        environment.reset(seed=5)
        return play(environment, 30)

    alone = game()
    assert all(result() == alone for result in [in_thread(game) for _ in range(3)])
