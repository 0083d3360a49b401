"""The board game Marrakech as a fast, exact reinforcement learning environment."""

__version__ = "0.1.0"
