# How .ci/arm compiles: for aarch64, by Debian's cross compiler. Python is the emulated one that asks for it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)
