#!/usr/bin/env python3
"""Runs the programs of this directory (tests/tests/gpu), and compares programs of one version of CUDA on the runtime of another
with those on their own. Exit codes: 0, 1 (something differs or failed), 3 (no device)."""

import difflib
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NO_DEVICE = 3
differences = []


def number(version):
    return tuple(int(part) for part in version.split("."))


def versions(directory):
    return sorted((entry.name for entry in (HERE / directory).iterdir()), key=number)


def library(version):
    return next((HERE / "lib" / version).iterdir())


def run(words, version=None, **variables):
    """Runs a program, on the runtime of a version."""
    env = dict(os.environ, **variables)
    if version:
        directories = [str(library(version).parent), env.get("LD_LIBRARY_PATH", "")]
        env.update(GPUSTUB_CUDART_PATH=str(library(version)), LD_LIBRARY_PATH=":".join(filter(None, directories)))
    words = [str(word) for word in words]
    return subprocess.run(words, env=env, text=True, timeout=180, capture_output=True)


def lines(ran, version):
    """Lines of the output, without those of what this version of the runtime lacks."""

    def is_there(line):
        since = re.match(r"since ([\d.]+):", line)
        is_known = not since or number(version) >= number(since[1])
        # `attribute` lines have answers of the runtime itself.
        return is_known and not line.startswith("attribute ")

    return [line for line in ran.stdout.splitlines() if is_there(line)]


def compare(name, directory):
    """Runs the programs `stubs` and `direct` of each version: the first on every runtime, the second on its own."""
    pairs = compared = 0
    for headers in versions(directory):
        programs = HERE / directory / headers
        own = run([programs / "direct"], headers)
        if own.returncode == NO_DEVICE:
            print(own.stdout, end="")
            sys.exit(NO_DEVICE)
        if own.returncode:
            differences.append(f"{name} {headers} on its own runtime: exit code {own.returncode}\n{own.stdout}{own.stderr}")
        for version in versions("lib"):
            found = run([programs / "stubs"], version)
            expected, got = lines(own, version), lines(found, version)
            pairs += 1
            compared += len(expected)
            if expected != got or own.returncode != found.returncode:
                diff = difflib.unified_diff(expected, got, headers, f"{headers} on {version}", lineterm="", n=0)
                differences.append("\n".join([f"{name} {headers} on {version}: exit code {found.returncode}", *diff]))
    print(f"{name}: {pairs} pairs of headers and runtime, {compared} lines compared")


def main():
    compare("runtime", "runtime")
    compare("properties", "properties")
    for program in sorted(HERE.glob("libraries-*")):
        ran = run([program])
        print(f"{program.name}:\n{ran.stdout}{ran.stderr}", end="")
        if ran.returncode:
            differences.append(f"{program.name}: exit code {ran.returncode}")
    for version in versions("lib"):
        ran = run([HERE / "calls", library(version)], version)
        print(f"runtime {version}: {ran.stdout}", end="")
    for difference in differences:
        print(f"DIFFERENCE: {difference}")
    print(f"{len(differences)} differences")
    sys.exit(1 if differences else 0)


main()
