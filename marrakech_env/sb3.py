"""The Stable-Baselines3 border: many games as one native `VecEnv`, for MaskablePPO.

Legend: `N` environments, `P` players, `A` = 15 actions.

As `vector.MarrakechVectorEnv`, in the form of Stable-Baselines3. A plain algorithm, without masks,
gets a ValueError at its first illegal action.

`infos` is a list of N new dicts. Each one holds `action_mask` (int8 (A,), of the observation that
is returned with it, so never empty) and `TimeLimit.truncated` (always False); with
`opponents=None` also `player`, the seat to move, and `rewards`, float64 (P,). At the end of a game
it also holds `terminal_observation` and the facts that `vector` lists; `player` is then the seat
that saw the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices, VecEnvStepReturn

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.chance import checked_seed
from marrakech_env.notation import position_option
from marrakech_env.render.mode import Picture, checked_render_mode, picture
from marrakech_env.seats import SeatedBatch, checked_num_envs
from marrakech_env.spec import RuleSet, whole_number
from marrakech_env.state import States


class MarrakechVecEnv(VecEnv):
    """N games of the learner against opponents, stepped together.

    Environment i plays game i of the seed given by `seed` before `reset`; a finished game is
    started anew in the same step.
    """

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
            num_players: P: 2, 3 or 4.
            rules: A preset, a RULES text or a `RuleSet`.
            observation: `planes`, `flat` or `features`.
            reward: `win`, `score` or `dense`.
            opponents: An agent (name, path, `module:attr` or object), a list of them by seat, or
                a dict agent -> weight, drawn from for each game; None: the caller plays every
                seat.
            seat: The learner's seat, or `rotate`: (environment + episode) modulo P.
            render_mode: None, `human`, `ansi` or `rgb_array`.

        Raises:
            ValueError: An argument is not allowed; the message says what is.
        """
        self.render_mode = checked_render_mode(render_mode)
        games = checked_num_envs(num_envs)
        self._seats = SeatedBatch(games, num_players, rules, observation, reward, opponents, seat)
        self._games = [_Game(self, index) for index in range(games)]
        self._actions: Any = None
        super().__init__(games, self._seats.observation_space, Discrete(NUM_ACTIONS))

    # ------------------------------------------------------------------------------------- play

    def reset(self) -> NDArray[Any]:
        """Start the next game in every environment, with the arguments of `seed` and `set_options`.

        Returns:
            The observations (N, ...); the infos are in `reset_infos`.

        Raises:
            ValueError: A bad position (see `SeatedBatch.reset`).
            RuntimeError: Another thread is inside.
            ClosedEnvironmentError: After `close`.
        """
        positions = [position_option(options) for options in self._options]
        return self._seats.reset(self._seeds[0], positions, self._first)

    def _first(self) -> NDArray[Any]:
        """What `reset` returns."""
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = self._infos()
        return self._seats.observe()

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Take the learner's decision in every game and play on to the next one.

        Returns:
            Observations (N, ...), rewards float32 (N,), dones bool (N,), infos: all new.

        Raises:
            ValueError: An illegal action, a wrong shape or dtype, or no `step_async` before; no
                game has changed then.
            ResetNeeded: Before the first `reset`, or after an interrupted call.
            RuntimeError: Another thread is inside.
            ClosedEnvironmentError: After `close`.
        """
        actions, self._actions = self._actions, None
        return self._seats.step(actions, self._next)

    def _next(self) -> VecEnvStepReturn:
        """What `step_wait` returns."""
        seats = self._seats
        infos = self._infos()
        if seats.self_play:
            for info, rewards in zip(infos, seats.rewards, strict=True):
                info["rewards"] = rewards
        if len(seats.ended):
            facts = seats.final_facts()
            for row, observation in enumerate(seats.final_observations()):
                game = seats.ended[row]
                self.reset_infos[game] = infos[game].copy()
                infos[game] |= {key: values[row] for key, values in facts.items()}
                infos[game]["player"] = int(facts["player"][row])
                infos[game]["terminal_observation"] = observation
        rewards = seats.own_rewards().astype(np.float32)
        return seats.observe(), rewards, seats.batch.done.copy(), infos

    def close(self) -> None:
        """End the use of this environment: any later `reset` or `step` says so."""
        self._seats.close()

    def _infos(self) -> list[dict[str, Any]]:
        masks = self._seats.batch.action_mask.astype(np.int8)
        infos: list[dict[str, Any]] = [
            {"action_mask": mask, "TimeLimit.truncated": False} for mask in masks
        ]
        if self._seats.self_play:
            for info, player in zip(
                infos, self._seats.batch.states["player"].tolist(), strict=True
            ):
                info["player"] = player
        return infos

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed of the next `reset`: environment i plays game i of it.

        Args:
            seed: 0..2**64-1; None takes one from the system.

        Returns:
            N times the seed.

        Raises:
            ValueError: Not such a number.
        """
        self._seeds = [checked_seed(seed)] * self._seats.num_games
        return self._seeds

    def set_options(self, options: Any = None) -> None:
        """Set the options of the next `reset`: one dict for all environments, or N of them.

        Raises:
            ValueError: Something else, a list of another length, or a bad position (see
                `SeatedBatch.reset`); nothing has changed then.
        """
        games = self._seats.num_games
        rows = options if isinstance(options, list) else [options] * games
        if len(rows) != games:
            raise ValueError(f"options must be one dict or {games} of them, not {options!r}")
        self._seats.check_positions([position_option(row) for row in rows])
        super().set_options(options)

    # ------------------------------------------------------------------------------------ views

    def action_masks(self) -> NDArray[np.bool_]:
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

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Return the pictures of all games, uint8 (height, width, 3), in every render mode."""
        from marrakech_env.render import render_rgb_array  # needs Pillow, so only here

        return [render_rgb_array(state) for state in self._seats.states()]

    # ------------------------------------------------------------- one environment among the N

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return the attribute of the chosen environments; AttributeError where there is none."""
        return [getattr(game, attr_name) for game in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute that `get_attr` returns; it changes nothing in the games.

        Raises:
            AttributeError: The name begins with `_`, or is that of a method or of `player`.
        """
        for game in self._chosen(indices):
            setattr(game, attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method, `action_masks`, `render` or `set_opponents`, of the chosen environments.

        Raises:
            AttributeError: There is no such method.
            ValueError: `indices` are no environments, or only some of them for `set_opponents`,
                which changes the opponents of all.
        """
        chosen = self._chosen(indices)
        if method_name == "set_opponents":
            if {game._index for game in chosen} != set(range(len(self._games))):
                raise ValueError("set_opponents changes all environments; leave out indices")
            self.set_opponents(*method_args, **method_kwargs)
            return [None] * len(chosen)
        if method_name == "action_masks":  # at every step of a learner, so from one array
            masks = self.action_masks(*method_args, **method_kwargs)
            return [masks[game._index] for game in chosen]
        return [getattr(game, method_name)(*method_args, **method_kwargs) for game in chosen]

    def env_is_wrapped(
        self,
        wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]],
        indices: VecEnvIndices = None,
    ) -> list[bool]:
        """Return False for each of the chosen environments."""
        return [False for _ in self._chosen(indices)]

    def _chosen(self, indices: VecEnvIndices) -> list[_Game]:
        games = len(self._games)
        try:
            if indices is None:
                return self._games
            wanted = [indices] if whole_number(indices) is not None else list(indices)  # type: ignore[arg-type]
            numbers = [whole_number(index) for index in wanted]
        except TypeError:  # nothing that has entries
            numbers = [None]
        if any(number not in range(-games, games) for number in numbers):
            raise ValueError(f"indices must be environments 0..{games - 1}, not {indices!r}")
        return [self._games[number] for number in numbers if number is not None]


class _Game:
    """One environment of a `MarrakechVecEnv`, as `get_attr` and `env_method` see it.

    It shows its own attributes and those of the whole, but none of the methods of the whole.
    """

    def __init__(self, whole: MarrakechVecEnv, index: int) -> None:
        vars(self).update(_whole=whole, _index=index)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            value = getattr(self._whole, name)
            if not callable(value):
                return value
        raise AttributeError(f"an environment of MarrakechVecEnv has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or hasattr(_Game, name):
            raise AttributeError(f"an environment of MarrakechVecEnv keeps its own {name!r}")
        super().__setattr__(name, value)

    @property
    def player(self) -> int:
        """The seat to move."""
        player: int = self._whole._seats.look(lambda b: b.states["player"][self._index].item())
        return player

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the legal actions: bool (A,)."""
        index = self._index
        mask: NDArray[np.bool_] = self._whole._seats.look(lambda b: b.action_mask[index].copy())
        return mask

    def render(self) -> Picture | None:
        """Return the picture of the game."""
        state = self._whole._seats.look(lambda batch: batch.states[self._index].copy())
        return picture(state, self._whole.render_mode)
