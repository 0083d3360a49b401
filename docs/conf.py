"""Sphinx configuration: Markdown pages with MyST, the furo theme."""

from __future__ import annotations

import tomllib
from pathlib import Path

_pyproject = Path(__file__).resolve().parents[1] / "pyproject.toml"
_project = tomllib.loads(_pyproject.read_text(encoding="utf-8"))["project"]

project = _project["name"]
author = _project["authors"][0]["name"]
copyright = author
version = release = _project["version"]

extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"{project} {version}"
