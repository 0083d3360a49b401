"""The PettingZoo border: `env` and `raw_env`, where the caller plays every seat in turn.

Legend: `P` players, `A` = 15 actions. The agents are `player_0` ... in seat order. An agent whose
player is eliminated is passed over like his turns, and all agents terminate together at the end.

Everything that the standard wrappers would check is checked here, inside `step`, because each of
them costs several times as much as the rules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError
from numpy.typing import NDArray
from pettingzoo.utils.env import AECEnv, AECIterable

from marrakech_env import chance, game, rules
from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel, machine_code
from marrakech_env.notation import format_position, parse_start, position_option
from marrakech_env.observation import find_form
from marrakech_env.render.mode import RENDER_MODES, Picture, checked_render_mode, picture
from marrakech_env.rewards import check_scheme, final_rewards, margins
from marrakech_env.spec import RuleSet, resolve_rules, whole_number
from marrakech_env.state import OVER, STATE, Int, States, write_rules

Observation = dict[str, NDArray[Any]]
FloatArray = NDArray[np.float64]

_NOBODY, _ILLEGAL = -1, -2
_GAME_0: Final = np.zeros(1, np.int64)


class RawEnv(AECEnv[str, Observation, int]):  # type: ignore[misc]  # no stubs
    """One game, one decision at a time, without PettingZoo's checks of the order of calls.

    `observe(agent)` gives a dict of two new things: `observation`, the array of the chosen form
    from the agent's own point of view, and `action_mask`, int8 (A,), 1 where legal. The mask is
    all 0 for an agent that is not to act, a terminated one included, which takes None and nothing
    else; the same array is in `infos[agent]["action_mask"]`.

    An action counts where it is a whole number (Python's, NumPy's, or an array of shape ()) and
    legal; anything else raises ValueError and leaves the game as it was.

    Attributes:
        possible_agents: `player_0` to `player_P-1`.
        rule_set: The rules, a `spec.RuleSet`.
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
        """Makes the environment; `reset` starts the first game.

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
        self.rule_set = resolve_rules(rules, num_players)
        self.observation_form = find_form(observation)
        self.reward_scheme = check_scheme(reward)
        self.render_mode = checked_render_mode(render_mode)

        players = self.rule_set.num_players
        self.possible_agents = [f"player_{seat}" for seat in range(players)]
        self.state_space = self.observation_form.space(players)
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": self.observation_form.space(players),
                    "action_mask": spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
                }
            )
            for agent in self.possible_agents
        }
        self.action_spaces = {agent: spaces.Discrete(NUM_ACTIONS) for agent in self.possible_agents}

        self._pays_every_step = self.reward_scheme == "dense"
        self._shape = self.observation_form.shape(players)
        self._seats = {agent: np.array([s]) for s, agent in enumerate(self.possible_agents)}
        self._start = np.zeros(1, STATE)
        write_rules(self._start, self.rule_set)
        self._clocks = np.zeros(1, chance.CLOCK)
        self._is_seeded = False
        self._is_reset = False
        self._is_closed = False
        self._mover = _NOBODY  # the seat to act while a game runs

    def __getattr__(self, name: str) -> Any:
        """Explains why an attribute is missing that only `reset` brings."""
        if name in _SET_BY_RESET:
            when = "after close" if self.__dict__.get("_is_closed") else "before reset"
            raise AttributeError(f"{name} cannot be accessed {when}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's observations; the same object every time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """`Discrete(15)`; the same object every time."""
        return self.action_spaces[agent]

    # ----------------------------------------------------------------------------------- play

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts the next game.

        Args:
            seed: Plays game 0, episode 0 of this seed (see `chance`); None plays the next
                episode, and at the first reset takes a seed from the system.
            options: `{"position": TEXT}` starts from a position, with the dice of the episode
                from its turn 0 on. Other keys are ignored.

        Raises:
            ValueError: A bad seed, a bad position text, a finished position or one of another
                number of players; nothing has changed then.
            ClosedEnvironmentError: After `close`.
        """
        if self._is_closed:
            self._refuse("reset")
        position = self._start_position(options)
        if seed is not None or not self._is_seeded:
            chance.set_clocks(self._clocks, chance.checked_seed(seed), 0)
            self._is_seeded = True
        self._states = np.empty(1, STATE)
        chance.start_next(self._states, 0, self._start, self._clocks)
        if position is not None:
            self._states[:] = position

        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: _no_action() for agent in self.agents}
        self._mover = int(self._states["player"][0])
        self.agent_selection = self.agents[self._mover]
        mask = rules.action_mask(self._states)[0]
        self.infos[self.agent_selection] = {"action_mask": mask.astype(np.int8)}
        self._margins = self._margins_now()
        self._skip_agent_selection = None  # PettingZoo's memory while it drains terminated agents
        self._is_reset = True
        if self.render_mode == "human":
            self.render()

    def step(self, action: int | None) -> None:
        """Takes one decision of the selected agent.

        Args:
            action: A legal action; None from a terminated agent.

        Raises:
            ValueError: Not a legal action (the message names the game, the action and the legal
                ones), anything but None from a terminated agent, or a step after all agents are
                done; nothing has changed then.
            AssertionError: Before the first `reset`.
            ClosedEnvironmentError: After `close`.
        """
        mover = self._mover
        if mover < 0:
            self._step_without_mover(action)
            return
        number = whole_number(action)
        mask = np.empty(NUM_ACTIONS, np.int8)
        following = _ILLEGAL
        if number is not None and 0 <= number < NUM_ACTIONS:
            following = _step_code()(self._states, self._clocks, number, mask)
        actor = self.agent_selection
        if following == mover:
            self.infos[actor] = {"action_mask": mask}
        elif following >= 0:
            agent = self.possible_agents[following]
            self.infos[actor] = _no_action()
            self.infos[agent] = {"action_mask": mask}
            self.agent_selection = agent
            self._mover = following
        elif following == _NOBODY:
            self._finish(actor)
        else:
            raise ValueError(self._describe_illegal(action))
        if self._pays_every_step:
            self._pay(actor, self._change_of_margins())
        if self.render_mode == "human":
            self.render()

    def _finish(self, actor: str) -> None:
        """Ends the game for all agents at once and selects the first to be drained."""
        if not self._pays_every_step:
            shares, scores = rules.winner_shares(self._states), rules.scores(self._states)
            self._pay(actor, final_rewards(self.reward_scheme, shares, scores)[0])
        self._mover = _NOBODY
        self.terminations = dict.fromkeys(self.agents, True)
        self.infos = {agent: _no_action() for agent in self.agents}
        self.agent_selection = self.agents[0]

    def _step_without_mover(self, action: int | None) -> None:
        """A step where no game runs: drains a terminated agent or says what is wrong."""
        if not self._is_reset:
            self._refuse("step")
        if not self.agents:
            raise ValueError("step after the end: the game is over; reset() starts the next one")
        if action is not None:
            raise ValueError(
                f"game 0: action {action!r} is not legal: the game is over, and the terminated "
                f"agent {self.agent_selection} takes None only"
            )
        self._was_dead_step(None)

    def _pay(self, actor: str, amounts: FloatArray) -> None:
        """Makes these the rewards of the step, float (P,), and adds them to what is owed."""
        self.rewards = dict(zip(self.possible_agents, amounts.tolist(), strict=True))
        self._cumulative_rewards[actor] = 0.0  # he has seen what he got up to his decision
        self._accumulate_rewards()

    def _margins_now(self) -> FloatArray:
        now: FloatArray = margins(rules.scores(self._states))[0]
        return now

    def _change_of_margins(self) -> FloatArray:
        before = self._margins
        self._margins = self._margins_now()
        return self._margins - before

    def _describe_illegal(self, action: Any) -> str:
        number = whole_number(action)
        legal = ", ".join(map(str, np.flatnonzero(rules.action_mask(self._states)[0])))
        shown = repr(action) if number is None else number
        return (
            f"game 0: action {shown} of {self.agent_selection} is not legal; legal actions: {legal}"
        )

    def _start_position(self, options: Any) -> States | None:
        """The state that `options` want to start from, None for the usual start."""
        text = position_option(options)
        return None if text is None else parse_start(text, self.rule_set.num_players)

    # ---------------------------------------------------------------------------------- views

    def observe(self, agent: str) -> Observation:
        """What an agent sees now, whoever is to act: `observation` and `action_mask`."""
        info = self.infos.get(agent) or _no_action()  # a drained agent has no info any more
        observation = np.empty(self._shape, self.observation_form.dtype)
        self.observation_form.fill(self._states, _GAME_0, self._seats[agent], observation)
        return {"observation": observation, "action_mask": info["action_mask"]}

    def state(self) -> NDArray[Any]:
        """The whole game as one array: what player_0 sees, as nothing is hidden in Marrakech."""
        return self.observe(self.possible_agents[0])["observation"]

    @property
    def game_state(self) -> States:
        """A copy of the game as STATE (1,), to plan on: chance is no part of it."""
        return self._states.copy()

    @property
    def position(self) -> str:
        """The game as a position text."""
        return format_position(self._states)

    def render(self) -> Picture | None:
        """Shows the board as `render_mode` says, see `render.mode.picture`."""
        return picture(self._states, self.render_mode)

    def close(self) -> None:
        """Ends the use of this environment: any later `reset` or `step` says that it is closed."""
        for name in _SET_BY_RESET:
            self.__dict__.pop(name, None)
        self._mover = _NOBODY
        self._is_reset = False
        self._is_closed = True

    def _refuse(self, call: str) -> None:
        """Raises what a call gets on an environment that is closed or not yet reset."""
        if self._is_closed:
            raise ClosedEnvironmentError(f"{call} on a closed environment; make a new one")
        raise AssertionError(f"reset() needs to be called before {call}.")


