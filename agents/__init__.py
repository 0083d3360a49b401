"""The agents that ship with marrakech_env, installed as `marrakech_agents`."""
