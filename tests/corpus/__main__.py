"""`python -m tests.corpus [PROGRAM ...] [OPTION]`: has any text changed?

Without options it says which programs' texts differ from those that golden/corpus.txt has the
digests of. `--update` writes that file, `--against` shows the differences to another revision,
`--texts` writes them, `--digests` prints their digests.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from tests.corpus.texts import KINDS, ROOT, Texts, names, texts_of, unseen

DIGESTS = ROOT / "tests" / "golden" / "corpus.txt"
SHOWN = 20  # differing texts


def digests(texts: Texts) -> str:
    """One digest a kind."""
    return " ".join(
        hashlib.sha256("\0".join(texts[kind]).encode()).hexdigest()[:12] for kind in KINDS
    )


def matching(patterns: Sequence[str], programs: Sequence[str]) -> list[str]:
    """Those of the programs' names that match one of the patterns."""
    return [name for name in programs if any(fnmatch(name, pattern) for pattern in patterns)]


def update() -> None:
    """Keep every program's digests."""
    lines = [f"{name} {digests(texts_of(name))}" for name in names()]
    DIGESTS.write_text("\n".join([" ".join(["program", *KINDS]), *lines, ""]))


def changes(patterns: Sequence[str] = ("*",)) -> list[str]:
    """What differs from the digests that are kept, a line for each program that matches."""
    kept = dict(line.split(" ", 1) for line in DIGESTS.read_text().splitlines()[1:])
    found = []
    for name in matching(patterns, names()):
        if name not in kept:
            found.append(f"{name}: new")
            continue
        pairs = zip(KINDS, digests(texts_of(name)).split(), kept[name].split(), strict=True)
        kinds = [kind for kind, now, before in pairs if now != before]
        if kinds:
            found.append(f"{name}: {', '.join(kinds)}")
    return found + [f"{name}: gone" for name in sorted(kept.keys() - {*names()})]


def write(folder: Path, programs: Sequence[str]) -> None:
    """The texts of some programs, a file for each program and kind."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in programs:
        for kind, texts in texts_of(name).items():
            (folder / f"{name}.{kind}").write_text("\n\f\n".join(texts))


def against(revision: str) -> int:
    """Show how the texts differ from those of another revision."""
    with tempfile.TemporaryDirectory() as folder:
        there, before, after = (Path(folder) / name for name in ("there", "before", "after"))
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(there), revision], check=True)
        try:
            for root, target in ((there, before), (ROOT, after)):
                command = [sys.executable, "-m", "tests.corpus", "--texts", str(target)]
                path = {**os.environ, "PYTHONPATH": str(root)}
                subprocess.run(command, cwd=root, env=path, check=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(there)], check=True)
        files = sorted({file.name for side in (before, after) for file in side.iterdir()})
        changed = [name for name in files if _read(before / name) != _read(after / name)]
        for name in changed[:SHOWN]:
            old, new = _read(before / name), _read(after / name)
            sys.stdout.writelines(
                f"{line}\n"
                for line in difflib.unified_diff(
                    old.splitlines(), new.splitlines(), f"{revision}/{name}", name, lineterm=""
                )
            )
        print(f"{len(files)} texts, {len(changed)} differ ({min(len(changed), SHOWN)} shown)")
    return len(changed) > 0


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("programs", nargs="*", default=["*"], help="such as 'adi-*' or seed-7")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--update", action="store_true")
    ways.add_argument("--against", metavar="REVISION")
    ways.add_argument("--texts", metavar="FOLDER", type=Path)
    ways.add_argument("--digests", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.against:
        return against(given.against)
    if given.texts:
        write(given.texts, matching(given.programs, names()))
    elif given.digests:
        for name in matching(given.programs, [*names(), *unseen()]):
            print(name, digests(texts_of(name)))
    elif given.update:
        update()
    else:
        found = changes(given.programs)
        print(*found, f"{len(found)} programs with other texts", sep="\n")
        return len(found) > 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