class Env(RawEnv):
    """`RawEnv` with PettingZoo's checks of the order of calls, and the errors of its wrapper.

    `step`, `observe`, `render`, `state` and `agent_iter` before `reset`, and going on in
    `agent_iter` without a step, raise AssertionError; attributes before `reset` AttributeError.
    """

    _has_updated = False  # whether agent_iter may give out the next agent

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """See `RawEnv.reset`."""
        super().reset(seed, options)
        self._has_updated = True

    def step(self, action: int | None) -> None:
        """See `RawEnv.step`."""
        self._has_updated = True
        super().step(action)

    def observe(self, agent: str) -> Observation:
        """See `RawEnv.observe`."""
        if not self._is_reset:
            self._refuse("observe")
        return super().observe(agent)

    def state(self) -> NDArray[Any]:
        """See `RawEnv.state`."""
        if not self._is_reset:
            self._refuse("state")
        return super().state()

    def render(self) -> Picture | None:
        """See `RawEnv.render`."""
        if not self._is_reset:
            self._refuse("render")
        return super().render()

    def agent_iter(self, max_iter: int = 2**63) -> AECIterable[str, Observation, int]:
        """Yields the selected agent again and again, until all are done; step in between."""
        if not self._is_reset:
            self._refuse("agent_iter()")
        return _OrderedIterable(self, max_iter)


class _OrderedIterable(AECIterable[str, Observation, int]):  # type: ignore[misc]  # no stubs
    """PettingZoo's loop over agents, which here insists on a step for each of them."""

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
)


def _no_action() -> dict[str, NDArray[np.int8]]:
    """The info of an agent that is not to act, terminated ones included."""
    return {"action_mask": np.zeros(NUM_ACTIONS, np.int8)}


@functools.cache
def _step_code() -> Callable[..., Int]:
    """`_step` for the arrays of any environment: their types are always the same."""
    mask = np.zeros(NUM_ACTIONS, np.int8)
    return machine_code(_step, np.zeros(1, STATE), np.zeros(1, chance.CLOCK), 0, mask)


@kernel
def _step(states: States, clocks: NDArray[np.void], action: Int, mask: Any) -> Int:
    """Takes one decision in game 0, in place, and writes the mask of the next one.

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
