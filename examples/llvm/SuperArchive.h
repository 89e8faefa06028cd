// Views of super-archives for LLVM: definitions for its JIT, and modules for its linker.
#ifndef SUPER_ARCHIVE_H
#define SUPER_ARCHIVE_H

#include <gpustub_archive.h>

#include <llvm/ADT/DenseSet.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/Layer.h>
#include <llvm/IR/Module.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>

#include <memory>
#include <vector>

/// An error of the reader.
inline llvm::Error superArchiveError(int Status, llvm::StringRef What) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "super-archive: %s: status %d", What.str().c_str(), Status);
}

/// A super-archive in a buffer.
class SuperArchive {
public:
    static llvm::Expected<std::unique_ptr<SuperArchive>> open(std::unique_ptr<llvm::MemoryBuffer> Buffer) {
        std::unique_ptr<SuperArchive> Archive(new SuperArchive(std::move(Buffer)));
        int Status = gpustub_archive_open(&Archive->Reader, Archive->Buffer->getBufferStart(), Archive->Buffer->getBufferSize());
        if (Status != GPUSTUB_ARCHIVE_OK)
            return superArchiveError(Status, Archive->Buffer->getBufferIdentifier());
        return Archive;
    }

    /// The best view for a target, such as `gfx90a:xnack-` or `sm_90a`. Refers to the archive.
    llvm::Expected<gpustub_archive_view> view(llvm::StringRef Target) const {
        gpustub_archive_view View;
        int Status = gpustub_archive_best_view(&Reader, Target.data(), Target.size(), &View);
        if (Status != GPUSTUB_ARCHIVE_OK)
            return superArchiveError(Status, Target);
        return View;
    }

private:
    explicit SuperArchive(std::unique_ptr<llvm::MemoryBuffer> Buffer) : Buffer(std::move(Buffer)) {}

    std::unique_ptr<llvm::MemoryBuffer> Buffer;
    gpustub_archive Reader;
};

/// The name and the contents of a member, which stay in the archive.
inline llvm::Expected<llvm::MemoryBufferRef> memberBuffer(const gpustub_archive_member &Member) {
    llvm::StringRef Name(Member.name, Member.name_length);
    const void *Data;
    size_t Size;
    int Status = gpustub_archive_data(&Member.contents, &Data, &Size);
    if (Status != GPUSTUB_ARCHIVE_OK)
        return superArchiveError(Status, Name);
    return llvm::MemoryBufferRef(llvm::StringRef(static_cast<const char *>(Data), Size), Name);
}

/// Adds the object files that the JIT needs. Each symbol is searched from the view's first layer, whichever member
/// refers to it.
class SuperArchiveGenerator : public llvm::orc::DefinitionGenerator {
public:
    SuperArchiveGenerator(llvm::orc::ObjectLayer &Layer, const gpustub_archive_view &View) : Layer(Layer), View(View) {}

    llvm::Error tryToGenerate(llvm::orc::LookupState &, llvm::orc::LookupKind, llvm::orc::JITDylib &Dylib,
                              llvm::orc::JITDylibLookupFlags, const llvm::orc::SymbolLookupSet &Symbols) override {
        for (const auto &Symbol : Symbols) {
            llvm::StringRef Name = *Symbol.first;
            gpustub_archive_member Member;
            int Status = gpustub_archive_find_symbol(&View, Name.data(), Name.size(), &Member);
            if (Status == GPUSTUB_ARCHIVE_NONE)
                continue;
            if (Status != GPUSTUB_ARCHIVE_OK)
                return superArchiveError(Status, Name);
            if (!Added.insert(Member.position).second)
                continue;
            auto Buffer = memberBuffer(Member);
            if (!Buffer)
                return Buffer.takeError();
            if (llvm::Error Failed = Layer.add(Dylib, llvm::MemoryBuffer::getMemBuffer(*Buffer, false)))
                return Failed;
        }
        return llvm::Error::success();
    }

private:
    llvm::orc::ObjectLayer &Layer;
    gpustub_archive_view View;
    llvm::DenseSet<uint32_t> Added;
};

/// Links the bitcode members that a symbol needs into a module.
inline llvm::Error linkFromView(llvm::Module &Into, const gpustub_archive_view &View, llvm::StringRef Symbol) {
    gpustub_archive_closure Closure;
    gpustub_archive_member Member;
    std::vector<uint32_t> Memory(View.member_count);
    gpustub_archive_closure_start(&Closure, &View, Memory.data());
    int Status = gpustub_archive_closure_add(&Closure, Symbol.data(), Symbol.size());
    if (Status != GPUSTUB_ARCHIVE_OK)
        return superArchiveError(Status, Symbol);
    while ((Status = gpustub_archive_closure_next(&Closure, &Member)) == GPUSTUB_ARCHIVE_OK) {
        auto Buffer = memberBuffer(Member);
        if (!Buffer)
            return Buffer.takeError();
        auto Module = llvm::parseBitcodeFile(*Buffer, Into.getContext());
        if (!Module)
            return Module.takeError();
        for (const llvm::GlobalValue &Value : (*Module)->global_values()) {
            llvm::StringRef Name = Value.getName();
            Status = Value.isDeclaration() ? gpustub_archive_closure_add(&Closure, Name.data(), Name.size()) : 0;
            if (Status < 0)
                return superArchiveError(Status, Name);
        }
        if (llvm::Linker::linkModules(Into, std::move(*Module)))
            return superArchiveError(0, "the modules cannot be linked");
    }
    return Status == GPUSTUB_ARCHIVE_NONE ? llvm::Error::success() : superArchiveError(Status, Symbol);
}

#endif
