"""For checkers that sample actions without a mask: the environment, but it forgives them."""

from marrakech_env.vector import MarrakechEnv


class ForgivingEnv(MarrakechEnv):
    """Plays the lowest legal action instead of an illegal one (the shipped class raises)."""

    def step(self, action):
        mask = self.action_masks()
        return super().step(action if mask[action] else int(mask.argmax()))
