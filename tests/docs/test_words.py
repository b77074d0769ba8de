"""Words that were replaced by terms of the field do not come back."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXTS = {".py", ".md", ".html", ".toml", ".sh", ".rs", ".lua"}
# A pattern of what was written -> what is written now.  Letters beside a word make another word; an
# underscore does not, so that names of tests and variables are read too.
BANNED = {
    "leave it alone": "keep the baseline",
    "beyond doubt": "significantly (95 %, simultaneous)",
    "not held against it": "reported only, not used in the verdict",
    "is no host": "invalid host",
    "did not let us in": "authentication failed",
    "dear to change": "hard to change",
    "nought": "zero",
    "put[ _]right": "recover",
    "golden cop": "snapshot",
    "given back": "restored",
    "put back ": "restored",
    " anew": "again, or new",
    "sealed": "frozen",
    "(?<![a-z])(told|tells?|telling)(?![a-z])": "what is meant: report, message, list, show, pass",
    "(?<![a-z])(said|says)(?![a-z])": "what is meant: report, print, state, declare, require",
    # a whole plot and a whole number are terms of statistics and arithmetic
    "(?<![a-z])whole(?![a-z])(?! plot| number)": "complete, entire, total, absolute, atomic",
}
PLACES = (
    "src",
    "packages",
    "crates",
    "packages",
    "packaging",
    "tests",
    "bench",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs",
)


def texts():
    for place in PLACES:
        top = ROOT / place
        found = [top] if top.is_file() else sorted(top.rglob("*"))
        for path in found:
            recorded = "golden" in path.parts and path.suffix != ".py"
            if path.suffix in TEXTS and path != Path(__file__) and not recorded:
                yield path


def lines_of(path):
    """Yield the numbered lines; those between fences of a recipe's page are recorded output."""
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fenced ^= path.parent.name == "recipes" and line.startswith("```")
        if not fenced:
            yield number, line


def test_replaced_words_stay_replaced():
    advice = {re.compile(pattern, re.IGNORECASE): now for pattern, now in BANNED.items()}
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {found[0]!r}; write {now}"
        for path in texts()
        for number, line in lines_of(path)
        for pattern, now in advice.items()
        for found in pattern.finditer(line)
    ]
    assert wrong == []


def test_citations_point_at_files_of_the_repository():
    cited = re.compile(r"\b(?:FACTS|METHOD|DESIGN|OBSERVE)\b(?:\.md| §?\d)")
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {found[0]!r}; cite a page of docs/"
        for place in (
            "src",
            "packages",
            "crates",
            "tests",
            "bench",
            "docs",
            "README.md",
            "CHANGELOG.md",
        )
        for path in (
            [ROOT / place] if (ROOT / place).is_file() else sorted((ROOT / place).rglob("*"))
        )
        if path.suffix in TEXTS and path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for found in cited.finditer(line)
    ]
    assert wrong == []
