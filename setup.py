"""List the packages; everything else about the build is in pyproject.toml.

`agents/` is installed as `marrakech_agents`, and pyproject.toml cannot both find packages and
rename one.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["marrakech_env", "marrakech_env.*"]),
        "marrakech_agents",
        *(f"marrakech_agents.{name}" for name in find_packages("agents")),
    ]
)
