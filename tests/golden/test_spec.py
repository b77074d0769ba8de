"""Valid specs resolve as in their golden file; errors in invalid ones name what and where."""

from pathlib import Path

import msgspec
import pytest

from golden.rewrite import hold
from mydyno.campaign.plan import plan
from mydyno.campaign.spec import decode
from mydyno.campaign.treatments import Environment
from mydyno.model import SpecError

CASES = Path(__file__).parent / "spec"
ENVIRONMENT = Environment(8 * 2**30, 4, "mysql", (8, 0, 33))


@pytest.mark.parametrize("path", sorted(CASES.glob("good/*.toml")), ids=lambda p: p.stem)
def test_good(path):
    text = path.read_text()
    campaign = plan(decode(text, path.name), text, path.name, ENVIRONMENT)
    resolved = {
        "name": campaign.name,
        "baseline": campaign.rule.baseline,
        "treatments": {name: dict(settings) for name, settings in campaign.treatments.items()},
        "workloads": {name: w.info.response for name, w in campaign.workloads.items()},
        "design": repr(campaign.design),
        "stops": repr(campaign.stops),
    }
    hold(
        path.with_suffix(".json"),
        msgspec.json.format(msgspec.json.encode(resolved)).decode() + "\n",
    )


@pytest.mark.parametrize("path", sorted(CASES.glob("bad/*.toml")), ids=lambda p: p.stem)
def test_bad(path):
    text = path.read_text()
    with pytest.raises(SpecError) as error:
        plan(decode(text, path.name), text, path.name, ENVIRONMENT)
    hold(path.with_suffix(".error"), f"{error.value}\n")
