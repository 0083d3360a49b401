"""Writes the generated tables of environment.md anew: `python docs/update_tables.py`."""

from __future__ import annotations

import re
from pathlib import Path

from marrakech_env.observation import FEATURES, PLANES, markdown_table
from marrakech_env.rewards import SCHEMES

PAGE = Path(__file__).with_name("environment.md")


def tables() -> dict[str, str]:
    """Every generated table by the name in its markers."""
    rewards = ["| `reward=` | meaning |", "| --- | --- |"]
    rewards += [f"| `{name}` | {meaning} |" for name, meaning in SCHEMES.items()]
    return {
        "planes": markdown_table(PLANES, planes=True),
        "flat": markdown_table(PLANES),
        "features": markdown_table(FEATURES),
        "rewards": "\n".join(rewards),
    }


def updated(text: str) -> str:
    """A page with what stands between `<!-- NAME -->` and `<!-- end of NAME -->` written anew.

    Raises:
        ValueError: The page lacks a table.
    """
    for name, table in tables().items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{begin}.*?{end}", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{PAGE.name} has no table between {begin} and {end}")
        text = pattern.sub(lambda _, new=f"{begin}\n{table}\n{end}": new, text)
    return text


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
