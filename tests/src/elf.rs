//! What the platform's own tools say of ELF files: the other side of differential tests.
