"""A server flavour: ToyDB, which is MariaDB 10.11 with programs and versions of its own."""

from dataclasses import replace

from mydyno.stack.flavours import MARIADB

FLAVOUR = replace(
    MARIADB,
    title="ToyDB",
    mark="toydb",
    programs=("toydbd",),
    clients=("toydb",),
    oldest=(1, 0),
    quirks=MARIADB.at((10, 11)),
    since={},
    kin="mariadb",
)
