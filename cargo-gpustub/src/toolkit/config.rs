//! Edits of cargo's configuration file: the variables that name the tree, and the build scripts
//! that cargo does not run.

use std::collections::BTreeMap;

use gpustub_core::manifest::Toolkit;
use gpustub_workspace::edit::{as_before, separate};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::layout::{ScriptOutput, ToolkitLayout};

/// The new text, and the keys that could not be set.
#[derive(Debug)]
pub struct EditedConfig {
    /// The text.
    pub text: String,
    /// Keys with other values, which are unchanged.
    pub conflicts: Vec<String>,
}

/// Makes the text agree with `[toolkit]`.
pub fn edit(text: &str, layout: &ToolkitLayout, toolkit: &Toolkit) -> Result<EditedConfig, String> {
    let mut document: DocumentMut = text.parse().map_err(|e| format!("{e}"))?;
    let mut conflicts = Vec::new();
    edit_variables(&mut document, layout, toolkit, &mut conflicts)?;
    for name in &toolkit.override_build_scripts {
        if let Some(script) = layout.overrides.crates.get(&name.value) {
            for target in &layout.overrides.targets {
                edit_override(&mut document, target, script, &mut conflicts)?;
            }
        }
    }
    let edited = document.to_string();
    let edited = if text.trim().is_empty() {
        edited.trim_start()
    } else {
        &edited
    };
    Ok(EditedConfig {
        text: as_before(text, edited),
        conflicts,
    })
}

/// Sets the variables that name the tree, and removes those of other families.
fn edit_variables(
    document: &mut DocumentMut,
    layout: &ToolkitLayout,
    toolkit: &Toolkit,
    conflicts: &mut Vec<String>,
) -> Result<(), String> {
    let variables = layout.variables(toolkit);
    if let Some(env) = document.get_mut("env").and_then(Item::as_table_like_mut) {
        for name in &variables.unset {
            if env
                .get(name)
                .is_some_and(|item| tree_path(item) == Some(&toolkit.path))
            {
                env.remove(name);
            }
        }
    }
    if variables.set.is_empty() {
        return Ok(());
    }
    if !document.contains_key("env") {
        document.insert("env", Item::Table(Table::new()));
        separate(document, "env");
    }
    let env = table(document, &["env"])?;
    for name in &variables.set {
        if env.get(name).is_some_and(|item| tree_path(item).is_none()) {
            conflicts.push(format!("env.{name}"));
        } else {
            set(env, name, variable(toolkit));
        }
    }
    Ok(())
}

/// Sets the output of a build script for one target.
fn edit_override(
    document: &mut DocumentMut,
    target: &str,
    script: &ScriptOutput,
    conflicts: &mut Vec<String>,
) -> Result<(), String> {
    let output = table(document, &["target", target, &script.links])?;
    let has_libraries = output
        .get("rustc-link-lib")
        .is_some_and(|item| strings(item) == script.libraries);
    match output.len() {
        0 => {
            let libraries: Array = script.libraries.iter().map(String::as_str).collect();
            output.insert("rustc-link-lib", toml_edit::value(libraries));
        }
        1 if has_libraries => {}
        _ => conflicts.push(format!("target.{target}.{}", script.links)),
    }
    Ok(())
}

/// `{ value = "…", relative = true }`: relative to the directory that contains `.cargo`.
fn variable(toolkit: &Toolkit) -> InlineTable {
    let mut table = InlineTable::new();
    table.insert("value", toolkit.path.as_str().into());
    table.insert("relative", true.into());
    if toolkit.force {
        table.insert("force", true.into());
    }
    table
}

/// The path of a variable in the form that this program writes: no other tool sets these variables to a
/// path in the workspace.
fn tree_path(item: &Item) -> Option<&str> {
    let table = item.as_table_like()?;
    let relative = table.get("relative").and_then(Item::as_bool);
    (relative == Some(true)).then(|| table.get("value")?.as_str())?
}

fn strings(item: &Item) -> Vec<&str> {
    item.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Keys and values of a variable, independent of its form.
fn values(item: &Item) -> Option<BTreeMap<&str, String>> {
    let mut values = BTreeMap::new();
    for (key, value) in item.as_table_like()?.iter() {
        let text = match (value.as_str(), value.as_bool()) {
            (Some(text), _) => text.to_owned(),
            (_, Some(is_set)) => is_set.to_string(),
            _ => value.to_string(),
        };
        values.insert(key, text);
    }
    Some(values)
}

/// Sets a variable. One with the same values keeps its form.
fn set(env: &mut dyn TableLike, name: &str, new: InlineTable) {
    let new = Item::Value(new.into());
    match env.get_mut(name) {
        Some(old) if values(old) == values(&new) => {}
        Some(old) => {
            let decor = old.as_value().map(|value| value.decor().clone());
            *old = new;
            if let (Some(value), Some(decor)) = (old.as_value_mut(), decor) {
                *value.decor_mut() = decor;
            }
        }
        None => drop(env.insert(name, new)),
    }
}

/// The table at these keys, which is created if absent.
fn table<'d>(
    document: &'d mut DocumentMut,
    keys: &[&str],
) -> Result<&'d mut dyn TableLike, String> {
    let mut item = document.as_item_mut();
    for (index, key) in keys.iter().enumerate() {
        let table = item
            .as_table_like_mut()
            .ok_or_else(|| format!("`{}` is not a table", keys[..index].join(".")))?;
        item = table.entry(key).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(index + 1 < keys.len());
            Item::Table(table)
        });
    }
    item.as_table_like_mut()
        .ok_or_else(|| format!("`{}` is not a table", keys.join(".")))
}

