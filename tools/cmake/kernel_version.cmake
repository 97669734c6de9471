# Writes OUTPUT, a header with a hash of SOURCES and COMPILER; leaves it alone if it is that already. The lists of tiles are not
# hashed: a new candidate does not change what the others do, so what was found out about these stays true.
set(all "${COMPILER}")
foreach(source IN LISTS SOURCES)
  file(READ ${source} text)
  string(REGEX REPLACE "\nusing (More)?Tiles *=[^;]*;" "" text "${text}")
  string(SHA256 hash "${text}")
  string(APPEND all " ${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define COURSE_KERNEL_VERSION \"${hash}\"\n")
