#!/usr/bin/env bash
# The CUDA runtime: without a driver, functions fail with 35 and leave their out-parameters as they were, but
# cudaDriverGetVersion succeeds with 0.
#
# cudaGetDeviceCount of nvidia-cuda-runtime-cu11 11.8.89 and nvidia-cuda-runtime 13.5.37 returns cudaErrorInsufficientDriver
# (35) and does not write the count. A program that ignores the status and reads the count, or that declares it without
# a value, goes on with what the stack held. cudaMalloc and cudaDeviceGetAttribute do the same. Needs a machine without NVIDIA's
# driver.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pip=(python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps)
"${pip[@]}" --target "$work/11" nvidia-cuda-runtime-cu11==11.8.89
"${pip[@]}" --target "$work/13" nvidia-cuda-runtime==13.5.37

seen=$(
    for library in "$(find "$work/11" -name 'libcudart.so.11.0')" "$(find "$work/13" -name 'libcudart.so.13')"; do
        python3 - "$library" <<'PYTHON'
import ctypes, sys
from ctypes import byref, c_int, c_void_p
cudart = ctypes.CDLL(sys.argv[1])
count, pointer, attribute, version = c_int(7), c_void_p(7), c_int(7), c_int(7)
print("cudaGetDeviceCount", cudart.cudaGetDeviceCount(byref(count)), count.value)
print("cudaMalloc", cudart.cudaMalloc(byref(pointer), ctypes.c_size_t(8)), pointer.value)
print("cudaDeviceGetAttribute", cudart.cudaDeviceGetAttribute(byref(attribute), 1, 0), attribute.value)
print("cudaDriverGetVersion", cudart.cudaDriverGetVersion(byref(version)), version.value)
PYTHON
    done
)
once='cudaGetDeviceCount 35 7
cudaMalloc 35 7
cudaDeviceGetAttribute 35 7
cudaDriverGetVersion 0 0'
echo "$seen"
[ "$seen" = "$once"$'\n'"$once" ] || { echo 'changed: see the lines above' >&2; exit 1; }
