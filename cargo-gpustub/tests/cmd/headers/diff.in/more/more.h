int acmeArity(long);
