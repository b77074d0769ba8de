"""Ladders, screens and switchbacks on the simulated host, whose truth is known."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mydyno.campaign.designs import Adaptive, Fixed
from mydyno.campaign.importing import IMPORTED
from mydyno.campaign.plan import Campaign, plan
from mydyno.campaign.spec import decode
from mydyno.campaign.switchback import CHECKS, SHARE, Segments, Settled, Switchback
from mydyno.campaign.treatments import Environment
from mydyno.model import Metric, Outcome, Reset, SpecError, TrialStatus
from mydyno.stats import Estimator, Goal, Method, Rule, undecided
from mydyno.stats.looks import Looks
from mydyno_simulate import BARE, CLOUD, SCREEN, Arm, Machine, Warmup
from mydyno_simulate.play import one, play
from worded import compare

ENVIRONMENT = Environment(8 * 2**30, 4, "mysql", (8, 0, 33))
LOAD = """
[workloads.w]
tool = "command"
argv = ["x"]
[stack]
server = "none"
[decide]
guards = {}
"""


def campaign(text) -> Campaign:
    return plan(decode(text + LOAD, "x.toml"), text, "x.toml", ENVIRONMENT)


def played(c: Campaign, arms, *, seed=1, world=BARE):
    return play(c.design, c.stops, Machine(world, arms, seed))


def bundles(**gains):
    """Return a ladder's spec of these bundles and the arms of all their sums."""
    lines = [f'[bundles.{name}]\n"load/env.{name}" = "1"' for name in gains]
    rungs = ["STOCK", *gains, "ALL"]
    text = "\n".join([*lines, f"[design]\nrungs = {rungs}\nblocks = 6\n"])
    c = campaign(text)
    return c, {
        name: Arm(sum(gains[k.removeprefix("load/env.")] for k in settings), Warmup(tau_s=20.0))
        for name, settings in c.treatments.items()
    }


def test_a_ladder_shows_the_effect_of_each_part_of_the_winner():
    c, arms = bundles(KERN=0.08, MYSQL=0.40, JE=0.05)
    assert {"MYSQL+JE", "KERN+JE", "KERN+MYSQL"} <= set(c.treatments)
    outcomes = played(c, arms)
    found = compare(outcomes, c.rule, list(c.treatments), c.cells)
    assert found.winner == "ALL"
    ended = c.design.race.ended(outcomes)
    later = {o.trial.treatment for o in outcomes[ended:]}
    assert {"STOCK", "ALL"} <= later <= {"STOCK", "ALL", "MYSQL+JE", "KERN+JE", "KERN+MYSQL"}
    parts = {p.factor: p.effect for p in found.parts}
    assert parts["MYSQL"].ratio == pytest.approx(math.exp(0.40), rel=0.04)
    assert found.share.startswith("2 of 3 changes give ")
    assert found.sentence.endswith(": MYSQL, KERN.")
    blocks = [o.trial.block for o in outcomes]
    assert blocks == sorted(blocks)


def test_a_resumed_ladder_runs_the_same_trials_as_an_uninterrupted_one():
    c, arms = bundles(KERN=0.08, MYSQL=0.40, JE=0.05)
    outcomes = played(c, arms)
    fresh, _ = bundles(KERN=0.08, MYSQL=0.40, JE=0.05)
    for n in (len(outcomes), len(outcomes) - 1, c.design.race.ended(outcomes), 7, 0):
        want = outcomes[n].trial if n < len(outcomes) else None
        assert fresh.design.next(outcomes[:n]) == want


def test_what_a_ladder_adds_is_in_the_plots_of_its_rungs_and_has_error_left():
    c, arms = bundles(KERN=0.02, MYSQL=0.40, JE=0.03)
    race = c.design.race
    assert race.plots["MYSQL+JE"] == race.plots["STOCK"]
    open_ = {("w", name) for name in race.treatments}  # something stays undecided to the end
    design = replace(c.design, race=replace(race, undecided=lambda _: open_))
    outcomes = play(design, c.stops, Machine(BARE, arms, 1))
    assert outcomes[design.race.ended(outcomes) - 1].trial.block == 5, "all of it was spent"
    found = compare(outcomes, c.rule, list(c.treatments), c.cells)
    rows = {row.name: row for row in found.treatments}
    assert found.winner == "ALL"
    assert rows["MYSQL+JE"].effect.high / rows["MYSQL+JE"].effect.low < 1.35


