"""A ConfigMap for a MariaDB of the mariadb-operator, and the patch that refers to it."""

from collections.abc import Sequence

from mydyno.keep.forms import mycnf
from mydyno.keep.kept import Form, Kept, KeptFile, block, prefixed

_MAP = ["apiVersion: v1", "kind: ConfigMap", "metadata:", "  name: mydyno", "data:"]
_PATCH = "spec:\n  myCnfConfigMapKeyRef:\n    name: mydyno\n    key: my.cnf\n"


def _write(kept: Kept) -> Sequence[KeptFile]:
    text = "\n".join(mycnf.section(kept))
    lines = [*kept.heading(), *_MAP, "  my.cnf: |", *block(text, 4)]
    return [KeptFile("configmap.yml", "\n".join(lines) + "\n"), KeptFile("patch.yml", _PATCH)]


def _inverse(_: Kept) -> Sequence[KeptFile]:
    return [KeptFile("revert.yml", "spec:\n  myCnfConfigMapKeyRef: null\n")]


FORM = Form(
    "k8s-mariadb",
    "a ConfigMap and a patch of a MariaDB of the mariadb-operator",
    prefixed("mysqld."),
    _write,
    _inverse,
    "kubectl apply -f configmap.yml, then kubectl patch mariadb NAME --type merge --patch-file "
    "patch.yml",
)
