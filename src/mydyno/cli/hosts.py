"""From a spec's or an option's words to the hosts of a campaign."""

from mydyno.campaign.parts import Hosts
from mydyno.campaign.spec import StackTable
from mydyno.host import Away, Host, reach
from mydyno.model import SpecError


def hosts_of(stack: StackTable, place: str) -> Hosts:
    """Return the hosts that ``[stack]`` names; raise `SpecError` for a word that names none.

    A load elsewhere finds the server at `address`, else at the address by which we reach the one
    or the other.
    """
    try:
        db = reach(stack.host)
        beside = stack.load in {"", stack.host}
        load = db if beside else reach(stack.load)
    except SpecError as error:
        raise SpecError(f"{place}: stack.host or stack.load: {error}") from error
    if beside and stack.address:
        raise SpecError(f"{place}: stack.address: only for a load elsewhere: name stack.load")
    return Hosts(db, load, "" if beside else stack.address or _between(db, load, place))


def _between(db: Host, load: Host, place: str) -> str:
    """Return the server's address as the load host should see it."""
    found = ""
    if isinstance(db, Away):
        found = db.addresses()[1]
    elif isinstance(load, Away):
        found = load.addresses()[0]
    if not found:
        raise SpecError(f"{place}: stack.address is missing: where does the load find the server?")
    return found