def test_the_finals_of_a_search_spend_their_error_over_their_own_blocks():
    lines = [f'"load/env.S{i}" = [0, 1, 2]' for i in range(3)]
    c = campaign("\n".join(["[factors]", *lines, '[design]\nkind = "search"\nblocks = 3\n']))
    looks = c.rule.method.looks
    assert [looks.share(block, 0.0) for block in (1, 2, 3)] == [0.5, 0.75, 1.0]


def test_a_ladder_without_a_winner_ends_with_its_race():
    c, arms = bundles(KERN=0.0, MYSQL=-0.2)
    outcomes = played(c, arms)
    assert c.design.race.ended(outcomes) == len(outcomes)


FIXED = '[protocol]\nkind = "fixed"\nwarmup_s = 10\nwindow_s = 60\nblocks = 4\n'


def fixed_ladder(**gains):
    _, arms = bundles(**gains)
    text = "\n".join(f'[bundles.{name}]\n"load/env.{name}" = "1"' for name in gains)
    rungs = f"\n[design]\nrungs = {['STOCK', *gains, 'ALL']}\n"
    return campaign(text + rungs + FIXED), arms


def test_a_ladder_of_fixed_lengths_leaves_out_each_part_of_its_winner_too():
    c, arms = fixed_ladder(KERN=0.08, MYSQL=0.40, JE=0.05)
    outcomes = played(c, arms)
    assert len(outcomes) == 4 * 5 + 3 * 5
    later = [o.trial for o in outcomes[20:]]
    assert {t.treatment for t in later} == {"STOCK", "ALL", "MYSQL+JE", "KERN+JE", "KERN+MYSQL"}
    assert [t.block for t in later] == [4] * 5 + [5] * 5 + [6] * 5
    assert [o.trial.id for o in outcomes] == list(range(35))
    found = compare(outcomes, c.rule, list(c.treatments), c.cells)
    assert found.winner == "ALL"
    parts = {p.factor: p.effect for p in found.parts}
    assert parts["MYSQL"].ratio == pytest.approx(math.exp(0.40), rel=0.05)
    assert c.design.size.after == 15


def test_a_fixed_ladder_without_a_winner_or_without_blocks_has_no_second_phase():
    c, arms = fixed_ladder(KERN=0.0, MYSQL=-0.2)
    assert len(played(c, arms)) == 4 * 4
    c, arms = fixed_ladder(KERN=0.1, MYSQL=0.4)
    open_end = replace(c.design, race=replace(c.design.race, blocks=None, budget_s=1200.0))
    outcomes = play(open_end, c.stops, Machine(BARE, arms, 1))
    assert {o.trial.treatment for o in outcomes} == {"STOCK", "KERN", "MYSQL", "ALL"}


def robbed(c: Campaign, arms, *ids) -> list[Outcome]:
    """Return the outcomes of a campaign in which neighbours took CPU time from these trials."""
    history, machine = [], Machine(BARE, arms, 1)
    while trial := c.design.next(history):
        found = one(machine, trial, c.stops.of(trial, history))
        steal = Metric("cpu_steal_ratio", 0.4 if trial.id in ids else 0.01, "ratio")
        history.append(replace(found, metrics=(*found.metrics, steal)))
    return history


def test_a_ladder_of_fixed_lengths_repeats_what_neighbours_disturbed_in_either_phase():
    c, arms = fixed_ladder(KERN=0.08, MYSQL=0.40, JE=0.05)
    quiet = played(c, arms)
    lost = next(o.trial for o in quiet if o.trial.treatment == "JE")
    part = next(o.trial for o in quiet[20:] if o.trial.treatment == "KERN+JE")
    outcomes = robbed(c, arms, lost.id, part.id + 2)
    repeated = [o.trial for o in outcomes if o.trial.block in {4, 8}]
    assert {t.treatment for t in repeated if t.block == 4} == {"STOCK", "JE"}
    assert {t.treatment for t in repeated if t.block == 8} == {"STOCK", "KERN+JE"}
    assert [o.trial.id for o in outcomes] == list(range(35 + 4))
    found = compare(outcomes, c.rule, list(c.treatments), c.cells)
    assert {row.name: row.trials for row in found.treatments}["JE"] == 4
    assert c.design.size.spare == 2 * 5 + 2 * 5


def screen(settings):
    lines = [f'"load/env.S{i:02d}" = [0, 1]' for i in range(settings)]
    return campaign("\n".join(["[factors]", *lines, "[design]", 'kind = "screen"', ""]))


