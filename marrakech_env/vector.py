"""The Gymnasium border: many games as a native `VectorEnv`, one game as an `Env`.

Legend: `N` environments, `P` players, `A` = 15 actions.

Both ask for the decisions of the learner's seat alone. Opponents play inside; the reward of the
learner's decision holds the effect of their moves up to the next one. With `opponents=None` the
caller plays every seat in turn: the observation is that of the seat to move, the reward that of the
seat that acted. `docs/environment.md` describes observations, actions and rewards.

One environment belongs to one thread at a time: a call from a second thread raises RuntimeError.
After an interrupted call, such as by Ctrl-C, every call raises ResetNeeded until `reset`.

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

from marrakech_env.actions import NUM_ACTIONS, action_number, describe_illegal
from marrakech_env.notation import position_option
from marrakech_env.render.mode import RENDER_MODES, Picture, checked_render_mode, picture
from marrakech_env.seats import SeatedBatch, checked_num_envs
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
        """Make the game; `reset` starts it.

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
        """Start the next game and play on to the learner's first decision.

        Args:
            seed: 0..2**64-1 for episode 0 of this seed, None for the next episode.
            options: `position`, a position text to start from; other keys are ignored.

        Returns:
            The observation and the info of the first decision.

        Raises:
            ValueError: A bad seed or position (see `SeatedBatch.reset`).
            RuntimeError: Another thread is inside.
            ClosedEnvironmentError: After `close`.
        """
        return self._seats.reset(seed, [position_option(options)], self._first)

    def _first(self) -> tuple[Observation, Info]:
        """What `reset` returns."""
        self._np_random, self._np_random_seed = self._seats.rng, self._seats.batch.seed
        self._show()
        return self._seats.observe()[0], self._info()

    def step(self, action: int | np.int64) -> tuple[Observation, float, bool, bool, Info]:
        """Take the learner's decision and play on to the next one, or to the end.

        Args:
            action: A legal action: one whole number, or an array or tensor of one.

        Returns:
            Observation, reward, terminated, truncated (always False), info.

        Raises:
            ValueError: An illegal action; nothing has changed then.
            ResetNeeded: Before the first `reset`, after the end, or after an interrupted call.
            RuntimeError: Another thread is inside.
            ClosedEnvironmentError: After `close`.
        """
        number = action_number(action)
        if number is None:
            self._seats.check_running()
            shown = f"{action!r} (not one whole number)"
            raise ValueError(describe_illegal(0, shown, self._seats.action_masks()[0]))
        return self._seats.step([number], self._next)

    def _next(self) -> tuple[Observation, float, bool, bool, Info]:
        """What `step` returns."""
        seats = self._seats
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
        self._show()
        return observation, float(seats.own_rewards()[0]), over, False, info

    def _show(self) -> None:
        """Print the board where the render mode says so."""
        if self.render_mode == "human":
            picture(self._seats.batch.states[0], self.render_mode)

    def action_masks(self) -> BoolArray:
        """Return the legal actions: a new array, bool (A,)."""
        mask: BoolArray = self._seats.action_masks()[0]
        return mask

    def set_opponents(self, opponents: Any) -> None:
        """Change the opponents from the next game on; see `SeatedBatch.set_opponents`."""
        self._seats.set_opponents(opponents)

    @property
    def game_state(self) -> States:
        """A copy of the game as STATE (1,), to plan on: chance is no part of it."""
        return self._seats.states()

    def render(self) -> Picture | None:
        """Return the board as `render_mode` says: text, uint8 (height, width, 3), or None."""
        return picture(self._seats.states()[0], self.render_mode)

    def close(self) -> None:
        """End the use of this environment: any later `reset` or `step` says so."""
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
    (`AutoresetMode.SAME_STEP`): the returned observation is the first one of the next game,
    `infos["final_obs"]` holds that of the end, and `infos["final_info"]` its facts.

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
        """Make the games; `reset` starts them.

        Args:
            num_envs: N, at least 1 and at most `seats.MAX_ENVS`.
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
        self.num_envs = checked_num_envs(num_envs)
        self._seats = SeatedBatch(
            self.num_envs, num_players, rules, observation, reward, opponents, seat
        )
        self.single_observation_space = self._seats.observation_space
        self.single_action_space = Discrete(NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start the next game in every environment; see `MarrakechEnv.reset`."""
        positions = [position_option(options)] * self._seats.num_games
        return self._seats.reset(seed, positions, self._first)

    def _first(self) -> tuple[Observation, Info]:
        """What `reset` returns."""
        self._np_random, self._np_random_seed = self._seats.rng, self._seats.batch.seed
        return self._seats.observe(), self._infos()

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Observation, FloatArray, BoolArray, BoolArray, Info]:
        """Take the learner's decision in every game and play on to the next one.

        Args:
            actions: int (N,), legal ones.

        Returns:
            Observations (N, ...), rewards float64 (N,), terminations and truncations (always
            False) bool (N,), infos.

        Raises:
            ValueError: An illegal action, or a wrong shape or dtype; no game has changed then.
            ResetNeeded: Before the first `reset`, or after an interrupted call.
            RuntimeError: Another thread is inside.
            ClosedEnvironmentError: After `close`.
        """
        return self._seats.step(actions, self._next)

    def _next(self) -> tuple[Observation, FloatArray, BoolArray, BoolArray, Info]:
        """What `step` returns."""
        seats, games = self._seats, self._seats.num_games
        infos = self._infos()
        terminations = seats.batch.done.copy()
        if seats.self_play:
            infos |= {"rewards": seats.rewards, "_rewards": np.ones(games, np.bool_)}
        if len(seats.ended):
            final_obs = np.full(games, None, object)
            ended = seats.ended.tolist()
            for game, observation in zip(ended, seats.final_observations(), strict=True):
                final_obs[game] = observation
            infos |= {"final_obs": final_obs, "_final_obs": terminations.copy()}
            infos |= {"final_info": self._final_info(), "_final_info": terminations.copy()}
        truncations = np.zeros(games, np.bool_)
        return seats.observe(), seats.own_rewards(), terminations, truncations, infos

    def action_masks(self) -> BoolArray:
        """Return the legal actions: a new array, bool (N, A)."""
        return self._seats.action_masks()

    def set_opponents(self, opponents: Any) -> None:
        """Change the opponents in all games that start from now on.

        See `SeatedBatch.set_opponents`.
        """
        self._seats.set_opponents(opponents)

    @property
    def game_states(self) -> States:
        """A copy of the games as STATE (N,), to plan on: chance is no part of them."""
        return self._seats.states()

    def render(self) -> tuple[Picture, ...] | None:
        """Return the picture of every game; None where they are printed or no mode is given."""
        pictures = [picture(state, self.render_mode) for state in self._seats.states()]
        return tuple(p for p in pictures if p is not None) or None

    def close_extras(self, **kwargs: Any) -> None:
        """Part of `close`: any later `reset` or `step` says that the environment is closed."""
        self._seats.close()

    def _infos(self) -> Info:
        batch = self._seats.batch
        return {
            "action_mask": batch.action_mask.astype(np.int8),
            "_action_mask": np.ones(len(batch.done), np.bool_),
            "player": batch.states["player"].astype(np.int64),
            "_player": np.ones(len(batch.done), np.bool_),
        }

    def _final_info(self) -> Info:
        """The infos of the games that ended, spread over all environments."""
        seats = self._seats
        rows = {"action_mask": np.zeros((len(seats.ended), NUM_ACTIONS), np.int8)}
        infos: Info = {}
        for key, values in (rows | seats.final_facts()).items():
            spread = np.zeros((seats.num_games, *values.shape[1:]), values.dtype)
            if values.dtype == object:
                spread[:] = None
            spread[seats.ended] = values
            infos |= {key: spread, f"_{key}": seats.batch.done.copy()}
        return infos
