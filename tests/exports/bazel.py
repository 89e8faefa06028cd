"""bazel.py DIRECTORY OUT: builds the targets of DIRECTORY/BUILD.bazel into OUT, without Bazel.

Starlark is a subset of Python, so Python runs the file. As in Bazel's sandbox, the compiler sees
only the files that a rule names, below a directory of another name."""

import pathlib
import shutil
import subprocess
import sys

directory, out = map(pathlib.Path, sys.argv[1:])
rules = {}
loaded = {}


def load(_file, *names):
    for name in names:
        assert name == "cc_library", name
        loaded[name] = cc_library
        scope[name] = cc_library


def package(default_visibility):
    assert default_visibility == ["//visibility:public"]


def cc_library(name, srcs=(), hdrs=(), textual_hdrs=(), copts=(), includes=(), linkopts=(), deps=(),
               linkstatic=False):
    assert name not in rules, name
    for files in (srcs, hdrs, textual_hdrs):
        assert list(files) == sorted(files), "buildifier sorts lists of files"
    rules[name] = dict(
        files=[*srcs, *hdrs, *textual_hdrs], srcs=srcs, copts=copts, includes=includes,
        linkopts=linkopts, deps=deps)


scope = {"load": load, "package": package}
text = (directory / "BUILD.bazel").read_text()
exec(compile(text, "BUILD.bazel", "exec"), scope)
assert loaded, "what is not loaded is gone from Bazel 9 on"
assert 'bazel_dep(name = "rules_cc", ' in text.split('"""')[1], "what it loads, as MODULE.bazel declares it"

stubs = rules.pop("stubs")
assert rules, "a target for each library"
for name, rule in rules.items():
    assert rule["deps"] == [":stubs"] and not rule["files"], name

sandbox = out / "sandbox"
for file in stubs["files"]:
    place = sandbox / "external" / file
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(directory / file, place)
objects = []
for source in stubs["srcs"]:
    objects.append(f"{source}.o".replace("/", "_"))
    subprocess.run(
        ["cc", *stubs["copts"], "-c", f"external/{source}", "-o", objects[-1]], cwd=sandbox, check=True)
subprocess.run(["ar", "rcs", str((out / "libstubs.a").absolute()), *objects], cwd=sandbox, check=True)
print(*sorted(rules), *stubs["linkopts"], *stubs["includes"])