def test_a_screen_with_common_settings_runs_its_design_alone():
    lines = [f'"load/env.S{i:02d}" = [0, 1]' for i in range(8)]
    text = "\n".join(["[factors]", *lines, "[design]", 'kind = "screen"', ""])
    c = campaign(text + '[common]\n"load/env.X" = "1"\n')
    assert "STOCK" in c.treatments
    assert {o.trial.treatment for o in played(c, {n: Arm() for n in c.treatments})} == {
        name for name in c.treatments if name.startswith("run-")
    }


def test_a_screen_finds_the_strong_settings_in_forty_runs():
    c = screen(19)
    truth = SCREEN.effects(3)
    arms = {
        name: Arm(float(sum(truth[int(k[-2:])] for k, v in cell.items() if v == "1")))
        for name, cell in c.cells.items()
        if cell
    }
    outcomes = played(c, arms, world=CLOUD)
    assert len(outcomes) == 40
    found = compare(outcomes, c.rule, list(c.treatments), c.cells)
    assert {row.verdict for row in found.treatments} == {"inconclusive"}
    assert found.winner is None
    ranked = sorted(found.parts, key=lambda p: -abs(math.log(p.effect.ratio)))
    strong = {f"load/env.S{i:02d}" for i in np.argsort(-np.abs(truth))[:3]}
    assert {p.factor for p in ranked[:3]} == strong
    assert "Of 19 settings these have the largest effects: load/env.S" in found.sentence


def test_a_screen_wants_two_levels_and_auto_chooses_it_for_many():
    many = "[factors]\n" + "".join(f'"load/env.S{i}" = [0, 1]\n' for i in range(8))
    assert "Plackett-Burman" in campaign(many).kind.label
    with pytest.raises(Exception, match=r"factors.load/env.A: a screen needs two levels"):
        campaign('[factors]\n"load/env.A" = [0, 1, 2]\n[design]\nkind = "screen"\n')


HOT = Rule(
    "c",
    "base",
    {"w": "tps"},
    guards={},
    method=Method(Estimator.WINDOWS, segment_s=30.0, looks=Looks(30)),
)


def switched(arms, *, world=CLOUD, seed=1, blocks=30):
    names = tuple(arms)
    cells = undecided(HOT, names)
    race = Switchback(names, "base", ("w",), blocks, None, seed, cells, CHECKS, Reset.NONE)
    return play(race, Segments({"w": "tps"}), Machine(world, arms, seed))


def test_a_switchback_decides_in_half_minutes():
    effects = {"base": 0.0, "up": 0.10, "down": -0.10, "same": 0.0, "a": 0.0, "b": 0.2, "c": 0.0}
    outcomes = switched({name: Arm(e, Warmup(tau_s=30.0)) for name, e in effects.items()})
    rows = {r.name: r for r in compare(outcomes, HOT, list(effects)).treatments}
    assert rows["up"].verdict == "adopt"
    assert rows["down"].verdict == "reject"
    assert rows["same"].verdict in {"equivalent", "reject", "inconclusive"}
    assert {o.window.end_s for o in outcomes[1:]} == {30.0}
    assert outcomes[0].window.end_s >= 120.0
    base = sum(o.trial.treatment == "base" for o in outcomes[1:])
    assert base / len(outcomes) > 0.2


def test_what_carries_over_gives_no_verdict():
    effects = {"base": 0.0, "up": 0.3, "down": -0.3, "a": 0.2, "b": -0.2}

    def words(carry_s):
        arms = {n: Arm(e, Warmup(tau_s=20.0), carry_s=carry_s) for n, e in effects.items()}
        outcomes = switched(arms, blocks=20)
        return compare(outcomes, HOT, list(effects)).treatments

    slow = words(12.0)
    assert {row.verdict for row in slow} == {"baseline", "inconclusive"}
    assert all(
        "carries over into the measured segments" in row.warnings[0]
        for row in slow
        if row.name != "base"
    )
    assert {row.verdict for row in words(1.0) if row.name in {"up", "down"}} == {"adopt", "reject"}


def test_after_a_failure_the_server_settles_again():
    arms = {name: Arm(0.0, Warmup(tau_s=10.0)) for name in ("base", "a")}
    outcomes = switched(arms, blocks=2)
    segments = Segments({"w": "tps"})
    trial = outcomes[3].trial
    assert isinstance(segments.of(trial, []), Settled)
    assert segments.of(trial, outcomes[:3]) == Fixed(5.0, 25.0)
    failed = [*outcomes[:2], replace(outcomes[2], status=TrialStatus.FAILED, error="died")]
    assert isinstance(segments.of(trial, failed), Settled)


