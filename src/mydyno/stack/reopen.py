"""From a record back to the layer that it was written for: `rollback` has no spec to ask."""

from mydyno.journal.records import Acting
from mydyno.model import HostError
from mydyno.stack.block import Block
from mydyno.stack.fs import Fs
from mydyno.stack.kernel import Kernel
from mydyno.stack.protocol import Layer


def layer_of(acting: Acting) -> Layer:
    """Return the layer of a host whose settings were recorded; raise `HostError` for another."""
    match acting.layer:
        case "block":
            return Block(acting.at, ours=False)
        case "fs":
            return Fs(acting.at, "")
        case "kernel":
            return Kernel(tuple(acting.before))
        case other:
            raise HostError(f"{other}: this version of mydyno cannot restore it; use a newer one")
