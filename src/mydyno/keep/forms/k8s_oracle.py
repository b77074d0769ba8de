"""A patch of Oracle's InnoDBCluster: the server's options."""

from collections.abc import Sequence

from mydyno.keep.forms import mycnf
from mydyno.keep.kept import Form, Kept, KeptFile, Write, block, prefixed


def patch(*path: str, empty: bool = False) -> Write:
    """Return how a merge patch is written whose last key holds an option file."""

    def write(kept: Kept) -> Sequence[KeptFile]:
        lines = [*kept.heading(), "spec:"]
        lines += [f"{'  ' * depth}{key}:" for depth, key in enumerate(path[:-1], 1)]
        indent = "  " * len(path)
        if empty:
            lines.append(f'{indent}{path[-1]}: ""')
        else:
            text = "\n".join(mycnf.section(kept))
            lines += [f"{indent}{path[-1]}: |", *block(text, len(indent) + 2)]
        return [KeptFile("revert.yml" if empty else "patch.yml", "\n".join(lines) + "\n")]

    return write


FORM = Form(
    "k8s-oracle",
    "a patch of an InnoDBCluster",
    prefixed("mysqld."),
    patch("mycnf"),
    patch("mycnf", empty=True),
    "kubectl patch innodbcluster NAME --type merge --patch-file patch.yml; it replaces spec.mycnf",
)
