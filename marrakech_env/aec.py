"""The PettingZoo border: `env` and `raw_env`, where the caller plays every seat in turn.

Legend: `P` players, `A` = 15 actions. The agents are `player_0` ... in seat order. The agent of an
eliminated player is skipped, and all agents terminate together at the end.

`step` makes the checks of the standard wrappers itself, because each wrapper costs several times as
much as the rules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn, TypeVar

import numpy as np
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError
from numpy.typing import NDArray
from pettingzoo.utils.env import AECEnv, AECIterable

from marrakech_env import chance, game, rules
from marrakech_env.actions import NUM_ACTIONS, action_number, describe_illegal
from marrakech_env.compile import kernel, machine_code
from marrakech_env.notation import format_position, parse_start, position_option
from marrakech_env.observation import find_form
from marrakech_env.ownership import in_use, interrupted, own_arrays
from marrakech_env.render.mode import RENDER_MODES, Picture, checked_render_mode, picture
from marrakech_env.rewards import check_scheme, final_rewards, margins
from marrakech_env.spec import RuleSet, checked_number, resolve_rules
from marrakech_env.state import OVER, STATE, Int, States, write_rules

Observation = dict[str, NDArray[Any]]
FloatArray = NDArray[np.float64]
View = TypeVar("View")

# In the place of a seat to act: no game runs, a call is inside, the last call was interrupted.
_NOBODY, _BUSY, _BROKEN = -1, -2, -3
_ILLEGAL = -4
_GAME_0: Final = np.zeros(1, np.int64)


class RawEnv(AECEnv[str, Observation, int]):  # type: ignore[misc]  # no stubs
    """One game, one decision at a time, without PettingZoo's check of `agent_iter`.

    `observe(agent)` returns a dict: `observation`, a new array of the chosen form from the agent's
    own point of view, and `action_mask`, int8 (A,), 1 where legal. The mask is all 0 for an agent
    that is not to act. A terminated agent takes None only. `infos[agent]["action_mask"]` is the
    same array.

    An action is one whole number (Python's, NumPy's, or an array or tensor of one element) that is
    legal; anything else raises ValueError and changes nothing.

    One environment belongs to one thread at a time: a call from a second thread raises
    RuntimeError. After an interrupted call, such as by Ctrl-C, every call raises ResetNeeded until
    `reset`. A copy or an unpickled environment has arrays of its own.

    Attributes:
        possible_agents: `player_0` to `player_P-1`.
        state_space: The space of `state()`.
        agents, agent_selection, rewards, terminations, truncations, infos: As PettingZoo defines
            them, from the first `reset` on. `rewards` holds every seat at every step.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - PettingZoo wants this very type
        "name": "marrakech_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": 2,
        "is_parallelizable": False,
    }

    def __init__(
        self,
        num_players: int = 2,
        rules: str | RuleSet = "official",
        observation: str = "planes",
        reward: str = "win",
        render_mode: str | None = None,
    ) -> None:
        """Make the environment; `reset` starts the first game.

        Args:
            num_players: 2, 3 or 4.
            rules: A preset, a RULES text or a rule set.
            observation: `planes`, `flat` or `features`.
            reward: `win`, `score` or `dense`, see `rewards.SCHEMES`.
            render_mode: `human` (prints the board after every change), `ansi`, `rgb_array` or
                None.

        Raises:
            ValueError: An argument is not allowed; the message says what is.
        """
        super().__init__()
        self._rule_set = resolve_rules(rules, num_players)
        self._form = find_form(observation)
        self._scheme = check_scheme(reward)
        self.render_mode = checked_render_mode(render_mode)

        players = self._rule_set.num_players
        self._names = tuple(f"player_{seat}" for seat in range(players))
        self.possible_agents = list(self._names)
        self.state_space = self._form.space(players)
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": self._form.space(players),
                    "action_mask": spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
                }
            )
            for agent in self._names
        }
        self.action_spaces = {agent: spaces.Discrete(NUM_ACTIONS) for agent in self._names}

        self._pays_every_step = self._scheme == "dense"
        self._shape = self._form.shape(players)
        self._seats = {agent: np.array([s]) for s, agent in enumerate(self._names)}
        self._start = np.zeros(1, STATE)
        write_rules(self._start, self._rule_set)
        self._clocks = np.zeros(1, chance.CLOCK)
        self._is_seeded = False
        self._is_reset = False
        self._is_closed = False
        self._mover = _NOBODY  # the seat to act while a game runs

    def __getattr__(self, name: str) -> Any:
        """Explain why an attribute is missing that only `reset` sets."""
        if name in _SET_BY_RESET:
            when = "after close" if self.__dict__.get("_is_closed") else "before reset"
            raise AttributeError(f"{name} cannot be accessed {when}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        if self._mover == _BUSY:
            raise in_use()
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(own_arrays(state))

    @property
    def rule_set(self) -> RuleSet:
        """The rules."""
        return self._rule_set

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of an agent's observations; the same object every time."""
        self._seat_of(agent)
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return `Discrete(15)`; the same object every time."""
        self._seat_of(agent)
        return self.action_spaces[agent]

    def _seat_of(self, agent: str) -> NDArray[np.int64]:
        """The seat of an agent as int64 (1,)."""
        try:
            return self._seats[agent]
        except (KeyError, TypeError):  # no such key, or nothing that can be one
            known = ", ".join(self._seats)
            raise ValueError(f"unknown agent {agent!r}; agents: {known}") from None

    # ----------------------------------------------------------------------------------- play

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start the next game.

        Args:
            seed: Plays game 0, episode 0 of this seed (see `chance`); None plays the next
                episode, and at the first reset takes a seed from the system.
            options: `{"position": TEXT}` starts from a position, with the dice of the episode
                from its turn 0 on. Other keys are ignored.

        Raises:
            ValueError: A bad seed, a bad position text, a finished position or one of another
                number of players; nothing has changed then.
            RuntimeError: Another thread is inside.
            ClosedEnvironmentError: After `close`.
        """
        if self._is_closed:
            self._refuse("reset")
        text = position_option(options)
        position = None if text is None else parse_start(text, self._rule_set.num_players)
        clocks = self._clocks
        if seed is not None or not self._is_seeded:
            clocks = np.zeros(1, chance.CLOCK)
            chance.set_clocks(clocks, chance.checked_seed(seed), 0)
        if self._mover == _BUSY:
            raise in_use()
        after = _BROKEN
        try:
            self._mover = _BUSY
            self._clocks, self._is_seeded = clocks, True
            self._states = np.empty(1, STATE)
            chance.start_next(self._states, 0, self._start, self._clocks)
            if position is not None:
                self._states[:] = position
            self.agents = list(self._names)
            self.rewards = dict.fromkeys(self.agents, 0.0)
            self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
            self.terminations = dict.fromkeys(self.agents, False)
            self.truncations = dict.fromkeys(self.agents, False)
            self.infos = {agent: _no_action() for agent in self.agents}
            mover = int(self._states["player"][0])
            self.agent_selection = self.agents[mover]
            mask = rules.action_mask(self._states)[0]
            self.infos[self.agent_selection] = {"action_mask": mask.astype(np.int8)}
            self._margins = self._margins_now()
            self._skip_agent_selection = None  # PettingZoo's memory while it drains agents
            self._is_reset = True
            if self.render_mode == "human":
                picture(self._states, self.render_mode)
            after = mover
        finally:
            self._mover = after

    def step(self, action: int | None) -> None:
        """Take one decision of the selected agent.

        Args:
            action: A legal action; None from a terminated agent.

        Raises:
            ValueError: Not a legal action (the message names the game, the action and the legal
                ones), anything but None from a terminated agent, or a step after all agents are
                done; nothing has changed then.
            AssertionError: Before the first `reset`.
            ResetNeeded: After an interrupted call.
            RuntimeError: Another thread is inside.
            ClosedEnvironmentError: After `close`.
        """
        number = action if type(action) is int else action_number(action)
        mask = np.empty(NUM_ACTIONS, np.int8)
        take = _step_code()
        mover = self._mover
        if mover < 0:
            self._step_without_mover(action)
            return
        after = _BROKEN
        try:
            self._mover = _BUSY
            following = _ILLEGAL
            if number is not None and 0 <= number < NUM_ACTIONS:
                following = take(self._states, self._clocks, number, mask)
            if following == _ILLEGAL:
                after = mover
                raise ValueError(self._describe_illegal(action, number, mover))
            actor = self._names[mover]
            if following == _NOBODY:
                self._finish(actor)
            else:
                if following != mover:
                    self.infos[actor] = _no_action()
                self.agent_selection = agent = self._names[following]
                self.infos[agent] = {"action_mask": mask}
            if self._pays_every_step:
                self._pay(actor, self._change_of_margins())
            if self.render_mode == "human":
                picture(self._states, self.render_mode)
            after = following
        finally:
            self._mover = after

    def _finish(self, actor: str) -> None:
        """End the game for all agents at once and select the first to be drained."""
        if not self._pays_every_step:
            shares, scores = rules.winner_shares(self._states), rules.scores(self._states)
            self._pay(actor, final_rewards(self._scheme, shares, scores)[0])
        self.terminations = dict.fromkeys(self.agents, True)
        self.infos = {agent: _no_action() for agent in self.agents}
        self.agent_selection = self.agents[0]

    def _step_without_mover(self, action: int | None) -> None:
        """Drain a terminated agent, or say what is wrong: a step where no game runs."""
        if self._mover != _NOBODY or not self._is_reset:
            self._refuse("step")
        if not self.agents:
            raise ValueError("step after the end: the game is over; reset() starts the next one")
        if action is not None:
            raise ValueError(
                f"game 0: action {action!r} is not legal: the game is over, and the terminated "
                f"agent {self.agent_selection} takes None only"
            )
        if self._mover != _NOBODY:
            self._refuse("step")
        after = _BROKEN
        try:
            self._mover = _BUSY
            self._was_dead_step(None)
            after = _NOBODY
        finally:
            self._mover = after

    def _pay(self, actor: str, amounts: FloatArray) -> None:
        """Make these the rewards of the step, float (P,), and add them to what is owed."""
        self.rewards = dict(zip(self._names, amounts.tolist(), strict=True))
        self._cumulative_rewards[actor] = 0.0  # paid up to this decision: `last` has shown it
        self._accumulate_rewards()

    def _margins_now(self) -> FloatArray:
        now: FloatArray = margins(rules.scores(self._states))[0]
        return now

    def _change_of_margins(self) -> FloatArray:
        before = self._margins
        self._margins = self._margins_now()
        return self._margins - before

    def _describe_illegal(self, action: Any, number: int | None, mover: int) -> str:
        shown = f"{action!r} (not one whole number)" if number is None else number
        mask = rules.action_mask(self._states)[0]
        return describe_illegal(0, f"{shown} of {self._names[mover]}", mask)

    # ---------------------------------------------------------------------------------- views

    def observe(self, agent: str) -> Observation:
        """Return what an agent sees now: `observation` and `action_mask`.

        Raises:
            ValueError: There is no such agent.
        """
        seat = self._seat_of(agent)
        observation = np.empty(self._shape, self._form.dtype)
        mover = self._mover
        if mover < 0 and (mover != _NOBODY or not self._is_reset):
            self._refuse("observe")
        try:
            self._mover = _BUSY
            info = self.infos.get(agent) or _no_action()  # a drained agent has no info any more
            self._form.fill(self._states, _GAME_0, seat, observation)
        finally:
            self._mover = mover
        return {"observation": observation, "action_mask": info["action_mask"]}

    def state(self) -> NDArray[Any]:
        """Return the whole game as one array: what player_0 sees, as nothing is hidden."""
        if not self._is_reset:
            self._refuse("state")
        return self.observe(self._names[0])["observation"]

    @property
    def game_state(self) -> States:
        """A copy of the game as STATE (1,), to plan on: chance is no part of it."""
        return self._look(np.copy)

    @property
    def position(self) -> str:
        """The game as a position text."""
        return self._look(format_position)

    def render(self) -> Picture | None:
        """Show the board as `render_mode` says, see `render.mode.picture`."""
        if not self._is_reset:
            self._refuse("render")
        return self._look(lambda states: picture(states, self.render_mode))

    def _look(self, view: Callable[[States], View]) -> View:
        """What a function makes of the game, with no other call inside."""
        states, mover = self._states, self._mover
        if mover < _NOBODY:
            self._refuse("a view")
        try:
            self._mover = _BUSY
            return view(states)
        finally:
            self._mover = mover

    def close(self) -> None:
        """End the use of this environment: any later `reset` or `step` says that it is closed."""
        if self._mover == _BUSY:
            raise in_use()
        for name in _SET_BY_RESET:
            self.__dict__.pop(name, None)
        self._mover = _NOBODY
        self._is_reset = False
        self._is_closed = True

    def _refuse(self, call: str) -> NoReturn:
        """Raise what a call gets that the environment is not ready for."""
        if self._is_closed:
            raise ClosedEnvironmentError(f"{call} on a closed environment; make a new one")
        if self._mover == _BUSY:
            raise in_use()
        if self._mover == _BROKEN:
            raise interrupted()
        raise AssertionError(f"reset() needs to be called before {call}.")


class Env(RawEnv):
    """`RawEnv` with the check of `agent_iter`, and the errors of PettingZoo's wrapper.

    Calls before `reset`, and going on in `agent_iter` without a step, raise AssertionError;
    attributes before `reset` raise AttributeError.
    """

    _has_updated = False  # whether agent_iter may yield the next agent

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """See `RawEnv.reset`."""
        super().reset(seed, options)
        self._has_updated = True

    def step(self, action: int | None) -> None:
        """See `RawEnv.step`."""
        self._has_updated = True
        super().step(action)

    def agent_iter(self, max_iter: int = 2**63) -> AECIterable[str, Observation, int]:
        """Yield the selected agent until all are done; step in between.

        Raises:
            ValueError: `max_iter` is no whole number of at least 0.
        """
        if not self._is_reset:
            self._refuse("agent_iter()")
        return _OrderedIterable(self, checked_number("max_iter", max_iter, 0))


class _OrderedIterable(AECIterable[str, Observation, int]):  # type: ignore[misc]  # no stubs
    """PettingZoo's loop over agents, with a step required for each of them."""

    env: Env

    def __iter__(self) -> Iterator[str]:
        played = self.env
        for _ in range(self.max_iter):
            if not played.agents:
                return
            if not played._has_updated:
                raise AssertionError("need to call step() or reset() in a loop over `agent_iter`")
            played._has_updated = False
            yield played.agent_selection


env = Env
raw_env = RawEnv

_SET_BY_RESET: Final = (
    "agents",
    "agent_selection",
    "num_agents",
    "rewards",
    "terminations",
    "truncations",
    "infos",
    "_cumulative_rewards",
    "_margins",
    "_states",
    "game_state",
    "position",
)


def _no_action() -> dict[str, NDArray[np.int8]]:
    """The info of an agent that is not to act, a terminated one included."""
    return {"action_mask": np.zeros(NUM_ACTIONS, np.int8)}


@functools.cache
def _step_code() -> Callable[..., Int]:
    """`_step` for the arrays of any environment: their types are always the same."""
    mask = np.zeros(NUM_ACTIONS, np.int8)
    return machine_code(_step, np.zeros(1, STATE), np.zeros(1, chance.CLOCK), 0, mask)


@kernel
def _step(states: States, clocks: NDArray[np.void], action: Int, mask: Any) -> Int:
    """Take one decision in game 0, in place, and write the mask of the next one.

    Returns:
        The seat that acts next, `_NOBODY` at the end of the game, or `_ILLEGAL` where the action
        is not legal and nothing has changed.
    """
    state = states[0]
    if not game.legal_actions(state) >> np.uint32(action) & np.uint32(1):
        return _ILLEGAL
    chance.advance(state, action, clocks[0])
    bits = game.legal_actions(state)
    for number in range(NUM_ACTIONS):
        mask[number] = bits >> np.uint32(number) & np.uint32(1)
    return _NOBODY if state.phase == OVER else np.int64(state.player)
