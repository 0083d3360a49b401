"""The Gymnasium border: many games as a native `VectorEnv`, one game as an `Env`.

Legend: `N` environments, `P` players, `A` = 15 actions.

Both ask for the decisions of the learner's seat alone; opponents play inside, and what their moves
do to the learner is in the reward of his last decision. With `opponents=None` the caller plays
every seat in turn: the observation is that of the seat to move, the reward that of the seat which
acted. `docs/environment.md` describes observations, actions and rewards.

Infos, for both (the vector environment adds `_key` arrays as Gymnasium does):

* `action_mask`: int8 (A,), 1 where legal; all 0 in the info of a finished game.
* `player`: the seat that the observation belongs to.
* `rewards`: float64 (P,), what every seat received in this step; at the end of a game, and with
  `opponents=None` in every step.
* at the end of a game `final_scores`, `final_shares`, `final_ranks` (P,) and `opponents`, a tuple
  of their names by seat, None where the caller played.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.notation import position_option
from marrakech_env.render.mode import RENDER_MODES, Picture, checked_render_mode, picture
from marrakech_env.seats import SeatedBatch
from marrakech_env.spec import RuleSet
from marrakech_env.state import States

Observation = NDArray[Any]
Info = dict[str, Any]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


class MarrakechEnv(gymnasium.Env[Observation, np.int64]):
    """One game of the learner against opponents.

    `reset(seed=s)` starts game 0, episode 0 of seed s, `reset()` the next episode; a first
    `reset()` takes a seed from the system. Opponents other than `random` draw from `np_random`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": list(RENDER_MODES),
        "render_fps": 2,
    }

    def __init__(
        self,
        num_players: int = 2,
        rules: str | RuleSet = "official",
        observation: str = "features",
        reward: str = "win",
        opponents: Any = "random",
        seat: int | str = 0,
        render_mode: str | None = None,
    ) -> None:
        """Makes the game; `reset` starts it.

        Args:
            num_players: P: 2, 3 or 4.
            rules: A preset, a RULES text or a `RuleSet`.
            observation: `planes`, `flat` or `features`.
            reward: `win`, `score` or `dense`.
            opponents: An agent (name, path, `module:attr` or object), a list of them by seat, or
                a dict agent -> weight, drawn from for each game; None: the caller plays every
                seat.
            seat: The learner's seat, or `rotate`: another one in each episode.
            render_mode: None, `human` (prints the board at every step), `ansi` or `rgb_array`.

        Raises:
            ValueError: An argument is not allowed; the message says what is.
        """
        self.render_mode = checked_render_mode(render_mode)
        self._seats = SeatedBatch(
            1, num_players, rules, observation, reward, opponents, seat, autoreset=False
        )
        self.observation_space = self._seats.observation_space
        self.action_space = Discrete(NUM_ACTIONS)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Starts the next game and plays on to the learner's first decision.

        Args:
            seed: 0..2**64-1 for episode 0 of this seed, None for the next episode.
            options: `position`, a position text to start from; other keys are ignored.

        Returns:
            The observation and the info of the first decision.

        Raises:
            ValueError: A bad seed or position (see `SeatedBatch.reset`).
            ClosedEnvironmentError: After `close`.
        """
        self._seats.reset(seed, [position_option(options)])
        self._np_random, self._np_random_seed = self._seats.rng, self._seats.batch.seed
        if self.render_mode == "human":
            self.render()
        return self._seats.observe()[0], self._info()

    def step(self, action: int | np.int64) -> tuple[Observation, float, bool, bool, Info]:
        """Takes the learner's decision and plays on to his next one, or to the end.

        Args:
            action: A legal action (a whole number).

        Returns:
            Observation, reward, terminated, truncated (always False), info.

        Raises:
            ValueError: An illegal action; nothing has changed then.
            ResetNeeded: Before the first `reset`, or after the end.
            ClosedEnvironmentError: After `close`.
        """
        seats = self._seats
        seats.step([action])
        over = len(seats.ended) > 0
        info = self._info()
        if over:
            info |= {key: rows[0] for key, rows in seats.final_facts().items()}
            info["player"] = int(info["player"])
            observation = seats.final_observations()[0]
        else:
            observation = seats.observe()[0]
            if seats.self_play:
                info["rewards"] = seats.rewards[0]
        if self.render_mode == "human":
            self.render()
        return observation, float(seats.rewards[0, seats.actors[0]]), over, False, info

    def action_masks(self) -> BoolArray:
        """The legal actions: a new array, bool (A,)."""
        mask: BoolArray = self._seats.batch.action_mask[0]
        return mask.copy()

    def set_opponents(self, opponents: Any) -> None:
        """Changes the opponents from the next game on; see `SeatedBatch.set_opponents`."""
        self._seats.set_opponents(opponents)

    @property
    def game_state(self) -> States:
        """A copy of the game as STATE (1,), to plan on: chance is no part of it."""
        return self._seats.batch.states.copy()

    def render(self) -> Picture | None:
        """The board as `render_mode` says: text, uint8 (height, width, 3), or printed (None)."""
        return picture(self._seats.batch.states[0], self.render_mode)

    def close(self) -> None:
        """Ends the use of this environment: any later `reset` or `step` says so."""
        self._seats.close()

    def _info(self) -> Info:
        batch = self._seats.batch
        return {
            "action_mask": batch.action_mask[0].astype(np.int8),
            "player": int(batch.states["player"][0]),
        }


class MarrakechVectorEnv(VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """N games of the learner against opponents, stepped together.

    Environment i plays game i of `reset(seed=s)`. A finished game is started anew in the same step
    (`AutoresetMode.SAME_STEP`): the observation returned is the first one of the next game, that of
    the end is in `infos["final_obs"]`, its facts are in `infos["final_info"]`.

    Every array returned is a new one.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium declares it
        **MarrakechEnv.metadata,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int,
        num_players: int = 2,
        rules: str | RuleSet = "official",
        observation: str = "features",
        reward: str = "win",
        opponents: Any = "random",
        seat: int | str = 0,
        render_mode: str | None = None,
    ) -> None:
        """Makes the games; `reset` starts them.

        Args:
            num_envs: N, at least 1.
            num_players: See `MarrakechEnv`, as for all that follow.
            rules: A preset, a RULES text or a `RuleSet`.
            observation: `planes`, `flat` or `features`.
            reward: `win`, `score` or `dense`.
            opponents: An agent, a list by seat, a dict agent -> weight, or None.
            seat: The learner's seat, or `rotate`: (environment + episode) modulo P.
            render_mode: None, `human`, `ansi` or `rgb_array`.

        Raises:
            ValueError: An argument is not allowed; the message says what is.
        """
        self.render_mode = checked_render_mode(render_mode)
        self._seats = SeatedBatch(
            num_envs, num_players, rules, observation, reward, opponents, seat
        )
        self.num_envs = self._seats.num_games
        self.single_observation_space = self._seats.observation_space
        self.single_action_space = Discrete(NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._rows = np.arange(self.num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Starts the next game in every environment; see `MarrakechEnv.reset`."""
        self._seats.reset(seed, [position_option(options)] * self.num_envs)
        self._np_random, self._np_random_seed = self._seats.rng, self._seats.batch.seed
        return self._seats.observe(), self._infos()

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Observation, FloatArray, BoolArray, BoolArray, Info]:
        """Takes the learner's decision in every game and plays on to his next one.

        Args:
            actions: int (N,), legal ones.

        Returns:
            Observations (N, ...), rewards float64 (N,), terminations and truncations (always
            False) bool (N,), infos.

        Raises:
            ValueError: An illegal action, or a wrong shape or dtype; no game has changed then.
            ResetNeeded: Before the first `reset`.
            ClosedEnvironmentError: After `close`.
        """
        seats = self._seats
        seats.step(actions)
        infos = self._infos()
        terminations = seats.batch.done.copy()
        if seats.self_play:
            infos |= {"rewards": seats.rewards, "_rewards": np.ones(self.num_envs, np.bool_)}
        if len(seats.ended):
            final_obs = np.full(self.num_envs, None, object)
            ended = seats.ended.tolist()
            for game, observation in zip(ended, seats.final_observations(), strict=True):
                final_obs[game] = observation
            infos |= {"final_obs": final_obs, "_final_obs": terminations.copy()}
            infos |= {"final_info": self._final_info(), "_final_info": terminations.copy()}
        rewards = seats.rewards[self._rows, seats.actors]
        truncations = np.zeros(self.num_envs, np.bool_)
        return seats.observe(), rewards, terminations, truncations, infos

    def action_masks(self) -> BoolArray:
        """The legal actions: a new array, bool (N, A)."""
        return self._seats.batch.action_mask.copy()

    def set_opponents(self, opponents: Any) -> None:
        """Changes the opponents in all games that start from now on.

        See `SeatedBatch.set_opponents`.
        """
        self._seats.set_opponents(opponents)

    @property
    def game_states(self) -> States:
        """A copy of the games as STATE (N,), to plan on: chance is no part of them."""
        return self._seats.batch.states.copy()

    def render(self) -> tuple[Picture, ...] | None:
        """The picture of every game; None where they are printed or there is no render mode."""
        pictures = [picture(state, self.render_mode) for state in self._seats.batch.states]
        return tuple(p for p in pictures if p is not None) or None

    def close_extras(self, **kwargs: Any) -> None:
        """Part of `close`: any later `reset` or `step` says that the environment is closed."""
        self._seats.close()

    def _infos(self) -> Info:
        batch = self._seats.batch
        return {
            "action_mask": batch.action_mask.astype(np.int8),
            "_action_mask": np.ones(self.num_envs, np.bool_),
            "player": batch.states["player"].astype(np.int64),
            "_player": np.ones(self.num_envs, np.bool_),
        }

    def _final_info(self) -> Info:
        """The infos of the games that ended, spread over all environments."""
        seats = self._seats
        rows = {"action_mask": np.zeros((len(seats.ended), NUM_ACTIONS), np.int8)}
        infos: Info = {}
        for key, values in (rows | seats.final_facts()).items():
            spread = np.zeros((self.num_envs, *values.shape[1:]), values.dtype)
            if values.dtype == object:
                spread[:] = None
            spread[seats.ended] = values
            infos |= {key: spread, f"_{key}": seats.batch.done.copy()}
        return infos
