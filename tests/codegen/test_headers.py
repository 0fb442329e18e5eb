"""The headers of emitted units are C++ by themselves, and units have those that they use."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from pyfuser.codegen.c.headers import COMMON, assembled, header
from pyfuser.codegen.cpu import unit
from pyfuser.tuning.target import Target
from pyfuser.tuning.thresholds import DEFAULT

TARGETS = {bytes: Target(vector_bytes=bytes) for bytes in (16, 32, 64)}
HEADERS = sorted({path.stem for folder in (unit.RUNTIME, COMMON) for path in folder.glob("*.h")})
FOLDERS, WORDS = unit.FOLDERS, unit.words_of(TARGETS[64], DEFAULT)


_AVX = ["-mavx512f"] if platform.machine() == "x86_64" else []


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("vector_bytes", TARGETS if _AVX else [16])
@pytest.mark.parametrize("name", HEADERS)
def test_a_header_compiles_by_itself(name: str, vector_bytes: int, tmp_path: Path) -> None:
    target = TARGETS[vector_bytes]
    source = tmp_path / "alone.cpp"
    source.write_text(f'#include "{name}.h"\n')
    words = [f"-D{word}={value}" for word, value in unit.words_of(target, DEFAULT).items()]
    folders = [f"-I{folder}" for folder in FOLDERS]
    command = ["g++", "-std=c++17", "-fsyntax-only", "-fopenmp", *_AVX, "-Wno-psabi"]
    subprocess.run([*command, *words, *folders, str(source)], check=True)


def test_what_a_header_builds_on_comes_before_it() -> None:
    system, texts = assembled(["partial_sums", "printf"], FOLDERS, WORDS)
    assert system == ["stdint.h", "stdio.h"]
    assert len(texts) == 2
    assert "struct pf_sum" in texts[0]
    assert "struct pf_parts" in texts[1]


def test_words_are_what_the_unit_says() -> None:
    assert "PF_DEVICE" in header("fetch", FOLDERS).text
    host, device = (
        assembled(["fetch"], FOLDERS, {"PF_DEVICE": word})[1][0] for word in ("", "__device__")
    )
    assert "static inline T pf_fetch(" in host
    assert "static __device__ inline T pf_fetch(" in device
    (text,) = assembled(["scan"], FOLDERS, WORDS)[1]
    assert "PF_" not in text
