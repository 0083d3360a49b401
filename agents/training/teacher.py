"""A teacher for the PPO learner: another agent that the learner imitates besides.

The learner plays as it does without a teacher. After each round the teacher decides in the
positions that the learner came to (kickstarting, Schmitt et al., 2018: Kickstarting deep
reinforcement learning, arXiv 1803.03835). A teacher with a method `action_values`, such as `value`,
teaches the value of every action and not its choice alone.

Legend: `B` games, `T` steps of a rollout, `N` positions, `A` = 15 actions.
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
"""Difference in q, in shares of the win, that makes an action e times as probable."""


class Teacher:
    """Trains a policy towards the decisions of an agent.

    Attributes:
        agent: The agent.
    """

    def __init__(self, spec: str, num_players: int, seed: int) -> None:
        """Load the agent. For speed, `value` looks one turn ahead only.

        Args:
            spec: A name, a path or `module:attr`.
            num_players: Number of players in the games.
            seed: Seed of the agent's draws and of the order of learning.

        Raises:
            ValueError: The agent is unknown, or for another number of players.
        """
        self.agent: Any = (
            ValueAgent(effort=ONE_TURN) if spec == "value" else load_agent(spec, num_players)
        )
        self._seed = seed
        self._optimizer: torch.optim.Adam | None = None

    def teach(
        self, model: MaskablePPO, states: list[States], epochs: int, batch_size: int
    ) -> float:
        """Train the policy towards the teacher in the positions of the last rollout.

        Args:
            model: The learner; its rollout buffer holds the observations of the positions.
            states: The positions: T times STATE (B,).
            epochs: Times that each position is learned from.
            batch_size: Positions in one step.

        Returns:
            The mean of the losses, the cross entropies of policy and targets.
        """
        rng = np.random.default_rng([self._seed, model.num_timesteps])
        # The buffer lists all steps of game 0 first, then those of game 1 and so on.
        flat = np.ascontiguousarray(np.stack(states, axis=1)).reshape(-1)
        targets = torch.as_tensor(self.targets(flat, rng))
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
                loss = -(targets[rows] * logits).sum(1).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return float(np.mean(losses))

    def _optimizer_of(self, policy: Any) -> torch.optim.Adam:
        """Return the teacher's Adam, with the step size of the policy's own.

        The two have separate moments, because the gradients of the policy are far noisier.
        """
        if self._optimizer is None:
            self._optimizer = torch.optim.Adam(policy.parameters(), fused=True)
        for group in self._optimizer.param_groups:
            group["lr"] = policy.optimizer.param_groups[0]["lr"]
        return self._optimizer

    def targets(self, states: States, rng: np.random.Generator) -> NDArray[np.float32]:
        """Return the probability of each action that the policy is trained towards: (N, A)."""
        targets = np.zeros((len(states), NUM_ACTIONS), np.float32)
        if hasattr(self.agent, "action_values"):
            values = self.agent.action_values(states)
            np.exp((values - values.max(1, keepdims=True)) / TEMPERATURE, out=targets)
            targets /= targets.sum(1, keepdims=True)
        else:
            targets[np.arange(len(states)), self.agent.act(states, rng)] = 1
        return targets
