"""The networks of `networks` in torch, as policies that MaskablePPO can train.

Legend: `B` games, `F` numbers of a flat observation, `A` = 15 actions.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib.common.maskable.distributions import (
    MaskableCategorical,
    MaskableCategoricalDistribution,
)
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from marrakech_env.actions import NUM_ACTIONS

from .networks import action_parts

SMALL_START: Final = 0.01
"""Scale of the last layer's first weights: the untrained policy is nearly uniform."""


class ActionScorer(nn.Module):
    """`networks`' scorer for the policy, and a dense network for the value of the state."""

    def __init__(
        self, num_players: int, size: int, hidden: int, summary: int, value_hidden: int
    ) -> None:
        """Makes the layers.

        Args:
            num_players: P.
            size: F.
            hidden: Units of the first layer of each head; half in the second.
            summary: Units of each of the two layers of the summary.
            value_hidden: Units of each of the two hidden layers of the value network.
        """
        super().__init__()
        self.steerings: torch.Tensor
        self.placements: torch.Tensor
        steerings, placements = action_parts(num_players)
        self.register_buffer("steerings", torch.as_tensor(steerings), persistent=False)
        self.register_buffer("placements", torch.as_tensor(placements), persistent=False)
        self.state = nn.ModuleList([nn.Linear(size, summary), nn.Linear(summary, summary)])
        self.steer = _Head(steerings.shape[1], hidden, summary)
        self.lay = _Head(placements.shape[1], hidden, summary)
        self.direct = nn.Linear(summary, NUM_ACTIONS)
        self.value = nn.Sequential(
            nn.Linear(size, value_hidden),
            nn.Tanh(),
            nn.Linear(value_hidden, value_hidden),
            nn.Tanh(),
        )
        self.latent_dim_pi = NUM_ACTIONS
        self.latent_dim_vf = value_hidden

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (B, A) and what the value is read from."""
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        """Logits (B, A)."""
        state = features
        for layer in self.state:
            state = torch.relu(layer(state))
        steer = self.steer(features[:, self.steerings], state)
        lay = self.lay(features[:, self.placements], state)
        logits: torch.Tensor = torch.cat([steer, lay], dim=1) + self.direct(state)
        return logits

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        """What the value is read from: (B, value_hidden)."""
        values: torch.Tensor = self.value(features)
        return values


class _Head(nn.Module):
    """Scores actions from what is said of each and a summary of the state."""

    def __init__(self, inputs: int, hidden: int, summary: int) -> None:
        super().__init__()
        self.own = nn.Linear(inputs, hidden)
        self.state = nn.Linear(summary, hidden, bias=False)
        self.layers = nn.ModuleList([nn.Linear(hidden, hidden // 2), nn.Linear(hidden // 2, 1)])

    def forward(self, actions: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Scores (B, N) of actions (B, N, inputs)."""
        values = torch.relu(self.own(actions) + self.state(state)[:, None])
        scores: torch.Tensor = self.layers[1](torch.relu(self.layers[0](values)))
        return scores[..., 0]


class UncheckedDistribution(MaskableCategoricalDistribution):
    """Masked action probabilities without torch's checks of arguments.

    The checks take a tenth of the training time.
    """

    def proba_distribution(self, action_logits: torch.Tensor) -> UncheckedDistribution:
        """Take logits (B, A)."""
        self.distribution = MaskableCategorical(logits=action_logits, validate_args=False)
        return self


class ScorerPolicy(MaskableActorCriticPolicy):
    """An actor-critic policy around `ActionScorer`, for the observation `features`."""

    def __init__(
        self,
        *args: Any,
        num_players: int,
        hidden: int,
        summary: int,
        value_hidden: int,
        **kwargs: Any,
    ) -> None:
        """As MaskableActorCriticPolicy, with the arguments of `ActionScorer`."""
        self._num_players = num_players
        self._sizes = hidden, summary, value_hidden
        super().__init__(*args, **kwargs)

    def _build_mlp_extractor(self) -> None:
        extractor: Any = ActionScorer(self._num_players, self.features_dim, *self._sizes)
        self.mlp_extractor = extractor  # SB3 wants its own class, and only asks for these methods

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        scorer: Any = self.mlp_extractor
        for layer in (scorer.steer.layers[1], scorer.lay.layers[1], scorer.direct):
            nn.init.orthogonal_(layer.weight, SMALL_START)
        self.action_net = nn.Identity()  # the scores are the logits
        make_optimizer: Any = self.optimizer_class
        self.optimizer = make_optimizer(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )


def export(policy: Any) -> tuple[str, dict[str, NDArray[np.float32]]]:
    """The kind of network of a trained policy and its weights, for `networks.network`."""
    if isinstance(policy, ScorerPolicy):
        scorer: Any = policy.mlp_extractor
        layers = {f"state.{index}": layer for index, layer in enumerate(scorer.state)}
        layers["direct"] = scorer.direct
        for name, head in (("steer", scorer.steer), ("lay", scorer.lay)):
            layers |= {f"{name}.own": head.own, f"{name}.state": head.state}
            layers |= {f"{name}.{index}": layer for index, layer in enumerate(head.layers)}
        return "scorer", _arrays(layers)
    hidden = [m for m in policy.mlp_extractor.policy_net if isinstance(m, nn.Linear)]
    return "mlp", _arrays({str(i): m for i, m in enumerate([*hidden, policy.action_net])})


def _arrays(layers: dict[str, Any]) -> dict[str, NDArray[np.float32]]:
    return {
        f"{name}.{part}": values.detach().cpu().numpy().copy()
        for name, layer in layers.items()
        for part, values in layer.named_parameters()
    }
