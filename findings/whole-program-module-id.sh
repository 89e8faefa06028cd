#!/usr/bin/env bash
# nvcc 13: the section __nv_module_id does not mark relocatable device code.
#
# nvcc 13.5 (nvidia-cuda-nvcc 13.5.37) writes it into objects of whole-program code (`-rdc=false`, the default), too, with the
# same text for every object, `__NV_MODULE_ID`. Only with `-rdc=true` it is an id that differs between files and that a
# device link registers; the sections .nvHRKI and __nv_relfatbin are in these objects only.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target "$work" \
    nvidia-cuda-nvcc==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-cuda-runtime==13.5.37
toolkit=$work/nvidia/cu13
chmod -R u+x "$toolkit/bin" "$toolkit/nvvm/bin"
for name in a b; do echo "__global__ void $name(int *p) { *p = 1; }" >"$work/$name.cu"; done

seen=$(
    for option in -rdc=false -rdc=true; do
        for name in a b; do
            "$toolkit/bin/nvcc" -arch=sm_80 "$option" -c "$work/$name.cu" -o "$work/$name.o"
            objcopy -O binary --only-section=__nv_module_id "$work/$name.o" "$work/$name.id"
            # The hash in an id depends on the file.
            id=$(tr -d '\0' <"$work/$name.id" | sed -E 's/[0-9a-f]{8}/HASH/')
            sections=$(readelf -SW "$work/$name.o" | grep -oE '__nv_relfatbin|\.nvHRKI' | sort -u | tr '\n' ' ')
            echo "$option $name.o: $id $sections"
        done
    done
)
echo "$seen"
expected='-rdc=false a.o: __NV_MODULE_ID 
-rdc=false b.o: __NV_MODULE_ID 
-rdc=true a.o: _HASH_4_a_cu__Z1aPi .nvHRKI __nv_relfatbin 
-rdc=true b.o: _HASH_4_b_cu__Z1bPi .nvHRKI __nv_relfatbin '
[ "$seen" = "$expected" ] || { echo 'changed: see the lines above' >&2; exit 1; }
