use super::*;

#[test]
fn adds_the_dependency_and_keeps_the_rest() {
    let package = "[package]\nname = \"x\" # ours\n";
    let inherited = Value::from(InlineTable::from_iter([("workspace", true)]));
    for (before, after) in [
        (String::new(), "\n[build-dependencies]\n@\n".to_owned()),
        (
            format!("{package}\n[dependencies]\n"),
            format!("{package}\n[dependencies]\n\n[build-dependencies]\n@\n"),
        ),
        (
            format!("{package}# the end\n"),
            format!("{package}# the end\n\n[build-dependencies]\n@\n"),
        ),
        (
            format!("[build-dependencies]\ncc = \"1\"   # C\nzip = \"2\"\n\n{package}"),
            format!("[build-dependencies]\ncc = \"1\"   # C\n@\nzip = \"2\"\n\n{package}"),
        ),
        (
            "[build-dependencies]\nzip = \"2\"\ncc = \"1\"\n".into(),
            "[build-dependencies]\nzip = \"2\"\ncc = \"1\"\n@\n".into(),
        ),
        (
            "[build-dependencies.cc]\nversion = \"1\"\n".into(),
            "[build-dependencies]\n@\n[build-dependencies.cc]\nversion = \"1\"\n".into(),
        ),
    ] {
        for (value, text) in [
            (REQUIREMENT.into(), "\"0.1\""),
            (inherited.clone(), "{ workspace = true }"),
        ] {
            let after = after.replace('@', &format!("{HELPER} = {text}"));
            assert_eq!(add_helper(&before, value).unwrap(), after);
        }
    }
    assert_eq!(
        add_helper("\u{feff}[package]\r\nname = \"x\"\r\n", inherited).unwrap(),
        format!(
            "\u{feff}[package]\r\nname = \"x\"\r\n\r\n[build-dependencies]\r\n\
                 {HELPER} = {{ workspace = true }}\r\n"
        )
    );
    assert!(add_helper("[", REQUIREMENT.into()).is_err());
}

fn without_blanks(text: &str) -> String {
    text.replace([' ', '\n'], "")
}

#[test]
fn features_of_dependencies_are_added_once() {
    for (before, after) in [
        (
            "\"0.1\" # ours",
            "{ version = \"0.1\", features = [\"device-link\"] } # ours",
        ),
        (
            "{ path = \"x\" }",
            "{ path = \"x\" , features = [\"device-link\"] }",
        ),
        (
            "{ workspace = true, features = [\"a\"] }",
            "{ workspace = true, features = [\"a\", \"device-link\"] }",
        ),
    ] {
        let [before, after] =
            [before, after].map(|value| format!("[build-dependencies]\n{HELPER} = {value}\n"));
        let once = add_helper_feature(&before, HELPER, "device-link").unwrap();
        assert_eq!(without_blanks(&once), without_blanks(&after));
        assert_eq!(
            add_helper_feature(&once, HELPER, "device-link").unwrap(),
            once
        );
    }
}

#[test]
fn a_lock_file_names_the_users_of_the_helper() {
    let lock = "version = 4\n[[package]]\nname = \"a\"\ndependencies = [\"cc\", \"gpustub-build 0.1.0\"]\n\
                    [[package]]\nname = \"b\"\ndependencies = [\"gpustub-build-x\"]\n[[package]]\nname = \"c\"\n";
    assert_eq!(users_of_helper(lock), ["a"]);
    assert!(users_of_helper("").is_empty() && users_of_helper("[").is_empty());
}

#[test]
fn a_links_key_stays() {
    let once = add_links("[package]\nname = \"x\"\n\n[lib]\n", "gpustub-x").unwrap();
    assert_eq!(
        once,
        "[package]\nname = \"x\"\nlinks = \"gpustub-x\"\n\n[lib]\n"
    );
    assert_eq!(add_links(&once, "other").unwrap(), once);
}

#[test]
fn features_are_forwarded_as_requested() {
    let implicit = ["dep:a".to_owned()];
    let pass = |text: &str, features: &[&'static str]| {
        let features = features.iter().map(|name| (*name, &implicit[..]));
        pass_features(text, "b", features).unwrap()
    };
    let plain = "[features]\ngpu = [\"dep:a\", \"bc/x\"] # ours\n";
    let once = "[features]\ngpu = [\"dep:a\", \"bc/x\", \"b/gpu\"] # ours\n";
    assert_eq!(pass(plain, &["gpu"]), once);
    assert_eq!(pass(once, &["gpu"]), once);
    assert_eq!(pass(once, &[]), plain);
    // A feature that an optional dependency defines keeps its meaning.
    let package = "[package]\nname = \"x\"\n";
    let explicit = format!("{package}\n[features]\na = [\"dep:a\", \"b/a\"]\n");
    assert_eq!(pass(package, &["a"]), explicit);
    assert_eq!(pass(package, &[]), package);
}

#[test]
fn a_dependency_moves_and_follows_its_version() {
    fn set(text: &str, kind: &str, version: Option<&str>) -> String {
        let mut table = InlineTable::from_iter([("path", "p")]);
        if let Some(version) = version {
            table.insert("version", version.into());
        }
        set_dependency(text, kind, "b", &table).unwrap()
    }
    let normal = "[dependencies]\nb = { path = \"p\", version = \"=1.0.0\" }\n";
    assert_eq!(set("", "dependencies", Some("=1.0.0")).trim_start(), normal);
    for same in [normal, &normal.replace('"', "'")] {
        assert_eq!(set(same, "dependencies", Some("=1.0.0")), same);
    }
    assert_eq!(
        without_blanks(&set(normal, "dependencies", Some("=2.0.0"))),
        without_blanks(&normal.replace("=1", "=2"))
    );
    assert_eq!(
        without_blanks(&set(normal, "dev-dependencies", None)),
        "[dev-dependencies]b={path=\"p\"}"
    );
}

#[test]
fn reads_the_relevant_keys() {
    let with = "[workspace.dependencies]\ngpustub-build = \"0.1\"\n";
    assert!(workspace_declares(with).unwrap());
    assert!(!workspace_declares("[workspace]\nmembers = []\n").unwrap());
    assert!(build_is_off("[package]\nbuild = false\n").unwrap());
    assert!(!build_is_off("[package]\nbuild = \"b.rs\"\n").unwrap());
}

#[test]
fn a_dependency_is_renamed_in_place() {
    for (before, after) in [
        (
            "[dependencies]\n# Ours.\na = { path = \"p\" } # here\nb = \"1\"\n",
            "[dependencies]\nb = \"1\"\n# Ours.\nx = { path = \"p\" } # here\n",
        ),
        (
            "[features]\ng = [\"a/g\", \"a?/h\", \"dep:a\", \"ab/g\", \"dep:ab\"] # g\n",
            "[features]\ng = [\"x/g\", \"x?/h\", \"dep:x\", \"ab/g\", \"dep:ab\"] # g\n",
        ),
        (
            "[dev-dependencies]\na = \"1\"\nx = \"2\"\n",
            "[dev-dependencies]\nx = \"2\"\n",
        ),
        (
            "dependencies = { a = \"1\" }\n",
            "dependencies = { x = \"1\" }\n",
        ),
        ("[package]\nname = \"a\"\n", "[package]\nname = \"a\"\n"),
    ] {
        let renamed = rename_dependency(before, "a", "x").unwrap();
        assert_eq!(renamed.replace(' ', ""), after.replace(' ', ""));
    }
}
