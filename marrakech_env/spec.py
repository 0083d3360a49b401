"""The numbers of the game: board, die, and the named rule sets with their options.

The options are spelt alike everywhere: Python keyword arguments, command lines and the RULES
field of a position text. `docs/rules.md` says what each of them means.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

BOARD_SIZE: Final = 7
NUM_CELLS: Final = BOARD_SIZE * BOARD_SIZE
MAX_PLAYERS: Final = 4
NUM_COLOURS: Final = 4
DIE: Final = (1, 2, 2, 3, 3, 4)
"""The six faces of the die, in squares to walk."""

NORTH, EAST, SOUTH, WEST = range(4)
FACINGS: Final = "NESW"
"""Letters of the facings 0..3, clockwise from north."""

MAX_RUGS: Final = 100
MAX_START_MONEY: Final = 1000
DEFAULT_RUGS: Final = MappingProxyType({2: 24, 3: 15, 4: 12})

COLOUR_RULES: Final = ("shuffled", "coin", "alternate", "single")
FACING_RULES: Final = ("S", "N", "E", "W", "random")
OPTIONS: Final[Mapping[str, tuple[str | int, ...] | range]] = MappingProxyType(
    {
        "rugs": range(1, MAX_RUGS + 1),
        "colours": COLOUR_RULES,
        "cover_own": (0, 1),
        "play_on": (0, 1),
        "steering": ("start", "end"),
        "money": range(MAX_START_MONEY + 1),
        "tie_break": ("money", "squares"),
        "facing": FACING_RULES,
    }
)
"""Every option with its values, the default first (`rugs` and `money`: any number of the range)."""

PRESETS: Final[Mapping[str, Mapping[str, str | int]]] = MappingProxyType(
    {
        "official": MappingProxyType({}),
        "boardgamearena": MappingProxyType({"cover_own": 1, "colours": "coin"}),
        "comp1110": MappingProxyType({"rugs": 15, "colours": "single", "play_on": 1}),
    }
)
"""Every preset with the options in which it differs from `official`."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """One complete, checked set of rules for a number of players.

    Make it with `RuleSet.preset` or `RuleSet.parse`; equal rule sets write equal texts.

    Attributes:
        num_players: 2, 3 or 4.
        rugs: Rugs a player, both colours together; even where a player has two colours.
        colours: How a player of a 2-player game comes to the colour of his next rug; always
            `single` with 3 and 4 players, where everybody has one colour.
        cover_own: 1 where the two visible halves of one own rug may be covered.
        play_on: 1 where a last survivor plays on until his rugs are laid.
        steering: Whether the mover steers at the `start` of his turn or at its `end`.
        money: Start money in dirhams.
        tie_break: What decides between equal scores, `money` or visible `squares`.
        facing: Assam's first facing, or `random`.
        preset_name: The preset that the rule set was made from.
    """

    num_players: int
    rugs: int
    colours: str
    cover_own: int
    play_on: int
    steering: str
    money: int
    tie_break: str
    facing: str
    preset_name: str = "official"

    def __post_init__(self) -> None:
        """Checks every value.

        Raises:
            ValueError: A value is not allowed; the message lists those that are.
        """
        object.__setattr__(self, "num_players", check_num_players(self.num_players))
        if not isinstance(self.preset_name, str) or self.preset_name not in PRESETS:
            raise ValueError(f"unknown preset {self.preset_name!r}; known: {', '.join(PRESETS)}")
        for name in OPTIONS:
            object.__setattr__(self, name, _checked_option(name, getattr(self, name)))
        if self.num_players > 2:
            object.__setattr__(self, "colours", "single")
        if self.two_colours and self.rugs % 2:
            raise ValueError(
                f"option rugs={self.rugs} must be even where a player has two colours "
                f"(2 players, colours={self.colours}): each colour gets half"
            )

    @property
    def two_colours(self) -> bool:
        """Whether each player owns two colours."""
        return self.num_players == 2 and self.colours != "single"

    def owned_colours(self, player: int) -> tuple[int, ...]:
        """The colours of a seat, ascending: one, or two where each player owns two.

        Raises:
            ValueError: A seat that does not play.
        """
        seat = checked_number("player", player, 0, self.num_players - 1)
        return (2 * seat, 2 * seat + 1) if self.two_colours else (seat,)

    @classmethod
    def preset(cls, name: str, num_players: int = 2, **options: str | int) -> RuleSet:
        """Makes a rule set from a preset and the options that shall differ from it.

        Args:
            name: `official`, `boardgamearena` or `comp1110`.
            num_players: 2, 3 or 4.
            **options: See `OPTIONS`.

        Raises:
            ValueError: An unknown preset or option, or a value that is not allowed.
        """
        if not isinstance(name, str) or name not in PRESETS:
            raise ValueError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
        num_players = check_num_players(num_players)
        for option in options:
            if option not in OPTIONS:
                raise ValueError(f"unknown option {option!r}; known: {', '.join(OPTIONS)}")
        values: dict[str, Any] = {**_preset_options(name, num_players), **options}
        return cls(
            **values,  # checked there, one by one
            num_players=num_players,
            preset_name=name,
        )

    @classmethod
    def parse(cls, text: str, num_players: int = 2) -> RuleSet:
        """Reads a RULES text such as `boardgamearena;steering=end`.

        Options may stand in any order and may equal the preset's own value.

        Raises:
            ValueError: An unknown preset or option, a doubled option, or a value not allowed.
        """
        if not isinstance(text, str):
            raise ValueError(f"a rules text must be a str, not {text!r}")
        name, *parts = text.split(";")
        options: dict[str, str | int] = {}
        for part in parts:
            option, sign, value = part.partition("=")
            if not sign:
                raise ValueError(f"rules {text!r}: expected option=value, found {part!r}")
            if option in options:
                raise ValueError(f"rules {text!r}: option {option!r} stands twice")
            options[option] = _option_from_text(option, value)
        return cls.preset(name, num_players, **options)

    def __str__(self) -> str:
        """The canonical RULES text: the preset, then the options that differ from it."""
        usual = _preset_options(self.preset_name, self.num_players)
        differing = [
            f";{name}={getattr(self, name)}"
            for name in OPTIONS
            if getattr(self, name) != usual[name]
            and not (name == "colours" and self.num_players > 2)
        ]
        return self.preset_name + "".join(differing)


def resolve_rules(rules: str | RuleSet, num_players: int = 2) -> RuleSet:
    """Turns what `rules=` accepts everywhere into a rule set.

    Args:
        rules: A preset's name, a RULES text, or a rule set.
        num_players: 2, 3 or 4.

    Raises:
        ValueError: The text is bad, or the rule set was made for another number of players.
    """
    if isinstance(rules, str):
        return RuleSet.parse(rules, num_players)
    if not isinstance(rules, RuleSet):
        raise ValueError(
            f"rules must be a preset ({', '.join(PRESETS)}), a rules text or a RuleSet, "
            f"not {rules!r}"
        )
    check_num_players(num_players)
    if rules.num_players != num_players:
        raise ValueError(
            f"the rule set was made for {rules.num_players} players, not for {num_players}"
        )
    return rules


def check_num_players(num_players: int) -> int:
    """A number of players as an int, or a ValueError unless it is 2, 3 or 4."""
    number = whole_number(num_players)
    if number is None or number not in DEFAULT_RUGS:
        raise ValueError(f"num_players must be 2, 3 or 4, not {num_players!r}")
    return number


def whole_number(value: Any) -> int | None:
    """A value as an int; None where it is no whole number, and for True and False."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def checked_number(name: str, value: Any, low: int, high: int | None = None) -> int:
    """A whole number from `low` on, or from `low` to `high`, as an int.

    Raises:
        ValueError: Another value; the message calls it `name`.
    """
    number = whole_number(value)
    if number is None or number < low or (high is not None and number > high):
        allowed = f"of at least {low}" if high is None else f"{low}..{high}"
        raise ValueError(f"{name} must be a whole number {allowed}, not {value!r}")
    return number


