// main FILE TARGET: calls cos2 of the best view for a target, with LLVM's JIT. Object files are given to the JIT as they
// are, bitcode is linked before.
#include "SuperArchive.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

using namespace llvm;

static ExitOnError check("error: ");

int main(int count, char **words) {
    if (count != 3) {
        errs() << "usage: main FILE TARGET\n";
        return 2;
    }
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    auto archive = check(SuperArchive::open(check(errorOrToExpected(MemoryBuffer::getFile(words[1], false, false)))));
    gpustub_archive_view view = check(archive->view(words[2]));
    outs() << StringRef(view.name, view.name_length) << ":";

    auto jit = check(orc::LLJITBuilder().create());
    gpustub_archive_member first;
    if (gpustub_archive_find_symbol(&view, "cos2", 4, &first) != GPUSTUB_ARCHIVE_OK)
        check(superArchiveError(GPUSTUB_ARCHIVE_NONE, "cos2"));
    if (StringRef(first.name, first.name_length).take_back(3) == ".bc") {
        auto context = std::make_unique<LLVMContext>();
        auto module = std::make_unique<Module>("linked", *context);
        check(linkFromView(*module, view, "cos2"));
        for (const Function &function : *module)
            if (!function.isDeclaration())
                outs() << " " << function.getName();
        check(jit->addIRModule(orc::ThreadSafeModule(std::move(module), std::move(context))));
    } else {
        jit->getMainJITDylib().addGenerator(std::make_unique<SuperArchiveGenerator>(jit->getObjLinkingLayer(), view));
    }
    // LLVM 14 returns a `JITEvaluatedSymbol`, later releases an `ExecutorAddr`.
    auto address = check(jit->lookup("cos2"));
#if LLVM_VERSION_MAJOR < 15
    auto cos2 = reinterpret_cast<float (*)(float, float)>(address.getAddress());
#else
    auto cos2 = address.toPtr<float (*)(float, float)>();
#endif
    outs() << " cos2(1, 0.5) = " << format("%.4f", static_cast<double>(cos2(1.0F, 0.5F))) << "\n";
    return 0;
}