def test_each_kind_of_design_has_its_label():
    two = '[treatments.A]\n[treatments.B]\n"load/env.X" = 1\n'
    assert campaign(two).kind.label.startswith("a race")
    assert isinstance(campaign(two).stops, Adaptive)
    assert campaign(two + '[design]\nkind = "switchback"\n').kind.label.startswith("a switchback")
    assert campaign(two + '[design]\nkind = "blocks"\n').kind.label.startswith("blocks")


@pytest.mark.parametrize(
    ("design", "method"),
    [
        ("race", Method(Estimator.STEADY, looks=Looks(8))),
        # their lengths were chosen by what was seen
        ("blocks", Method(Estimator.STEADY, looks=Looks(5, once=True))),
        ("screen", Method(Estimator.STEADY, Goal.FACTORS, looks=Looks(1, once=True))),
        (
            "search",
            Method(Estimator.STEADY, Goal.BEST, proving_from=1, looks=Looks(None, 4 * 360.0)),
        ),
        (
            "switchback",
            Method(Estimator.WINDOWS, segment_s=30.0, looks=Looks(None, SHARE * 3600 * 5)),
        ),
    ],
)
def test_each_design_declares_how_its_trials_are_evaluated(design, method):
    """A search must not judge by the trials that chose, nor a switchback overlook carry-over."""
    factors = '[factors]\n"load/env.A" = [0, 1]\n"load/env.B" = [0, 1]\n[design]\n'
    assert campaign(f'{factors}kind = "{design}"\n').rule.method == method


def test_trials_of_fixed_length_are_evaluated_as_their_design_declares():
    two = '[treatments.A]\n[treatments.B]\n"load/env.X" = 1\n[protocol]\nwarmup_s = 1\n'
    method = Method(Estimator.BLOCKS, looks=Looks(5, once=True))
    assert campaign(two).rule.method == method
    race = campaign(two + '[design]\nkind = "race"\n').rule.method
    assert race == Method(Estimator.WINDOWS, looks=Looks(8))
    assert IMPORTED.method == Method(guards_may_lack=True)  # a log has what it has


def grid(kind, *, cells=""):
    levels = {"A": 2, "B": 2, "C": 3, "D": 5}
    lines = [f'"load/env.{k}" = {list(range(n))}' for k, n in levels.items()]
    return campaign("\n".join(["[factors]", *lines, "[design]", f'kind = "{kind}"', cells, ""]))


def test_a_fraction_of_a_grid_estimates_factors_and_pairs_that_half_of_it_holds():
    c = grid("fraction")
    assert len(c.treatments) == 31  # with the host as it is found
    assert "A=0,B=0,C=0,D=0" in c.treatments  # what the others are compared with
    assert set(c.treatments) < {*grid("grid").treatments}
    chosen = [s for s in c.treatments.values() if s]
    assert c.kind.label.startswith("a D-optimal fraction")
    for key, levels in (("A", 2), ("B", 2), ("C", 3), ("D", 5)):
        counts = [sum(s[f"load/env.{key}"] == str(v) for s in chosen) for v in range(levels)]
        assert min(counts) >= 30 / levels / 2  # each level as often as it is needed
    arms = {
        name: Arm(
            0.10 * (s.get("load/env.A") == "1")
            + 0.06 * (s.get("load/env.C") == "2")
            + 0.12 * (s.get("load/env.B") == "1" and s.get("load/env.D") == "4"),
            Warmup(tau_s=20.0),
        )
        for name, s in c.treatments.items()
    }
    found = compare(
        played(replace(c, design=replace(c.design, blocks=2)), arms),
        c.rule,
        list(c.treatments),
        c.cells,
    )
    by = {
        (p.factor.removeprefix("load/env."), p.level): math.log(p.effect.ratio) for p in found.parts
    }
    assert by["A", "1"] == pytest.approx(0.10, abs=0.03)
    assert by["C", "2"] == pytest.approx(0.06, abs=0.03)
    assert any({"load/env.B", "load/env.D"} == set(t.levels) for t in found.together)


def test_a_fraction_may_be_smaller_and_an_impossible_one_is_reported():
    assert len(grid("fraction", cells="cells = 16").treatments) == 17
    with pytest.raises(SpecError, match=r"x.toml:8: design.cells = 61: must be from 2 to 60"):
        grid("fraction", cells="cells = 61")
    with pytest.raises(SpecError, match=r"a fraction needs \[factors\]"):
        campaign('[treatments.A]\n[treatments.B]\n[design]\nkind = "fraction"\n')
