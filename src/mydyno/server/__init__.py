"""Servers: private ones, made, started and stopped by us; existing ones are looked at only."""

from mydyno.server.instance import Endpoint, Instance, prepare, sweep
from mydyno.server.place import Build, Place
from mydyno.server.programs import find

__all__ = ["Build", "Endpoint", "Instance", "Place", "find", "prepare", "sweep"]
