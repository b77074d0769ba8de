"""The stripe under a loop lab: as its device table says, or as ``raid`` keys put it under test."""

from mydyno.campaign.quantities import size_bytes
from mydyno.campaign.spec import DeviceTable
from mydyno.lab import Stripe
from mydyno.lab.values import check_stripe
from mydyno.model import Settings, SpecError, unknown_value

PREFIX = "db/raid."
KEYS = ("level", "chunk", "devices")


def stripe_of(device: str | DeviceTable, settings: Settings, place: str = "") -> Stripe:
    """Return the stripe of a treatment on a device; raise `SpecError` for an invalid one."""
    wanted = {k.removeprefix(PREFIX): v for k, v in settings.items() if k.startswith(PREFIX)}
    if not isinstance(device, DeviceTable):
        if wanted:
            raise SpecError(
                f"{place}raid.{min(wanted)}: needs lab disks; set stack.device to a lab"
            )
        return Stripe()
    if device.lab != "loop":
        return Stripe()  # a virtual machine has md, which is a layer
    for key in wanted:
        if key not in KEYS:
            raise SpecError(f"{place}{unknown_value(key, KEYS, 'setting', prefix='raid.')}")
    if wanted.get("level", "0").removeprefix("raid") != "0":
        raise SpecError(
            f'{place}raid.level: {wanted["level"]}: a loop lab has level 0; use lab = "vm"'
        )
    count = wanted.get("devices", str(device.disks))
    if not count.isdecimal():
        raise SpecError(f"{place}raid.devices: {count!r}: must be a number of disks")
    chunk = size_bytes(wanted.get("chunk", device.chunk), f"{place}raid.chunk")
    stripe = Stripe(int(count), chunk)
    check_stripe(stripe, f"{place}raid")
    return stripe
