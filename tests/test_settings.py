"""PYFUSER_* variables: one table, one way to say yes and no, and one line for what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pyfuser.support import settings
from pyfuser.support.errors import SettingError
from pyfuser.support.settings import KNOWN, Settings
from tests.processes import real

PACKAGE = Path(settings.__file__).parent
SWITCHES = ["VERIFY", "FASTMATH", "FUSION", "CALIBRATION", "ARBITRATE"]


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("spelling", [("1", "0"), ("true", "False"), ("YES", "no"), ("On", "off ")])
def test_switches(
    name: str, spelling: tuple[str, str], value: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"PYFUSER_{name}", spelling[0 if value else 1])
    assert getattr(settings._read(), name.lower()) is value


@pytest.mark.parametrize(("text", "value"), [("on", True), ("1", True), ("0", False), ("", False)])
def test_tracing_of_all(text: str, value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFUSER", text)
    assert settings._read().on is value


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("PYFUSER_VERIFY", "2", "expected 1, true, yes or on, or 0, false, no or off"),
        ("PYFUSER", "maybe", "expected 1, true, yes or on, or 0, false, no or off"),
        ("PYFUSER_DEBUG", "six", "expected an integer from 0 to 5"),
        ("PYFUSER_DEBUG", "6", "expected an integer from 0 to 5"),
        ("PYFUSER_THREADS", "0", "expected an integer from 1 to 4096"),
        ("PYFUSER_FRONTEND", "mine", "expected one of auto, embedded"),
        ("PYFUSER_ENGINE", "gcc", "expected one of native, pykokkos"),
        ("PYFUSER_CHECK", "bound", "expected one or more of bounds, races, sync"),
    ],
)
def test_a_wrong_value(name: str, text: str, allowed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(SettingError, match=re.escape(f"{name}={text!r}: {allowed}")):
        settings._read()


def test_every_name_that_is_read_is_known() -> None:
    named = {
        name
        for file in PACKAGE.rglob("*.py")
        for name in re.findall(r'"(PYFUSER(?:_[A-Z_]+)?)"', file.read_text(encoding="utf-8"))
    }
    assert named <= KNOWN
    documented = set(re.findall(r"^    (PYFUSER\w*)", Settings.__doc__ or "", re.MULTILINE))
    assert documented | {"PYFUSER_PYKOKKOS_PYTHON"} == KNOWN


def ended(*command: str, **environment: str) -> tuple[int, str]:
    """The exit code of a command, and what it prints as errors."""
    done = real(*command, PYFUSER_FRONTEND="embedded", **environment)
    return done.returncode, done.stderr


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text("import sys\nimport pyfuser\n")
    return str(path)


def test_an_unknown_name_warns_where_pyfuser_is_imported(script: str) -> None:
    code, text = ended(script, PYFUSER_VERIFFY="1")
    message = "no setting is called PYFUSER_VERIFFY: did you mean 'PYFUSER_VERIFY'?"
    assert code == 0 and f"{script}:2: SettingWarning: {message}" in text
    assert ended(script, PYFUSER_VERIFY="1") == (0, "")
    assert ended("-W", "ignore:no setting is called", script, PYFUSER_VERIFFY="1") == (0, "")


@pytest.mark.parametrize("name", ["PYFUSR_VERIFY", "pyfuser_verify", "PYFUSER_VERIFI"])
def test_a_misspelt_prefix(script: str, name: str) -> None:
    code, text = ended(script, **{name: "1"})
    assert code == 0 and f"{name}: did you mean 'PYFUSER_VERIFY'?" in text


def test_names_of_others(script: str) -> None:
    assert ended(script, PYFUSION_PATH="1", PYFUSE="1", VERIFY="1") == (0, "")


def test_an_unknown_name_as_an_error(script: str) -> None:
    code, text = ended("-W", "error", script, PYFUSER_VERIFFY="1")
    assert code == 1 and text.count('File "') == 1 and "SettingWarning" in text


@pytest.mark.parametrize("variable", [("PYFUSER_VERIFY", "maybe"), ("PYFUSER_ENGINE", "pykokkos")])
def test_a_script_shows_its_own_line_of_a_wrong_value(
    script: str, variable: tuple[str, str]
) -> None:
    name, value = variable
    code, text = ended(script, **{name: value})
    assert code == 1 and text.count('File "') == 1
    assert f'File "{script}", line 2' in text
    assert text.splitlines()[-1].startswith(f"pyfuser.support.errors.SettingError: {name}=")


def test_bits_that_may_change_are_not_verified(script: str) -> None:
    code, text = ended(script, PYFUSER_VERIFY="1", PYFUSER_FASTMATH="1")
    assert code == 1 and "PYFUSER_VERIFY=1 compares bits" in text
    assert ended(script, PYFUSER_FASTMATH="1") == (0, "")


@pytest.mark.parametrize("variable", [("PYFUSER_VERIFY", "maybe"), ("PYFUSER_ENGINE", "pykokkos")])
def test_the_command_says_it_in_one_line(variable: tuple[str, str]) -> None:
    name, value = variable
    code, text = ended("-m", "pyfuser", "info", **{name: value})
    assert code == 2 and text.count("\n") == 1
    assert text.startswith(f"pyfuser: {name}=")
