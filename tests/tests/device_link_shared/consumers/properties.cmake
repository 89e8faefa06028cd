# Targets linked by the properties that CudaRdcUtils.cmake reads, as its cuda_rdc_target_link_libraries links them.
set(CMAKE_LINK_LIBRARY_USING_kept "LINKER:--push-state,--no-as-needed" "<LINK_ITEM>" "LINKER:--pop-state")
set(CMAKE_LINK_LIBRARY_USING_kept_SUPPORTED TRUE)

# Without CUDA code, and with one library that requires all others: its final, beside the middles.
function(links_final name library)
  get_target_property(middle ${library} CUDA_RDC_MIDDLE_LIBRARY)
  get_target_property(final ${library} CUDA_RDC_FINAL_LIBRARY)
  target_link_libraries(${name} PRIVATE ${middle} $<LINK_LIBRARY:kept,${final}>)
  set_property(TARGET ${name} PROPERTY CUDA_RESOLVE_DEVICE_SYMBOLS OFF)
endfunction()

# With CUDA code: CMake's device link over all archives, beside the middles.
function(links_archives name)
  foreach(library IN LISTS ARGN)
    get_target_property(middle ${library} CUDA_RDC_MIDDLE_LIBRARY)
    get_target_property(static ${library} CUDA_RDC_STATIC_LIBRARY)
    get_target_property(runtime ${library} CUDA_RUNTIME_LIBRARY)
    get_target_property(archs ${library} CUDA_ARCHITECTURES)
    target_link_libraries(${name} PRIVATE ${middle})
    target_link_options(${name} PRIVATE $<DEVICE_LINK:$<TARGET_FILE:${static}>>)
    set_target_properties(${name} PROPERTIES CUDA_SEPARABLE_COMPILATION ON CUDA_RESOLVE_DEVICE_SYMBOLS ON
      CUDA_RUNTIME_LIBRARY ${runtime} CUDA_ARCHITECTURES "${archs}")
  endforeach()
endfunction()

file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/empty.cu "")
consumer(rdc_chain RUNS area)
links_final(rdc_chain area::area)
consumer(rdc_module MODULE RUNS area)
links_final(rdc_module area::area)
consumer(rdc_cuda_chain SOURCE own.cu RUNS own area)
links_archives(rdc_cuda_chain area::area area::base)
consumer(rdc_unrelated SOURCE ${CMAKE_CURRENT_BINARY_DIR}/empty.cu RUNS area volume)
links_archives(rdc_unrelated area::area area::base volume::volume volume::base)
consumer(rdc_cuda_mixed SOURCE own.cu RUNS own area tally)
links_archives(rdc_cuda_mixed area::area tally::tally_static tally::base)
consumer(rdc_cuda_module MODULE SOURCE own.cu RUNS own area)
links_archives(rdc_cuda_module area::area area::base)

# By hand, from the archives alone: CMake device-links static libraries.
consumer(hand_static SOURCE own.cu RUNS own area LINKS area::area_static)
set_target_properties(hand_static PROPERTIES CUDA_SEPARABLE_COMPILATION ON CUDA_RUNTIME_LIBRARY Shared
  CUDA_ARCHITECTURES "${area_CUDA_ARCHITECTURES}")
