int trap_answer(void);
int trap_answer(void) { return 43; }
