# find_package(gpustub-archive): the target gpustub::archive, whose header reads super-archives. Installed in
# share/cmake/gpustub-archive of any prefix.
if(NOT TARGET gpustub::archive)
    get_filename_component(_gpustub_archive_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
    add_library(gpustub::archive INTERFACE IMPORTED)
    set_target_properties(gpustub::archive PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${_gpustub_archive_prefix}/include")
    unset(_gpustub_archive_prefix)
endif()
