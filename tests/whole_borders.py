"""The borders as one kind of thing, and all that a caller can see of them, for tests of misuse."""

from __future__ import annotations

from marrakech_env.aec import env, raw_env
from marrakech_env.sb3 import MarrakechVecEnv
from marrakech_env.seats import SeatedBatch
from marrakech_env.vector import MarrakechEnv, MarrakechVectorEnv

SHORT = "official;rugs=2"

MAKERS = {
    "raw_env": lambda opponents, **keywords: raw_env(3, SHORT, reward="dense", **keywords),
    "env": lambda opponents, **keywords: env(3, SHORT, **keywords),
    "Env": lambda opponents, **keywords: MarrakechEnv(
        3, SHORT, opponents=opponents, seat=1, **keywords
    ),
    "VectorEnv": lambda opponents: MarrakechVectorEnv(3, 3, SHORT, opponents=opponents, seat=1),
    "VecEnv": lambda opponents: MarrakechVecEnv(3, 3, SHORT, opponents=opponents, seat=1),
    "SeatedBatch": lambda opponents: SeatedBatch(3, 3, SHORT, opponents=opponents, seat=1),
}
WITH_OPPONENTS = ("Env", "VectorEnv", "VecEnv", "SeatedBatch")


def reset(border, seed=None):
    if isinstance(border, MarrakechVecEnv):
        if seed is not None:
            border.seed(seed)
        return border.reset()
    return border.reset(seed=seed)


def actions(border):
    """The lowest legal action of each game, as the border takes it."""
    if hasattr(border, "agents"):
        agent = border.agent_selection
        over = border.terminations[agent]
        return None if over else int(border.infos[agent]["action_mask"].argmax())
    masks = border.action_masks()
    return int(masks.argmax()) if masks.ndim == 1 else masks.argmax(1)


def is_over(border):
    """Whether the next call has to be a reset."""
    if hasattr(border, "agents"):
        return not border.agents
    return isinstance(border, MarrakechEnv) and bool(border.game_state["phase"][0] == 3)


def contents(border):
    """What a caller can see of a border, and what it draws its chance from."""
    if hasattr(border, "agents"):
        shown = [border.agents, border.agent_selection, border.rewards, border.infos]
        shown += [border.terminations, border._cumulative_rewards]
        return repr((border._states, border._clocks, shown))
    seats = border if isinstance(border, SeatedBatch) else border._seats
    games = seats.batch
    drawn = seats.rng.bit_generator.state
    return repr((games.states, games._arrays.clocks, games.action_mask, drawn))


def play(border, steps):
    """What a caller sees over some steps."""
    seen = []
    for _ in range(steps):
        seen.append(repr(reset(border) if is_over(border) else border.step(actions(border))))
        seen.append(contents(border))
    return seen


def views(border):
    """Every call that shows something of the games."""
    names = ("action_masks", "game_state", "game_states", "state", "position", "get_images")
    calls = [lambda name=name: getattr(border, name) for name in names if name in dir(border)]
    calls = [lambda call=call: call()() if callable(call()) else call() for call in calls]
    if hasattr(border, "get_attr"):
        calls += [lambda: border.get_attr("player"), lambda: border.env_method("action_masks")]
    elif hasattr(border, "render"):
        calls += [border.render]
    return calls + ([lambda: border.observe("player_0")] if hasattr(border, "last") else [])
