"""Oldest CUDA release with all functions that a program imports: reads `cargo gpustub abi --all --format jsonl`.

Usage: abi-releases.py LIBRARY NAME...
"""
import json
import sys


def version(text):
    return tuple(map(int, text.split(".")))


library, names = sys.argv[1], set(sys.argv[2:])
starts, functions = set(), {}
for line in sys.stdin:
    function = json.loads(line)
    if function["library"] != library:
        continue
    starts.update(version(releases["since"]) for releases in function["releases"])
    if function["name"] in names:
        functions[function["name"]] = function
if unknown := sorted(names - functions.keys()):
    sys.exit(f"unknown: {' '.join(unknown)}")


def has(function, release):
    return any(
        version(releases["since"]) <= release
        and (releases["until"] is None or release <= version(releases["until"]))
        for releases in function["releases"]
    )


for name, function in sorted(functions.items()):
    for variant in function["variants"]:
        if variant["difference"]:
            print(f"{name} {variant['since']}: {variant['difference']}")
# The oldest common release is the first one of a function.
common = [start for start in sorted(starts) if all(has(function, start) for function in functions.values())]
if not common:
    sys.exit("no release has all of them")
print("needs {}.{}".format(*common[0]))
