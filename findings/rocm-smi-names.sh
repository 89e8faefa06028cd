#!/usr/bin/env bash
# ROCm SMI and roctx: a declared function that the library has under a C++ name, and structs that grow under one soname.
#
# Debian's librocm-smi 5.2.3 declares `rsmi_dev_sku_get(uint32_t, char *)`, and exports only _Z16rsmi_dev_sku_getjPt: the
# definition has `uint16_t *`, so extern "C" did not reach it. No program in C links it, and later headers have the other
# type. A list of functions from headers would have had it; a list from exports has not.
#
# ROCm SMI's soname is librocm_smi64.so.1 from 5.2 to 6.4, while rsmi_gpu_metrics_t, which callers allocate, grows from 96
# bytes to 424 (6.1): the name of the file does not tell whether the library writes over the caller's struct.
#
# roctx has the same eight functions under one version node from 5.7 on, which no header declares in full
# (roctxRegisterTracerCallback).
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# apt_for SUITE PACKAGE...: unpacks packages of a suite, with a private configuration.
apt_for() {
    local suite=$1 uri
    shift
    mkdir -p "apt-$suite"/{lists,cache/archives}/partial "$suite"
    uri=$({ cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null || true; } |
        sed -n 's/^URIs: *//p; s/^deb  *\(\[[^]]*\] *\)\{0,1\}\([^ ]*\) .*/\2/p' | head -n 1)
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' \
        "$uri" "$suite" >"apt-$suite/debian.sources"
    printf 'Dir::Etc::sourcelist "%s";\nDir::Etc::sourceparts "/dev/null";\nDir::State::lists "%s";\nDir::Cache "%s";\nAPT::Sandbox::User "root";\n' \
        "$work/apt-$suite/debian.sources" "$work/apt-$suite/lists" "$work/apt-$suite/cache" >"apt-$suite/apt.conf"
    apt-get -qq -c "apt-$suite/apt.conf" update
    (cd "$suite" && apt-get -qq -c "../apt-$suite/apt.conf" download "$@" && for deb in *.deb; do dpkg-deb -x "$deb" .; done)
}
apt_for bookworm librocm-smi64-1 librocm-smi-dev
apt_for trixie librocm-smi64-1 librocm-smi-dev libroctx64-4 libroctx-dev

# metrics SUITE: the size of rsmi_gpu_metrics_t.
metrics() {
    echo '#include <stdio.h>
#include <rocm_smi/rocm_smi.h>
int main(void) { printf("%zu bytes\n", sizeof(rsmi_gpu_metrics_t)); }' >metrics.c
    cc -w -I "$1/usr/include" -I /usr/include metrics.c -o metrics && ./metrics
}

seen=$(
    for suite in bookworm trixie; do
        library=$(find "$suite/usr/lib" -name 'librocm_smi64.so.1')
        echo "$suite: $(readelf -dW "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p'), $(metrics "$suite")"
        grep -h 'rsmi_dev_sku_get(' "$suite/usr/include/rocm_smi/rocm_smi.h"
        nm -D --defined-only "$library" | sed -n 's/.* T \(.*rsmi_dev_sku_get.*\)/\1/p'
    done
    roctx=$(find trixie/usr/lib -name 'libroctx64.so.4')
    echo "$(nm -D --defined-only "$roctx" | grep -c '@@ROCTX_4.1') functions of roctx"
    grep -c 'roctxRegisterTracerCallback' trixie/usr/include/roctracer/roctx.h || true
)
echo "$seen"
expected='bookworm: librocm_smi64.so.1, 96 bytes
rsmi_status_t rsmi_dev_sku_get(uint32_t dv_ind, char *sku);
_Z16rsmi_dev_sku_getjPt
trixie: librocm_smi64.so.1, 424 bytes
rsmi_status_t rsmi_dev_sku_get(uint32_t dv_ind, uint16_t *sku);
rsmi_dev_sku_get
8 functions of roctx
0'
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
