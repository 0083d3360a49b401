"""Compiled kernels on bits and regions, for the rules, the observations and the agents."""
