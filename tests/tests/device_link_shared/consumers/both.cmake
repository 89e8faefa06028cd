# A shared library with code for both vendors, its objects, and relocatable CUDA code of the project.
consumer(chain RUNS hip cuda LINKS both::both)
consumer(static RUNS hip cuda LINKS both::both_static)
consumer(own SOURCE whole.cu RUNS whole hip cuda LINKS both::both)
set_property(TARGET own PROPERTY CUDA_SEPARABLE_COMPILATION ON)
foreach(target IN ITEMS chain static own)
  gpustub_target_device_link(${target})
endforeach()