def _preset_options(name: str, num_players: int) -> dict[str, str | int]:
    """Every option of a preset at a number of players."""
    defaults = {option: values[0] for option, values in OPTIONS.items()}
    defaults |= {"rugs": DEFAULT_RUGS[num_players], "money": 30}
    return {**defaults, **PRESETS[name]}


def _checked_option(name: str, value: object) -> str | int:
    """The value of an option in its own type, or a ValueError that lists what is allowed."""
    allowed = OPTIONS[name]
    if isinstance(value, bool) and allowed == (0, 1):
        value = int(value)
    found = whole_number(value) if isinstance(allowed[0], int) else value
    if isinstance(found, int | str) and found in allowed:
        return found
    known = (
        f"a whole number {allowed[0]}..{allowed[-1]}"
        if isinstance(allowed, range)
        else ", ".join(map(str, allowed))
    )
    raise ValueError(f"option {name}={value!r} is not allowed; allowed: {known}")


def _option_from_text(name: str, value: str) -> str | int:
    """The value in the option's type; numbers without signs or leading zeros."""
    allowed = OPTIONS.get(name)
    if allowed is None:
        raise ValueError(f"unknown option {name!r}; known: {', '.join(OPTIONS)}")
    if isinstance(allowed[0], int) and value.isascii() and value.isdigit():
        if str(int(value)) == value:
            return int(value)
    return value
