/* A plugin that was linked against libtrap.so.2. */
int trap_value(void);
int trap_versioned(void);
int plugin_value(void);

int plugin_value(void) { return trap_value() + trap_versioned(); }
