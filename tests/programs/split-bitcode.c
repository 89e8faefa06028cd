/* split-bitcode MODULE DIRECTORY [REGEX]: writes DIRECTORY/NAME.bc for each symbol that a module of LLVM bitcode
 * defines, or for those that the extended regular expression matches; and DIRECTORY/plain/NAME.bc without the
 * processor, so that members common to two families are identical. Both directories must exist.
 *
 * llvm-extract does the same for one symbol at a time, in 30 ms; here a module is halved until one symbol is left.
 * Links with LLVM's stable C interface: cc split-bitcode.c -l:libLLVM.so.19.1 */

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

/* llvm-c/Core.h, IRReader.h, BitWriter.h, Transforms/PassBuilder.h: their package is large, and all types are opaque. */
typedef void *Module, *Value;
enum { AvailableExternally = 1, LinkOnceAny, LinkOnceOdr, WeakAny = 5, WeakOdr, Internal = 8, Private };
void *LLVMContextCreate(void);
int LLVMCreateMemoryBufferWithContentsOfFile(const char *, void **, char **);
int LLVMParseIRInContext(void *, void *, Module *, char **);
Module LLVMCloneModule(Module);
void LLVMDisposeModule(Module);
void LLVMSetSourceFileName(Module, const char *, size_t);
Value LLVMGetFirstFunction(Module);
Value LLVMGetNextFunction(Value);
Value LLVMGetFirstGlobal(Module);
Value LLVMGetNextGlobal(Value);
int LLVMIsDeclaration(Value);
int LLVMGetLinkage(Value);
void LLVMSetLinkage(Value, int);
const char *LLVMGetValueName2(Value, size_t *);
void LLVMRemoveStringAttributeAtIndex(Value, unsigned, const char *, unsigned);
void *LLVMCreatePassBuilderOptions(void);
void *LLVMRunPasses(Module, const char *, void *, void *);
char *LLVMGetErrorMessage(void *);
int LLVMWriteBitcodeToFile(Module, const char *);

static void *options;
static const char *directory;
static int written;

static void die(const char *what, const char *why) {
    fprintf(stderr, "split-bitcode: %s: %s\n", what, why);
    exit(1);
}

static void pass(Module module, const char *passes) {
    void *error = LLVMRunPasses(module, passes, NULL, options);
    if (error)
        die(passes, LLVMGetErrorMessage(error));
}

static int is_definition(Value value) {
    int linkage = LLVMGetLinkage(value);
    return !LLVMIsDeclaration(value) && linkage != AvailableExternally && linkage != Internal && linkage != Private;
}

static Value first(Module module) {
    Value value = LLVMGetFirstFunction(module);
    return value ? value : LLVMGetFirstGlobal(module);
}

/* LLVM iterates functions and variables separately: here one after the other. */
static Value next(Module module, Value value, int *variables) {
    Value found = *variables ? LLVMGetNextGlobal(value) : LLVMGetNextFunction(value);
    if (found || *variables)
        return found;
    *variables = 1;
    return LLVMGetFirstGlobal(module);
}

#define EACH(value, module)                                                                                          \
    int variables_ = LLVMGetFirstFunction(module) == NULL;                                                           \
    for (Value value = first(module); value; value = next(module, value, &variables_))                               \
        if (is_definition(value))

static int count(Module module) {
    int found = 0;
    EACH(value, module) found++;
    return found;
}

static const char *name(Value value) {
    size_t length;
    return LLVMGetValueName2(value, &length);
}

/* Keeps the definitions from `from` to before `to`; the others become declarations, if they are used. */
static void keep(Module module, int from, int to) {
    int at = 0;
    EACH(value, module) {
        if (at < from || at >= to)
            LLVMSetLinkage(value, AvailableExternally);
        at++;
    }
    pass(module, "elim-avail-extern,globaldce");
}

static void save(Module module, const char *below, const char *symbol) {
    char file[4096];
    if (snprintf(file, sizeof file, "%s/%s%s.bc", directory, below, symbol) >= (int)sizeof file)
        die(symbol, "the name is too long");
    if (LLVMWriteBitcodeToFile(module, file))
        die(file, "cannot be written");
}

static void split(Module module, int definitions) {
    if (definitions > 1) {
        int half = definitions / 2;
        Module other = LLVMCloneModule(module);
        keep(other, half, definitions);
        keep(module, 0, half);
        split(module, half);
        split(other, definitions - half);
        return;
    }
    EACH(value, module) {
        save(module, "", name(value));
        for (Value one = LLVMGetFirstFunction(module); one; one = LLVMGetNextFunction(one)) {
            LLVMRemoveStringAttributeAtIndex(one, ~0u, "target-cpu", 10);
            LLVMRemoveStringAttributeAtIndex(one, ~0u, "target-features", 15);
        }
        save(module, "plain/", name(value));
        written++;
    }
    LLVMDisposeModule(module);
}

int main(int number, char **words) {
    if (number != 3 && number != 4)
        die("usage", "split-bitcode MODULE DIRECTORY [REGEX]");
    const char *expression = number == 4 ? words[3] : NULL;
    directory = words[2];
    options = LLVMCreatePassBuilderOptions();

    void *buffer;
    char *reason;
    Module module;
    if (LLVMCreateMemoryBufferWithContentsOfFile(words[1], &buffer, &reason))
        die(words[1], reason);
    if (LLVMParseIRInContext(LLVMContextCreate(), buffer, &module, &reason))
        die(words[1], reason);
    /* The path of the source does not matter. */
    LLVMSetSourceFileName(module, "", 0);

    /* Symbols unused in their module stay, too, as with llvm-extract. */
    EACH(value, module) {
        int linkage = LLVMGetLinkage(value);
        if (linkage == LinkOnceAny || linkage == LinkOnceOdr)
            LLVMSetLinkage(value, linkage == LinkOnceAny ? WeakAny : WeakOdr);
    }
    if (expression) {
        regex_t compiled;
        if (regcomp(&compiled, expression, REG_EXTENDED | REG_NOSUB))
            die(expression, "no regular expression");
        EACH(value, module) {
            if (regexec(&compiled, name(value), 0, NULL, 0))
                LLVMSetLinkage(value, AvailableExternally);
        }
        pass(module, "elim-avail-extern,globaldce");
    }
    split(module, count(module));
    printf("%d\n", written);
    return 0;
}
