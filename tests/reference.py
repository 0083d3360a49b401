"""The rules of Marrakech a second time, slow and plain, to test the compiled kernels against.

Written from docs/rules.md alone. It imports nothing from `marrakech_env` and shares no table and no
encoding with it: rugs are objects that lie on a dictionary board, the edge track is the printed
table, probabilities are fractions. Numbers such as (rule 8) refer to section 1 of docs/rules.md.

Squares are (x, y), directions are letters, colours and players are small integers. What crosses
the border to the tests is the public numbering: the 15 actions, the die, colours 0..3, and -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

Square = tuple[int, int]

SQUARES = [(x, y) for y in range(7) for x in range(7)]  # in the order of cell = 7 * y + x
COMPASS = "NESW"  # clockwise, so that turning right is one letter on
STEP = {"N": (0, -1), "E": (1, 0), "S": (0, 1), "W": (-1, 0)}
MARK = {"N": "^", "E": ">", "S": "v", "W": "<"}
DIE = [(face, Fraction(weight, 6)) for face, weight in ((1, 1), (2, 2), (3, 2), (4, 1))]  # rule 4

# Rule 5: where Assam re-enters, x, y and his new facing, by the edge he leaves and his index on it.
TRACK = {
    "N": ["10S", "00S", "30S", "20S", "50S", "40S", "60W"],
    "E": ["60S", "62W", "61W", "64W", "63W", "66W", "65W"],
    "S": ["06E", "26N", "16N", "46N", "36N", "66N", "56N"],
    "W": ["01E", "00E", "03E", "02E", "05E", "04E", "06N"],
}

# Section 2, in the order of its table, which is also the order in which texts write them.
DEFAULTS: dict[str, int | str] = {
    "rugs": 0,  # stands for the number that goes with the number of players
    "colours": "shuffled",
    "cover_own": 0,
    "play_on": 0,
    "steering": "start",
    "money": 30,
    "tie_break": "money",
    "facing": "S",
}
RUGS = {2: 24, 3: 15, 4: 12}
PRESETS: dict[str, dict[str, int | str]] = {
    "official": {},
    "boardgamearena": {"cover_own": 1, "colours": "coin"},
    "comp1110": {"rugs": 15, "colours": "single", "play_on": 1},
}


def neighbour(square: Square, direction: str) -> Square:
    """The square one step away, possibly off the board."""
    return square[0] + STEP[direction][0], square[1] + STEP[direction][1]


def on_board(square: Square) -> bool:
    """Whether a square exists."""
    return 0 <= square[0] < 7 and 0 <= square[1] < 7


def turned(direction: str, quarters: int) -> str:
    """The direction after so many quarter turns to the right."""
    return COMPASS[(COMPASS.index(direction) + quarters) % 4]


def walk(square: Square, facing: str, steps: int) -> tuple[Square, str]:
    """Where a walk ends and the facing there (rule 5)."""
    for _ in range(steps):
        ahead = neighbour(square, facing)
        if not on_board(ahead):
            index = square[0] if facing in "NS" else square[1]
            x, y, facing = TRACK[facing][index]
            ahead = int(x), int(y)
        square = ahead
    return square, facing


@dataclass(eq=False)
class Rug:
    """One rug; two rugs are never equal, only the same one. A text does not tell a covered half."""

    colour: int
    squares: tuple[Square, ...]


class Options:
    """A preset and the options that differ from it, for a number of players."""

    def __init__(self, preset: str = "official", num_players: int = 2, **changes: int | str):
        """Raise ValueError where two colours cannot share the rugs equally."""
        self.preset, self.num_players = preset, num_players
        self.base = {**DEFAULTS, "rugs": RUGS[num_players], **PRESETS[preset]}
        self.values = {**self.base, **changes}
        self.two_colours = num_players == 2 and self.values["colours"] != "single"
        if self.two_colours and int(self["rugs"]) % 2:
            raise ValueError("rugs: two colours need an even number")

    def __getitem__(self, name: str) -> int | str:
        """The value of one option."""
        return self.values[name]

    def text(self) -> str:
        """The RULES field: the preset, then what differs from it; `colours` only tells with two."""
        words = [self.preset]
        for name, value in self.values.items():
            if value != self.base[name] and (name != "colours" or self.num_players == 2):
                words.append(f"{name}={value}")
        return ";".join(words)

    @classmethod
    def from_text(cls, text: str, num_players: int) -> Options:
        """Read a RULES field."""
        preset, *words = text.split(";")
        pairs = [word.split("=") for word in words]
        numbers = {name for name, value in DEFAULTS.items() if isinstance(value, int)}
        return cls(preset, num_players, **{n: int(v) if n in numbers else v for n, v in pairs})


class Game:
    """One game, with every chance outcome an argument.

    Attributes:
        board: the rug that is visible on each covered square.
        assam: his square.
        facing: his facing, a letter.
        player: whose turn it is.
        phase: "s" to steer, "l" to lay, "w" to walk on unsteered, "-" when the game is over.
        money: dirhams of each player.
        stock: for each player the unlaid rugs of each of his colours.
        top: the colour of each player's next rug, None where a player with two colours has none.
        eliminated: 0, or the order of each player's elimination.
    """

    def __init__(self, options: Options, outcomes: list[int] | None = None):
        """Start a game (rule 1); `outcomes` are the facing 0..3 and each player's first colour."""
        self.options = options
        self.num_players = options.num_players
        self.players = range(self.num_players)
        self.steers_last = options["steering"] == "end"
        share = int(options["rugs"]) // (2 if options.two_colours else 1)
        self.board: dict[Square, Rug] = {}
        self.assam: Square = (3, 3)
        self.facing = "S" if options["facing"] == "random" else str(options["facing"])
        self.player, self.phase = 0, "w" if self.steers_last else "s"
        self.money = [int(options["money"]) for _ in self.players]
        self.stock = [dict.fromkeys(self.colours_of(player), share) for player in self.players]
        self.top: list[int | None] = [min(self.stock[player]) for player in self.players]
        self.eliminated = [0 for _ in self.players]
        if outcomes is not None:
            self.facing = COMPASS[outcomes[0]]
            if options.two_colours:
                self.top = list(outcomes[1:])

    # Who owns what.

    def colours_of(self, player: int) -> list[int]:
        """The colours of a player."""
        return [2 * player, 2 * player + 1] if self.options.two_colours else [player]

    def owner(self, colour: int) -> int:
        """The player who owns a colour, eliminated or not."""
        return colour // 2 if self.options.two_colours else colour

    def rugs_left(self, player: int) -> int:
        """How many rugs a player still has to lay."""
        return sum(self.stock[player].values())

    def survivors(self) -> list[int]:
        """The players still in the game."""
        return [player for player in self.players if not self.eliminated[player]]

    # What may happen.

    def legal_actions(self) -> list[int]:
        """The legal actions in rising order."""
        if self.phase == "l":
            return [action for action in range(3, 15) if self.may_lay(self.placement(action))]
        return {"s": [0, 1, 2], "w": [1], "-": []}[self.phase]

    def placement(self, action: int) -> tuple[Square, Square]:
        """The two squares of a laying action; they may be off the board."""
        side, bend = divmod(action - 3, 3)
        outward = turned(self.facing, side)
        first = neighbour(self.assam, outward)
        return first, neighbour(first, turned(outward, bend - 1))

    def may_lay(self, squares: tuple[Square, Square]) -> bool:
        """Whether the player to move may cover two squares next to Assam (rule 8)."""
        if not all(on_board(square) for square in squares):
            return False
        first, second = (self.board.get(square) for square in squares)
        if first is None or first is not second:
            return True
        # `cover_own` frees the mover's own rugs; neutral ones stay safe, their owner never moves.
        return bool(self.options["cover_own"]) and self.owner(first.colour) == self.player

    def chance_outcomes(self, action: int) -> list[tuple[int, Fraction]]:
        """The outcomes of a legal action that are possible, with their probabilities."""
        if self.phase == "l":
            return self._next_colours()
        if self.phase == "s" and self.steers_last:
            return [(-1, Fraction(1))]
        return DIE

    def _next_colours(self) -> list[tuple[int, Fraction]]:
        """The colour of the mover's next rug once he has laid the visible one (rule 1)."""
        laid = self.top[self.player]
        left = {colour: n - (colour == laid) for colour, n in self.stock[self.player].items()}
        left = {colour: n for colour, n in left.items() if n > 0}
        if not self.options.two_colours or not left:
            return [(-1, Fraction(1))]
        if self.options["colours"] == "alternate" and len(left) == 2:
            left = {colour: n for colour, n in left.items() if colour != laid}
        if self.options["colours"] == "coin":
            left = dict.fromkeys(left, 1)
        return [(colour, Fraction(n, sum(left.values()))) for colour, n in left.items()]

    # What does happen.

    def apply(self, action: int, outcome: int = -1) -> None:
        """Carry out one decision with its chance outcome; ValueError for an illegal action."""
        if action not in self.legal_actions():
            raise ValueError(f"illegal action {action} in {self.text()}")
        if self.phase == "l":
            self._lay(action, outcome)
            return
        self.facing = turned(self.facing, action - 1)  # rule 3; `w` only knows straight on
        if self.phase == "s" and self.steers_last:
            self._pass_on()
        else:
            self._walk_and_pay(outcome)

    def _walk_and_pay(self, die: int) -> None:
        """Rules 5 to 7."""
        mover = self.player
        self.assam, self.facing = walk(self.assam, self.facing, die)
        due = self.due(mover, self.assam)
        if due > 0:
            paid = min(due, self.money[mover])
            self.money[mover] -= paid
            self.money[self.owner(self.board[self.assam].colour)] += paid
            if paid < due:
                self.eliminated[mover] = max(self.eliminated) + 1
                self.stock[mover] = dict.fromkeys(self.stock[mover], 0)
        # Who has no rug to lay (only in a position given as text) lays nothing and does not steer.
        if self.eliminated[mover] or not self.rugs_left(mover):
            self._pass_on()
        else:
            self.phase = "l"

    def _lay(self, action: int, outcome: int) -> None:
        """Lay the top rug (rule 8); `outcome` is the colour of the next one."""
        mover, colour = self.player, self.top[self.player]
        rug = Rug(colour, self.placement(action))
        self.board.update(dict.fromkeys(rug.squares, rug))
        self.stock[mover][colour] = max(self.stock[mover][colour] - 1, 0)
        if self.options.two_colours:
            self.top[mover] = outcome if outcome >= 0 else None
        if self.steers_last and not self.is_over():
            self.phase = "s"
        else:
            self._pass_on()

    def _pass_on(self) -> None:
        """End the turn: the next player clockwise who is in the game and has a rug (rules 2, 9)."""
        if self.is_over():
            self.phase = "-"
            return
        seats = [(self.player + k) % self.num_players for k in range(1, self.num_players + 1)]
        self.player = next(p for p in seats if not self.eliminated[p] and self.rugs_left(p))
        self.phase = "w" if self.steers_last else "s"

    # What it is worth.

    def region(self, square: Square) -> set[Square]:
        """The connected visible squares of one colour around a covered square (rule 6)."""
        colour, found, edge = self.board[square].colour, {square}, [square]
        while edge:
            here = edge.pop()
            for near in (neighbour(here, direction) for direction in COMPASS):
                if near in self.board and self.board[near].colour == colour and near not in found:
                    found.add(near)
                    edge.append(near)
        return found

    def due(self, player: int, square: Square) -> int:
        """What a player owes for stopping on a square, whatever he has (rule 6)."""
        if square not in self.board:
            return 0
        owner = self.owner(self.board[square].colour)
        return 0 if owner == player or self.eliminated[owner] else len(self.region(square))

    def tolls(self, player: int | None = None) -> list[int]:
        """The dues of a player, by default the one to move, for each cell; 0 when it is over."""
        player = self.player if player is None else player
        dues: dict[Square, int] = {}
        for square in self.board if self.phase != "-" else ():
            if square not in dues:  # one region, one due
                dues.update(dict.fromkeys(self.region(square), self.due(player, square)))
        return [dues.get(square, 0) for square in SQUARES]

    def colours(self) -> list[int]:
        """The visible colour of each cell, -1 where it is empty."""
        return [self.board[s].colour if s in self.board else -1 for s in SQUARES]

    def squares_of(self, player: int) -> int:
        """How many visible squares a player has."""
        return sum(self.owner(rug.colour) == player for rug in self.board.values())

    def scores(self) -> list[int]:
        """Dirhams and visible squares now, 0 for the eliminated (rule 10)."""
        totals = [self.money[player] + self.squares_of(player) for player in self.players]
        return [0 if self.eliminated[p] else total for p, total in enumerate(totals)]

    def is_over(self) -> bool:
        """Whether nobody in the game has a rug, or nobody is left to play against (rule 9)."""
        left = self.survivors()
        if len(left) <= 1 and not self.options["play_on"]:
            return True
        return not any(self.rugs_left(player) for player in left)

    def ranks(self) -> list[int]:
        """The places, equals sharing the better one; 0 for all until the game is over (rule 10)."""
        if not self.is_over():
            return [0 for _ in self.players]
        keys = [self._standing(player) for player in self.players]
        return [1 + sum(other > key for other in keys) for key in keys]

    def _standing(self, player: int) -> tuple[int, int, int]:
        """A key that is larger for the better player."""
        if self.eliminated[player]:
            return 0, self.eliminated[player], 0
        by_squares = self.options["tie_break"] == "squares"
        decider = self.squares_of(player) if by_squares else self.money[player]
        return 1, self.scores()[player], decider

    def winner_shares(self) -> list[Fraction]:
        """1 for a win, 1/k for one shared by k; 0 for all until the game is over (rule 10)."""
        ranks = self.ranks()
        won = [ranks[player] == 1 and not self.eliminated[player] for player in self.players]
        return [Fraction(int(w), max(sum(won), 1)) for w in won]

    # Texts.

    def text(self) -> str:
        """The position text, in its one canonical spelling."""
        rows = ["".join(self._square_text((x, y)) for x in range(7)) for y in range(7)]
        assam = f"{self.assam[0]}{self.assam[1]}{self.facing}"
        turn = "-" if self.phase == "-" else f"{self.player}{self.phase}"
        players = ",".join(self._player_text(player) for player in self.players)
        return " ".join(["/".join(rows), assam, turn, players, self.options.text()])

    def _square_text(self, square: Square) -> str:
        """Two characters: the colour, and where the other half of the same rug is visible."""
        if square not in self.board:
            return ".."
        rug = self.board[square]
        for direction, mark in MARK.items():
            if self.board.get(neighbour(square, direction)) is rug:
                return f"{rug.colour}{mark}"
        return f"{rug.colour}-"

    def _player_text(self, player: int) -> str:
        """Money and rugs, and the next colour where there are two."""
        if self.eliminated[player]:
            return f"x{self.eliminated[player]}:0"
        rugs = "+".join(str(n) for _, n in sorted(self.stock[player].items()))
        text = f"{self.money[player]}:{rugs}"
        if self.options.two_colours:
            text += f":{'-' if self.top[player] is None else self.top[player]}"
        return text

    @classmethod
    def from_text(cls, text: str) -> Game:
        """Read a position text that is known to be valid."""
        board, assam, turn, players, rules = text.split(" ")
        game = cls(Options.from_text(rules, len(players.split(","))))
        for y, row in enumerate(board.split("/")):
            for x in range(7):
                game._read_square((x, y), row[2 * x : 2 * x + 2])
        game.assam, game.facing = (int(assam[0]), int(assam[1])), assam[2]
        game.player, game.phase = (0, "-") if turn == "-" else (int(turn[0]), turn[1])
        for player, words in enumerate(players.split(",")):
            game._read_player(player, words)
        return game

    def _read_square(self, square: Square, word: str) -> None:
        """Put half a rug on the board; the second half of a rug is the same rug as the first."""
        if word == "..":
            return
        squares = (square, *(neighbour(square, d) for d, mark in MARK.items() if mark == word[1]))
        known = [self.board[near] for near in squares if near in self.board]
        self.board[square] = known[0] if known else Rug(int(word[0]), squares)

    def _read_player(self, player: int, words: str) -> None:
        """Read one entry of the PLAYERS field."""
        money, rugs, *top = words.split(":")
        if money.startswith("x"):
            self.eliminated[player], self.money[player] = int(money[1:]), 0
            self.stock[player] = dict.fromkeys(self.stock[player], 0)
        else:
            self.money[player] = int(money)
            counts = map(int, rugs.split("+"))
            self.stock[player] = dict(zip(self.colours_of(player), counts, strict=True))
        if self.options.two_colours:
            self.top[player] = int(top[0]) if top and top != ["-"] else None

    def move_text(self, action: int, outcome: int = -1) -> str:
        """The text of a decision and its chance outcome."""
        if action < 3:
            return "LSR"[action] + (str(outcome) if outcome >= 0 else "")
        squares = "-".join(f"{x}{y}" for x, y in self.placement(action))
        return squares + (f"={outcome}" if outcome >= 0 else "")
