#!/usr/bin/env python3
"""Runs device code that calls the host (tests/tests/gpu.rs), by gpurpc-loader on a GPU of NVIDIA. Exit codes: 0, 1 (something
differs or failed), 3 (no device)."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NO_DRIVER = 123
NO_DEVICE = 3
differences = []


def run(words):
    return subprocess.run([str(word) for word in words], text=True, timeout=180, capture_output=True)


def expect(name, found, expected):
    if found != expected:
        differences.append(f"{name}: {str(found)[:400]}, not {str(expected)[:400]}")


def rpc():
    """Device code that calls the host, run by gpurpc-loader."""

    def load(options, *words):
        return run([HERE / "gpurpc-loader", "--timeout", "60", *options, HERE / "rpc.ptx", *words])

    def printed(text, word):
        return sorted(int(line.removeprefix(word)) for line in text.splitlines() if line.startswith(word))

    if load([], "lines").returncode == NO_DRIVER:
        print("no driver")
        sys.exit(NO_DEVICE)
    many = ["--blocks", "64", "--threads", "256"]
    threads = range(64 * 256)
    ran = load(many, "lines")
    expect("rpc lines", (ran.returncode, printed(ran.stdout, "thread ")), (0, [*threads]))
    for options in (many, ["--ports", "1", "--threads", "256"]):
        ran = load(options, "branches")
        these = threads if options is many else threads[:256]
        odd = [thread for thread in these if thread % 2]
        three = [thread for thread in these if thread % 2 == 0 and thread % 3 == 0]
        found = (ran.returncode, printed(ran.stdout, "odd "), printed(ran.stderr, "three "))
        expect(f"rpc branches {options}", found, (0, odd, three))
    for words, code in {("memory",): 0, ("exit", "42"): 42, ("abort",): 134}.items():
        expect(f"rpc {words[0]}", load(["--threads", "128"], *words).returncode, code)
    ran = run([HERE / "gpurpc-loader", "--timeout", "1", HERE / "rpc.ptx", "wait", "60000"])
    expect("rpc timeout", ran.returncode, 124)
    for options in (["--threads", "1"], ["--threads", "32"], ["--blocks", "132", "--threads", "256"]):
        for words in (("calls", "200"), ("messages", "20")):
            ran = load(options, *words)
            expect(f"rpc {words[0]} {options}", ran.returncode, 0)
            costs = [line for line in ran.stderr.splitlines() if "per call" in line]
            print(f"rpc {words[0]} {' '.join(options)}: {' '.join(costs)}")


def main():
    rpc()
    for difference in differences:
        print(f"DIFFERENCE: {difference}")
    print(f"{len(differences)} differences")
    sys.exit(1 if differences else 0)


main()