#[cfg(test)]
mod tests {
    use gpustub_core::manifest::Manifest;

    use super::*;

    fn edited(text: &str, table: &str) -> EditedConfig {
        let (manifest, diagnostics) =
            Manifest::parse("GpuStub.toml", &format!("schema = 1\n[toolkit]\n{table}"));
        assert_eq!(diagnostics, []);
        edit(
            text,
            &ToolkitLayout::shipped(),
            &manifest.toolkit.unwrap().value,
        )
        .unwrap()
    }

    const HIP: &str = "\
HIP_PATH = { value = \"gpustub-toolkit\", relative = true }
ROCM_PATH = { value = \"gpustub-toolkit\", relative = true }
";

    #[test]
    fn edit_adds_variables_and_keeps_the_rest() {
        for (before, after) in [
            ("", format!("[env]\n{HIP}")),
            (
                "[alias]\nx = \"run\" # ours\n",
                format!("[alias]\nx = \"run\" # ours\n\n[env]\n{HIP}"),
            ),
            (
                "[env]\nA = \"1\" # a\n\n[build]\njobs = 2\n",
                format!("[env]\nA = \"1\" # a\n{HIP}\n[build]\njobs = 2\n"),
            ),
            // An equal value keeps its form, one with another directory is changed.
            (
                "[env]\nHIP_PATH = { relative = true, value = 'gpustub-toolkit' }\n",
                "[env]\nHIP_PATH = { relative = true, value = 'gpustub-toolkit' }\n\
                 ROCM_PATH = { value = \"gpustub-toolkit\", relative = true }\n"
                    .into(),
            ),
            (
                "[env]\nHIP_PATH = { value = \"old\", relative = true } # kept\n",
                format!("[env]\n{}", HIP.replacen("}\n", "} # kept\n", 1)),
            ),
        ] {
            let edited = edited(before, "hip = '6.4'");
            assert_eq!(edited.conflicts, [""; 0]);
            assert_eq!(edited.text, after, "{before}");
        }
    }

    #[test]
    fn edit_reports_and_keeps_values_of_the_user() {
        let before = "[env]\nHIP_PATH = \"/opt/rocm\"\nROCM_PATH = { value = \"/opt/rocm\" }\n";
        let edited = edited(before, "hip = '6.4'");
        assert_eq!(edited.conflicts, ["env.HIP_PATH", "env.ROCM_PATH"]);
        assert_eq!(edited.text, before);
        let (manifest, _) = Manifest::parse("GpuStub.toml", "schema = 1\n[toolkit]\nhip = '6.4'");
        let toolkit = manifest.toolkit.unwrap().value;
        for invalid in ["[", "env = 1\n"] {
            assert!(
                edit(invalid, &ToolkitLayout::shipped(), &toolkit).is_err(),
                "{invalid}"
            );
        }
    }

    #[test]
    fn edit_removes_variables_of_undeclared_families() {
        let both = edited("", "hip = '6.4'\ncuda = '12.8'").text;
        assert_eq!(both.matches("gpustub-toolkit").count(), 7);
        let edited = edited(&both, "hip = '6.4'\nforce = true");
        let forced = HIP.replace("true }", "true, force = true }");
        assert_eq!(edited.text, format!("[env]\n{forced}"));
    }

    #[test]
    fn edit_overrides_build_scripts() {
        let table = "override-build-scripts = ['cuda-driver-sys']";
        let text = edited("", table).text;
        assert_eq!(
            text,
            "[target.aarch64-unknown-linux-gnu.cuda]\nrustc-link-lib = [\"cuda\"]\n\n\
             [target.x86_64-unknown-linux-gnu.cuda]\nrustc-link-lib = [\"cuda\"]\n"
        );
        assert_eq!(edited(&text, table).text, text);
        let changed = text.replacen("\"cuda\"", "\"mine\"", 1);
        let edited = edited(&changed, table);
        assert_eq!(edited.conflicts, ["target.aarch64-unknown-linux-gnu.cuda"]);
        assert_eq!(edited.text, changed);
    }
}
