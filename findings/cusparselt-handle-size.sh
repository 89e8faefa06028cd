#!/usr/bin/env bash
# cuSPARSELt: one soname, and descriptors of three sizes in memory of the caller; from 0.10 on in another directory.
#
# cusparseLtHandle_t has 13072 bytes in 0.6.3, 1024 in 0.7.1 and 512 in 0.8.1 and 0.10.0, and cusparseLtInit writes to the
# caller's. All are libcusparseLt.so.0, the packages for CUDA 12 and 13 alike, so that the dynamic loader accepts any of them:
# a program of 0.8 with a library of 0.6 gets its stack overwritten. 0.7.1 exports some thousand functions beside its API.
# The package of 0.6 has its library in cusparselt, those of 0.7 and 0.8 in nvidia/cusparselt, that of 0.10 in nvidia/cu13:
# a run path to one finds none of the others. cusparseLt.h of 0.8 is no C: it uses alignas without <stdalign.h>.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pip=(python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps)
for package in cu12==0.6.3 cu12==0.7.1 cu13==0.8.1 cu13==0.10.0; do
    "${pip[@]}" --target "$work/$package" "nvidia-cusparselt-$package"
done

seen=$(
    for package in cu12==0.6.3 cu12==0.7.1 cu13==0.8.1 cu13==0.10.0; do
        cd "$work/$package"
        library=$(find . -name 'libcusparseLt.so.0')
        bytes=$(grep -ohE 'data\[[0-9]+\]; } cusparseLtHandle_t' -r --include=cusparseLt.h . | grep -oE '[0-9]+')
        soname=$(readelf -d "$library" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
        foreign=$(readelf --dyn-syms -W "$library" |
            awk '$4 == "FUNC" && $7 != "UND" && $8 !~ /^(cusparseLt|_)/' | wc -l)
        echo "$package $bytes $soname $library $([ "$foreign" -gt 1000 ] && echo many || echo few) others"
    done
)
expected='cu12==0.6.3 13072 libcusparseLt.so.0 ./cusparselt/lib/libcusparseLt.so.0 few others
cu12==0.7.1 1024 libcusparseLt.so.0 ./nvidia/cusparselt/lib/libcusparseLt.so.0 many others
cu13==0.8.1 512 libcusparseLt.so.0 ./nvidia/cusparselt/lib/libcusparseLt.so.0 few others
cu13==0.10.0 512 libcusparseLt.so.0 ./nvidia/cu13/lib/libcusparseLt.so.0 few others'
echo "$seen"
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
