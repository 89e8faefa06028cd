int otherOpen(void);
