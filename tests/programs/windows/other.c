__declspec(dllexport) int other_value(void) { return 5; }
