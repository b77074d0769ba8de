"""The rules of an audit as the reference lists them; MYDYNO_GOLDEN=write writes the list."""

import os
from pathlib import Path

from mydyno.audit.rules import rules
from mydyno.report.findings import TITLES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "audit.md"
BEGIN, END = "<!-- rules -->\n", "<!-- end -->\n"


def listed():
    lines = []
    for kind, title in TITLES.items():
        lines += [
            f"### {title[0].upper()}{title[1:]}",
            "",
            "| rule | fires where | for |",
            "|---|---|---|",
        ]
        for name, one in rules().items():
            if one.rule.kind == kind:
                when = one.rule.when.replace("|", "\\|")
                lines.append(f"| `{name}` | `{when}` | {'; '.join(one.rule.ranges)} |")
        lines.append("")
    return "\n".join(lines)


def test_the_reference_lists_all_rules():
    head, _, rest = PAGE.read_text().partition(BEGIN)
    found, _, tail = rest.partition(END)
    if os.environ.get("MYDYNO_GOLDEN") == "write":
        PAGE.write_text(head + BEGIN + listed() + END + tail)
        found = listed()
    assert found == listed()
