#include <nv/target>
