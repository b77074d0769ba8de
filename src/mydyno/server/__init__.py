"""Private servers: found, initialised, started, queried and stopped; never the host's own."""

from mydyno.server.instance import Endpoint, Instance, prepare, sweep
from mydyno.server.place import Build, Place
from mydyno.server.programs import find

__all__ = ["Build", "Endpoint", "Instance", "Place", "find", "prepare", "sweep"]
