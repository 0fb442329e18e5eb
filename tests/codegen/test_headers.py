"""The headers of emitted units are C++ by themselves, and units have those that they use."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pyfuser.codegen.c.headers import assembled, header
from pyfuser.codegen.cpu import unit

CPU, COMMON = unit.FOLDERS
HEADERS = sorted({path.stem for folder in unit.FOLDERS for path in folder.glob("*.h")})
DEFINED = re.compile(r"(?:struct|#define|typedef .*) (pf_\w+)|\b(pf_\w+)\([^;]*\) (?:const )?\{")


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("name", HEADERS)
def test_a_header_compiles_by_itself(name: str, tmp_path: Path) -> None:
    source = tmp_path / "alone.cpp"
    source.write_text(f'#include "{name}.h"\n')
    words = [f"-D{word}={value}" for word, value in unit.WORDS.items()]
    folders = [f"-I{folder}" for folder in unit.FOLDERS]
    command = ["g++", "-std=c++17", "-fsyntax-only", "-fopenmp", "-march=native", "-Wno-attributes"]
    subprocess.run([*command, *words, *folders, str(source)], check=True)


def test_what_a_header_builds_on_comes_before_it() -> None:
    system, texts = assembled(["partial_sums", "printf"], unit.FOLDERS, unit.WORDS)
    assert system == ["stdint.h", "stdio.h"]
    assert len(texts) == 2
    assert "struct pf_sum" in texts[0]
    assert "struct pf_parts" in texts[1]


def test_words_are_what_the_unit_says() -> None:
    assert "PF_DEVICE" in header("fetch", unit.FOLDERS).text
    host, device = (
        assembled(["fetch"], unit.FOLDERS, {"PF_DEVICE": word})[1][0] for word in ("", "__device__")
    )
    assert "static inline T pf_fetch(" in host
    assert "static __device__ inline T pf_fetch(" in device
    (text,) = assembled(["scan"], unit.FOLDERS, unit.WORDS)[1]
    assert "PF_" not in text
