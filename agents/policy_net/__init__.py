"""The policy networks of `ppo`, in NumPy and in torch."""
