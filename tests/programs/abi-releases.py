"""Oldest CUDA release with all functions that a program imports: reads `cargo gpustub abi --all --format jsonl`.

Usage: abi-releases.py LIBRARY NAME...
"""
import json
import sys

library, names = sys.argv[1], set(sys.argv[2:])
oldest = (0, 0)
for line in sys.stdin:
    function = json.loads(line)
    if function["library"] != library or function["name"] not in names:
        continue
    names.remove(function["name"])
    since = tuple(map(int, function["releases"][0]["since"].split(".")))
    oldest = max(oldest, since)
    for variant in function["variants"]:
        if variant["difference"]:
            print(f"{function['name']} {variant['since']}: {variant['difference']}")
print("needs {}.{}".format(*oldest))
sys.exit(f"unknown: {' '.join(sorted(names))}" if names else 0)
