int acmeArity(acmeHandel handle);
