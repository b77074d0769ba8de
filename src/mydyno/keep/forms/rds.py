"""Parameters of a parameter group of RDS, as the AWS CLI and Terraform take them."""

import json
from collections.abc import Sequence

from mydyno.keep.forms.persist import literal
from mydyno.keep.kept import Form, Kept, KeptFile, prefixed


def _plain(name: str, value: str) -> str:
    """Return a value as a parameter group has it: numbers in bytes, ON and OFF as 1 and 0."""
    text = literal(name, value)
    return value if text.startswith("'") else {"ON": "1", "OFF": "0"}.get(text, text)


def _write(kept: Kept) -> Sequence[KeptFile]:
    values = {name: _plain(name, value) for name, value in kept.of("mysqld").items()}
    listed = [
        {"ParameterName": name, "ParameterValue": value, "ApplyMethod": "pending-reboot"}
        for name, value in values.items()
    ]
    terraform = [*kept.heading(), 'resource "aws_db_parameter_group" "mydyno" {']
    terraform.append('  family = "FAMILY"   # of your engine: mariadb10.11, mysql8.0')
    for name, value in values.items():
        terraform += ["", "  parameter {", f"    name         = {json.dumps(name)}"]
        quoted = json.dumps(value).replace("${", "$${").replace("%{", "%%{")  # no template
        terraform += [f"    value        = {quoted}"]
        terraform += ['    apply_method = "pending-reboot"', "  }"]
    return [
        KeptFile("parameters.json", json.dumps(listed, indent=2) + "\n"),
        KeptFile("parameters.tf", "\n".join([*terraform, "}"]) + "\n"),
    ]


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    listed = [
        {"ParameterName": name, "ApplyMethod": "pending-reboot"} for name in kept.of("mysqld")
    ]
    return [KeptFile("reset.json", json.dumps(listed, indent=2) + "\n")]


FORM = Form(
    "rds",
    "parameters of a parameter group of RDS",
    prefixed("mysqld."),
    _write,
    _inverse,
    "aws rds modify-db-parameter-group --db-parameter-group-name NAME --parameters "
    "file://parameters.json (20 a call); describe-db-parameters lists what may be set",
)
