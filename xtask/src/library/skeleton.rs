//! A manifest to review, from a library and its headers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use gpustub_cdecl::{ResultClass, Results};

use crate::fallbacks::declared;
use crate::fallbacks::outs::out_parameters;
use crate::recipes::{Recipe, find, read_exports};

/// Manifest of a library that has none. Status codes, results and out-parameters are those of the newest headers.
pub fn manifest(id: &str, recipe: &Recipe, components: &Path) -> Result<String, String> {
    let row = recipe.exports.last().ok_or("the recipe has no `exports`")?;
    let (Some(directory), Some(file)) = (&row.directory, &row.file) else {
        return Err(format!("recipes.toml: {}: `in` and `file`", row.version));
    };
    let library = read_exports(&find(&components.join(directory), file)?)?;
    let soname = library.soname.unwrap_or_else(|| file.clone());
    let stem = soname
        .split_once(".so")
        .map_or(&soname[..], |(stem, _)| stem);
    let link_name = stem.strip_prefix("lib").unwrap_or(stem);
    let names: Vec<&str> = library
        .symbols
        .iter()
        .map(|symbol| symbol.name.as_str())
        .collect();
    let mut text = format!(
        "# Written by `cargo xtask library {id}`. Review each part, and remove these comments.\n\
         schema = 1\nid = \"{id}\"\ntitle = \"{id}\"\n\
         # `cuda` or `rocm`, whose directories are searched; `independent-major = true` if versions are its own.\n\
         family = \"cuda\"\nrole = \"toolkit\"\nlink-names = [\"{link_name}\"]\n\n\
         # Newest major first, with `major = N`, and the unversioned name last.\n\
         [load-names]\nlinux = [{{ name = \"{soname}\" }}, {{ name = \"{stem}.so\" }}]\n\n"
    );
    // Not those of included headers: cuda_runtime_api.h has more functions than nvtiff.h, with another status.
    let declarations = declared(recipe, components, &|name| names.contains(&name))?;
    text += &match declarations {
        Some(functions) => from_headers(id, &functions, &names),
        None => format!(
            "# The recipe has no `headers`: the codes that callers take for \"not available\".\n\
             [status]\nlibrary-missing = 1\nmissing = 1\nrefused = 1\nunloading = 1\n\
             string = \"{id} is not available; GPUSTUB_LOG=1 shows why\"\n"
        ),
    };
    Ok(text)
}

fn from_headers(id: &str, declared: &gpustub_cdecl::Declarations, names: &[&str]) -> String {
    let results = Results::new(declared);
    let (name, code) = results
        .unavailable
        .clone()
        .unwrap_or_else(|| ("the header has no code for it".to_owned(), 1));
    let mut text = format!(
        "# {name}. `missing` is a code for an unknown function, `refused` one for \"not supported\".\n\
         [status]\nlibrary-missing = {code}\nmissing = {code}\nrefused = {code}\nunloading = {code}\n\
         string = \"{id} is not available; GPUSTUB_LOG=1 shows why\"\n"
    );
    let mut fallbacks = BTreeMap::new();
    let mut outs = BTreeMap::new();
    for name in names {
        let Some(function) = declared.functions.get(*name) else {
            continue;
        };
        match results.classes.get(*name) {
            Some(ResultClass::Status) if is_setter(name) => {}
            Some(ResultClass::Status) => {
                let arguments: Vec<String> = out_parameters(function)
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                if !arguments.is_empty() {
                    outs.insert(*name, arguments.join(", "));
                }
            }
            Some(class) => drop(fallbacks.insert(*name, returns(*class))),
            None => drop(fallbacks.insert(*name, "\"null\"".to_owned())),
        }
    }
    text += "\n# Functions without a status: their results. Names of status codes are `error-name`, `error-string`.\n\
             [fallback]\n";
    for (name, returns) in fallbacks {
        let _ = writeln!(text, "{name} = {{ returns = {returns} }}");
    }
    text += "\n# Pointers to handles, numbers and texts, without functions that set something, whose pointers are inputs. Remove\n\
             # those that functions also read, and arrays.\n[zero-out]\n";
    for (name, arguments) in outs {
        let _ = writeln!(text, "{name} = [{arguments}]");
    }
    text
}

