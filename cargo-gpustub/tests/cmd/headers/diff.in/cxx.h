#error "this header is [31mfor[0m C++"
