"""A teacher for the learner of `ppo_learner`: another agent, whose choices are imitated besides.

The learner plays as it does without: the teacher tells afterwards what it would have chosen in the
positions that the learner came to (kickstarting, Schmitt et al., 2018: Kickstarting deep
reinforcement learning, arXiv 1803.03835).

Legend: `B` games, `T` steps of a rollout, `A` = 15 actions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from marrakech_env.agent import load_agent
from marrakech_env.state import States

from .value import ONE_TURN, ValueAgent


class Teacher:
    """Tells what it would have chosen, and trains the policy towards it."""

    def __init__(self, spec: str, num_players: int, seed: int) -> None:
        """Loads the agent; `value` looks one turn ahead only, for speed.

        Args:
            spec: A name, a path or `module:attr`.
            num_players: Of the games.
            seed: Of the teacher's own draws and of the order in which its choices are learned.

        Raises:
            ValueError: No such agent, or one for another number of players.
        """
        agent = load_agent(spec, num_players)
        self._agent = ValueAgent(effort=ONE_TURN) if spec == "value" else agent
        self._seed = seed

    def teach(
        self, model: MaskablePPO, states: list[States], epochs: int, batch_size: int
    ) -> float:
        """Makes the teacher's choices in the last rollout more probable.

        Args:
            model: Whose rollout buffer holds what it has just learned from.
            states: T times STATE (B,), in which it decided.
            epochs: Times that each choice is learned.
            batch_size: Choices in one step.

        Returns:
            The mean of the losses, minus the logarithm of the probability of a choice.
        """
        rng = np.random.default_rng([self._seed, model.num_timesteps])
        # The buffer lists all steps of game 0 first, then those of game 1 and so on.
        flat = np.ascontiguousarray(np.stack(states, axis=1)).reshape(-1)
        choices = torch.as_tensor(self._agent.act(flat, rng))
        buffer: Any = model.rollout_buffer
        observations = torch.as_tensor(buffer.observations)
        policy, masks = model.policy, buffer.action_masks
        parts = max(1, len(flat) // batch_size)
        losses = []
        for _ in range(epochs):
            for rows in np.array_split(rng.permutation(len(flat)), parts):
                distribution = policy.get_distribution(observations[rows], masks[rows])
                # Any, because torch declares no types for `backward`.
                loss: Any = -distribution.log_prob(choices[rows]).mean()
                policy.optimizer.zero_grad()
                loss.backward()
                policy.optimizer.step()
                losses.append(loss.item())
        return float(np.mean(losses))
