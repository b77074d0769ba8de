"""Private servers: found, initialised, started, queried and stopped; never the host's own."""

from mydyno.server.build import Build
from mydyno.server.find import find
from mydyno.server.instance import Endpoint, Instance, prepare, sweep
from mydyno.server.place import Place

__all__ = ["Build", "Endpoint", "Instance", "Place", "find", "prepare", "sweep"]