fn returns(class: ResultClass) -> String {
    match class {
        ResultClass::Void => "\"void\"".to_owned(),
        ResultClass::Status => "\"status\"".to_owned(),
        ResultClass::String => "\"string\"".to_owned(),
        ResultClass::Null => "\"null\"".to_owned(),
        ResultClass::Struct(size) => format!("{{ zeroed-struct = {size} }}"),
        ResultClass::Hfa(size) => format!("{{ zeroed-hfa = {size} }}"),
    }
}

/// Whether a function sets something by its name: `nvtiffEncodeParamsSetInputs`, `rocblas_set_stream`.
fn is_setter(name: &str) -> bool {
    let rest = name.split("Set").skip(1);
    let mut is_word = rest.map(|rest| !rest.starts_with(|c: char| c.is_ascii_lowercase()));
    name.contains("_set_") || is_word.any(|is_word| is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs clang: tests/run"]
    fn status_is_that_of_the_library_and_setters_have_no_out_parameters() {
        let components = tempfile::tempdir().unwrap();
        let include = components.path().join("acme/include");
        std::fs::create_dir_all(&include).unwrap();
        // Like nvtiff.h, whose includes declare more functions than it does.
        let others = "typedef enum { cudaSuccess, cudaErrorNotInitialized = 6 } cudaError_t;\n\
            cudaError_t cudaA(void); cudaError_t cudaB(void); cudaError_t cudaC(void); cudaError_t cudaD(void);\n";
        let header = "#include \"cuda.h\"\n\
            typedef enum { ACME_STATUS_SUCCESS, ACME_STATUS_NOT_INITIALIZED } acmeStatus_t;\n\
            acmeStatus_t acmeCreate(void **handle); acmeStatus_t acmeReset(int *state);\n\
            acmeStatus_t acmeSetInputs(void **inputs); acmeStatus_t acmeIsReady(_Bool *ready);\n\
            acmeStatus_t acmeGetName(char *name, unsigned size, const char *key);\n";
        std::fs::write(include.join("cuda.h"), others).unwrap();
        std::fs::write(include.join("acme.h"), header).unwrap();
        let source = components.path().join("acme.c");
        let functions = "int acmeCreate(void **h) { return 0; } int acmeReset(int *s) { return 0; }\n\
            int acmeSetInputs(void **i) { return 0; } int acmeIsReady(_Bool *r) { return 0; }\n\
            int acmeGetName(char *n, unsigned s, const char *k) { return 0; }\n";
        std::fs::write(&source, functions).unwrap();
        let mut cc = std::process::Command::new("cc");
        cc.args(["-w", "-shared", "-fPIC", "-Wl,-soname,libacme.so.1", "-o"])
            .arg(components.path().join("acme/libacme.so.1"))
            .arg(&source);
        assert!(cc.status().unwrap().success());
        let recipe: Recipe = toml::from_str(
            "exports = [{ version = \"1\", in = \"acme\", file = \"libacme.so.1\" }]\n\
             headers = [{ version = \"1\", in = [\"acme\"] }]\ninclude = [[\"acme.h\"]]\ndefines = [[]]\n",
        )
        .unwrap();
        let text = manifest("acme", &recipe, components.path()).unwrap();
        assert!(text.contains("# ACME_STATUS_NOT_INITIALIZED. "), "{text}");
        assert!(
            text.contains("\nlibrary-missing = 1\nmissing = 1\n"),
            "{text}"
        );
        let outs = text.split_once("[zero-out]\n").unwrap().1;
        assert_eq!(
            outs,
            "acmeCreate = [0]\nacmeGetName = [{ arg = 0, size = 1 }]\nacmeIsReady = [{ arg = 0, size = 1 }]\n\
             acmeReset = [{ arg = 0, size = 4 }]\n"
        );
    }
}
