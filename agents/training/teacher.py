"""A teacher for the learner of `ppo_learner`: another agent, who is imitated besides.

The learner plays as it does without: the teacher tells afterwards what it would have done in the
positions that the learner came to (kickstarting, Schmitt et al., 2018: Kickstarting deep
reinforcement learning, arXiv 1803.03835). A teacher with a method `action_values`, as `value` has
it, tells what every action is worth, which says far more than its choice: which others are as good,
and by how much the rest is worse.

Legend: `B` games, `T` steps of a rollout, `A` = 15 actions.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.agent import load_agent
from marrakech_env.state import States

from ..value import ONE_TURN, ValueAgent

TEMPERATURE: Final = 0.02
"""Worth (in wins) by which an action has to be better to be wished for e times as much."""


class Teacher:
    """Tells what it would have done, and trains the policy towards it."""

    def __init__(self, spec: str, num_players: int, seed: int) -> None:
        """Loads the agent; `value` looks one turn ahead only, for speed.

        Args:
            spec: A name, a path or `module:attr`.
            num_players: Of the games.
            seed: Of the teacher's own draws and of the order in which its choices are learned.

        Raises:
            ValueError: No such agent, or one for another number of players.
        """
        self._agent: Any = (
            ValueAgent(effort=ONE_TURN) if spec == "value" else load_agent(spec, num_players)
        )
        self._seed = seed
        self._optimizer: torch.optim.Adam | None = None

    def teach(
        self, model: MaskablePPO, states: list[States], epochs: int, batch_size: int
    ) -> float:
        """Makes the actions that the teacher wishes for in the last rollout more probable.

        Args:
            model: Whose rollout buffer holds what it has just learned from.
            states: T times STATE (B,), in which it decided.
            epochs: Times that each decision is learned from.
            batch_size: Decisions in one step.

        Returns:
            The mean of the losses, the cross entropies of policy and wishes.
        """
        rng = np.random.default_rng([self._seed, model.num_timesteps])
        # The buffer lists all steps of game 0 first, then those of game 1 and so on.
        flat = np.ascontiguousarray(np.stack(states, axis=1)).reshape(-1)
        wishes = torch.as_tensor(self._wishes(flat, rng))
        buffer: Any = model.rollout_buffer
        observations = torch.as_tensor(buffer.observations)
        policy, masks = model.policy, buffer.action_masks
        optimizer = self._optimizer_of(policy)
        parts = max(1, len(flat) // batch_size)
        losses = []
        for _ in range(epochs):
            for rows in np.array_split(rng.permutation(len(flat)), parts):
                masked: Any = policy.get_distribution(observations[rows], masks[rows])
                logits = masked.distribution.logits  # normalised: logarithms of probabilities
                loss = -(wishes[rows] * logits).sum(1).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return float(np.mean(losses))

    def _optimizer_of(self, policy: Any) -> torch.optim.Adam:
        """An Adam beside that of the policy, with its step size.

        The moments of one would not fit the gradients of the other, which are far noisier.
        """
        if self._optimizer is None:
            self._optimizer = torch.optim.Adam(policy.parameters(), fused=True)
        for group in self._optimizer.param_groups:
            group["lr"] = policy.optimizer.param_groups[0]["lr"]
        return self._optimizer

    def _wishes(self, states: States, rng: np.random.Generator) -> NDArray[np.float32]:
        """How probable the teacher wants each action to be: (N, A)."""
        wishes = np.zeros((len(states), NUM_ACTIONS), np.float32)
        if hasattr(self._agent, "action_values"):
            worths = self._agent.action_values(states)
            np.exp((worths - worths.max(1, keepdims=True)) / TEMPERATURE, out=wishes)
            wishes /= wishes.sum(1, keepdims=True)
        else:
            wishes[np.arange(len(states)), self._agent.act(states, rng)] = 1
        return wishes
