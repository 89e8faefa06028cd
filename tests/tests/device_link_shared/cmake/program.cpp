#include <cstdio>

extern "C" int area_run();

int main() { return std::printf("status %d\n", area_run()), 0; }
