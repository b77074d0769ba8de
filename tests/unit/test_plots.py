"""Split plots: hard-to-change factors stay together, in an order of its own in each block."""

from itertools import groupby

from mydyno.campaign.blocks import Blocks
from mydyno.campaign.designs import plots
from mydyno.campaign.race import Race
from mydyno.model import Outcome, TrialStatus, Window

SETTINGS = {
    "6.1": {"db/kernel.release": "6.1"},
    "6.1-tuned": {"db/kernel.release": "6.1", "db/mysqld.sync_binlog": "0"},
    "6.12": {"db/kernel.release": "6.12"},
    "6.12-xfs": {"db/kernel.release": "6.12", "db/fs.type": "xfs"},
}


def orders(design, most=200):
    history, found = [], {}
    while (trial := design.next(history)) and len(history) < most:
        history.append(Outcome(trial, TrialStatus.OK, Window(0, 1), machine_time_s=60.0))
        found.setdefault(trial.block, []).append(trial.treatment)
    return list(found.values())


def kernels(order):
    return [name for name, _ in groupby(order, key=lambda t: SETTINGS[t]["db/kernel.release"])]


def test_a_kernel_is_booted_once_in_a_block_whatever_the_loads():
    of = plots(SETTINGS, one_device=False)
    found = orders(Blocks(tuple(SETTINGS), ("w", "v"), 12, None, 5, plots=of))
    assert {len(kernels(order)) for order in found} == {2}
    assert {kernels(order)[0] for order in found} == {"6.1", "6.12"}  # drawn again for each block
    assert len({tuple(order) for order in found}) > 4


def test_a_race_keeps_its_baseline_in_its_own_plot():
    of = plots(SETTINGS, one_device=False)
    race = Race(
        tuple(SETTINGS), "6.1", ("w",), 6, None, 3,
        lambda _: {("w", name) for name in SETTINGS}, plots=of,
    )  # fmt: skip
    for order in orders(race):
        assert len(kernels(order)) == 2
        assert set(order) == set(SETTINGS)


def test_a_filesystem_is_hard_to_change_only_where_a_device_holds_one_at_a_time():
    lab = plots(SETTINGS, one_device=False)
    one = plots(SETTINGS, one_device=True)
    assert lab["6.12"] == lab["6.12-xfs"]
    assert one["6.12"] != one["6.12-xfs"]
    assert one["6.1"] == one["6.1-tuned"]
