# Writes OUTPUT, a header with a hash of SOURCES and COMPILER; leaves it alone if it is that already.
set(all "${COMPILER}")
foreach(source IN LISTS SOURCES)
  file(SHA256 ${source} hash)
  string(APPEND all " ${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define COURSE_KERNEL_VERSION \"${hash}\"\n")
