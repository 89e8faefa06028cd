int trap_answer(void) { return 42; }
