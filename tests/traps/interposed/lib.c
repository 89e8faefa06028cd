int trap_answer(void) { return 42; }
int trap_other(void) { return 43; }
