# Read by CMake right after llama.cpp's own project() line. Leaves out its library of helpers for
# command line tools: half of the build, used by nothing in Python. The build of llama-cpp-python
# turns it on in the cache, so that -DLLAMA_BUILD_COMMON=OFF has no effect; this variable has.
set(LLAMA_BUILD_COMMON OFF)
