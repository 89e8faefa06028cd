# Targets with CUDA code, which CMake compiles and device-links.
set(CMAKE_CUDA_SEPARABLE_COMPILATION ON)
consumer(cuda_chain SOURCE own.cu RUNS own area LINKS area::area)
consumer(cuda_unrelated SOURCE own.cu RUNS own area volume LINKS area::area volume::volume)
consumer(cuda_mixed SOURCE own.cu RUNS own area tally LINKS area::area tally::tally_static)
consumer(cuda_static SOURCE own.cu RUNS own tally LINKS tally::tally_static)
consumer(cuda_module MODULE SOURCE own.cu RUNS own area LINKS area::area)
# The kernel of another image.
consumer(cuda_launches SOURCE launches.cu RUNS launches area LINKS area::area)
# Relocatable code in a static library and in objects of the project.
add_library(library STATIC own.cu)
target_link_libraries(library PUBLIC area::area)
consumer(cuda_library RUNS own area LINKS library)
add_library(objects OBJECT own.cu)
target_link_libraries(objects PRIVATE area::base)
set_property(TARGET objects PROPERTY POSITION_INDEPENDENT_CODE ON)
consumer(cuda_objects SOURCE $<TARGET_OBJECTS:objects> RUNS own area LINKS area::area)
# The usual style of projects: only the library that has the code is separable.
consumer(cuda_parts SOURCE $<TARGET_OBJECTS:objects> RUNS own area LINKS area::area)
consumer(cuda_parts_module MODULE SOURCE $<TARGET_OBJECTS:objects> RUNS own area LINKS area::area)
set_property(TARGET cuda_parts cuda_parts_module PROPERTY CUDA_SEPARABLE_COMPILATION OFF)
# Code that is not relocatable needs no device link.
consumer(cuda_whole SOURCE whole.cu RUNS whole area LINKS area::area)
set_property(TARGET cuda_whole PROPERTY CUDA_SEPARABLE_COMPILATION OFF)
# A program with relocatable code that opens a final itself.
consumer(cuda_opener SOURCE whole.cu opener.cpp RUNS whole opened LINKS ${CMAKE_DL_LIBS})
set_property(TARGET cuda_opener PROPERTY CUDA_RUNTIME_LIBRARY Shared)
target_compile_definitions(cuda_opener PRIVATE LIBRARY="$<TARGET_FILE:area::area_final>" FUNCTION="area_run")
foreach(target IN ITEMS cuda_chain cuda_unrelated cuda_mixed cuda_static cuda_module cuda_launches cuda_library
    cuda_objects cuda_parts cuda_parts_module cuda_whole cuda_opener)
  gpustub_target_device_link(${target})
endforeach()
