"""A patch of a PerconaXtraDBCluster: the server's options."""

from mydyno.keep.forms.k8s_oracle import patch
from mydyno.keep.kept import Form, prefixed

FORM = Form(
    "k8s-percona",
    "a patch of a PerconaXtraDBCluster",
    prefixed("mysqld."),
    patch("pxc", "configuration"),
    patch("pxc", "configuration", empty=True),
    "kubectl patch pxc NAME --type merge --patch-file patch.yml; it replaces "
    "spec.pxc.configuration, and a Secret of that name would win",
)
