# Targets without CUDA code.
consumer(chain RUNS area LINKS area::area)
consumer(unrelated RUNS area volume LINKS area::area volume::volume)
consumer(mixed RUNS area tally LINKS area::area tally::tally_static)
consumer(static RUNS tally LINKS tally::tally_static)
consumer(module MODULE RUNS area LINKS area::area)
consumer(module_of_two MODULE RUNS area volume LINKS area::area volume::volume)
# Libraries that `plain/` defines: shared, static, and an interface.
consumer(through_shared RUNS through_shared LINKS library_shared)
consumer(through_static RUNS through_static LINKS library_static)
consumer(through_interface RUNS area volume LINKS library_interface $<LINK_ONLY:area::area>)
consumer(through_two RUNS through_shared volume LINKS mine::shared volume::volume)
foreach(target IN ITEMS chain unrelated mixed static module module_of_two through_shared through_static
    through_interface through_two)
  gpustub_target_device_link(${target})
endforeach()
