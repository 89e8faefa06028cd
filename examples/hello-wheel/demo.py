"""Prints the libraries that the wheel finds, and compiles a kernel."""

import hello_wheel

for name, library in hello_wheel.report().items():
    print(name, library["version"] or "-", library["path"] or library["reason"])
print(hello_wheel.devices(), "devices")
try:
    ptx = hello_wheel.compile('extern "C" __global__ void inc(float *x) { *x += 1; }')
    print(*(line for line in ptx.splitlines() if line.startswith((".version", ".target"))))
except RuntimeError as error:
    print(error)
