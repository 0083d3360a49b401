"""Rule sets: presets, options, texts."""

import numpy as np
import pytest

from marrakech_env.spec import DEFAULT_RUGS, OPTIONS, PRESETS, RuleSet, resolve_rules


@pytest.mark.parametrize("players", [2, 3, 4])
def test_official_is_every_default(players):
    rules = RuleSet.preset("official", players)
    assert rules.rugs == DEFAULT_RUGS[players]
    assert (rules.money, rules.cover_own, rules.play_on) == (30, 0, 0)
    assert (rules.steering, rules.tie_break, rules.facing) == ("start", "money", "S")
    assert rules.colours == ("shuffled" if players == 2 else "single")


def test_presets_differ_from_official_as_published():
    assert RuleSet.preset("boardgamearena").cover_own == 1
    assert RuleSet.preset("boardgamearena").colours == "coin"
    comp1110 = RuleSet.preset("comp1110", 3)
    assert (comp1110.rugs, comp1110.colours, comp1110.play_on) == (15, "single", 1)


@pytest.mark.parametrize(
    ("text", "players", "canonical"),
    [
        ("official", 2, "official"),
        ("official;facing=N;rugs=10", 2, "official;rugs=10;facing=N"),
        ("boardgamearena;steering=end;cover_own=1", 2, "boardgamearena;steering=end"),
        ("comp1110;rugs=15;play_on=0", 3, "comp1110;play_on=0"),
        ("official;rugs=12;colours=coin", 4, "official"),
        ("official;rugs=12", 3, "official;rugs=12"),
    ],
)
def test_reading_takes_any_order_and_writing_is_canonical(text, players, canonical):
    rules = RuleSet.parse(text, players)
    assert str(rules) == canonical
    assert RuleSet.parse(canonical, players) == rules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("offical", "unknown preset 'offical'; known: official, boardgamearena, comp1110"),
        ("official;rug=3", "unknown option 'rug'; known: rugs, colours"),
        ("official;rugs=0", "rugs='?0'? is not allowed; allowed: a whole number 1..100"),
        ("official;rugs=101", "a whole number 1..100"),
        ("official;rugs=012", "a whole number 1..100"),
        ("official;rugs=-2", "a whole number 1..100"),
        ("official;money=1001", r"a whole number 0\.\.1000"),
        ("official;cover_own=2", "allowed: 0, 1"),
        ("official;steering=middle", "allowed: start, end"),
        ("official;rugs", "expected option=value, found 'rugs'"),
        ("official;money=5;money=5", "'money' stands twice"),
        ("official;rugs=15", "must be even where a player has two colours"),
        ("comp1110;colours=coin", "must be even"),
        ("official ", "unknown preset"),
        ("", "unknown preset"),
    ],
)
def test_bad_text_is_refused_with_what_is_allowed(text, message):
    with pytest.raises(ValueError, match=message):
        RuleSet.parse(text, 2)


@pytest.mark.parametrize("players", [0, 1, 5, "2", None, 2.5, True])
def test_other_numbers_of_players_are_refused(players):
    with pytest.raises(ValueError, match="num_players must be 2, 3 or 4"):
        RuleSet.preset("official", players)
    with pytest.raises(ValueError, match="num_players must be 2, 3 or 4"):
        resolve_rules("official", players)


@pytest.mark.parametrize(
    "options",
    [
        {"rugs": 2.0},
        {"rugs": "10"},
        {"money": None},
        {"money": True},
        {"colours": 0},
        {"facing": "s"},
        {"tie_break": ["money"]},
        {"cover_own": float("nan")},
    ],
)
def test_values_of_another_type_are_refused(options):
    with pytest.raises(ValueError, match="is not allowed; allowed:"):
        RuleSet.preset("official", **options)


def test_numbers_of_numpy_and_booleans_for_switches_are_taken():
    rules = RuleSet.preset("official", np.int64(2), money=np.int64(7), cover_own=True)
    assert rules == RuleSet.preset("official", 2, money=7, cover_own=1)
    assert str(rules) == "official;cover_own=1;money=7"


def test_a_rule_set_for_another_number_of_players_is_refused():
    with pytest.raises(ValueError, match="made for 3 players, not for 2"):
        resolve_rules(RuleSet.preset("official", 3), 2)
    with pytest.raises(ValueError, match="a preset"):
        resolve_rules(3, 2)


def test_every_preset_is_made_of_known_options():
    for options in PRESETS.values():
        for name, value in options.items():
            assert value in OPTIONS[name]
